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

    @Test(arguments: SignInRateStorageContract.checks)
    func `attempts to sign in`(_ check: StorageCheck<SignInRateStorageContract.Subject>) async throws {
        let fixture = try await Fixture()
        _ = try await PostgresCredentialStorage.open(fixture.database)
        try await check.run(.init(fixture))
        await fixture.database.close()
    }

    @Test(arguments: ChangeSignalContract.checks)
    func `signals of changes`(_ check: StorageCheck<ChangeSignalContract.Subject>) async throws {
        let fixture = try await Fixture()
        let address = try PostgresAddress(fixture.server.address(fixture.name))
        let listeners = Shared<[PostgresListener]>([])
        @Sendable func signal(_ topic: String) async throws -> PostgresChangeSignal {
            // Once there is a connection, only signals wake the streams.
            let listener = try PostgresListener(PostgresConfiguration(address), pace: .seconds(600))
            listeners.change { $0.append(listener) }
            _ = listener.changes(of: topic)
            #expect(try await eventually { listener.isConnected })
            return PostgresChangeSignal(listener, topic: topic)
        }
        try await check.run(
            .init {
                try await signal("journal/development")
            } other: {
                try await signal("journal/production")
            })
        for listener in listeners.value { await listener.close() }
        await fixture.database.close()
    }
}

extension SignInRateStorageContract.Subject {
    /// Servers that count in a database, whose tables are there.
    init(_ fixture: Fixture, _ change: @escaping @Sendable (inout PostgresConfiguration) -> Void = { _ in }) {
        self.init {
            PostgresSignInRates(try fixture.other(change))
        } pass: { seconds in
            try await fixture.sql("UPDATE sign_in_rates SET at = at - \(seconds), full_at = full_at - \(seconds)")
        }
    }
}
