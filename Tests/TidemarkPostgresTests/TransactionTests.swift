import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel
import TidemarkPostgres

@Suite("Transactions", .enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct TransactionTests {
    private struct Refused: Error, Equatable {}

    @Test("A transaction commits all, or nothing where its body throws", arguments: [true, false])
    func commits(_ prepares: Bool) async throws {
        let fixture = try await Fixture { $0.preparesStatements = prepares }
        try await fixture.makeTable()
        let count = try await fixture.database.transaction { transaction -> Int in
            try transaction.enqueue("INSERT INTO t VALUES ($1, $2)", Int64(1), "a")
            try transaction.enqueue("INSERT INTO t SELECT * FROM unnest($1, $2)", [Int64(2), 3], ["b", "c"])
            // Waiting statements are sent first.
            return try transaction.query("SELECT n FROM t").count
        }
        #expect(count == 3)
        await #expect(throws: Refused()) {
            try await fixture.database.transaction { transaction in
                try transaction.query("DELETE FROM t")
                throw Refused()
            }
        }
        #expect(try await fixture.rows() == [1: "a", 2: "b", 3: "c"])
        await fixture.database.close()
    }

    @Test("Statements that go together have their own results, in order")
    func pipelines() async throws {
        let fixture = try await Fixture()
        try await fixture.makeTable()
        let results = try await fixture.database.transaction { transaction in
            try transaction.enqueue("INSERT INTO t VALUES (1, 'a')")
            return try transaction.run([
                PostgresCommand("SELECT s FROM t"),
                PostgresCommand("INSERT INTO t VALUES ($1, $2), ($1 + 1, $2)", [Int64(2), "b"]),
                PostgresCommand("SELECT count(*) FROM t"),
            ])
        }
        #expect(results.map(\.count) == [1, 0, 1])
        #expect(results[1].affected == 2)
        #expect(try results[2][0].value(0, as: Int64.self) == 3)
        await fixture.database.close()
    }

    @Test("A waiting statement that fails makes the commit fail, and so does a failure that the body hides")
    func fails() async throws {
        let fixture = try await Fixture()
        try await fixture.makeTable()
        let waited = await failure {
            try await fixture.database.transaction { transaction in
                try transaction.enqueue("INSERT INTO t VALUES (1, 'a')")
                try transaction.enqueue("INSERT INTO t VALUES (1, 'b')")
            }
        }
        #expect(waited?.code == .constraint)
        #expect(waited?.constraint == "t_pkey")
        #expect(waited?.message.contains("INSERT INTO t") == true)
        let hidden = await failure {
            try await fixture.database.transaction { transaction in
                try transaction.query("INSERT INTO t VALUES (1, 'a')")
                _ = try? transaction.query("SELECT 1 / 0")
                _ = try? transaction.query("SELECT 1")
            }
        }
        #expect(hidden?.state == "22012")
        #expect(try await fixture.rows() == [:])
        // The connection can be used again.
        #expect(try await eventually { fixture.database.pool.statistics == .init(inUse: 0, idle: 1, waiting: 0) })
        await fixture.database.close()
    }

    @Test("A read sees one state, and may not write")
    func reads() async throws {
        let fixture = try await Fixture()
        try await fixture.makeTable()
        let (before, after) = try await fixture.database.read { transaction in
            let before = try transaction.query("SELECT n FROM t").count
            try fixture.sqlNow("INSERT INTO t VALUES (1, 'a')")
            return (before, try transaction.query("SELECT n FROM t").count)
        }
        #expect((before, after) == (0, 0))
        let began = ContinuousClock.now
        let error = await failure { try await fixture.database.read { try $0.query("DELETE FROM t") } }
        #expect(error?.code == .readOnly)
        #expect(ContinuousClock.now < began + .seconds(5), "it does not run again")
        await fixture.database.close()
    }

    @Test("After a serialisation failure the body runs again, and no increment is lost")
    func runsAgain() async throws {
        let fixture = try await Fixture { $0.attempts = 100 }
        try await fixture.makeTable()
        try await fixture.sql("INSERT INTO t VALUES (1, '0')")
        let runs = Shared(0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<10 {
                        try await fixture.database.transaction(.init(.serializable, isReadOnly: false)) { transaction in
                            runs.change { $0 += 1 }
                            let text: String = try transaction.query("SELECT s FROM t WHERE n = 1")[0].value(0)
                            try transaction.enqueue("UPDATE t SET s = $1 WHERE n = 1", "\(Int(text)! + 1)")
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await fixture.rows() == [1: "40"])
        #expect(runs.value > 40)
        await fixture.database.close()
    }

    @Test(
        "Of two transactions that wait for each other one runs again, and both commit, whatever the body makes of the error"
    )
    func breaksDeadlocks() async throws {
        let fixture = try await Fixture()
        try await fixture.makeTable()
        try await fixture.sql("INSERT INTO t VALUES (1, ''), (2, '')")
        let (first, second) = (Signal(), Signal())
        let runs = Shared(0)
        @Sendable func lock(_ number: Int64, then other: Int64, _ own: Signal, _ others: Signal) async throws {
            try await fixture.database.transaction { transaction in
                runs.change { $0 += 1 }
                do {
                    try transaction.query("UPDATE t SET s = s || $2::text WHERE n = $1", number, "\(number)")
                    own.send()
                    others.block()
                    try transaction.query("UPDATE t SET s = s || $2::text WHERE n = $1", other, "\(number)")
                } catch {
                    throw CloudError(postgres: error)
                }
            }
        }
        async let one: Void = lock(1, then: 2, first, second)
        async let two: Void = lock(2, then: 1, second, first)
        _ = try await (one, two)
        #expect(try await fixture.rows().mapValues { Set($0) } == [1: ["1", "2"], 2: ["1", "2"]])
        #expect(runs.value == 3)
        await fixture.database.close()
    }

    @Test("Time limits of locks and statements end a statement, and not the connection", arguments: [true, false])
    func limits(_ prepares: Bool) async throws {
        let fixture = try await Fixture {
            $0.preparesStatements = prepares
            $0.lockTimeout = .milliseconds(100)
            $0.statementTimeout = .milliseconds(1500)
        }
        try await fixture.makeTable()
        try await fixture.sql("INSERT INTO t VALUES (1, 'a')")
        let (locked, done) = (Signal(), Signal())
        async let holder: Void = fixture.other().transaction { transaction in
            try transaction.query("SELECT * FROM t FOR UPDATE")
            locked.send()
            done.block()
        }
        await locked.wait()
        let busy = await failure { try await fixture.database.transaction { try $0.query("UPDATE t SET s = 'b'") } }
        #expect(busy?.code == .lockTimeout)
        #expect(CloudError(postgres: busy!).code == .zoneBusy)
        done.send()
        try await holder
        let slow = await failure { try await fixture.database.transaction { try $0.query("SELECT pg_sleep(30)") } }
        #expect(slow?.code == .statementTimeout)
        #expect(try await eventually { fixture.database.pool.statistics == .init(inUse: 0, idle: 1, waiting: 0) })
        // A transaction with a limit of its own.
        let patient = PostgresTransactionOptions(.readCommitted, isReadOnly: false, statementTimeout: .seconds(30))
        _ = try await fixture.database.transaction(patient) { try $0.query("SELECT pg_sleep(2)") }
        await fixture.database.close()
    }

    @Test("A cancelled task ends its statement at the server, and the transaction writes nothing")
    func cancels() async throws {
        let fixture = try await Fixture()
        try await fixture.makeTable()
        let began = Signal()
        let task = Task {
            try await fixture.database.transaction { transaction in
                try transaction.query("INSERT INTO t VALUES (1, 'a')")
                began.send()
                try transaction.query("SELECT pg_sleep(60)")
            }
        }
        await began.wait()
        let start = ContinuousClock.now
        task.cancel()
        let error = await failure { try await task.value }
        #expect(error?.code == .cancelled)
        #expect(ContinuousClock.now < start + .seconds(20))
        // The statement does not run at the server any more.
        let isOver = try await { () -> Bool in
            for _ in 0..<500 {
                let running: Int64 = try await fixture.database.query(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_sleep(60)%' AND state = 'active' AND pid <> pg_backend_pid()"
                )[0].value(0)
                if running == 0 { return true }
                try await Task.sleep(for: .milliseconds(20))
            }
            return false
        }()
        #expect(isOver)
        #expect(try await fixture.rows() == [:])
        await fixture.database.close()
    }

    @Test("The server is asked again to cancel a statement that it got after the first request, while the client waits")
    func cancelsAgain() async throws {
        let fixture = try await Fixture()
        // The first request ends the first sleep, and the second sleep begins.
        try await fixture.sql(
            """
            CREATE FUNCTION survivor() RETURNS void LANGUAGE plpgsql AS
            'BEGIN PERFORM pg_sleep(61); EXCEPTION WHEN query_canceled THEN PERFORM pg_sleep(62); END'
            """)
        let running = { () -> Int64 in
            try await fixture.database.query(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%survivor()%' AND state = 'active' AND pid <> pg_backend_pid()"
            )[0].value(0)
        }
        let patient = PostgresTransactionOptions(.readCommitted, isReadOnly: false, statementTimeout: .seconds(120))
        let task = Task { try await fixture.database.transaction(patient) { try $0.query("SELECT survivor()") } }
        var start = ContinuousClock.now
        while try await running() == 0, ContinuousClock.now < start + .seconds(60) {
            try await Task.sleep(for: .milliseconds(20))
        }
        start = .now
        task.cancel()
        #expect(await failure { try await task.value }?.code == .cancelled)
        while try await running() != 0, ContinuousClock.now < start + .seconds(40) {
            try await Task.sleep(for: .milliseconds(20))
        }
        #expect(try await running() == 0)
        await fixture.database.close()
    }

    @Test("Cancelling at any moment leaves all or nothing, and only what is committed is reported as such")
    func cancelsAnywhere() async throws {
        let fixture = try await Fixture()
        try await fixture.makeTable()
        var acknowledged: Set<Int64> = []
        for number in Int64(0)..<60 {
            let task = Task {
                try await fixture.database.transaction { transaction in
                    try transaction.query("INSERT INTO t VALUES ($1, 'a')", number)
                    try transaction.enqueue("INSERT INTO t VALUES ($1, 'b')", number + 1000)
                }
            }
            try await Task.sleep(for: .microseconds(Int(number) * 60))
            task.cancel()
            if (try? await task.value) != nil { acknowledged.insert(number) }
        }
        let rows = try await fixture.rows()
        #expect(Set(rows.keys.filter { $0 < 1000 }) == acknowledged)
        #expect(Set(rows.keys.filter { $0 >= 1000 }) == Set(acknowledged.map { $0 + 1000 }))
        await fixture.database.close()
    }

    @Test("Each statement is prepared once for a connection, and the least recently used one makes room")
    func prepares() async throws {
        let seen = Shared<[String]>([])
        let fixture = try await Fixture { configuration in
            configuration.connections = 1
            configuration.preparedStatements = 10
            configuration.observesStatement = { sql in seen.change { $0.append(sql) } }
        }
        for _ in 0..<3 {
            for number in 0..<8 {
                try await fixture.database.transaction { transaction in
                    try transaction.enqueue("SELECT \(number)")
                    #expect(try transaction.query("SELECT \(number)").count == 1)
                }
            }
        }
        #expect(seen.value.filter { $0.hasPrefix("SELECT ") && !$0.contains("set") }.count == 8)
        for number in 0..<40 { _ = try await fixture.database.query("SELECT \(number)") }
        let kept: Int64 = try await fixture.database.query("SELECT count(*) FROM pg_prepared_statements")[0].value(0)
        #expect(kept <= 10)
        await fixture.database.close()
    }

    @Test("A transaction runs again if another server has changed the tables of a prepared statement")
    func noticesChangedTables() async throws {
        let fixture = try await Fixture { $0.connections = 1 }
        try await fixture.makeTable()
        try await fixture.sql("INSERT INTO t VALUES (1, 'a')")
        _ = try await fixture.database.read { try $0.query("SELECT * FROM t") }
        try await fixture.sql("ALTER TABLE t ADD COLUMN more int8 DEFAULT 7")
        let row = try await fixture.database.read { try $0.query("SELECT * FROM t") }[0]
        #expect(try row.value(2, as: Int64.self) == 7)
        await fixture.database.close()
    }
}
