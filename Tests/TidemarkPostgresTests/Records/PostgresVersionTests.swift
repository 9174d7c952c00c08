import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

@testable import TidemarkPostgres

/// Goal: a running server does no harm once a newer version has migrated its database. Method: steps that no version has yet,
/// beside storages that were opened before.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct PostgresVersionTests {
    /// Whether a request was refused because its server is too old, so that another server may answer it.
    private static func isRefused(_ error: CloudError?) -> Bool {
        error?.code == .serviceUnavailable && error?.retryAfter != nil
            && error?.reason.contains("a newer Tidemark has migrated the ") == true
    }

    private static func addUsed(_ owner: String, on storage: PostgresCloudStorage) async throws {
        try await storage.write(owners: [owner]) { rows throws(CloudError) in try rows.addUsed(1, by: owner) }
    }

    /// Waits until a number of transactions wait, in a mode, for an advisory lock with a first number.
    private static func wait(for count: Int64, _ mode: String, _ first: Int, on database: PostgresDatabase) async throws {
        var found: Int64 = 0
        for _ in 0..<6_000 where found != count {
            try await Task.sleep(for: .milliseconds(10))
            found = try await database.query(
                """
                SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND mode = $1 AND classid::int8 = $2
                    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                """, mode, Int64(first))[0].value(0)
        }
        #expect(found == count, "\(mode)")
    }

    @Test func `a step that older servers can't live with waits for writes that have begun, and refuses those that wait for it`()
        async throws
    {
        let records = try await RecordsFixture()
        let storage = try await records.storage()
        let (others, looking) = (try records.fixture.other(), try records.fixture.other())
        let number = PostgresCloudTables.migrations.count + 1
        // The step lasts until the test lets it go on.
        let step = PostgresMigration(
            number, "of later", oldestUser: number, PostgresCloudTables.excludingWriters + ["SELECT pg_advisory_xact_lock(7)"])
        var migrations = PostgresMigrations(PostgresCloudTables.migrations + [step])
        migrations.tableLockTimeout = .seconds(60)
        let later = migrations
        let (begun, goesOn, held, done) = (Signal(), Signal(), Signal(), Signal())
        // Waiting transactions go on also if the test ends early.
        defer {
            goesOn.send()
            done.send()
        }
        let keeper = Task {
            try await others.transaction { transaction in
                try transaction.query("SELECT pg_advisory_xact_lock(7)")
                held.send()
                done.block()
            }
        }
        await held.wait()
        let first = Task {
            try await storage.write(owners: ["_anna"]) { rows throws(CloudError) in
                begun.send()
                goesOn.block()
                try rows.addUsed(1, by: "_anna")
            }
        }
        await begun.wait()
        let migrating = Task { try await later.run(on: others) }
        try await Self.wait(for: 1, "ExclusiveLock", PostgresCloudTransaction.lockSpace, on: looking)
        goesOn.send()
        try await first.value
        // Now the step has the lock that writes share.
        try await Self.wait(for: 1, "ExclusiveLock", 0, on: looking)
        let second = Task { try await Self.addUsed("_ben", on: storage) }
        try await Self.wait(for: 1, "ShareLock", PostgresCloudTransaction.lockSpace, on: looking)
        done.send()
        try await keeper.value
        #expect(try await migrating.value == number)
        let error = await #expect(throws: CloudError.self) { try await second.value }
        #expect(Self.isRefused(error), "\(error?.reason ?? "")")
        let used = try await storage.read { rows throws(CloudError) in
            (try rows.used(by: "_anna"), try rows.used(by: "_ben"))
        }
        #expect(used == (1, 0))
        for owners in [["_anna"], [""], ["", "_anna"], .all] as [WrittenOwners] {
            let error = await #expect(throws: CloudError.self) {
                try await storage.write(owners: owners) { rows throws(CloudError) in _ = try rows.used(by: "_anna") }
            }
            #expect(Self.isRefused(error), "\(owners): \(error?.reason ?? "")")
        }
        await others.close()
        await looking.close()
    }

    @Test func `such a step takes one lock however many containers there are, and the writes to all of them wait for it`()
        async throws
    {
        let records = try await RecordsFixture()
        let storages = [try await records.storage(), try await records.storage(of: "iCloud.org.example.other", .production)]
        try await records.fixture.sql(
            """
            INSERT INTO tidemark_containers (name, environment, key, began, common_changes)
            SELECT 'test' || n, 'development', '', 0, 0 FROM generate_series(1, 100) n
            """)
        let (others, looking) = (try records.fixture.other(), try records.fixture.other())
        let (held, done) = (Signal(), Signal())
        // Waiting transactions go on also if the test ends early.
        defer { done.send() }
        let step = Task {
            try await others.transaction { transaction in
                for statement in PostgresCloudTables.excludingWriters { try transaction.enqueue(statement) }
                let sql = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
                let count = try transaction.query(sql)[0].value(0, as: Int64.self)
                held.send()
                done.block()
                return count
            }
        }
        await held.wait()
        let writes = storages.map { storage in Task { try await Self.addUsed("_anna", on: storage) } }
        try await Self.wait(for: 2, "ShareLock", PostgresCloudTransaction.lockSpace, on: looking)
        done.send()
        #expect(try await step.value == 1)
        for write in writes { try await write.value }
        await others.close()
        await looking.close()
    }

    @Test func `each step that older servers can't live with waits for their writes`() {
        // Servers from before the third step did not look at the version.
        for step in PostgresCloudTables.migrations.dropFirst(2) where step.oldestUser == step.number {
            let first = step.statements.prefix(PostgresCloudTables.excludingWriters.count)
            #expect(Array(first) == PostgresCloudTables.excludingWriters, "\(step.name)")
        }
    }

    @Test(arguments: ["records", "accounts", "credentials", "subscriptions"])
    func `each request is refused from the commit of such a step on, and none by a step that only adds`(
        component: String
    ) async throws {
        let records = try await RecordsFixture()
        let storage = try await PostgresCredentialStorage.open(try records.fixture.other())
        let database = try records.fixture.other()
        _ = try await PostgresSubscriptionStorage.open(database)
        #expect(try await storage.session([1]) == nil)
        try await database.checkVersion()
        try await records.fixture.sql(
            """
            INSERT INTO tidemark_migrations (component, number, name, oldest_user)
            SELECT component, 99, 'of later', max(oldest_user) FROM tidemark_migrations WHERE component = '\(component)' GROUP BY 1
            """)
        #expect(try await storage.session([1]) == nil)
        try await storage.refresh()
        try await database.checkVersion()
        try await records.fixture.sql("UPDATE tidemark_migrations SET oldest_user = 99 WHERE number = 99")
        let looked = await #expect(throws: CloudError.self) { _ = try await storage.session([1]) }
        let refreshed = await #expect(throws: CloudError.self) { try await storage.refresh() }
        for error in [looked, refreshed] {
            #expect(Self.isRefused(error) && error?.reason.contains(component) == true, "\(error?.reason ?? "")")
        }
        let error = await failure { try await database.checkVersion() }
        #expect(error?.code == .newerVersion && error?.message.contains("database '\(records.fixture.name)'") == true)
        // Another component's tables are of no concern.
        try await records.fixture.sql("UPDATE tidemark_migrations SET component = 'other' WHERE number = 99")
        #expect(try await storage.session([1]) == nil)
        await database.close()
    }
}
