import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkModel
import TidemarkPostgres

@Suite("The pool", .enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct PoolTests {
    /// Holds a connection until `done`.
    private func hold(_ database: PostgresDatabase, until done: Signal) async throws -> Task<Void, any Error> {
        let held = Signal()
        let task = Task {
            try await database.transaction { transaction in
                try transaction.query("SELECT 1")
                held.send()
                done.block()
            }
        }
        await held.wait()
        return task
    }

    @Test("Transactions that wait get connections in the order in which they came, and all connections are used")
    func servesInOrder() async throws {
        let database = try await Fixture { $0.connections = 2 }.database
        let done = Signal()
        let holders = [try await hold(database, until: done), try await hold(database, until: done)]
        #expect(database.pool.statistics == .init(inUse: 2, idle: 0, waiting: 0))
        let order = Shared<[Int]>([])
        var waiters: [Task<Void, any Error>] = []
        for number in 0..<6 {
            waiters.append(
                Task {
                    try await database.transaction { transaction in
                        order.change { $0.append(number) }
                        try transaction.query("SELECT pg_sleep(0.05)")
                    }
                })
            #expect(try await eventually { database.pool.statistics.waiting == number + 1 })
        }
        done.send()
        for task in holders + waiters { try await task.value }
        // Two run at once, so neighbours may change places.
        let came = order.value
        #expect(came.sorted() == Array(0..<6))
        #expect(came.enumerated().allSatisfy { abs($0.offset - $0.element) <= 1 })
        #expect(try await eventually { database.pool.statistics == .init(inUse: 0, idle: 2, waiting: 0) })
        await database.close()
    }

    @Test("A wait ends after its limit, or with its task, and no connection is lost")
    func endsWaits() async throws {
        let database = try await Fixture {
            $0.connections = 1
            $0.waitLimit = .milliseconds(200)
        }.database
        let done = Signal()
        let holder = try await hold(database, until: done)
        let late = await failure { try await database.query("SELECT 1") }
        #expect(late?.code == .poolExhausted)
        #expect(late?.message.contains("all 1 connections to the database 'test") == true)
        let task = Task { try await database.query("SELECT 1") }
        task.cancel()
        #expect(await failure { try await task.value }?.code == .cancelled)
        #expect(database.pool.statistics == .init(inUse: 1, idle: 0, waiting: 0))
        done.send()
        try await holder.value
        #expect(try await database.query("SELECT 1").count == 1)
        await database.close()
    }

    @Test("A backend that was ended while its connection was idle is noticed, and the statement goes to another")
    func noticesEndedBackends() async throws {
        let fixture = try await Fixture { $0.connections = 2 }
        let first: Int64 = try await fixture.database.query("SELECT pg_backend_pid()")[0].value(0)
        try await fixture.sql("SELECT pg_terminate_backend(\(first), 5000)")
        let second: Int64 = try await fixture.database.query("SELECT pg_backend_pid()")[0].value(0)
        #expect(second != first)
        #expect(try await eventually { fixture.database.pool.statistics == .init(inUse: 0, idle: 1, waiting: 0) })
        await fixture.database.close()
    }

    @Test("An idle connection through a network that swallows everything is given up after a check")
    func checksIdleConnections() async throws {
        let server = try await apart { try PostgresServer.shared() }
        let proxy = try TCPProxy(to: server.port)
        let fixture = try await Fixture(port: proxy.port) { $0.checkedAfter = .zero }
        _ = try await fixture.database.query("SELECT 1")
        proxy.set(.stall)
        // The check of the old connection takes five seconds; meanwhile the network comes back.
        let task = Task { try await fixture.database.query("SELECT 1") }
        try await Task.sleep(for: .seconds(1))
        proxy.cut()
        proxy.set(.pass)
        #expect(try await task.value.count == 1)
        #expect(proxy.accepted == 2)
        await fixture.database.close()
        proxy.end()
    }

    @Test("A connection is closed after its lifetime, and when it was idle for long")
    func closesOldConnections() async throws {
        func backends(_ lifetime: Duration) async throws -> Int {
            let database = try await Fixture {
                $0.lifetime = lifetime
                $0.connections = 1
            }.database
            var backends: Set<Int64> = []
            for _ in 0..<3 { backends.insert(try await database.query("SELECT pg_backend_pid()")[0].value(0)) }
            await database.close()
            return backends.count
        }
        #expect(try await backends(.zero) == 3)
        #expect(try await backends(.seconds(600)) == 1)

        let idle = try await Fixture { $0.idleLifetime = .milliseconds(200) }
        let done = Signal()
        let holders = [try await hold(idle.database, until: done), try await hold(idle.database, until: done)]
        done.send()
        for holder in holders { try await holder.value }
        #expect(try await eventually { idle.database.pool.statistics.idle == 2 })
        try await Task.sleep(for: .milliseconds(300))
        _ = try await idle.database.query("SELECT 1")
        #expect(try await eventually { idle.database.pool.statistics == .init(inUse: 0, idle: 1, waiting: 0) })
        await idle.database.close()
    }

    @Test("Closing waits for running transactions, ends waiting ones, and refuses later ones")
    func closes() async throws {
        let fixture = try await Fixture { $0.connections = 1 }
        try await fixture.makeTable()
        let (held, done) = (Signal(), Signal())
        let running = Task {
            try await fixture.database.transaction { transaction in
                try transaction.query("INSERT INTO t VALUES (1, 'a')")
                held.send()
                done.block()
            }
        }
        await held.wait()
        let waiting = Task { try await fixture.database.query("SELECT 1") }
        #expect(try await eventually { fixture.database.pool.statistics.waiting == 1 })
        let closing = Task { await fixture.database.close() }
        #expect(await failure { try await waiting.value }?.code == .closed)
        #expect(await failure { try await fixture.database.query("SELECT 1") }?.code == .closed)
        done.send()
        try await running.value
        await closing.value
        #expect(try await eventually { fixture.database.pool.statistics == .init(inUse: 0, idle: 0, waiting: 0) })
        let other = try fixture.other()
        #expect(try await other.query("SELECT s FROM t").count == 1)
        await other.close()
    }

    @Test("No connection is lost or used twice when 200 tasks use four, and some are cancelled")
    func staysWhole() async throws {
        let fixture = try await Fixture()
        try await fixture.makeTable()
        try await fixture.sql("INSERT INTO t VALUES (0, '')")
        let done = Shared(0)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask {
                    let task = Task {
                        try await fixture.database.transaction { transaction in
                            try transaction.query("SELECT * FROM t WHERE n = 0 FOR UPDATE")
                            try transaction.enqueue("UPDATE t SET s = s || 'x' WHERE n = 0")
                        }
                    }
                    if number % 5 == 0 { task.cancel() }
                    if (try? await task.value) != nil { done.change { $0 += 1 } }
                }
            }
        }
        #expect(try await fixture.rows()[0]?.count == done.value)
        #expect(done.value >= 160)
        #expect(try await eventually { fixture.database.pool.statistics.inUse == 0 })
        await fixture.database.close()
    }
}
