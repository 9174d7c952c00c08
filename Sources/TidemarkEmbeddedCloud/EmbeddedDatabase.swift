public import Foundation
public import TidemarkCloud
import TidemarkCloudEngine
public import TidemarkModel

/// One database of an embedded cloud, as one account sees it.
///
/// Each call that writes is one transaction, durable when the call returns. Calls may come from any task, several at a time. Every call
/// but ``limits()`` and ``account()`` throws `notAuthenticated` or `accountTemporarilyUnavailable` where the account can't be used; a
/// caller who is not signed in may read the public database.
public struct EmbeddedDatabase: CloudDatabase {
    /// Private, shared or public.
    public let scope: DatabaseScope
    let container: CloudContainer
    let accounts: Accounts
    /// The account's identifier; `nil` for a caller who is not signed in.
    let account: String?
    let userRecordName: String?
    /// The address of a client that is not signed in. All clients with one address share the time for queries.
    package var client: String?
    /// The account, if the program has just read it: the request does not read it again.
    package var holder: StoredAccount?

    /// Returns the limits with which ``EmbeddedCloud/init(at:limits:queries:)`` opened the cloud. Throws nothing.
    public func limits() async throws(CloudError) -> CloudLimits { container.engine.limits }

    /// The caller's user record name in the container; `nil` for a caller who is not signed in.
    package var user: String? { userRecordName }

    /// Returns the number of the change behind a tag, for tests of the order of requests.
    package func change(of tag: String) -> Int64? { container.engine.changeTagCipher.position(tag)?.number }

    /// Returns the account with its status; with `available` also its quota in bytes and the bytes that it has used in this container
    /// and environment. An account that can't be used is no error.
    ///
    /// - Throws: `CloudError` `internalError`.
    public func account() async throws(CloudError) -> CloudAccount {
        guard let account, let known = try await accounts.find(id: account) else { return CloudAccount(status: .noAccount) }
        guard known.status == .available, let user = userRecordName else { return CloudAccount(status: known.status) }
        let used = try await container.engine.storage.read { rows throws(CloudError) in try rows.used(by: user) }
        return CloudAccount(status: .available, userRecordName: user, quota: known.quota, used: used)
    }

    /// Returns the caller, whose account can be used.
    ///
    /// - Throws: `CloudError` `notAuthenticated`, `accountTemporarilyUnavailable`.
    func caller() async throws(CloudError) -> CloudEngine.Caller {
        guard let account, let user = userRecordName, let known = try await known(account) else {
            throw CloudError(.notAuthenticated, "no account is signed in")
        }
        switch known.status {
        case .available: return .init(user: user, scope: scope, quota: known.quota, account: known)
        case .temporarilyUnavailable:
            throw CloudError(
                .accountTemporarilyUnavailable, "the account is not available for the moment", retryAfter: .seconds(30))
        default: throw CloudError(.notAuthenticated, "the account can't be used: \(known.status.rawValue)")
        }
    }

    private func known(_ account: String) async throws(CloudError) -> StoredAccount? {
        if let holder, holder.id == account { return holder }
        return try await accounts.find(id: account)
    }

    /// Returns the caller of a request that stores something, with the quota of the zone's owner, who pays.
    private func caller(writing zone: CloudZoneID) async throws(CloudError) -> CloudEngine.Caller {
        var caller = try await caller()
        guard scope == .shared else { return caller }
        let owner = try await accounts.find(.userRecordName(zone.ownerName), in: container.name)
        caller.quota = owner?.quota ?? 0
        return caller
    }

    /// Returns the caller of a request to read. Everybody may read the public database.
    private func reader() async throws(CloudError) -> CloudEngine.Caller {
        if scope == .public, account == nil {
            return .init(user: "_world", scope: .public, quota: 0, client: client.map { "address \($0)" })
        }
        return try await caller()
    }

    /// Returns the zones of the database. A private or public database has its default zone from the beginning; a shared one has the
    /// zones that others share with the account.
    public func zones() async throws(CloudError) -> [CloudZoneID] { try await container.engine.zones(reader()) }

    /// Lists the zones, each with the change token that it has now; `nil` for the default zone, which has no feed of changes.
    package func zonesWithTokens() async throws(CloudError) -> [(zone: CloudZoneID, token: CloudToken?)] {
        try await container.engine.zonesWithTokens(reader())
    }

    /// Makes and deletes zones of a private database, all or none. A deleted zone's first 500 records go at once; the rest goes in
    /// steps after the call, and its name can't be used before.
    ///
    /// - Throws: `CloudError` `permissionFailure` in another database, `invalidArguments` for a malformed name or the default zone,
    ///   `limitExceeded`, `zoneBusy`.
    public func modifyZones(saving: [CloudZoneID], deleting: [CloudZoneID]) async throws(CloudError) {
        let isUnfinished = try await container.engine.modifyZones(
            saving: saving, deleting: deleting, container.assetStorage, caller())
        container.notifier.post()
        if isUnfinished { container.goOnRemoving() }
    }

    /// Deletes a zone as a person does who wants the data gone: devices get `userDeletedZone`, and don't upload it again. Otherwise as
    /// ``modifyZones(saving:deleting:)``.
    public func purgeZone(_ zone: CloudZoneID) async throws(CloudError) {
        let isUnfinished = try await container.engine.modifyZones(
            saving: [], deleting: [zone], purging: true, container.assetStorage, caller())
        container.notifier.post()
        if isUnfinished { container.goOnRemoving() }
    }

    /// Changes records of a zone; `CloudDatabase.modify(_:)` has the rules and errors. A reply with a client token is kept for seven
    /// days. What a deletion removes beyond 500 records goes in steps after the call.
    public func modify(_ request: ModifyRecordsRequest) async throws(CloudError) -> [RecordOutcome] {
        let (outcomes, isUnfinished) = try await container.engine.modify(
            request, container.assetStorage, caller(writing: request.zone))
        let isChanged = outcomes.contains { if case .failed = $0 { false } else { true } }
        if isChanged { container.notifier.post() }
        if isUnfinished { container.goOnRemoving() }
        return outcomes
    }

    /// Returns records by name, in the order of the names; each a record, `unknownItem` or `recordDamaged`.
    ///
    /// - Throws: `CloudError` `zoneNotFound`, `userDeletedZone`, `limitExceeded` for too many names.
    public func lookup(
        _ names: [String], in zone: CloudZoneID, desiredKeys: Set<String>?
    ) async throws(CloudError) -> [Result<CloudRecord, CloudError>] {
        try await container.engine.lookup(names, in: zone, keys: desiredKeys, reader())
    }

    /// Returns records of a type that match, at most `CloudLimits.recordsPerAnswer`. A query may wait for others of the same account.
    ///
    /// - Throws: `CloudError` `invalidArguments` for a field without the index, or a continuation of another query; `unknownItem` for
    ///   an unknown type; `zoneNotFound`; `limitExceeded` where the query examines too much; `requestRateLimited` where too many
    ///   queries wait.
    public func query(
        _ query: CloudQuery, in zone: CloudZoneID, limit: Int?, desiredKeys: Set<String>?, continuation: QueryContinuation?
    ) async throws(CloudError) -> QueryAnswer {
        try await container.engine.query(
            query, in: zone, limit: limit, keys: desiredKeys, continuation: continuation, reader())
    }

    /// Returns the zones that changed since a token, at most `CloudLimits.recordsPerAnswer`. The public database has no feed of
    /// changes.
    ///
    /// - Throws: `CloudError` `changeTokenExpired`; `invalidArguments` for a token that this cloud has not made, and in the public
    ///   database.
    public func databaseChanges(since token: CloudToken?, limit: Int?) async throws(CloudError) -> DatabaseChanges {
        try await container.engine.databaseChanges(since: token, limit: limit, caller())
    }

    /// Returns the records of a zone that changed since a token, at most `CloudLimits.recordsPerAnswer`. Damaged records are among
    /// `ZoneChanges.failed`. Default zones have no feed of changes.
    ///
    /// - Throws: `CloudError` `changeTokenExpired`, `zoneNotFound`, `userDeletedZone`; `invalidArguments` for a token that this cloud
    ///   has not made, and for a default zone.
    public func zoneChanges(
        _ zone: CloudZoneID, since token: CloudToken?, limit: Int?, desiredKeys: Set<String>?
    ) async throws(CloudError) -> ZoneChanges {
        try await container.engine.zoneChanges(zone, since: token, limit: limit, keys: desiredKeys, caller())
    }

    /// Returns the present token of a zone.
    package func currentToken(of zone: CloudZoneID) async throws(CloudError) -> CloudToken {
        try await container.engine.token(of: zone, isFirst: false, caller())
    }

    /// Returns the token of a zone from before it had any content.
    package func firstToken(of zone: CloudZoneID) async throws(CloudError) -> CloudToken {
        try await container.engine.token(of: zone, isFirst: true, caller())
    }

    /// Returns the assets that have to be uploaded, each with the bytes that the cloud has of it: also those that records name and whose
    /// contents are missing. The others are kept for at least a day, so that a record can name them.
    ///
    /// - Throws: `CloudError` `invalidArguments` for a malformed digest or size, `limitExceeded` for too many assets, `zoneNotFound`;
    ///   `serviceUnavailable` where the place of the contents is not there.
    public func missingAssets(_ assets: [CloudAsset], in zone: CloudZoneID) async throws(CloudError) -> [CloudAsset: Int64] {
        try await container.engine.missingAssets(assets, in: zone, container.assetStorage, caller())
    }

    /// Adds a piece to an asset, at most `CloudLimits.bytesPerAssetPiece`; the last piece completes it. An asset of several pieces
    /// reserves its size with the first one. The zone's owner pays, in the public database the caller. What a piece repeats is skipped.
    ///
    /// - Parameter offset: The bytes that the cloud has of it, or less.
    /// - Returns: The bytes that the cloud has now, which may be more than the piece's end.
    /// - Throws: `CloudError` `invalidArguments` for a greater offset; `assetNotAvailable` where the content has another digest;
    ///   `limitExceeded`, `quotaExceeded`, `permissionFailure`; `serviceUnavailable` where the upload has to begin again.
    public func upload(
        _ piece: Data, of asset: CloudAsset, at offset: Int64, in zone: CloudZoneID
    ) async throws(CloudError) -> Int64 {
        try await container.engine.upload(piece, of: asset, at: offset, in: zone, container.assetStorage, caller(writing: zone))
    }

    /// Stores a whole content, as ``upload(_:of:at:in:)`` does with its last piece.
    ///
    /// - Parameters:
    ///   - file: A file, best in the file system of the cloud's directory. It moves from there, unless the cloud has the content.
    ///   - asset: The digest and the size that the caller has found.
    package func adopt(_ file: URL, _ asset: CloudAsset, in zone: CloudZoneID) async throws(CloudError) {
        try await container.engine.adopt(file, asset, in: zone, container.assetStorage, caller(writing: zone))
    }

    /// Returns the bytes that the caller may still send to a zone.
    ///
    /// - Throws: As ``upload(_:of:at:in:)`` where nothing may be sent.
    package func room(in zone: CloudZoneID) async throws(CloudError) -> Int64 {
        try await container.engine.room(in: zone, container.assetStorage, caller(writing: zone))
    }

    /// Returns a piece of an asset that a record of the zone names, at most `CloudLimits.bytesPerAssetPiece`; fewer bytes at the end of
    /// the asset.
    ///
    /// - Throws: `CloudError` `assetNotAvailable` where no record that the caller may read names the asset, or its size is another one;
    ///   `zoneNotFound`.
    public func download(
        _ asset: CloudAsset, in zone: CloudZoneID, from offset: Int64, count: Int
    ) async throws(CloudError) -> Data {
        try await container.engine.download(asset, in: zone, from: offset, count: count, container.assetStorage, reader())
    }

    /// Returns an address from which any client that has it can read an asset for some minutes; `nil` where only the server hands
    /// assets out.
    ///
    /// - Throws: As ``download(_:in:from:count:)``; `serviceUnavailable` where no address can be signed.
    package func signedURL(of asset: CloudAsset, in zone: CloudZoneID) async throws(CloudError) -> String? {
        try await container.engine.signedURL(of: asset, in: zone, container.assetStorage, reader())
    }

    /// Returns a stream with an element whenever something that the caller sees may have changed since the last one, through this
    /// process or another. Changes that come together are one element. The stream ends when its task is cancelled.
    public func notifications() async throws(CloudError) -> AsyncStream<Void> {
        let (caller, engine, signal, looks) = (try await reader(), container.engine, container.notifier, container.looks)
        let notifications = try signal.notifications()
        let seen = LastSeen(try await engine.newest(caller))
        // The signal is for all listeners. A listener is woken only by changes that it can see.
        return AsyncStream {
            for await _ in notifications {
                // A caller whose changes can't be read is woken, too: its fetch gets the error.
                guard let newest = await looks.newest(caller, after: signal.heard, { try? await engine.newest(caller) }) else {
                    return ()
                }
                switch seen.compare(newest) {
                case .same: continue
                case .newer: return ()
                case .older:
                    // The shared result is older than this listener's, or the caller sees less than before.
                    guard let now = try? await engine.newest(caller) else { return () }
                    if seen.isNews(now) { return () }
                }
            }
            return nil
        }
    }

    /// The newest changes that a listener has heard of.
    private final class LastSeen: Sendable {
        enum Order { case same, newer, older }

        private let changes: LockedValue<NewestChanges>
        init(_ changes: NewestChanges) { self.changes = LockedValue(changes) }

        /// Compares the newest changes with those of the last call, and keeps them if they are newer.
        func compare(_ newest: NewestChanges) -> Order {
            changes.withLock { changes in
                guard newest.isNewer(than: changes) else { return newest == changes ? .same : .older }
                changes = newest
                return .newer
            }
        }

        /// Returns whether the newest changes differ from those of the last call, and keeps them.
        func isNews(_ newest: NewestChanges) -> Bool {
            changes.withLock { changes in
                defer { changes = newest }
                return changes != newest
            }
        }
    }
}
