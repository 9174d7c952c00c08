import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel
import TidemarkTesting

@testable import TidemarkCloudEngine
@testable import TidemarkPostgres

/// Goal: a database that is read-only, slow, of a newer version, or that restarts gives one clear error for as long as that lasts, leaves
/// nothing half-written, and goes on afterwards. Method: servers of the tests' own, to which it happens.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(20)))
struct PostgresHostileTests {
    /// Returns the error of a server's check of its database; `nil` if the check passes.
    private func refusal(_ database: PostgresDatabase) async -> PostgresError? {
        do throws(PostgresError) {
            try await database.checkService(within: .seconds(60))
            return nil
        } catch {
            return error
        }
    }

    /// Waits until a check has a result, since PostgreSQL reads its configuration a moment after it was told to.
    private func becomes(_ code: PostgresError.Code?, _ database: PostgresDatabase) async throws {
        for _ in 0..<500 {
            if await refusal(database)?.code == code { return }
            try await Task.sleep(for: .milliseconds(20))
        }
        Issue.record("the check does not say \(code.map { "\($0)" } ?? "that all is there")")
    }

    /// Ends all sessions of a database, as operators do after a change that only new sessions notice.
    private static func endSessions(of name: String, on server: PostgresServer) throws {
        try server.sql(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '\(name)' AND pid <> pg_backend_pid()")
    }

    @Test func `a database that refuses its servers, or takes rights away, is waited for, and the error says why`()
        async throws
    {
        let server = try await apart { try PostgresServer() }
        let records = try await RecordsFixture(on: server)
        let name = records.fixture.name
        try await records.fixture.sql(
            """
            CREATE ROLE guarded LOGIN PASSWORD 'geheim';
            GRANT ALL ON ALL TABLES IN SCHEMA public TO guarded;
            GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO guarded
            """)
        try await apart { try server.demandPasswords() }
        let scratch = try Scratch()
        let file = try scratch.write("127.0.0.1:*:*:guarded:geheim\n", to: "passwords")
        chmod(file.path, 0o600)
        let database = try Fixture.database("\(server.address(name, user: "guarded")) passfile=\(file.path)") {
            $0.patience = .milliseconds(500)
        }
        let storage = try await records.storage(on: database)
        let zone = try await HostileRows.makeZone(storage)
        // The database, the statement that causes trouble, the one that ends it, and a part of the reason.
        let troubles: [(place: String, taken: String, given: String, reason: String)] = [
            (name, "ALTER ROLE guarded PASSWORD 'anders'", "ALTER ROLE guarded PASSWORD 'geheim'", "PGPASSFILE"),
            (name, "ALTER ROLE guarded NOLOGIN", "ALTER ROLE guarded LOGIN", "not permitted to log in"),
            (
                name, "ALTER ROLE guarded CONNECTION LIMIT 0", "ALTER ROLE guarded CONNECTION LIMIT -1",
                "too many connections for role"
            ),
            (
                name, "REVOKE ALL ON ALL TABLES IN SCHEMA public FROM guarded",
                "GRANT ALL ON ALL TABLES IN SCHEMA public TO guarded", "permission denied for table"
            ),
            ("postgres", "ALTER DATABASE \(name) RENAME TO away", "ALTER DATABASE away RENAME TO \(name)", "CREATE DATABASE"),
        ]
        for (number, trouble) in troubles.enumerated() {
            try await apart {
                try Self.endSessions(of: name, on: server)
                try server.sql(trouble.taken, in: trouble.place)
                try Self.endSessions(of: name, on: server)
            }
            let write = await HostileRows.failure { try await HostileRows.save(1, "\(number) refused", on: storage, in: zone) }
            let read = await HostileRows.failure { _ = try await storage.read { rows throws(CloudError) in try rows.zone(zone) } }
            for error in [write, read] {
                let reason = error?.reason ?? "none"
                #expect(error?.code == .serviceUnavailable && error?.retryAfter != nil, "\(trouble.taken): \(reason)")
                #expect(reason.contains(trouble.reason), "\(trouble.taken): \(reason)")
                #expect(error?.reason.contains("geheim") != true && error?.reason.contains("SELECT") != true)
            }
            #expect(await refusal(database) != nil, "\(trouble.taken)")
            try await apart { try server.sql(trouble.given, in: trouble.place) }
            try await HostileRows.save(1, "\(number) done", on: storage, in: zone)
            #expect(await refusal(database) == nil)
        }
        #expect(try await HostileRows.count(storage, zone) == troubles.count)
        await database.close()
    }

    @Test func `a database that default_transaction_read_only keeps as it is takes no writes, is read, and its check says so`()
        async throws
    {
        let server = try await apart { try PostgresServer() }
        let records = try await RecordsFixture(on: server) { $0.patience = .milliseconds(500) }
        let (name, database) = (records.fixture.name, records.fixture.database)
        let storage = try await records.storage()
        let zone = try await HostileRows.makeZone(storage)
        var saved = 0
        for place in ["SYSTEM", "DATABASE \(name)"] {
            try await HostileRows.save(10, "before \(place)", on: storage, in: zone)
            saved += 10
            try await apart {
                try server.sql("ALTER \(place) SET default_transaction_read_only = on")
                try server.sql("SELECT pg_reload_conf()")
                try Self.endSessions(of: name, on: server)
            }
            try await becomes(.readOnly, database)
            #expect(await refusal(database)?.message.contains("takes no writes: it is a standby, or read-only") == true)
            let error = await HostileRows.failure { try await HostileRows.save(10, "in \(place)", on: storage, in: zone) }
            #expect(error?.code == .serviceUnavailable && error?.retryAfter != nil, "\(place): \(error?.reason ?? "none")")
            #expect(error?.reason.contains("takes no writes") == true, "\(place): \(error?.reason ?? "none")")
            #expect(try await HostileRows.count(storage, zone) == saved)
            try await apart {
                try server.sql("ALTER \(place) RESET default_transaction_read_only")
                try server.sql("SELECT pg_reload_conf()")
                try Self.endSessions(of: name, on: server)
            }
            try await becomes(nil, database)
        }
        await database.close()
    }

    @Test func `a read-only database is read, takes no writes, and says so`() async throws {
        let server = try await apart { try PostgresServer() }
        let records = try await RecordsFixture(on: server) { $0.patience = .seconds(2) }
        let storage = try await records.storage()
        let zone = try await HostileRows.makeZone(storage)
        try await HostileRows.save(10, "a", on: storage, in: zone)
        try await apart { try server.restart(asStandby: true) }
        let error = await HostileRows.failure { try await HostileRows.save(10, "b", on: storage, in: zone) }
        #expect(error?.code == .serviceUnavailable)
        #expect(error?.retryAfter != nil)
        #expect(error?.reason.contains("takes no writes: it is a standby, or read-only") == true, "\(error?.reason ?? "")")
        #expect(try await HostileRows.count(storage, zone) == 10)
        try await apart { try server.restart() }
        try await HostileRows.save(10, "b", on: storage, in: zone)
        #expect(try await HostileRows.count(storage, zone) == 20)
    }

    @Test func `a statement that takes too long is ended, and nothing of its request is written`() async throws {
        let records = try await RecordsFixture {
            // A busy machine may need a second for a quick statement.
            $0.statementTimeout = .seconds(4)
            $0.patience = .seconds(5)
        }
        let storage = try await records.storage()
        let zone = try await HostileRows.makeZone(storage)
        try await HostileRows.save(10, "a", on: storage, in: zone)
        try await records.fixture.sql(
            """
            CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(15); RETURN NEW; END';
            CREATE TRIGGER slow BEFORE INSERT ON tidemark_dependencies FOR EACH STATEMENT EXECUTE FUNCTION slow()
            """)
        let error = await HostileRows.failure { try await HostileRows.save(10, "b", on: storage, in: zone) }
        #expect(error?.code == .serviceUnavailable)
        #expect(error?.retryAfter != nil)
        #expect(error?.reason.contains("has taken longer than 4.0 seconds") == true, "\(error?.reason ?? "")")
        #expect(try await HostileRows.count(storage, zone) == 10)
        try await records.fixture.sql("DROP TRIGGER slow ON tidemark_dependencies")
        try await HostileRows.save(10, "b", on: storage, in: zone)
        #expect(try await HostileRows.count(storage, zone) == 20)
    }

    @Test func `a database that restarts in the middle of a save and of a page of changes is waited for, and all is done once`()
        async throws
    {
        let server = try await apart { try PostgresServer() }
        let records = try await RecordsFixture(on: server)
        let storage = try await records.storage()
        let zone = try await HostileRows.makeZone(storage)
        try await HostileRows.save(100, "a", on: storage, in: zone)
        let runs = Shared(0)
        try await HostileRows.save(100, "b", on: storage, in: zone) {
            runs.change { $0 += 1 }
            if runs.value == 1 { #expect(throws: Never.self) { try server.restart() } }
        }
        #expect(runs.value == 2)
        #expect(try await HostileRows.count(storage, zone) == 200)
        runs.change { $0 = 0 }
        let page = try await storage.read { rows throws(CloudError) in
            let first = try rows.records(in: zone, after: 0, limit: 100)
            runs.change { $0 += 1 }
            if runs.value == 1 { #expect(throws: Never.self) { try server.restart() } }
            return first + (try rows.records(in: zone, after: first.last?.changed ?? 0, limit: 100))
        }
        #expect(runs.value == 2)
        #expect(page.map(\.changed) == Array(1...200))
        // The server is down for longer than a request waits.
        let impatient = try await records.storage(on: try records.fixture.other { $0.patience = .milliseconds(500) })
        server.stop()
        let error = await HostileRows.failure { try await HostileRows.save(1, "c", on: impatient, in: zone) }
        #expect(error?.code == .serviceUnavailable)
        #expect(error?.retryAfter != nil)
        try await apart { try server.start() }
        try await HostileRows.save(100, "c", on: impatient, in: zone)
        #expect(try await HostileRows.count(storage, zone) == 300)
    }

    @Test(arguments: [true, false])
    func `wherever in a request its connection breaks, the request is done once`(isPassedOn: Bool) async throws {
        let proxy = try TCPProxy(to: try await apart { try PostgresServer.shared() }.port)
        let records = try await RecordsFixture()
        let storage = try await records.storage(on: try records.fixture.other(port: proxy.port))
        let zone = try await HostileRows.makeZone(storage)
        var number = 0
        repeat {
            // The server does not get this piece of the request, or its answer does not come.
            proxy.cut(afterPieces: number, passingLast: isPassedOn)
            try await HostileRows.save(3, "request \(number)", on: storage, in: zone)
            number += 1
        } while proxy.hasCut
        // The last request ended without a cut. A request sends its locks, its reads, its writes, and COMMIT.
        #expect(number >= 5, "\(number)")
        #expect(try await HostileRows.count(storage, zone) == 3 * number)
        proxy.end()
    }

    /// Rows that are restored come with another start of the server. A server of the cloud that goes on must not give out a
    /// number again as the same writer.
    @Test func `after a restart of its database a server is another writer`() async throws {
        let server = try await apart { try PostgresServer() }
        let storage = try await RecordsFixture(on: server).storage()
        let zone = try await HostileRows.makeZone(storage)
        try await HostileRows.save(1, "a", on: storage, in: zone)
        try await HostileRows.save(1, "b", on: storage, in: zone)
        try await apart { try server.restart() }
        try await HostileRows.save(1, "c", on: storage, in: zone)
        try await HostileRows.save(1, "d", on: storage, in: zone)
        let writers = try await storage.read { rows throws(CloudError) in
            [
                try rows.writerNonce(of: 1, in: "_anna"), try rows.writerNonce(of: 2, in: "_anna"),
                try rows.writerNonce(of: 3, in: "_anna"), try rows.writerNonce(of: 4, in: "_anna"),
            ]
        }
        #expect(writers.allSatisfy { $0?.count == 8 })
        #expect(writers[0] == writers[1] && writers[2] == writers[3])
        #expect(writers[1] != writers[2])
    }

    @Test func `a database of a newer version is refused in one sentence, and is left as it is`() async throws {
        let records = try await RecordsFixture()
        let storage = try await records.storage()
        let zone = try await HostileRows.makeZone(storage)
        try await HostileRows.save(10, "a", on: storage, in: zone)
        try await records.fixture.sql(
            "INSERT INTO tidemark_migrations (component, number, name, oldest_user) VALUES ('records', 99, 'of later', 99)")
        let database = try records.fixture.other()
        let listener = try PostgresListener(database.configuration)
        let error = await HostileRows.failure {
            _ = try await PostgresCloudBackend(database, listener: listener) { _, _ in fatalError("no assets are asked for") }
        }
        #expect(error?.code == .serviceUnavailable)
        #expect(
            error?.reason.contains("was migrated to version 99 of its records by a newer Tidemark") == true,
            "\(error?.reason ?? "")")
        // A server that has begun before is refused, too.
        let late = await HostileRows.failure { try await HostileRows.save(10, "b", on: storage, in: zone) }
        #expect(late?.code == .serviceUnavailable)
        #expect(late?.retryAfter != nil)
        #expect(try await HostileRows.count(storage, zone) == 10)
        try await records.fixture.sql("DELETE FROM tidemark_migrations WHERE number = 99")
        try await HostileRows.save(10, "b", on: storage, in: zone)
        #expect(try await HostileRows.count(storage, zone) == 20)
        _ = try await PostgresCloudBackend(database, listener: listener) { _, _ in fatalError("no assets are asked for") }
    }
}
