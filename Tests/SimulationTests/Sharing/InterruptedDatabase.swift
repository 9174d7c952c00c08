import TestSupport
import TidemarkCloud
import TidemarkModel

/// The cloud for a device's engine. Other devices act between its requests and their answers, and the device may be killed there.
struct InterruptedDatabase: ForwardingDatabase {
    let base: any CloudDatabase
    let kill: KillSwitch
    let limits: CloudLimits
    /// The most changes in one answer.
    let page: Int?
    /// Lets another device act.
    let interrupt: @Sendable () async -> Void

    func limits() async throws(CloudError) -> CloudLimits { limits }

    func admit() throws(CloudError) {
        kill.tick()
        guard !kill.isDead else { throw CloudError(.networkUnavailable, "simulated: the process is dead") }
    }

    private func between<Answer: Sendable>(
        _ request: () async throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer {
        try admit()
        await interrupt()
        try admit()
        let answer = try await request()
        await interrupt()
        kill.tick()
        return answer
    }

    func modify(_ request: ModifyRecordsRequest) async throws(CloudError) -> [RecordOutcome] {
        try await between { () async throws(CloudError) in try await base.modify(request) }
    }

    func databaseChanges(since token: CloudToken?, limit: Int?) async throws(CloudError) -> DatabaseChanges {
        try await between { () async throws(CloudError) in try await base.databaseChanges(since: token, limit: page) }
    }

    func zoneChanges(
        _ zone: CloudZoneID, since token: CloudToken?, limit: Int?, desiredKeys: Set<String>?
    ) async throws(CloudError) -> ZoneChanges {
        try await between { () async throws(CloudError) in
            try await base.zoneChanges(zone, since: token, limit: page, desiredKeys: desiredKeys)
        }
    }
}

/// The cloud behind all faults. It counts the changes.
struct CountedDatabase: ForwardingDatabase {
    let place: DatabasePlace
    /// Called with the outcomes of each request.
    let didChange: @Sendable ([RecordOutcome]) async -> Void
    var base: any CloudDatabase { place.database }

    func modify(_ request: ModifyRecordsRequest) async throws(CloudError) -> [RecordOutcome] {
        let outcomes = try await base.modify(request)
        await didChange(outcomes)
        return outcomes
    }

    func zoneChanges(
        _ zone: CloudZoneID, since token: CloudToken?, limit: Int?, desiredKeys: Set<String>?
    ) async throws(CloudError) -> ZoneChanges {
        try await base.zoneChanges(zone, since: token, limit: limit, desiredKeys: desiredKeys)
    }
}
