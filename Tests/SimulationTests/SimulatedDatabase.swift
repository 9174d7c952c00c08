import TestSupport
import TidemarkCloud
import TidemarkModel

/// The cloud for a device's engine, in front of all faults. It calls the simulation at each request and each answer, where other
/// devices may act, and where the device may be killed.
struct SimulatedDatabase: ForwardingDatabase {
    let base: any CloudDatabase
    let device: Int
    /// The number of the account whose cloud it is.
    let number: Int
    let account: SimulatedAccount
    let kill: KillSwitch
    let limits: CloudLimits
    /// The most changes in one answer.
    let page: Int?
    unowned let simulation: Simulation

    func limits() async throws(CloudError) -> CloudLimits { limits }

    func admit() throws(CloudError) {
        kill.tick()
        guard !kill.isDead else { throw CloudError(.networkUnavailable, "simulated: the process is dead") }
        try account.admit()
    }

    func account() async throws(CloudError) -> CloudAccount {
        kill.tick()
        guard !kill.isDead else { throw CloudError(.networkUnavailable, "simulated: the process is dead") }
        let status = account.status
        return status == .available ? try await base.account() : CloudAccount(status: status)
    }

    func modify(_ request: ModifyRecordsRequest) async throws(CloudError) -> [RecordOutcome] {
        try admit()
        await simulation.willModify(request, by: device, for: number)
        try admit()
        do throws(CloudError) {
            if let refusal = await simulation.refusal(of: request) { throw refusal }
            let outcomes = try await base.modify(request)
            await simulation.didModify(request, outcomes, by: device)
            kill.tick()
            return outcomes
        } catch {
            await simulation.note("d\(device) modify failed: \(error.code.rawValue)")
            throw error
        }
    }

    func zoneChanges(
        _ zone: CloudZoneID, since token: CloudToken?, limit: Int?, desiredKeys: Set<String>?
    ) async throws(CloudError) -> ZoneChanges {
        try admit()
        await simulation.interrupt(device)
        try admit()
        do {
            let changes = try await base.zoneChanges(zone, since: token, limit: page, desiredKeys: desiredKeys)
            await simulation.didFetch(changes, by: device)
            kill.tick()
            return changes
        } catch {
            await simulation.note("d\(device) fetch failed: \(error.code.rawValue)")
            throw error
        }
    }
}

/// Holds the database of an account. It is replaced when the cloud is put back.
final class DatabasePlace: Sendable {
    private let current = LockedValue<(any CloudDatabase)?>(nil)

    var database: any CloudDatabase {
        get { current.withLock { $0 }! }
        set { current.withLock { $0 = newValue } }
    }
}

/// Forwards to the database that its place holds now.
struct PlacedDatabase: ForwardingDatabase {
    let place: DatabasePlace
    var base: any CloudDatabase { place.database }

    func admit() throws(CloudError) {}

    func modify(_ request: ModifyRecordsRequest) async throws(CloudError) -> [RecordOutcome] { try await base.modify(request) }

    func zoneChanges(
        _ zone: CloudZoneID, since token: CloudToken?, limit: Int?, desiredKeys: Set<String>?
    ) async throws(CloudError) -> ZoneChanges {
        try await base.zoneChanges(zone, since: token, limit: limit, desiredKeys: desiredKeys)
    }
}

/// The cloud itself, behind all faults. It reports to the simulation what the cloud does.
struct ObservedDatabase: ForwardingDatabase {
    let base: any CloudDatabase
    let device: Int
    /// The number of the account whose cloud it is.
    let number: Int
    let kill: KillSwitch
    unowned let simulation: Simulation

    func admit() throws(CloudError) {}

    func modify(_ request: ModifyRecordsRequest) async throws(CloudError) -> [RecordOutcome] {
        let outcomes = try await base.modify(request)
        await simulation.didCommit(request, outcomes, by: device, for: number)
        // The cloud has carried it out, and the device does not know yet.
        kill.tick()
        return outcomes
    }

    func zoneChanges(
        _ zone: CloudZoneID, since token: CloudToken?, limit: Int?, desiredKeys: Set<String>?
    ) async throws(CloudError) -> ZoneChanges {
        let changes = try await base.zoneChanges(zone, since: token, limit: limit, desiredKeys: desiredKeys)
        await simulation.willAnswer(changes, since: token, to: device, for: number)
        return changes
    }
}
