import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkPostgres
import TidemarkTesting

@testable import TidemarkServer

/// A cloud in PostgreSQL behind HTTP: the real server over a database of its own, and our client. Another opening of the database
/// is used for administration, as a second server or `tidemark admin` would.
private struct ServedDatabase {
    let subject: ServedCloudSubject
    private let server: ListeningServer
    private let storages: ServedStorages
    private let administered: OpenedDatabase
    private let postgres: PostgresServer
    private let name: String

    /// A database with all tables and without rows, to be copied: making the tables takes longer than a check, copying them does
    /// not.
    private static let template = Task<String, any Error> {
        let postgres = try PostgresServer.shared()
        let name = try postgres.makeDatabase()
        let database = PostgresDatabase(PostgresConfiguration(try PostgresAddress(postgres.address(name))))
        try await PostgresMigrations(PostgresCloudTables.migrations).run(on: database)
        _ = try await PostgresCredentialStorage.open(database)
        _ = try await PostgresSubscriptionStorage.open(database)
        await database.close()
        return name
    }

    static func started() async throws -> ServedDatabase {
        let (scratch, postgres) = (try Scratch(), try PostgresServer.shared())
        let name = try postgres.makeDatabase("TEMPLATE \(try await template.value)")
        for folder in ["assets", "server"] {
            try FileManager.default.createDirectory(at: scratch[folder], withIntermediateDirectories: true)
        }
        var place = ServerConfiguration.Database(
            address: postgres.address(name), assets: .directory(scratch["assets"]))
        place.connections = 4
        let administered = try await OpenedDatabase(place)
        let (cloud, access) = try administered.administered()
        for environment in [StoreEnvironment.development, .production] {
            try await cloud.open(FaultyCloudFixture.container, environment: environment)
        }
        let token = try await ServedCloudSubject.apiToken(access)
        let metrics = ServerMetrics(hasDatabase: true)
        let storages = try await ServedStorages(
            in: place, folder: scratch["server"], metrics: metrics, limits: ServerLimits())
        let server = try await ListeningServer.started(over: storages, in: scratch["server"], metrics: metrics)
        let fixture = FaultyCloudFixture(over: cloud, in: scratch)
        return ServedDatabase(
            subject: ServedCloudSubject(fixture, access, server, token), server: server, storages: storages,
            administered: administered, postgres: postgres, name: name)
    }

    /// Ends the server, and drops the database.
    func stop() async throws {
        server.stop()
        await storages.close()
        await administered.close()
        try postgres.sql("DROP DATABASE \(name) WITH (FORCE)")
    }
}

/// Goal: a cloud behind HTTP does what every cloud does, also where its accounts, credentials and records are in PostgreSQL.
///
/// Method: the checks of `TidemarkTesting`, each on a server and a database of its own, one after the other: accounts have the same addresses in
/// all checks, so they can't share a database, and the connections of many servers at once would be more than a database takes.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .serialized, .timeLimit(.minutes(30)))
struct ServedDatabaseContractTests {
    @Test(arguments: CloudContract.checks)
    func `a cloud behind HTTP and in PostgreSQL fulfils the contract`(check: CloudContract.Check) async throws {
        let served = try await ServedDatabase.started()
        do {
            try await check.run(served.subject)
        } catch {
            try await served.stop()
            throw error
        }
        try await served.stop()
    }
}
