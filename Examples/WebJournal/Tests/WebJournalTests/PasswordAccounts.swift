import Foundation
import Synchronization
import Tidemark

@testable import webjournal

/// The people of the demonstration, with passwords and sessions as a server has them.
final class PasswordAccounts: Accounts {
    private struct State {
        /// One for everybody.
        var password = "one"
        var attempts = 0
        var sessions: [ServerSession] = []
    }

    private let demo: DemoAccounts
    private let state = Mutex(State())

    init(_ demo: DemoAccounts) { self.demo = demo }

    var demonstrators: [Person] { [] }

    /// How often somebody has tried to sign in.
    var attempts: Int { state.withLock { $0.attempts } }
    /// How many sessions there are.
    var sessionCount: Int { state.withLock { $0.sessions.count { !$0.hasEnded } } }

    func signIn(email: String, password: String, code: String? = nil) async throws -> Member {
        let isRight = state.withLock { state in
            state.attempts += 1
            return password == state.password
        }
        guard isRight else { throw CloudError(.notAuthenticated, "the e-mail address or the password is wrong") }
        let member = try await demo.signIn(email: email, password: "", code: nil)
        let session = ServerSession()
        state.withLock { $0.sessions.append(session) }
        return Member(
            person: member.person,
            databases: CloudDatabases(
                private: SessionDatabase(member.databases.private, session),
                shared: SessionDatabase(member.databases.shared, session)),
            end: { session.end() })
    }

    /// Gives everybody another password, which ends all sessions.
    ///
    /// - Parameter isQuiet: Whether those who synchronise don't find out, because they can't reach the server for the moment.
    func setPassword(_ password: String, isQuiet: Bool = false) {
        let sessions = state.withLock { state in
            state.password = password
            return state.sessions
        }
        for session in sessions { session.end(isQuiet: isQuiet) }
    }

    /// Another device of a person's, with its store in a folder.
    func device(of email: String, in folder: URL) async throws -> Journal {
        let member = try await demo.signIn(email: email, password: "", code: nil)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return try Journal(of: member.person, in: folder, with: member.databases)
    }
}

/// A session with a cloud.
final class ServerSession: Sendable {
    private struct State {
        var hasEnded = false
        var isQuiet = false
        var listeners: [AsyncStream<Void>.Continuation] = []
    }

    private let state = Mutex(State())

    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    func end(isQuiet: Bool = false) {
        let listeners = state.withLock { state in
            (state.hasEnded, state.isQuiet) = (true, isQuiet)
            return state.listeners
        }
        if !isQuiet { for listener in listeners { listener.yield() } }
    }

    fileprivate func check(syncing: Bool) throws(CloudError) {
        let (hasEnded, isQuiet) = state.withLock { ($0.hasEnded, $0.isQuiet) }
        guard hasEnded else { return }
        if syncing, isQuiet { throw CloudError(.networkUnavailable, "the server can't be reached") }
        throw CloudError(.notAuthenticated, "the session has ended")
    }

    fileprivate func follow(_ changes: AsyncStream<Void>) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        state.withLock { $0.listeners.append(continuation) }
        let following = Task {
            for await _ in changes { continuation.yield() }
            continuation.finish()
        }
        continuation.onTermination = { _ in following.cancel() }
        return stream
    }
}

/// A database that answers a session until that ends.
private struct SessionDatabase: SharingDatabase {
    private let base: any SharingDatabase
    private let session: ServerSession

    init(_ base: any SharingDatabase, _ session: ServerSession) { (self.base, self.session) = (base, session) }

    private func open(syncing: Bool = true) throws(CloudError) -> any SharingDatabase {
        try session.check(syncing: syncing)
        return base
    }

    var scope: DatabaseScope { base.scope }
    func limits() async throws(CloudError) -> CloudLimits { try await open().limits() }
    func account() async throws(CloudError) -> CloudAccount { try await open(syncing: false).account() }
    func zones() async throws(CloudError) -> [CloudZoneID] { try await open().zones() }

    func modifyZones(saving: [CloudZoneID], deleting: [CloudZoneID]) async throws(CloudError) {
        try await open().modifyZones(saving: saving, deleting: deleting)
    }

    func modify(_ request: ModifyRecordsRequest) async throws(CloudError) -> [RecordOutcome] { try await open().modify(request) }

    func lookup(
        _ names: [String], in zone: CloudZoneID, desiredKeys: Set<String>?
    ) async throws(CloudError) -> [Result<CloudRecord, CloudError>] {
        try await open().lookup(names, in: zone, desiredKeys: desiredKeys)
    }

    func query(
        _ query: CloudQuery, in zone: CloudZoneID, limit: Int?, desiredKeys: Set<String>?, continuation: QueryContinuation?
    ) async throws(CloudError) -> QueryAnswer {
        try await open().query(query, in: zone, limit: limit, desiredKeys: desiredKeys, continuation: continuation)
    }

    func databaseChanges(since token: CloudToken?, limit: Int?) async throws(CloudError) -> DatabaseChanges {
        try await open().databaseChanges(since: token, limit: limit)
    }

    func zoneChanges(
        _ zone: CloudZoneID, since token: CloudToken?, limit: Int?, desiredKeys: Set<String>?
    ) async throws(CloudError) -> ZoneChanges {
        try await open().zoneChanges(zone, since: token, limit: limit, desiredKeys: desiredKeys)
    }

    func missingAssets(_ assets: [CloudAsset], in zone: CloudZoneID) async throws(CloudError) -> [CloudAsset: Int64] {
        try await open().missingAssets(assets, in: zone)
    }

    func upload(
        _ piece: Data, of asset: CloudAsset, at offset: Int64, in zone: CloudZoneID
    ) async throws(CloudError) -> Int64 {
        try await open().upload(piece, of: asset, at: offset, in: zone)
    }

    func download(
        _ asset: CloudAsset, in zone: CloudZoneID, from offset: Int64, count: Int
    ) async throws(CloudError) -> Data {
        try await open().download(asset, in: zone, from: offset, count: count)
    }

    func notifications() async throws(CloudError) -> AsyncStream<Void> { session.follow(try await open().notifications()) }

    func shares(in zone: CloudZoneID) async throws(CloudError) -> [CloudShare] { try await open().shares(in: zone) }

    func createShare(
        in zone: CloudZoneID, coverage: CloudShare.Coverage, title: String?, publicPermission: ShareParticipant.Permission
    ) async throws(CloudError) -> CloudShare {
        try await open().createShare(in: zone, coverage: coverage, title: title, publicPermission: publicPermission)
    }

    func changeShare(_ share: CloudRecordID, _ changes: [ShareChange]) async throws(CloudError) -> CloudShare {
        try await open().changeShare(share, changes)
    }

    func deleteShare(_ share: CloudRecordID) async throws(CloudError) { try await open().deleteShare(share) }

    func makeLink(to share: CloudRecordID, for participant: String?) async throws(CloudError) -> ShareLink {
        try await open().makeLink(to: share, for: participant)
    }

    func revokeLink(_ id: String, to share: CloudRecordID) async throws(CloudError) {
        try await open().revokeLink(id, to: share)
    }

    func resolveLink(_ token: String) async throws(CloudError) -> ShareMetadata {
        try await open(syncing: false).resolveLink(token)
    }
    func acceptLink(_ token: String) async throws(CloudError) -> ShareMetadata { try await open().acceptLink(token) }
    func declineLink(_ token: String) async throws(CloudError) { try await open().declineLink(token) }

    func users(matching lookUps: [UserLookUp]) async throws(CloudError) -> [UserIdentity] {
        try await open().users(matching: lookUps)
    }

    func setDiscoverable(_ isDiscoverable: Bool) async throws(CloudError) { try await open().setDiscoverable(isDiscoverable) }

    func shareAudit(in zone: CloudZoneID, after time: Int64?) async throws(CloudError) -> [ShareAuditEntry] {
        try await open().shareAudit(in: zone, after: time)
    }
}
