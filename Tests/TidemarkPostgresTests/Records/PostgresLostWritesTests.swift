import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkPostgres

/// Goal: a database that has lost acknowledged writes is found out by the first request that shows the loss, and no client learns
/// of a change that is not there. Method: a server's files are replaced by an earlier copy while a cloud goes on; a proxy
/// acknowledges a COMMIT that the database never got.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(20)))
struct PostgresLostWritesTests {
    private static let zone = CloudZoneID("Zone")
    /// The error of an expired token.
    private static let expired = CloudError(.changeTokenExpired, "")

    private static func changes(_ side: HostileSide, since token: CloudToken? = nil) async throws -> ZoneChanges {
        try await side.own.zoneChanges(zone, since: token, limit: nil, desiredKeys: nil)
    }

    /// Changes a record that a device has under a tag.
    private static func update(_ record: CloudRecord, to number: Int, _ side: HostileSide) async throws -> CloudRecord {
        var record = record
        record.fields["n"] = .int64(Int64(number))
        let outcomes = try await side.own.modify(ModifyRecordsRequest(zone: zone, operations: [RecordOperation(.update, record)]))
        return try saved(outcomes[0])
    }

    private static func saved(_ outcome: RecordOutcome) throws -> CloudRecord {
        guard case .saved(let record) = outcome else { throw CloudError(.internalError, "not saved: \(outcome)") }
        return record
    }

    /// Looks a record up; `nil` where there is none.
    private static func find(_ name: String, _ side: HostileSide) async throws -> CloudRecord? {
        let found = try await side.own.lookup([name], in: zone, desiredKeys: nil)
        switch found[0] {
        case .success(let record): return record
        case .failure(let error) where error.code == .unknownItem: return nil
        case .failure(let error): throw error
        }
    }

    private static func number(of record: CloudRecord, _ side: HostileSide) throws -> Int64 {
        try #require(try record.changeTag.flatMap { try side.own.change(of: $0) })
    }

    // An earlier copy

    /// The cloud goes on over the copy. If as much is changed there as was lost, the same numbers are given out again, by another
    /// writer.
    @Test(arguments: [false, true])
    func `a database that is set back to an earlier copy is found out by the first token of a change that it lacks`(
        isOvertaken: Bool
    ) async throws {
        let server = try await apart { try PostgresServer() }
        let side = try await HostileSide(try await RecordsFixture(on: server))
        let zone = Self.zone
        try await side.fill(zone, ["a 0", "a 1"])
        let before = try await Self.changes(side)
        try await apart { try server.makeCopy() }
        let first = try #require(try await Self.find("a 0", side))
        _ = try await side.save(["b 0", "b 1"], in: zone, type: "Lost")
        let lost = try await Self.update(first, to: 7, side)
        let after = try await Self.changes(side, since: before.token)
        let listed = try await side.own.databaseChanges(since: nil, limit: nil)
        #expect(after.changes.count == 3 && after.incarnation == before.incarnation)
        try await apart { try server.returnToCopy() }
        // Nothing shows the loss yet. A device that has fetched nothing since gets what there is.
        var there = try side.words(before.changes)
        #expect(try await Self.changes(side, since: before.token).changes.isEmpty)
        #expect(try await side.words(Self.changes(side).changes) == there)
        if isOvertaken {
            let outcomes = try await side.save(["c 0", "c 1", "c 2"], in: zone)
            #expect(try Self.number(of: Self.saved(outcomes[2]), side) == Self.number(of: lost, side))
            there += try outcomes.map { try side.words($0) }
            #expect(try await side.words(Self.changes(side, since: before.token).changes) == Array(there[2...]))
        }
        // A token from after the copy shows the loss, and expires with all earlier ones.
        await #expect(throws: Self.expired) { _ = try await Self.changes(side, since: after.token) }
        for token in [before.token, after.token] {
            await #expect(throws: Self.expired) { _ = try await Self.changes(side, since: token) }
        }
        await #expect(throws: Self.expired) { _ = try await side.own.databaseChanges(since: listed.token, limit: nil) }
        let now = try await Self.changes(side)
        #expect(now.incarnation != nil && now.incarnation != before.incarnation)
        #expect(try side.words(now.changes) == there)
        for name in ["b 0", "b 1"] { #expect(try await Self.find(name, side) == nil) }
        #expect(try await !side.cloud.schema(of: HostileSide.container).types.keys.contains("Lost"))
        // A change of a lost version would take the version of the copy for newer.
        if !isOvertaken { await #expect(throws: Self.expired) { _ = try await Self.update(lost, to: 8, side) } }
        // No number is given out again from here on.
        let next = try Self.saved(try await side.save(["d 0"], in: zone)[0])
        #expect(try Self.number(of: next, side) > Self.number(of: lost, side) + (1 << 32))
        #expect(try await side.words(Self.changes(side, since: now.token).changes) == [side.words(next)])
        await side.close()
    }

    /// If states were told apart by a count of changes, a server could take another state for the lost one that it remembers.
    @Test func `credentials are read again from a database that is set back, even if as much was changed as was lost`()
        async throws
    {
        let server = try await apart { try PostgresServer() }
        let fixture = try await Fixture(on: server)
        func credentials() async throws -> CredentialStore {
            try CredentialStore(try await PostgresCredentialStorage.open(try fixture.other()), passwordLogN: 4)
        }
        func add(_ name: String, _ store: CredentialStore) async throws -> (token: APIToken, text: String) {
            try await store.addAPIToken(
                container: HostileSide.container, environment: .development, name: name,
                callback: .redirect("https://example.org/"), origins: ["https://example.org"])
        }
        let running = try await credentials()
        try await running.addContainer(HostileSide.container)
        let revoked = try await add("Web", running)
        try await apart { try server.makeCopy() }
        let lost = try await add("Lost", running)
        try await apart { try server.returnToCopy() }
        let other = try await credentials()
        try await other.revokeAPIToken(id: revoked.token.id)
        try await running.refresh()
        #expect(try running.apiToken(revoked.text) == nil)
        #expect(try running.apiToken(lost.text) == nil)
        await fixture.database.close()
    }

    // A false acknowledgement

    /// Makes a proxy roll back what is to be committed, and acknowledge it.
    private static func lie(_ proxy: TCPProxy) {
        /// The message that a command is complete.
        func completed(_ tag: String) -> [UInt8] {
            [UInt8(ascii: "C"), 0, 0, 0, UInt8(4 + tag.utf8.count + 1)] + Array(tag.utf8) + [0]
        }
        // Another word for a rollback, as long as the one that it replaces.
        let sent = TCPProxy.Replacement(Array("COMMIT\0".utf8), by: Array("ABORT \0".utf8))
        let answered = TCPProxy.Replacement(completed("ROLLBACK"), by: completed("COMMIT"))
        set(.replace(sent: sent, answered: answered), proxy)
    }

    /// Sets what the proxy does, and waits until it does so.
    private static func set(_ mode: TCPProxy.Mode, _ proxy: TCPProxy) {
        proxy.set(mode)
        usleep(100_000)
    }

    /// A cloud behind a proxy, with two records, and the record of a save that was acknowledged and lost.
    private func sideThatHasLost() async throws -> (TCPProxy, HostileSide, before: ZoneChanges, lost: CloudRecord) {
        let proxy = try TCPProxy(to: try await apart { try PostgresServer.shared() }.port)
        // The proxy looks for the text of COMMIT, so statements are not prepared.
        let side = try await HostileSide(try await RecordsFixture(), port: proxy.port) { $0.preparesStatements = false }
        try await side.fill(Self.zone, ["a 0", "a 1"])
        let before = try await Self.changes(side)
        Self.lie(proxy)
        let lost = try Self.saved(try await side.save(["b 0"], in: Self.zone, token: "save b")[0])
        Self.set(.pass, proxy)
        // No client learns of the lost record.
        #expect(try await Self.find("b 0", side) == nil)
        #expect(try await Self.changes(side, since: before.token).changes.isEmpty)
        return (proxy, side, before, lost)
    }

    @Test func `a save that was acknowledged and lost is done when it is sent again with its token`() async throws {
        let (proxy, side, before, lost) = try await sideThatHasLost()
        for _ in 0..<2 {
            let again = try Self.saved(try await side.save(["b 0"], in: Self.zone, token: "save b")[0])
            #expect(try side.words(again) == side.words(lost))
            let changes = try await Self.changes(side, since: before.token)
            #expect(try side.words(changes.changes) == [side.words(lost)])
            #expect(changes.incarnation == before.incarnation)
        }
        proxy.end()
        await side.close()
    }

    @Test func `a tag of a save that was acknowledged and lost is refused, and begins another incarnation`() async throws {
        let (proxy, side, before, lost) = try await sideThatHasLost()
        await #expect(throws: Self.expired) { _ = try await Self.update(lost, to: 9, side) }
        await #expect(throws: Self.expired) { _ = try await Self.changes(side, since: before.token) }
        let now = try await Self.changes(side)
        #expect(now.incarnation != nil && now.incarnation != before.incarnation)
        #expect(try side.words(now.changes) == side.words(before.changes))
        // A device that has compared its records sends the lost one again.
        let again = try Self.saved(try await side.save(["b 0"], in: Self.zone)[0])
        #expect(try Self.number(of: again, side) > Self.number(of: lost, side) + (1 << 32))
        #expect(try await side.words(Self.changes(side, since: now.token).changes) == [side.words(again)])
        proxy.end()
        await side.close()
    }
}
