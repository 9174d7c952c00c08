import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloudEngine
import TidemarkIdentity
import TidemarkModel
import TidemarkPostgres

/// Goal: a change by one server holds at all others from the commit on, and costs a request little. Method: two credential stores
/// over one database, and a look at the statements.
@Suite(
    "Credentials of several servers", .enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"),
    .timeLimit(.minutes(30)))
struct IdentityTests {
    private static let container = "iCloud.org.example.journal"

    private func store(
        _ fixture: Fixture, listener: PostgresListener? = nil, _ change: (inout PostgresConfiguration) -> Void = { _ in }
    ) async throws -> CredentialStore {
        try CredentialStore(
            try await PostgresCredentialStorage.open(try fixture.other(change), listener: listener), passwordLogN: 4)
    }

    @Test("Servers record sync failures one after the other")
    func writesInTurn() async throws {
        let fixture = try await Fixture()
        let storage = try await PostgresCredentialStorage.open(try fixture.other())
        let failure = SyncFailure(
            at: 1, operation: "records.modify", container: Self.container, environment: "production", account: "anna",
            scope: .private, code: "BAD_REQUEST", reason: "why")
        let writes = try await fixture.database.transaction { transaction -> Task<Void, any Error> in
            try transaction.query("SELECT pg_advisory_xact_lock($1)", PostgresCredentialStorage.syncFailureLock)
            let writes = Task { try await storage.record([failure], at: 1) }
            var waiting: Int64 = 0
            for _ in 0..<500 where waiting == 0 {
                Thread.sleep(forTimeInterval: 0.02)
                let rows = try transaction.query(
                    """
                    SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
                        AND (classid::int8 << 32) + objid::int8 = $1
                        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                    """, PostgresCredentialStorage.syncFailureLock)
                waiting = try rows[0].value(0, as: Int64.self)
            }
            #expect(waiting == 1)
            return writes
        }
        try await writes.value
        #expect(try await storage.syncFailures(.init(), limit: 9).count == 1)
        await fixture.database.close()
    }

    @Test("A session of one server is accepted by the other until it ends, and no longer")
    func signsIn() async throws {
        let fixture = try await Fixture()
        let (one, two) = (try await store(fixture), try await store(fixture))
        try await one.addContainer(Self.container)
        try await two.setPassword("correct horse", of: "anna")
        for round in 0..<20 {
            let (here, there) = round % 2 == 0 ? (one, two) : (two, one)
            let token = try #require(
                try await here.signIn("correct horse", account: "anna", container: Self.container, kind: .device).grant)
            let session = try await there.session(token.text).get()
            #expect(session.account == "anna")
            let renewed = try await there.renewed(session)
            #expect(try await here.session(renewed.text).get().id == session.id)
            try await here.endSession(id: session.id)
            await #expect(throws: SessionFailure.revoked) { try await there.session(renewed.text).get() }
            await #expect(throws: SessionFailure.revoked) { try await here.session(token.text).get() }
        }
        #expect(try await one.signIn("wrong horse", account: "anna", container: Self.container, kind: .device) == .refused)
        let outcomes = try await two.auditLog().map(\.event.outcome)
        #expect(outcomes == ["wrong password"] + [String](repeating: "done", count: 20))
    }

    @Test("A revoked token and a replaced secret hold at the other server from the next request on")
    func revokes() async throws {
        let fixture = try await Fixture()
        let (one, two) = (try await store(fixture), try await store(fixture))
        try await one.addContainer(Self.container)
        try await two.refresh()
        #expect(try two.hasContainer(Self.container))
        let (token, text) = try await one.addAPIToken(
            container: Self.container, environment: .development, name: "Web", callback: .redirect("https://example.org/"),
            origins: ["https://example.org"])
        try await two.refresh()
        #expect(try two.apiToken(text) == token)
        #expect(try await two.isGood(.apiToken(token.id)))
        try await one.revokeAPIToken(id: token.id)
        #expect(try await !two.isGood(.apiToken(token.id)))
        #expect(try two.apiToken(text) == nil)
        let sealed = one.signedText(Data("x".utf8), for: "upload", until: .max)
        #expect(try two.open(sealed, for: "upload") == Data("x".utf8))
        let session = try await one.makeSession(
            account: "anna", container: Self.container, environment: .development, kind: .device)
        #expect(try await two.rotateSecret() == 1)
        await #expect(throws: SessionFailure.unknown) { try await one.session(session.text).get() }
        #expect(try one.open(sealed, for: "upload") == nil)
    }

    @Test("A server without requests learns of a change by a notification")
    func listens() async throws {
        let fixture = try await Fixture()
        let listeners = try (0..<2).map { _ in
            try PostgresListener(PostgresConfiguration(PostgresAddress(fixture.server.address(fixture.name))))
        }
        let one = try await store(fixture, listener: listeners[0])
        let two = try await store(fixture, listener: listeners[1])
        try await one.addContainer(Self.container)
        let clock = ContinuousClock()
        let end = clock.now + .seconds(30)
        while try !two.hasContainer(Self.container), clock.now < end { try await Task.sleep(for: .milliseconds(5)) }
        #expect(try two.hasContainer(Self.container))
        for listener in listeners { await listener.close() }
    }

    @Test("Simultaneous requests share look-ups, and unchanged credentials are not read again")
    func sharesLookUps() async throws {
        let fixture = try await Fixture()
        let statements = Shared(0)
        let one = try await store(fixture) { configuration in
            configuration.connections = 2
            configuration.preparesStatements = false
            configuration.observesStatement = { text in if text.contains("credential_state") { statements.change { $0 += 1 } } }
        }
        try await one.addContainer(Self.container)
        let token = try await one.makeSession(
            account: "anna", container: Self.container, environment: .development, kind: .device)
        statements.change { $0 = 0 }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<1_000 { group.addTask { _ = try await one.session(token.text).get() } }
            try await group.waitForAll()
        }
        #expect(statements.value <= 500, "\(statements.value) statements for 1,000 requests")
        statements.change { $0 = 0 }
        _ = try await one.session(token.text).get()
        #expect(statements.value == 1)
    }

    @Test("Codes of a second factor are counted by all servers together, until one is right")
    func countsCodesTogether() async throws {
        let fixture = try await Fixture()
        let storages = [
            try await PostgresCredentialStorage.open(try fixture.other()),
            try await PostgresCredentialStorage.open(try fixture.other()),
        ]
        let stores = try storages.map { try CredentialStore($0, passwordLogN: 4) }
        try await stores[0].addContainer(Self.container)
        try await stores[0].setPassword("correct horse", of: "anna")
        // No code that is tried belongs to this secret.
        try await storages[0].setSecondFactor(
            StoredSecondFactor(
                account: "anna", secret: [UInt8](repeating: 7, count: 20),
                recovery: [UInt8](repeating: 1, count: 32), step: .max, added: 1), of: "anna")
        func signIn(_ number: Int) async throws -> SignInResult<SessionToken> {
            try await stores[number % 2].signIn(
                "correct horse", account: "anna", code: "123456", container: Self.container, kind: .device)
        }
        for number in 0..<10 { #expect(try await signIn(number) == .needsCode) }
        for number in 0..<2 {
            guard case .tooManyCodes(let wait) = try await signIn(number) else {
                Issue.record("the other server lets codes through")
                return
            }
            #expect((1...361).contains(wait))
        }
        // As after a right code. The codes of other accounts are counted apart.
        let rate = SignInRate("code", "anna", perSecond: 1.0 / 360, burst: 10)
        #expect(try await storages[0].countCode(SignInRate("code", "ben", perSecond: 1.0 / 360, burst: 10)) == 0)
        try await storages[1].forgetCodes(rate)
        #expect(try await signIn(0) == .needsCode)
        await fixture.database.close()
    }

    @Test("The row of a count of sign-in attempts that has rested is removed with the next attempt")
    func forgetsRestedCounts() async throws {
        let fixture = try await Fixture()
        _ = try await store(fixture)
        let rates = PostgresSignInRates(try fixture.other())
        func rate(_ name: String) -> SignInRate { SignInRate("pair", name, perSecond: 0.05, burst: 6) }
        for name in ["anna", "ben"] { #expect(try await rates.wait(for: [rate(name)], at: 0) == nil) }
        try await fixture.sql("UPDATE sign_in_rates SET at = at - 1000, full_at = full_at - 1000")
        _ = try await rates.wait(for: [rate("cleo")], at: 0)
        let left = try await fixture.database.query("SELECT count(*) FROM sign_in_rates")[0].value(0, as: Int64.self)
        #expect(left == 1)
        await fixture.database.close()
    }

    @Test("Entries of the audit log can't be changed, and young ones can't be removed")
    func keepsAuditLog() async throws {
        let fixture = try await Fixture()
        let one = try await store(fixture)
        try await one.audit(AuditEvent(.signIn, actor: "anna"))
        for statement in ["UPDATE audit_log SET actor = 'ben'", "DELETE FROM audit_log"] {
            await #expect(throws: PostgresServer.Failure.self) { try await fixture.sql(statement) }
        }
        #expect(try await one.auditLog().map(\.event.actor) == ["anna"])
    }

    @Test("While the database can't be reached, no session is accepted or refused, and requests go on afterwards")
    func survivesCuts() async throws {
        let proxy = try TCPProxy(to: try await apart { try PostgresServer.shared() }.port)
        let fixture = try await Fixture(port: proxy.port)
        let one = try await store(fixture)
        let cut = try CredentialStore(
            try await PostgresCredentialStorage.open(
                try fixture.other(port: proxy.port) { configuration in
                    configuration.connectTimeout = .seconds(2)
                    configuration.statementTimeout = .milliseconds(500)
                    configuration.patience = .zero
                }), passwordLogN: 4)
        try await one.addContainer(Self.container)
        let token = try await one.makeSession(
            account: "anna", container: Self.container, environment: .development, kind: .device)
        let other = try await one.makeSession(
            account: "ben", container: Self.container, environment: .development, kind: .device)
        #expect(try await cut.session(token.text).get().account == "anna")
        proxy.set(.stall)
        for _ in 0..<3 {
            await #expect(throws: CredentialError(.busy, "")) { _ = try await cut.session(token.text) }
            await #expect(throws: CredentialError(.busy, "")) { _ = try await cut.isGood(.apiToken("x")) }
        }
        try await one.endSession(id: token.session.id)
        // A text that is signed meanwhile is signed with the secret that the server knows.
        let sealed = cut.signedText(Data("x".utf8), for: "upload", until: .max)
        proxy.set(.pass)
        await #expect(throws: SessionFailure.revoked) { try await cut.session(token.text).get() }
        #expect(try await cut.session(other.text).get().account == "ben")
        #expect(try one.open(sealed, for: "upload") == Data("x".utf8))
        proxy.end()
    }
}
