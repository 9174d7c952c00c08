import Foundation
import Logging
package import TidemarkCloud
import TidemarkModel

/// Removals that are too large for one transaction.
///
/// No request holds the database for long. What it leaves is removed in steps, and other requests write in between. A step is a
/// transaction. The removal is a row of the database, so it continues after the process has ended.
extension CloudEngine {
    /// The most records that a request or a step removes in addition to those that it names.
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

    /// Does the next step of an owner's removals, the oldest first.
    ///
    /// - Returns: `false` where no owner has a removal.
    package func removeNext(_ assetStorage: any AssetStorage) async throws(CloudError) -> Bool {
        let next = try await storage.read { rows throws(CloudError) in try rows.ownerOfNextRemoval() }
        guard let owner = next else { return false }
        let released = try await write(owners: [owner]) { rows, found throws(CloudError) -> [ReleasedAssets] in
            var released: [ReleasedAssets] = []
            var room = Self.removedAtOnce
            // A removal may have few records, so one step can end several.
            while room > 0, let removal = try rows.nextRemoval(of: owner) {
                let (count, gone) = try goOn(with: removal, found, rows)
                released.append(gone)
                room -= max(1, count)
            }
            return released
        }
        for assets in released { await remove(assets, assetStorage) }
        // Another process may have done this owner's removals, and other owners may have some.
        return true
    }

    /// Continues one removal, and ends it when nothing is left.
    ///
    /// - Returns: The most records that it has removed, and the assets that no record names any more.
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
            // The removal of the whole zone covers these records.
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

/// Runs the removals that requests have left, in the background.
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

    /// Starts the task. If it runs already, it looks for removals once more before it ends.
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

    /// Does all steps, and rests after each for as long as the step took, at most a second, so that others can write.
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
                // Another process may be writing for a long time, or a command has closed the database as it ended. The removal
                // is tried again when the database is opened, and by each sweep.
                guard backoff.failures < 9 else { throw error }
                try await Task.sleep(for: backoff.fail())
            }
            try await Task.sleep(for: min(began.duration(to: clock.now), .seconds(1)))
        }
    }
}
