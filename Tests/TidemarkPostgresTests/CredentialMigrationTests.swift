import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloudEngine
import TidemarkModel

@testable import TidemarkPostgres

/// Goal: credentials that an earlier version has stored stay. Method: the tables of each version, with rows, opened by this one.
@Suite(
    "Credentials of earlier versions", .enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"),
    .timeLimit(.minutes(30)))
struct CredentialMigrationTests {
    @Test func `sessions of tables without systems stay, and new ones have theirs`() async throws {
        let fixture = try await Fixture()
        let steps = PostgresCredentialTables.migrations.steps
        _ = try await PostgresMigrations(Array(steps.prefix(5)), of: "credentials").run(on: fixture.database)
        try await fixture.sql("INSERT INTO served_containers (name, added) VALUES ('journal', 1)")
        try await fixture.sql(
            """
            INSERT INTO sessions (id, account, container, environment, kind, began, kept, device, used, address)
            VALUES ('\\x01', 'anna', 'journal', 'production', 'device', 1, 9, 'Laptop', 2, '192.0.2.1')
            """)
        let storage = try await PostgresCredentialStorage.open(try fixture.other())
        func session(_ id: UInt8, _ system: String) -> StoredSession {
            StoredSession(
                id: [id], account: "anna", container: "journal", environment: .production, kind: "device", began: 1, kept: 9,
                device: "Laptop", system: system, used: 2, address: "192.0.2.1")
        }
        #expect(try await storage.session([1]) == session(1, ""))
        #expect(try await storage.add(session(2, "macOS 15.1"), ifPasswordIs: nil, auditing: nil) == .added)
        #expect(try await storage.sessions(of: "anna", keptFrom: 0) == [session(1, ""), session(2, "macOS 15.1")])
        // A server of the earlier version goes on beside this one.
        try await fixture.sql(
            """
            INSERT INTO sessions (id, account, container, environment, kind, began, kept, device, used, address)
            VALUES ('\\x03', 'anna', 'journal', 'production', 'device', 1, 9, 'Laptop', 2, '192.0.2.1')
            """)
        #expect(try await storage.session([3]) == session(3, ""))
        await fixture.database.close()
    }
}
