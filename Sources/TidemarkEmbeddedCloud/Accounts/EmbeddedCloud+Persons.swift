package import Foundation
package import TidemarkCloud
package import TidemarkCloudEngine
package import TidemarkModel

/// Exports and removes everything that a cloud has of one person.
extension EmbeddedCloud {
    /// An item that is stored for an account.
    package enum StoredItem: Sendable {
        case record(CloudRecord)
        /// A share of the account's own, or one in which it takes part.
        case share(CloudShare)
        /// An item that is damaged and can't be read: a record, the shares of a zone, or a zone with its records.
        case damaged(CloudError)
    }

    /// The place where an item is stored.
    package struct StoredPlace: Hashable, Sendable {
        package let container: String
        package let environment: StoreEnvironment
        package let scope: DatabaseScope
        package let zone: CloudZoneID
    }

    /// Counts of what was removed with an account.
    package struct Removed: Hashable, Sendable, Encodable {
        package var records = 0
        package var zones = 0
        /// Shares of others that the account took part in.
        package var participations = 0

        package init() {}
    }

    /// Counts of what an account has, and what would be removed with it.
    package struct Holdings: Hashable, Sendable {
        /// Records of the account's private databases, without shares.
        package var records = 0
        /// Shares of the account.
        package var shares = 0
        /// The accounts that take part in these shares, counted once for each container.
        package var participants = 0

        package init() {}
    }

    /// Counts the content of an account's private databases, and the participants of its shares. Damaged zones are left out.
    ///
    /// - Complexity: O(private records of the account).
    package func holdings(of account: StoredAccount) async throws(CloudError) -> Holdings {
        var holdings = Holdings()
        // By container: an account that takes part in both environments counts once.
        var participants: [String: Set<String>] = [:]
        for (name, environment) in try await containers() {
            let engine = try await openedContainer(name, environment).engine
            let caller = caller(account, .private, in: name)
            for zone in try await zones(engine, caller) {
                let counts = await Result.catching { () async throws(CloudError) in
                    try await engine.recordCounts(in: zone, caller)
                }
                for (type, count) in try counts.undamaged ?? [:] where type != CloudShare.recordType {
                    holdings.records += count
                }
                let shares = await Result.catching { () async throws(CloudError) in
                    try await engine.shares(in: zone, caller)
                }
                for share in try shares.undamaged ?? [] {
                    holdings.shares += 1
                    for person in share.participants where person.role != .owner && person.acceptanceStatus == .accepted {
                        participants[name, default: []].insert(person.identity.userRecordName ?? person.id)
                    }
                }
            }
        }
        holdings.participants = participants.values.reduce(0) { $0 + $1.count }
        return holdings
    }

    /// Visits everything that is stored for an account: its private records and shares, its public records, and the shares of
    /// others in which it takes part. Records of these others are not visited. The account need not be available. Damage is an
    /// item, too, and the visit continues.
    ///
    /// - Complexity: O(records of the account, and public records).
    package func forEachItem(
        of account: StoredAccount, _ body: @Sendable (StoredPlace, StoredItem) async throws -> Void
    ) async throws {
        for (name, environment) in try await containers() {
            let engine = try await openedContainer(name, environment).engine
            for scope in [DatabaseScope.private, .public, .shared] {
                let caller = caller(account, scope, in: name)
                for zone in try await zones(engine, caller) {
                    let place = StoredPlace(container: name, environment: environment, scope: scope, zone: zone)
                    // An error that the body throws ends the visit.
                    var after: Int64? = scope == .shared ? nil : -1
                    while let from = after {
                        let result = await Result.catching { () async throws(CloudError) in
                            try await engine.page(of: zone, after: from, caller)
                        }
                        guard let page = try result.undamaged else {
                            if case .failure(let error) = result { try await body(place, .damaged(error)) }
                            break
                        }
                        for record in page.records { try await body(place, .record(record)) }
                        for record in page.damaged {
                            try await body(place, .damaged(CloudEngine.damaged(record.id.recordName)))
                        }
                        after = page.last
                    }
                    guard scope != .public else { continue }
                    let shares = await Result.catching { () async throws(CloudError) in
                        try await engine.shares(in: zone, caller)
                    }
                    for share in try shares.undamaged ?? [] { try await body(place, .share(share)) }
                    if case .failure(let error) = shares { try await body(place, .damaged(error)) }
                    let damaged = await Result.catching { () async throws(CloudError) in
                        try await engine.damagedShares(in: zone, caller)
                    }
                    // The damage of a zone itself was visited above.
                    for error in try damaged.undamaged ?? [] { try await body(place, .damaged(error)) }
                }
            }
        }
    }

    /// Reads a part of an asset that a record of the account names.
    ///
    /// - Throws: `CloudError` `assetNotAvailable` where the content is missing or damaged, as far as the storage compares it.
    package func piece(
        of asset: CloudAsset, at offset: Int64, count: Int, for account: StoredAccount, _ place: StoredPlace
    ) async throws(CloudError) -> Data {
        let container = try await openedContainer(place.container, place.environment)
        let (engine, assetStorage) = (container.engine, container.assetStorage)
        let caller = caller(account, place.scope, in: place.container)
        do throws(CloudError) {
            return try await engine.download(asset, in: place.zone, from: offset, count: count, assetStorage, caller)
        } catch {
            guard try await engine.isDamaged(asset, in: place.zone, after: error, assetStorage, caller) else { throw error }
            throw CloudError(.assetNotAvailable, "the content of the digest \(asset.digest) is damaged")
        }
    }

    /// Removes an account and everything that is stored for it: its zones with records, shares and assets, its public records,
    /// and its participation in other shares. The names of deleted records and zones stay, because devices have to hear of them.
    /// They belong to a user record name that leads to no account.
    ///
    /// After a failure, call it again to continue.
    package func removeWithData(_ account: StoredAccount) async throws(CloudError) -> Removed {
        var removed = Removed()
        for (name, environment) in try await containers() {
            let container = try await openedContainer(name, environment)
            let (engine, assetStorage) = (container.engine, container.assetStorage)
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
                        removed.records += try await removeRecords(in: zone, engine, assetStorage, caller)
                        continue
                    }
                    var after: Int64? = -1
                    while let from = after {
                        let page = try await engine.page(of: zone, after: from, caller)
                        removed.records += page.records.count + page.damaged.count
                        after = page.last
                    }
                    _ = try await engine.modifyZones(saving: [], deleting: [zone], purging: true, assetStorage, caller)
                    removed.zones += 1
                }
            }
            // Large zones, and records with many dependents, are removed in steps.
            while try await engine.removeNext(assetStorage) {}
            // The replies name records.
            let user = Self.userRecordName(account.id, in: name)
            try await engine.storage.write(owners: [user]) { rows throws(CloudError) in try rows.removeAnswers(of: user) }
            container.notifier.post()
        }
        try await accounts.remove(account)
        return removed
    }

    /// Deletes the account's records of a zone that stays. With an administrator's caller, deletes all records of the public
    /// database.
    func removeRecords(
        in zone: CloudZoneID, _ engine: CloudEngine, _ assetStorage: any AssetStorage, _ caller: CloudEngine.Caller
    ) async throws(CloudError) -> Int {
        var count = 0
        var after: Int64? = -1
        while let from = after {
            let page = try await engine.page(of: zone, after: from, caller)
            after = page.last
            var rest = (page.records + page.damaged)[...]
            while !rest.isEmpty {
                let some = rest.prefix(max(1, min(100, engine.limits.operationsPerRequest)))
                rest = rest.dropFirst(some.count)
                let (outcomes, _) = try await engine.modify(
                    ModifyRecordsRequest(
                        zone: zone, operations: some.map { RecordOperation(.forceDelete, $0) }, isAtomic: false), assetStorage,
                    caller)
                for case .failed(let error) in outcomes { throw error }
                count += some.count
            }
        }
        return count
    }

    private func caller(_ account: StoredAccount, _ scope: DatabaseScope, in container: String) -> CloudEngine.Caller {
        CloudEngine.Caller(
            user: Self.userRecordName(account.id, in: container), scope: scope, quota: account.quota, account: account)
    }

    private func zones(_ engine: CloudEngine, _ caller: CloudEngine.Caller) async throws(CloudError) -> [CloudZoneID] {
        caller.scope == .public ? [CloudZoneID("_defaultZone")] : try await engine.zones(caller)
    }
}

extension CloudEngine {
    /// Reads some records of a zone in the order of their changes. In the public database these are the caller's own records, or
    /// all for an administrator.
    ///
    /// - Returns: The records, damaged records without their content, and the change after which to continue; `nil` at the end.
    func page(
        of id: CloudZoneID, after change: Int64, _ caller: Caller
    ) async throws(CloudError) -> (records: [CloudRecord], damaged: [CloudRecord], last: Int64?) {
        try await storage.read { rows throws(CloudError) in
            guard let access = try existing(id, caller, rows) else { return ([], [], nil) }
            let zone = self.id(of: access.zone, caller)
            let page = try rows.records(in: access.zone.id, after: change, limit: 500)
            var (records, damaged): ([CloudRecord], [CloudRecord]) = ([], [])
            for stored in page where !stored.isDeleted || stored.damage != nil {
                guard stored.type != CloudShare.recordType else { continue }
                let isOwn = caller.scope != .public || caller.isAdministrator || stored.created.userRecordName == caller.user
                guard isOwn else { continue }
                if stored.damage == nil {
                    records.append(try record(stored, in: zone, keys: nil, access, rows))
                } else {
                    damaged.append(CloudRecord(CloudRecordID(stored.name, in: zone), type: stored.type))
                }
            }
            return (records, damaged, page.last?.changed)
        }
    }
}

extension Result where Failure == CloudError {
    fileprivate static func catching(_ body: () async throws(CloudError) -> Success) async -> Self {
        do throws(CloudError) {
            return .success(try await body())
        } catch {
            return .failure(error)
        }
    }

    /// The value; `nil` where the result is an error of damage. Other errors are thrown.
    fileprivate var undamaged: Success? {
        get throws(CloudError) {
            switch self {
            case .success(let value): return value
            case .failure(let error) where error.code == .recordDamaged: return nil
            case .failure(let error): throw error
            }
        }
    }
}
