import Foundation
import Synchronization
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// One database of an embedded cloud, as one account sees it.
public struct EmbeddedDatabase: CloudDatabase {
    public let scope: DatabaseScope
    let container: CloudContainer
    let accounts: AccountStore
    /// `nil` for nobody.
    let account: String?
    let userRecordName: String?
    /// By what a client is known that is not signed in: an address. All of one name have one share of the time for queries.
    package var client: String?

    public func limits() async throws(CloudError) -> CloudLimits { container.engine.limits }

    /// The name of who asks in the container; `nil` for nobody.
    package var user: String? { userRecordName }

    /// The number of the change that a tag stands for: for who tests in which order requests were done.
    package func change(of tag: String) -> Int64? { container.engine.changeTagCipher.number(tag) }

    public func account() async throws(CloudError) -> CloudAccount {
        guard let account, let known = try await accounts.known(id: account) else { return CloudAccount(status: .noAccount) }
        guard known.status == .available, let user = userRecordName else { return CloudAccount(status: known.status) }
        let used = try await container.engine.storage.read { rows throws(CloudError) in try rows.used(by: user) }
        return CloudAccount(status: .available, userRecordName: user, quota: known.quota, used: used)
    }

    /// Who asks.
    ///
    /// - Throws: `notAuthenticated`, `accountTemporarilyUnavailable`.
    func caller() async throws(CloudError) -> CloudEngine.Caller {
        guard let account, let known = try await accounts.known(id: account), let user = userRecordName else {
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

    /// Who asks for something that takes room: whose zone it is pays.
    private func caller(writing zone: CloudZoneID) async throws(CloudError) -> CloudEngine.Caller {
        var caller = try await caller()
        guard scope == .shared else { return caller }
        let owner = try await accounts.find(.userRecordName(zone.ownerName), in: container.name)
        caller.quota = owner?.quota ?? 0
        return caller
    }

    /// Who asks for something public; nobody has to be signed in for that.
    private func reader() async throws(CloudError) -> CloudEngine.Caller {
        if scope == .public, account == nil {
            return .init(user: "_world", scope: .public, quota: 0, client: client.map { "address \($0)" })
        }
        return try await caller()
    }

    public func zones() async throws(CloudError) -> [CloudZoneID] { try await container.engine.zones(reader()) }

    /// Lists the zones, each with the change token that it has now; `nil` for the default zone, which has no feed of changes.
    package func zonesWithTokens() async throws(CloudError) -> [(zone: CloudZoneID, token: CloudToken?)] {
        try await container.engine.zonesWithTokens(reader())
    }

    public func modifyZones(saving: [CloudZoneID], deleting: [CloudZoneID]) async throws(CloudError) {
        let isUnfinished = try await container.engine.modifyZones(
            saving: saving, deleting: deleting, container.assetStorage, caller())
        container.notifier.post()
        if isUnfinished { container.goOnRemoving() }
    }

    /// Deletes a zone as a person does who wants its data gone for good: no device is to upload it again.
    public func purgeZone(_ zone: CloudZoneID) async throws(CloudError) {
        let isUnfinished = try await container.engine.modifyZones(
            saving: [], deleting: [zone], purging: true, container.assetStorage, caller())
        container.notifier.post()
        if isUnfinished { container.goOnRemoving() }
    }

    public func modify(_ request: ModifyRecordsRequest) async throws(CloudError) -> [RecordOutcome] {
        let (outcomes, isUnfinished) = try await container.engine.modify(
            request, container.assetStorage, caller(writing: request.zone))
        let isChanged = outcomes.contains { if case .failed = $0 { false } else { true } }
        if isChanged { container.notifier.post() }
        if isUnfinished { container.goOnRemoving() }
        return outcomes
    }

    public func lookup(
        _ names: [String], in zone: CloudZoneID, desiredKeys: Set<String>?
    ) async throws(CloudError) -> [Result<CloudRecord, CloudError>] {
        try await container.engine.lookup(names, in: zone, keys: desiredKeys, reader())
    }

    public func query(
        _ query: CloudQuery, in zone: CloudZoneID, limit: Int?, desiredKeys: Set<String>?, continuation: QueryContinuation?
    ) async throws(CloudError) -> QueryAnswer {
        try await container.engine.query(
            query, in: zone, limit: limit, keys: desiredKeys, continuation: continuation, reader())
    }

    public func databaseChanges(since token: CloudToken?, limit: Int?) async throws(CloudError) -> DatabaseChanges {
        try await container.engine.databaseChanges(since: token, limit: limit, caller())
    }

    public func zoneChanges(
        _ zone: CloudZoneID, since token: CloudToken?, limit: Int?, desiredKeys: Set<String>?
    ) async throws(CloudError) -> ZoneChanges {
        try await container.engine.zoneChanges(zone, since: token, limit: limit, keys: desiredKeys, caller())
    }

    /// The token of a zone as it is now.
    package func currentToken(of zone: CloudZoneID) async throws(CloudError) -> CloudToken {
        try await container.engine.token(of: zone, isFirst: false, caller())
    }

    /// The token of a zone before anything was in it.
    package func firstToken(of zone: CloudZoneID) async throws(CloudError) -> CloudToken {
        try await container.engine.token(of: zone, isFirst: true, caller())
    }

    public func missingAssets(_ assets: [CloudAsset], in zone: CloudZoneID) async throws(CloudError) -> [CloudAsset: Int64] {
        try await container.engine.missingAssets(assets, in: zone, container.assetStorage, caller())
    }

    public func upload(
        _ piece: Data, of asset: CloudAsset, at offset: Int64, in zone: CloudZoneID
    ) async throws(CloudError) -> Int64 {
        try await container.engine.upload(piece, of: asset, at: offset, in: zone, container.assetStorage, caller(writing: zone))
    }

    /// Takes in a content that has come whole, as ``upload(_:of:at:in:)`` does with its last piece.
    ///
    /// - Parameters:
    ///   - file: It lies in the file system of the cloud's directory, and moves from there unless the cloud has the content.
    ///   - asset: What the caller has found the file to be.
    package func adopt(_ file: URL, _ asset: CloudAsset, in zone: CloudZoneID) async throws(CloudError) {
        try await container.engine.adopt(file, asset, in: zone, container.assetStorage, caller(writing: zone))
    }

    /// Bytes that the caller may still send to a zone.
    ///
    /// - Throws: As ``upload(_:of:at:in:)`` where nothing may be sent.
    package func room(in zone: CloudZoneID) async throws(CloudError) -> Int64 {
        try await container.engine.room(in: zone, container.assetStorage, caller(writing: zone))
    }

    public func download(
        _ asset: CloudAsset, in zone: CloudZoneID, from offset: Int64, count: Int
    ) async throws(CloudError) -> Data {
        try await container.engine.download(asset, in: zone, from: offset, count: count, container.assetStorage, reader())
    }

    public func notifications() async throws(CloudError) -> AsyncStream<Void> {
        let (caller, engine, notifier) = (try await reader(), container.engine, container.notifier)
        let notifications = try notifier.notifications()
        let seen = LastSeen(try await engine.newest(caller))
        // The notifier is everybody's: who listens is woken by what they can see.
        return AsyncStream {
            for await _ in notifications {
                guard let newest = await notifier.newest(caller, { try? await engine.newest(caller) }) else { return () }
                switch seen.compare(newest) {
                case .same: continue
                case .newer: return ()
                case .older:
                    // Another's look is older than the one here, or something can't be seen any more.
                    guard let now = try? await engine.newest(caller) else { return () }
                    if seen.isNews(now) { return () }
                }
            }
            return nil
        }
    }

    /// The last change that a listener knows of.
    private final class LastSeen: Sendable {
        enum Order { case same, newer, older }

        private let change: Mutex<Int64>
        init(_ change: Int64) { self.change = Mutex(change) }

        /// How a change stands to the last; a newer one is the last from now on.
        func compare(_ newest: Int64) -> Order {
            change.withLock { change in
                guard newest > change else { return newest == change ? .same : .older }
                change = newest
                return .newer
            }
        }

        /// Whether a change is not the last, which it is from now on.
        func isNews(_ newest: Int64) -> Bool {
            change.withLock { change in
                defer { change = newest }
                return change != newest
            }
        }
    }
}
