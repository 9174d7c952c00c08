package import Foundation
package import TidemarkCloud
package import TidemarkCloudEngine
package import TidemarkModel

/// A database of a container, for administrators of the cloud: the private or shared database of an account, even if the account
/// can't be used, or the public database with the right to change all of its records.
///
/// The program that makes one decides who may administer what.
package struct AdministeredDatabase: Sendable {
    private let container: CloudContainer
    private let caller: CloudEngine.Caller

    fileprivate init(_ container: CloudContainer, _ caller: CloudEngine.Caller) {
        (self.container, self.caller) = (container, caller)
    }

    /// Returns the zones.
    package func zones() async throws(CloudError) -> [CloudZoneID] { try await container.engine.zones(caller) }

    /// Returns the number of a zone's records by the names of their types; none where nothing was saved in the zone. O(records of the zone).
    package func recordCounts(in zone: CloudZoneID) async throws(CloudError) -> [String: Int] {
        try await container.engine.recordCounts(in: zone, caller)
    }

    /// Returns whether a zone has records; it has none where nothing was saved in it.
    package func hasRecords(in zone: CloudZoneID) async throws(CloudError) -> Bool {
        try await container.engine.hasRecords(in: zone, caller)
    }

    /// Returns the shares of a zone; none in a public database.
    package func shares(in zone: CloudZoneID) async throws(CloudError) -> [CloudShare] {
        guard caller.scope != .public else { return [] }
        return try await container.engine.shares(in: zone, caller)
    }

    /// Returns the links to a share, without their tokens.
    ///
    /// - Throws: `CloudError` `unknownItem`; `permissionFailure` where the account may not invite.
    package func links(to share: CloudRecordID) async throws(CloudError) -> [StoredLink] {
        try await container.engine.links(to: share, caller)
    }

    /// Revokes a link by its identifier.
    ///
    /// - Throws: `CloudError` `unknownItem`; `permissionFailure` where the account may not invite.
    package func revokeLink(_ link: String, to share: CloudRecordID) async throws(CloudError) {
        try await container.engine.revokeLink(link, to: share, caller)
    }

    /// As ``EmbeddedDatabase/query(_:in:limit:desiredKeys:continuation:)``.
    package func query(
        _ query: CloudQuery, in zone: CloudZoneID, limit: Int?, continuation: QueryContinuation?
    ) async throws(CloudError) -> QueryAnswer {
        try await container.engine.query(query, in: zone, limit: limit, keys: nil, continuation: continuation, caller)
    }

    /// Returns a record.
    ///
    /// - Throws: `CloudError` `unknownItem`, `recordDamaged`, `zoneNotFound`.
    package func record(_ name: String, in zone: CloudZoneID) async throws(CloudError) -> CloudRecord {
        guard let found = try await container.engine.lookup([name], in: zone, keys: nil, caller).first else {
            throw CloudError(.unknownItem, "Record not found")
        }
        return try found.get()
    }

    /// Returns by name who last changed each record, and when. Missing records are left out. Of damaged records only the names
    /// are returned.
    ///
    /// - Throws: `CloudError` `zoneNotFound`.
    package func modifications(
        of names: [String], in zone: CloudZoneID
    ) async throws(CloudError) -> (stamps: [String: CloudRecord.Stamp], damaged: Set<String>) {
        var stamps: [String: CloudRecord.Stamp] = [:]
        var damaged: Set<String> = []
        var rest = names[...]
        while !rest.isEmpty {
            let some = Array(rest.prefix(max(1, container.engine.limits.operationsPerRequest)))
            rest = rest.dropFirst(some.count)
            let answers = try await container.engine.lookup(some, in: zone, keys: [], caller)
            for (name, answer) in zip(some, answers) {
                switch answer {
                case .success(let record): stamps[name] = record.modified
                case .failure(let error): if error.code == .recordDamaged { damaged.insert(name) }
                }
            }
        }
        return (stamps, damaged)
    }

    /// Changes a record.
    ///
    /// - Returns: The changed record; `nil` for a deletion.
    /// - Throws: The error of the operation, such as `CloudError` `serverRecordChanged` with the present record.
    package func modify(_ operation: RecordOperation, in zone: CloudZoneID) async throws(CloudError) -> CloudRecord? {
        let (outcomes, isUnfinished) = try await container.engine.modify(
            ModifyRecordsRequest(zone: zone, operations: [operation]), container.assetStorage, caller)
        if isUnfinished { container.goOnRemoving() }
        switch outcomes.first {
        case .saved(let record):
            container.notifier.post()
            return record
        case .deleted:
            container.notifier.post()
            return nil
        case .failed(let error): throw error
        case nil: throw CloudError(.internalError, "the cloud has not answered")
        }
    }

    /// Reads a part of an asset that a record of the database names.
    package func piece(
        of asset: CloudAsset, in zone: CloudZoneID, at offset: Int64, count: Int
    ) async throws(CloudError) -> Data {
        try await container.engine.download(asset, in: zone, from: offset, count: count, container.assetStorage, caller)
    }

    /// Stores a content, piece by piece, for a record that will name it.
    ///
    /// - Throws: As ``EmbeddedDatabase/upload(_:of:at:in:)``.
    package func upload(_ contents: Data, in zone: CloudZoneID) async throws(CloudError) -> CloudAsset {
        var digest = AssetDigest()
        digest.update([UInt8](contents))
        let (asset, engine) = (digest.finish(), container.engine)
        // A content that exists is not sent again, and an upload that was begun continues.
        guard
            var sent = try await engine.missingAssets([asset], in: zone, container.assetStorage, caller)[asset]
        else { return asset }
        repeat {
            let piece = contents.dropFirst(Int(sent)).prefix(engine.limits.bytesPerAssetPiece)
            let received = try await engine.upload(Data(piece), of: asset, at: sent, in: zone, container.assetStorage, caller)
            guard received > sent || received == asset.size else {
                throw CloudError(.internalError, "the storage of assets takes nothing of an upload")
            }
            sent = received
        } while sent < asset.size
        return asset
    }
}

extension EmbeddedCloud {
    /// Returns a database for administration.
    ///
    /// - Parameters:
    ///   - account: The account of a private or shared database; for the public database, the account that changes its records.
    /// - Throws: `CloudError` `invalidArguments`, `zoneBusy`, `serviceUnavailable`, `internalError`.
    package func administeredDatabase(
        _ scope: DatabaseScope, of container: String, environment: StoreEnvironment, account: StoredAccount?
    ) async throws(CloudError) -> AdministeredDatabase {
        let opened = try await openedContainer(container, environment)
        let user = account.map { Self.userRecordName($0.id, in: container) } ?? "_administrator"
        var caller = CloudEngine.Caller(user: user, scope: scope, quota: account?.quota ?? .max, account: account)
        if scope == .public { (caller.isAdministrator, caller.quota) = (true, .max) }
        return AdministeredDatabase(opened, caller)
    }

    /// Counts the rows of a container, of all owners together. O(records + assets).
    package func totals(of container: String, environment: StoreEnvironment) async throws(CloudError) -> StoredTotals {
        try await openedContainer(container, environment).engine.storage.read { rows throws(CloudError) in try rows.totals() }
    }

    /// Returns the bytes that accounts have stored in a container, by user record names.
    package func storedBytes(of container: String, environment: StoreEnvironment) async throws(CloudError) -> [String: Int64] {
        try await openedContainer(container, environment).engine.storage.read { rows throws(CloudError) in try rows.allUsed() }
    }

    /// Returns whether a container exists in an environment. Most other functions make a container that does not exist.
    package func hasContainer(_ name: String, _ environment: StoreEnvironment) async throws(CloudError) -> Bool {
        try await containers().contains { $0 == name && $1 == environment }
    }
}
