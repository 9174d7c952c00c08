import TestServers
import Testing
import TidemarkPostgres

@Suite("Migrations", .enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct MigrationTests {
    private static let first = PostgresMigration(
        1, "first tables", oldestUser: 1, ["CREATE TABLE t (n int8 PRIMARY KEY, s text)", "INSERT INTO t VALUES (1, 'one')"])
    private static let second = PostgresMigration(
        2, "a column", oldestUser: 1, ["ALTER TABLE t ADD COLUMN more text", "INSERT INTO t VALUES (2, 'two')"])
    private static let third = PostgresMigration(3, "without a column", oldestUser: 3, ["ALTER TABLE t DROP COLUMN more"])

    @Test("Ten servers that start at once run each step once")
    func runsOnce() async throws {
        let fixture = try await Fixture()
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<10 {
                group.addTask {
                    let database = try fixture.other { $0.connections = 1 }
                    let version = try await PostgresMigrations([Self.first, Self.second]).run(on: database)
                    await database.close()
                    return version
                }
            }
            for try await version in group { #expect(version == 2) }
        }
        #expect(try await fixture.rows() == [1: "one", 2: "two"])
        let steps = try await fixture.database.query("SELECT number, name FROM tidemark_migrations ORDER BY number")
        #expect(try steps.map { try $0.value(1, as: String.self) } == ["first tables", "a column"])
        await fixture.database.close()
    }

    @Test("An older server goes on after a step that only adds, and is refused after one that removes")
    func refusesNewerVersions() async throws {
        let fixture = try await Fixture()
        let database = fixture.database
        #expect(try await PostgresMigrations([Self.first]).run(on: database) == 1)
        #expect(try await PostgresMigrations([Self.first, Self.second]).run(on: database) == 2)
        #expect(try await PostgresMigrations([Self.first]).run(on: database) == 2)
        #expect(try await PostgresMigrations([Self.first, Self.second, Self.third]).run(on: database) == 3)
        let error = await failure { try await PostgresMigrations([Self.first, Self.second]).run(on: database) }
        #expect(error?.code == .newerVersion)
        #expect(error?.message.contains("database '\(fixture.name)'") == true)
        await database.close()
    }

    @Test("A step that fails leaves the tables as they were before it")
    func rollsBack() async throws {
        let fixture = try await Fixture()
        let broken = PostgresMigration(2, "broken", oldestUser: 1, ["INSERT INTO t VALUES (3, 'three')", "SELECT 1 / 0"])
        let error = await failure { try await PostgresMigrations([Self.first, broken]).run(on: fixture.database) }
        #expect(error?.state == "22012")
        #expect(try await fixture.rows() == [1: "one"])
        #expect(try await PostgresMigrations([Self.first, Self.second]).run(on: fixture.database) == 2)
        await fixture.database.close()
    }

    @Test("A server that dies in a step leaves it to the next, and one that waits too long for the lock gives up")
    func survivesDeath() async throws {
        let fixture = try await Fixture()
        let slow = PostgresMigration(2, "slow", oldestUser: 1, ["INSERT INTO t VALUES (3, 'three')", "SELECT pg_sleep(60)"])
        try await PostgresMigrations([Self.first]).run(on: fixture.database)
        let dying = try fixture.other { $0.attempts = 1 }
        let task = Task { try await PostgresMigrations([Self.first, slow]).run(on: dying) }
        let backend = try await { () -> Int64 in
            while true {
                let rows = try await fixture.database.query(
                    "SELECT pid::int8 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid() AND state = 'active'"
                )
                if let row = rows.first { return try row.value(0) }
                try await Task.sleep(for: .milliseconds(20))
            }
        }()
        var hasty = PostgresMigrations([Self.first, Self.second])
        hasty.lockTimeout = .milliseconds(100)
        let migrations = hasty
        #expect(await failure { try await migrations.run(on: fixture.database) }?.code == .lockTimeout)
        try await fixture.sql("SELECT pg_terminate_backend(\(backend), 5000)")
        #expect(await failure { try await task.value }?.code == .connectionLost)
        #expect(try await PostgresMigrations([Self.first, Self.second]).run(on: fixture.database) == 2)
        #expect(try await fixture.rows() == [1: "one", 2: "two"])
        await dying.close()
        await fixture.database.close()
    }

    @Test("A step that waits for a table lets readers go on, and is done when the table is free")
    func letsReadersGoOn() async throws {
        let fixture = try await Fixture()
        try await PostgresMigrations([Self.first]).run(on: fixture.database)
        var migrations = PostgresMigrations([Self.first, Self.second])
        (migrations.tableLockTimeout, migrations.pause) = (.milliseconds(300), .milliseconds(50))
        let patient = migrations
        let (held, done) = (Signal(), Signal())
        async let holder: Void = fixture.other().transaction { transaction in
            try transaction.query("SELECT * FROM t")
            held.send()
            done.block()
        }
        // The holder ends also if the test ends early.
        defer { done.send() }
        await held.wait()
        async let version = patient.run(on: fixture.database)
        let others = try fixture.other()
        let waiting = """
            SELECT pid FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            """
        for _ in 0..<3 {
            // The holder waits for the reads here. If they had to wait for the migration, nobody could go on.
            var isWaiting = false
            for _ in 0..<6_000 where !isWaiting {
                isWaiting = try await !others.query(waiting).isEmpty
                if !isWaiting { try await Task.sleep(for: .milliseconds(10)) }
            }
            #expect(isWaiting)
            let rows = try await others.query("SELECT n FROM t")
            #expect(rows.count == 1)
        }
        done.send()
        try await holder
        #expect(try await version == 2)
        #expect(try await fixture.rows() == [1: "one", 2: "two"])
        await others.close()
        await fixture.database.close()
    }

    @Test("A step gives up if a table is held for too long")
    func givesUp() async throws {
        let fixture = try await Fixture()
        try await PostgresMigrations([Self.first]).run(on: fixture.database)
        var migrations = PostgresMigrations([Self.first, Self.second])
        (migrations.tableLockTimeout, migrations.pause) = (.milliseconds(50), .milliseconds(50))
        migrations.lockTimeout = .milliseconds(500)
        let hasty = migrations
        let (held, done) = (Signal(), Signal())
        async let holder: Void = fixture.other().transaction { transaction in
            try transaction.query("SELECT * FROM t")
            held.send()
            done.block()
        }
        // The holder ends also if the test ends early.
        defer { done.send() }
        await held.wait()
        let error = await failure { try await hasty.run(on: fixture.database) }
        #expect(error?.code == .lockTimeout && error?.message.contains("can't be migrated") == true)
        done.send()
        try await holder
        #expect(try await hasty.run(on: fixture.database) == 2)
        await fixture.database.close()
    }

    @Test("A read-only database of the newest version passes")
    func readsVersions() async throws {
        let fixture = try await Fixture { $0.patience = .zero }
        try await PostgresMigrations([Self.first]).run(on: fixture.database)
        await fixture.database.close()
        try fixture.server.sql("ALTER DATABASE \(fixture.name) SET default_transaction_read_only = on")
        let database = try fixture.other { $0.patience = .zero }
        #expect(try await PostgresMigrations([Self.first]).run(on: database) == 1)
        await database.close()
    }

    @Test(
        "A database with foreign tables is refused with their names, and nothing is written; a schema of its own is accepted")
    func refusesOthersTables() async throws {
        let fixture = try await Fixture()
        try await fixture.sql("CREATE TABLE accounts (n int8); CREATE TABLE sessions (n int8); CREATE TABLE unlike (n int8)")
        let migrations = PostgresMigrations(PostgresCloudTables.migrations)
        let error = await failure { try await migrations.run(on: fixture.database) }
        #expect(error?.code == .unsupported)
        #expect(
            error?.message.hasSuffix(
                "has tables of something else (accounts, sessions); give Tidemark a database or a schema of its own") == true,
            "\(error?.message ?? "none")")
        #expect(error?.message.hasPrefix("the database '\(fixture.name)'") == true)
        let tables = try await fixture.database.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        #expect(tables.count == 3)
        try await fixture.sql("CREATE SCHEMA own; ALTER DATABASE \(fixture.name) SET search_path = own")
        let other = try fixture.other()
        #expect(try await migrations.run(on: other) == PostgresCloudTables.migrations.count)
        await other.close()
        await fixture.database.close()
    }
}
