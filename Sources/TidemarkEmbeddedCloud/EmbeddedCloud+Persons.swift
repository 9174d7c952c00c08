import Foundation
import TidemarkCloud
import TidemarkModel

/// All that a cloud has of one person: to hand it out to them, and to remove it.
extension EmbeddedCloud {
    /// A part of what is stored for an account.
    package enum StoredItem: Sendable {
        case record(CloudRecord)
        /// A share of the account, or one in which it takes part.
        case share(CloudShare)
    }

    /// Where a part is stored.
    package struct StoredPlace: Hashable, Sendable {
        package let container: String
        package let environment: StoreEnvironment
        package let scope: DatabaseScope
        package let zone: CloudZoneID
    }

    /// Counts what was removed.
    package struct Removed: Hashable, Sendable, Encodable {
        package var records = 0
        package var zones = 0
        /// Shares of others that the account took part in.
        package var participations = 0

        package init() {}
    }

    /// Visits all that is stored for an account: its private records and shares, its public records, and the shares of others in which it takes
    /// part, whose records are not its own. The account need not be available.
    ///
    /// - Complexity: O(records of the account, and public records).
    package func forEachItem(of account: EmbeddedAccount, _ body: (StoredPlace, StoredItem) async throws -> Void) async throws {
        for (name, environment) in containers() {
            let engine = try container(name, environment).engine
            for scope in [DatabaseScope.private, .public, .shared] {
                let caller = caller(account, scope, in: name)
                for zone in try await zones(engine, caller) {
                    let place = StoredPlace(container: name, environment: environment, scope: scope, zone: zone)
                    if scope != .shared {
                        var after: Int64? = -1
                        while let from = after {
                            let page = try await engine.page(of: zone, after: from, caller)
                            for record in page.records { try await body(place, .record(record)) }
                            after = page.last
                        }
                    }
                    guard scope != .public else { continue }
                    for share in try await engine.shares(in: zone, caller) { try await body(place, .share(share)) }
                }
            }
        }
    }

    /// Reads a part of an asset that a record of the account names.
    package func piece(
        of asset: CloudAsset, at offset: Int64, count: Int, for account: EmbeddedAccount, _ place: StoredPlace
    ) async throws(CloudError) -> Data {
        let container = try container(place.container, place.environment)
        return try await container.engine.download(
            asset, in: place.zone, from: offset, count: count, container.shelf, caller(account, place.scope, in: place.container))
    }

    /// Removes an account and all that is stored for it: its zones with records, shares and assets, its public records, and its part in the
    /// shares of others. What is left are names of deleted records and zones, which devices have to hear of, under a name that leads to nobody.
    ///
    /// When it fails midway, it goes on when it is called again.
    package func removeWithData(_ account: EmbeddedAccount) async throws(CloudError) -> Removed {
        var removed = Removed()
        for (name, environment) in containers() {
            let container = try container(name, environment)
            let (engine, shelf) = (container.engine, container.shelf)
            let shared = caller(account, .shared, in: name)
            for zone in try await zones(engine, shared) {
                for share in try await engine.shares(in: zone, shared) {
                    try await engine.deleteShare(share.id, shared)
                    removed.participations += 1
                }
            }
            for scope in [DatabaseScope.public, .private] {
                let caller = caller(account, scope, in: name)
                for zone in try await zones(engine, caller) {
                    guard scope == .private, !zone.isDefault else {
                        removed.records += try await removeRecords(in: zone, engine, shelf, caller)
                        continue
                    }
                    var after: Int64? = -1
                    while let from = after {
                        let page = try await engine.page(of: zone, after: from, caller)
                        removed.records += page.records.count
                        after = page.last
                    }
                    _ = try await engine.modifyZones(saving: [], deleting: [zone], purging: true, shelf, caller)
                    removed.zones += 1
                }
            }
            // Large zones, and records with many dependents, go in steps.
            while try await engine.removeNext(shelf) {}
            container.bell.ring()
        }
        try await accountBook.remove(account)
        return removed
    }

    /// Deletes the account's records of a zone that stays.
    private func removeRecords(
        in zone: CloudZoneID, _ engine: CloudEngine, _ shelf: AssetShelf, _ caller: CloudEngine.Caller
    ) async throws(CloudError) -> Int {
        var count = 0
        var after: Int64? = -1
        while let from = after {
            let page = try await engine.page(of: zone, after: from, caller)
            after = page.last
            var rest = page.records[...]
            while !rest.isEmpty {
                let some = rest.prefix(max(1, min(100, engine.limits.operationsPerRequest)))
                rest = rest.dropFirst(some.count)
                let (outcomes, _) = try await engine.modify(
                    ModifyRecordsRequest(
                        zone: zone, operations: some.map { RecordOperation(.forceDelete, $0) }, isAtomic: false), shelf, caller)
                for case .failed(let error) in outcomes { throw error }
                count += some.count
            }
        }
        return count
    }

    private func caller(_ account: EmbeddedAccount, _ scope: DatabaseScope, in container: String) -> CloudEngine.Caller {
        CloudEngine.Caller(
            user: Self.userRecordName(account.id, in: container), scope: scope, quota: account.quota, account: account)
    }

    private func zones(_ engine: CloudEngine, _ caller: CloudEngine.Caller) async throws(CloudError) -> [CloudZoneID] {
        caller.scope == .public ? [CloudZoneID("_defaultZone")] : try await engine.zones(caller)
    }
}

extension CloudEngine {
    /// Reads some records of a zone in the order of their changes: of the public database those that the caller has made.
    ///
    /// - Returns: The records, and after which change to go on; `nil` at the end.
    func page(
        of id: CloudZoneID, after change: Int64, _ caller: Caller
    ) async throws(CloudError) -> (records: [CloudRecord], last: Int64?) {
        try await storage.read { rows throws(CloudError) in
            guard let access = try existing(id, caller, rows) else { return ([], nil) }
            let zone = self.id(of: access.zone, caller)
            let page = try rows.records(in: access.zone.id, after: change, limit: 500)
            var records: [CloudRecord] = []
            for stored in page where !stored.isDeleted && stored.type != CloudShare.recordType {
                guard caller.scope != .public || stored.created.userRecordName == caller.user else { continue }
                records.append(try record(stored, in: zone, keys: nil, access, rows))
            }
            return (records, page.last?.changed)
        }
    }
}
