import TestServers
import TestSupport
import Testing
import TidemarkCloudEngine
import TidemarkPostgres

@Suite("The contracts of storages, in PostgreSQL", .enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct StorageTests {
    @Test(arguments: AccountStorageContract.checks)
    func `accounts`(_ check: StorageCheck<AccountStorageContract.Subject>) async throws {
        let fixture = try await Fixture()
        try await check.run { try await PostgresAccountStorage.open(try fixture.other()) }
        await fixture.database.close()
    }

    @Test(arguments: CredentialStorageContract.checks)
    func `credentials`(_ check: StorageCheck<CredentialStorageContract.Subject>) async throws {
        let fixture = try await Fixture()
        try await check.run { try await PostgresCredentialStorage.open(try fixture.other()) }
        await fixture.database.close()
    }
}
