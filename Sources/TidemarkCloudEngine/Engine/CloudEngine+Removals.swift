import Foundation
import Logging
package import TidemarkCloud
import TidemarkModel

/// Removals of more than one transaction can hold.
///
/// No request holds the database for long: what is left of a removal goes on in steps, between which other requests write. A step is a
/// transaction, and the removal is a row of the database, so that it goes on after the process has ended.
extension CloudEngine {
    /// Records that a request, or a step, removes beside those that it names.
    static let removedAtOnce = 500

    static func removing(_ what: String) -> CloudError {
        CloudError(
            .zoneBusy, forClients: "the records and shares of the deleted \(what) are still being removed",
            retryAfter: .seconds(1))
    }

    /// Whether something is left to be removed.
    func hasRemovals() async throws(CloudError) -> Bool {
        try await storage.read { rows throws(CloudError) in try rows.ownerOfNextRemoval() != nil }
    }

    /// Does the next step of an owner's removals, those first that were begun first.
    ///
    /// - Returns: `false` when there is none.
    package func removeNext(_ assetStorage: any AssetStorage) async throws(CloudError) -> Bool {
        let next = try await storage.read { rows throws(CloudError) in try rows.ownerOfNextRemoval() }
        guard let owner = next else { return false }
        let released = try await write(owners: [owner]) { rows, found throws(CloudError) -> [ReleasedAssets] in
            var released: [ReleasedAssets] = []
            var room = Self.removedAtOnce
            // Many removals have few records each.
            while room > 0, let removal = try rows.nextRemoval(of: owner) {
                let (count, gone) = try goOn(with: removal, found, rows)
                released.append(gone)
                room -= max(1, count)
            }
            return released
        }
        for assets in released { await remove(assets, assetStorage) }
        // Another process may have done what there was of this owner, and there may be more of others.
        return true
    }

    /// Goes on with one removal, and ends it when nothing is left.
    ///
    /// - Returns: How many records it has removed at the most, and the assets that are named no more.
    private func goOn(
        with removal: StoredRemoval, _ found: FoundOwners, _ rows: any CloudTransaction
    ) throws(CloudError) -> (count: Int, released: ReleasedAssets) {
        guard let zone = try rows.zone(removal.zone) else {
            try rows.endRemoval(removal)
            return (0, ReleasedAssets())
        }
        if removal.kind == .zone {
            let (isDone, released) = try removeRecords(of: removal, zone, rows)
            if isDone { try rows.endRemoval(removal) }
            return (Self.removedAtOnce, released)
        }
        guard zone.state == .present else {
            // The removal of the zone's records takes these along.
            try rows.endRemoval(removal)
            return (0, ReleasedAssets())
        }
        let caller = Caller(user: removal.user, scope: zone.place.scope, quota: .max)
        let shares = zone.sharing == .hierarchies ? try rows.shares(in: zone.id) : []
        var batch = try ModifyBatch(
            engine: self, request: ModifyRecordsRequest(zone: id(of: zone, caller), operations: []),
            access: ShareAccess(zone, caller, shares: shares), finding: found, rows)
        if try batch.goOn(with: removal, rows) { try rows.endRemoval(removal) }
        return (Self.removedAtOnce - batch.removable, batch.released)
    }

    /// Removes the next records of a deleted zone of an account.
    func removeRecords(
        of removal: StoredRemoval, _ zone: StoredZone, _ rows: any CloudTransaction
    ) throws(CloudError) -> (isDone: Bool, ReleasedAssets) {
        let (count, bytes, assets) = try rows.removeRecords(in: zone.id, limit: Self.removedAtOnce)
        try rows.addUsed(-bytes, by: zone.place.owner)
        return (count < Self.removedAtOnce, try ReleasedAssets(assets, of: zone.place.owner, rows))
    }
}

/// Goes on with what requests have left to be removed, as long as there is something.
package final class RemovalTask: Sendable {
    private enum State { case idle, running, asked }

    private let engine: CloudEngine
    private let assetStorage: any AssetStorage
    private let notifier: any ChangeSignal
    private let logger = Logger(label: "tidemark.cloud")
    private let state = LockedValue(State.idle)

    package init(_ engine: CloudEngine, _ assetStorage: any AssetStorage, _ notifier: any ChangeSignal) {
        (self.engine, self.assetStorage, self.notifier) = (engine, assetStorage, notifier)
    }

    /// Begins, unless it runs.
    package func begin() {
        let isIdle = state.withLock { state in
            defer { state = state == .idle ? .running : .asked }
            return state == .idle
        }
        guard isIdle else { return }
        Task(priority: .utility) { [self] in
            repeat {
                do {
                    try await run()
                } catch {
                    logger.error(
                        "deleted records are not removed from the disk yet; a server tries again each hour, and so does each opening of the cloud",
                        metadata: ["reason": "\(error)"])
                }
            } while state.withLock { state in
                state = state == .asked ? .running : .idle
                return state == .running
            }
        }
    }

    /// Does all steps that there are, and rests after each for as long as it has taken: others write meanwhile.
    func run() async throws {
        let clock = ContinuousClock()
        var backoff = Backoff(first: .milliseconds(200), longest: .milliseconds(400))
        var isSeen = false
        while true {
            let began = clock.now
            do {
                if !isSeen {
                    guard try await engine.hasRemovals() else { return }
                    isSeen = true
                }
                guard try await engine.removeNext(assetStorage) else { return }
                notifier.post()
                backoff.succeed()
            } catch {
                // Another process may write for long, or a command ends and has closed the database. What can't be done now is tried again
                // when the database is opened, and by each sweep.
                guard backoff.failures < 9 else { throw error }
                try await Task.sleep(for: backoff.fail())
            }
            try await Task.sleep(for: min(began.duration(to: clock.now), .seconds(1)))
        }
    }
}
