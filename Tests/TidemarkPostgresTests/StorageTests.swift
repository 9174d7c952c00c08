import TestServers
import TestSupport
import Testing
import TidemarkCloudEngine
import TidemarkPostgres

@Suite(
    "The contracts of storages, in PostgreSQL", .enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"),
    .timeLimit(.minutes(30)))
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

    @Test(arguments: SubscriptionStorageContract.checks)
    func `subscriptions`(_ check: StorageCheck<SubscriptionStorageContract.Subject>) async throws {
        let fixture = try await Fixture()
        try await check.run { try await PostgresSubscriptionStorage.open(try fixture.other()) }
        await fixture.database.close()
    }

    @Test(arguments: NotificationStorageContract.checks)
    func `notifications`(_ check: StorageCheck<NotificationStorageContract.Subject>) async throws {
        let fixture = try await Fixture()
        _ = try await PostgresSubscriptionStorage.open(fixture.database)
        let address = fixture.server.address(fixture.name)
        let listeners = Shared<[PostgresListener]>([])
        try await check.run(
            .init { limits in
                let listener = try PostgresListener(PostgresConfiguration(try PostgresAddress(address)))
                listeners.change { $0.append(listener) }
                return PostgresNotificationStorage(try fixture.other(), listener: listener, limits: limits)
            })
        for listener in listeners.value { await listener.close() }
        await fixture.database.close()
    }
}
