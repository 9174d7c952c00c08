import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkPostgres

/// Whatever breaks, acknowledged writes are there, refused writes are not, and the message says what is wrong.
@Suite("Failures", .enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct FailureTests {
    /// Where in a transaction something happens.
    enum Moment: Int, CaseIterable, Sendable {
        case beforeFirst, betweenStatements, beforeCommit
    }

    /// Writes two rows, and calls a body at a moment of the first run.
    private func write(
        _ number: Int64, _ database: PostgresDatabase, at moment: Moment, _ body: @escaping @Sendable (Int64) throws -> Void
    ) async throws {
        let isFirst = Shared(true)
        @Sendable func happen(_ now: Moment, _ transaction: PostgresTransaction) throws {
            guard now == moment, isFirst.value else { return }
            isFirst.change { $0 = false }
            let backend: Int64 =
                now == .beforeFirst ? 0 : try transaction.query("SELECT pg_backend_pid()::int8")[0].value(0)
            try body(backend)
        }
        try await database.transaction { transaction in
            try happen(.beforeFirst, transaction)
            try transaction.query("INSERT INTO t VALUES ($1, 'a')", number)
            try happen(.betweenStatements, transaction)
            try transaction.query("INSERT INTO t VALUES ($1, 'b')", number + 1000)
            try happen(.beforeCommit, transaction)
        }
    }

    @Test(
        "A transaction whose backend ends, or is killed, runs again; if only COMMIT was left, its outcome is unknown",
        arguments: [Moment.betweenStatements, .beforeCommit], [false, true])
    func survivesBackends(_ moment: Moment, _ isKilled: Bool) async throws {
        // A killed backend takes all others of its server with it.
        let server = isKilled ? try await apart { try PostgresServer() } : try await apart { try PostgresServer.shared() }
        let fixture = try await Fixture(on: server) { $0.patience = .seconds(60) }
        try await fixture.makeTable()
        let error = await failure {
            try await write(1, fixture.database, at: moment) { backend in
                if isKilled {
                    kill(pid_t(backend), SIGKILL)
                } else {
                    try fixture.sqlNow("SELECT pg_terminate_backend(\(backend), 5000)")
                }
            }
        }
        if moment == .beforeCommit {
            #expect(error?.code == .commitUnknown)
            #expect(CloudError(postgres: error!).code == .networkFailure)
            // Here it was not committed.
            #expect(try await fixture.rows() == [:])
        } else {
            #expect(error == nil)
            #expect(try await fixture.rows() == [1: "a", 1001: "b"])
        }
        await fixture.database.close()
    }

    @Test(
        "A server that restarts in each moment of a transaction loses nothing that was acknowledged", arguments: Moment.allCases)
    func survivesRestarts(_ moment: Moment) async throws {
        let server = try await apart { try PostgresServer() }
        let fixture = try await Fixture(on: server) { $0.patience = .seconds(60) }
        try await fixture.makeTable()
        _ = try await fixture.database.query("SELECT 1")
        let error = await failure {
            try await write(1, fixture.database, at: moment) { _ in
                server.stop()
                try server.start()
            }
        }
        #expect(error?.code == (moment == .beforeCommit ? .commitUnknown : nil))
        #expect(try await fixture.rows() == (moment == .beforeCommit ? [:] : [1: "a", 1001: "b"]))
        await fixture.database.close()
    }

    @Test("An outage is an error that names the server, and the pool works again when the server is back")
    func survivesOutages() async throws {
        let server = try await apart { try PostgresServer() }
        let fixture = try await Fixture(on: server) { $0.patience = .milliseconds(300) }
        try await fixture.makeTable()
        try await fixture.database.check()
        try await apart { server.stop() }
        let error = await failure { try await fixture.database.check() }
        #expect(error?.code == .unreachable)
        #expect(error?.message.contains("database '\(fixture.name)' at 127.0.0.1:\(server.port)") == true)
        let cloud = CloudError(postgres: error!)
        #expect(cloud.code == .serviceUnavailable)
        #expect(cloud.retryAfter != nil)
        try await apart { try server.start() }
        try await write(1, fixture.database, at: .beforeFirst) { _ in }
        #expect(try await fixture.rows().count == 2)
        await fixture.database.close()
    }

    @Test("A COMMIT whose answer is lost is reported as unknown, and is not repeated; the rows tell its outcome")
    func reportsUnknownCommits() async throws {
        let proxy = try TCPProxy(to: try await apart { try PostgresServer.shared() }.port)
        let fixture = try await Fixture(port: proxy.port)
        try await fixture.makeTable()
        let runs = Shared(0)
        let task = Task {
            try await fixture.database.transaction { transaction in
                runs.change { $0 += 1 }
                try transaction.query("INSERT INTO t VALUES (1, 'a')")
                proxy.set(.swallowAnswers)
            }
        }
        let direct = try fixture.other()
        for _ in 0..<1000 {
            if try await !direct.query("SELECT * FROM t").isEmpty { break }
            try await Task.sleep(for: .milliseconds(20))
        }
        proxy.cut()
        #expect(await failure { try await task.value }?.code == .commitUnknown)
        #expect(runs.value == 1)
        #expect(try await direct.query("SELECT * FROM t").count == 1)
        await fixture.database.close()
        await direct.close()
        proxy.end()
    }

    @Test("A statement ends after its limit in a network that swallows everything")
    func noticesSilence() async throws {
        let proxy = try TCPProxy(to: try await apart { try PostgresServer.shared() }.port)
        let fixture = try await Fixture(port: proxy.port) {
            $0.statementTimeout = .seconds(1)
            $0.patience = .zero
        }
        _ = try await fixture.database.query("SELECT 1")
        proxy.set(.stall)
        let began = ContinuousClock.now
        let error = await failure { try await fixture.database.read { try $0.query("SELECT 1") } }
        #expect(error?.code == .connectionLost)
        #expect(ContinuousClock.now < began + .seconds(30))
        proxy.set(.pass)
        #expect(try await fixture.database.query("SELECT 1").count == 1)
        await fixture.database.close()
        proxy.end()
    }

    @Test("A check of a database that answers nothing ends after its own limit, and passes when it answers again")
    func limitsChecks() async throws {
        let proxy = try TCPProxy(to: try await apart { try PostgresServer.shared() }.port)
        let fixture = try await Fixture(port: proxy.port)
        try await PostgresMigrations(PostgresCloudTables.migrations).run(on: fixture.database)
        try await fixture.database.checkService(within: .seconds(60))
        proxy.set(.stall)
        let began = ContinuousClock.now
        let error = await failure { try await fixture.database.checkService(within: .milliseconds(300)) }
        #expect(error?.message.contains("has not answered for") == true, "\(error?.message ?? "none")")
        #expect(error.map { CloudError(postgres: $0).code } == .serviceUnavailable)
        #expect(ContinuousClock.now < began + .seconds(20))
        proxy.set(.pass)
        try await fixture.database.checkService(within: .seconds(60))
        await fixture.database.close()
        proxy.end()
    }

    @Test("Connecting ends after its limit in a network that swallows everything")
    func noticesSilenceWhileConnecting() async throws {
        let proxy = try TCPProxy(to: try await apart { try PostgresServer.shared() }.port)
        let fixture = try await Fixture(port: proxy.port) {
            $0.connectTimeout = .seconds(2)
            $0.patience = .zero
        }
        proxy.set(.stall)
        let began = ContinuousClock.now
        #expect(await failure { try await fixture.database.query("SELECT 1") }?.code == .unreachable)
        #expect(ContinuousClock.now < began + .seconds(30))
        await fixture.database.close()
        proxy.end()
    }

    @Test(
        "Answers in no protocol of PostgreSQL count as a broken connection, while connecting and after that",
        arguments: [
            Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8), [UInt8](repeating: 0, count: 4096),
            [UInt8](repeating: 255, count: 100),
            Array("E\0\0\0\u{5}\0".utf8), [UInt8(ascii: "D"), 0, 0, 0, 20, 127, 255], [UInt8(ascii: "Z"), 0, 0, 0, 5, 73],
            [UInt8(ascii: "T"), 0x7f, 0xff, 0xff, 0xff, 0, 1],
        ])
    func survivesGarbage(_ bytes: [UInt8]) async throws {
        let proxy = try TCPProxy(to: try await apart { try PostgresServer.shared() }.port)
        let fixture = try await Fixture(port: proxy.port) {
            $0.connections = 1
            $0.connectTimeout = .seconds(2)
            $0.statementTimeout = .milliseconds(500)
            $0.patience = .zero
        }
        try await fixture.makeTable()
        _ = try await fixture.database.query("SELECT 1")
        proxy.set(.garbage(bytes))
        let after = await failure { try await fixture.database.read { try $0.query("SELECT 1") } }
        #expect(after?.code == .connectionLost)
        let before = await failure { try await fixture.database.query("SELECT 1") }
        #expect(before?.code == .unreachable)
        let commit = await failure {
            try await fixture.database.transaction { try $0.enqueue("INSERT INTO t VALUES (1, 'a')") }
        }
        #expect(commit != nil)
        proxy.set(.pass)
        #expect(try await fixture.rows() == [:])
        await fixture.database.close()
        proxy.end()
    }

    @Test("Connections that are cut at random moments lose and double nothing that was acknowledged")
    func survivesCuts() async throws {
        let proxy = try TCPProxy(to: try await apart { try PostgresServer.shared() }.port)
        let fixture = try await Fixture(port: proxy.port)
        try await fixture.makeTable()
        let outcomes = Shared<[Int64: Bool?]>([:])
        let isDone = Shared(false)
        let cutting = Task {
            while !isDone.value {
                proxy.cut()
                // Some transactions come through also where many tests share the processors.
                try await Task.sleep(for: .milliseconds(Int.random(in: 5...300)))
            }
        }
        await withTaskGroup(of: Void.self) { group in
            for writer in Int64(0)..<4 {
                group.addTask {
                    for number in (writer * 100)..<(writer * 100 + 40) {
                        let error = await failure {
                            try await fixture.database.transaction { transaction in
                                try transaction.query("INSERT INTO t VALUES ($1, 'a')", number)
                                try transaction.enqueue("INSERT INTO t VALUES ($1, 'b')", number + 1000)
                            }
                        }
                        let outcome: Bool? = error?.code == .commitUnknown ? nil : error == nil
                        outcomes.change { $0.updateValue(outcome, forKey: number) }
                    }
                }
            }
        }
        isDone.change { $0 = true }
        _ = try await cutting.value
        let direct = try fixture.other()
        let rows = try await direct.query("SELECT n FROM t")
        let numbers = Set(try rows.map { try $0.value(0, as: Int64.self) })
        for (number, outcome) in outcomes.value {
            #expect(numbers.contains(number) == numbers.contains(number + 1000), "\(number)")
            if let outcome { #expect(numbers.contains(number) == outcome, "\(number)") }
        }
        #expect(outcomes.value.count == 160)
        #expect(outcomes.value.values.contains { $0 == true })
        await fixture.database.close()
        await direct.close()
        proxy.end()
    }

    @Test("Of several hosts the one that takes writes is found, and one that is down is passed over")
    func findsPrimary() async throws {
        let server = try await apart { try PostgresServer.shared() }
        let (first, second) = (try TCPProxy(to: server.port), try TCPProxy(to: server.port))
        let name = try await apart { try server.makeDatabase() }
        first.end()
        let database = try Fixture.database(
            "host=127.0.0.1,127.0.0.1 port=\(first.port),\(second.port) user=tidemark dbname=\(name) target_session_attrs=read-write"
        )
        try await database.check()
        #expect(second.accepted > 0)
        await database.close()
        second.end()
    }

    @Test("A database that can't be used is refused with a sentence that says why")
    func refusesDatabases() async throws {
        let server = try await apart { try PostgresServer.shared() }
        func message(_ address: String, _ code: PostgresError.Code) async throws -> String {
            let database = try Fixture.database(address) { $0.patience = .zero }
            let error = await failure { try await database.check() }
            #expect(error?.code == code, "\(error?.message ?? "none")")
            await database.close()
            return error?.message ?? ""
        }
        let missing = try await message(server.address("nothing"), .unreachable)
        #expect(missing.contains("does not exist"))
        #expect(try await message(server.address(user: "nobody"), .unreachable).contains("nobody"))
        #expect(try await message("host=/nowhere dbname=x", .unreachable).contains("/nowhere"))
        let latin = try await apart { try server.makeDatabase("ENCODING 'SQL_ASCII' TEMPLATE template0") }
        #expect(try await message(server.address(latin), .unsupported).contains("SQL_ASCII"))
        let loose = try await apart { try server.makeDatabase() }
        try await apart { try server.sql("ALTER DATABASE \(loose) SET synchronous_commit = off") }
        #expect(try await message(server.address(loose), .unsupported).contains("synchronous_commit"))
        let readOnly = try await apart { try server.makeDatabase() }
        try await apart { try server.sql("ALTER DATABASE \(readOnly) SET default_transaction_read_only = on") }
        #expect(try await message(server.address(readOnly), .readOnly).contains("takes no writes"))
    }

    @Test("The password comes from a file that the address names, and a wrong or missing one is refused")
    func takesPasswords() async throws {
        let server = try await apart { try PostgresServer(settings: ["password_encryption = 'scram-sha-256'"]) }
        try await apart { try server.sql("CREATE ROLE guarded LOGIN PASSWORD 'geheim'") }
        try await apart { try server.demandPasswords() }
        let scratch = try Scratch()
        func file(_ password: String) throws -> String {
            let url = try scratch.write("127.0.0.1:*:*:guarded:\(password)\n", to: "\(password.utf8.count)")
            chmod(url.path, 0o600)
            return url.path
        }
        for (address, code) in [
            ("passfile=\(try file("geheim"))", nil), ("passfile=\(try file("verkehrt"))", PostgresError.Code.refused),
            ("passfile=/nowhere", .refused),
        ] {
            let database = try Fixture.database("\(server.address(user: "guarded")) \(address)") { $0.patience = .zero }
            let error = await failure { try await database.check() }
            #expect(error?.code == code)
            #expect(error?.message.contains("geheim") != true && error?.message.contains("verkehrt") != true)
            await database.close()
        }
    }

    @Test("A standby that accepts the password, beside a host that is down, is no refusal: a failover passes")
    func waitsForPrimary() async throws {
        let server = try await apart {
            try PostgresServer(settings: ["password_encryption = 'scram-sha-256'"])
        }
        try await apart { try server.sql("CREATE ROLE guarded LOGIN PASSWORD 'geheim'") }
        try await apart { try server.sql("ALTER ROLE guarded SET default_transaction_read_only = on") }
        try await apart { try server.demandPasswords() }
        let scratch = try Scratch()
        let file = try scratch.write("127.0.0.1:*:*:guarded:geheim\n", to: "passwords")
        chmod(file.path, 0o600)
        let address =
            "host=127.0.0.1,127.0.0.1 port=1,\(server.port) user=guarded dbname=postgres target_session_attrs=read-write passfile=\(file.path)"
        let database = try Fixture.database(address) { $0.patience = .zero }
        let error = await failure { try await database.check() }
        #expect(error?.code == .unreachable, "\(error?.message ?? "")")
        #expect(error.map { CloudError(postgres: $0).code } == .serviceUnavailable)
        await database.close()
    }
}
