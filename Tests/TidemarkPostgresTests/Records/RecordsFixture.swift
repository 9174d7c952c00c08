import TestServers
import TestSupport
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkPostgres
import TidemarkTesting

/// A database with the tables of a cloud.
struct RecordsFixture {
    let fixture: Fixture

    init(
        on server: PostgresServer? = nil, options: String = "", _ change: (inout PostgresConfiguration) -> Void = { _ in }
    ) async throws {
        fixture = try await Fixture(on: server, options: options) { configuration in
            configuration.connections = 8
            change(&configuration)
        }
        try await PostgresMigrations(PostgresCloudTables.migrations).run(on: fixture.database)
    }

    /// The rows of a container, as a server has them.
    func storage(
        of container: String = "iCloud.org.example.journal", _ environment: StoreEnvironment = .development,
        on database: PostgresDatabase? = nil
    ) async throws -> PostgresCloudStorage {
        try await PostgresCloudStorage(database ?? fixture.database, container: container, environment: environment)
    }
}

/// A database that tests share, each with a container of its own, since making a database takes longer than a check.
actor SharedRecords {
    static let shared = SharedRecords()
    private var made: Task<RecordsFixture, any Error>?
    private var count = 0

    func next() async throws -> (fixture: RecordsFixture, name: String) {
        let task = made ?? Task { try await RecordsFixture() }
        made = task
        count += 1
        // The count may change while this waits.
        let name = "test\(count)"
        return (try await task.value, name)
    }
}

extension EmbeddedCloudSubject {
    /// A cloud whose rows are in PostgreSQL, and whose accounts and assets are in a folder.
    convenience init(postgres: RecordsFixture, name: String) async throws {
        let development = try await postgres.storage(of: name, .development)
        let production = try await postgres.storage(of: name, .production)
        try self.init { _, environment in environment == .development ? development : production }
    }
}
