import Foundation
package import TidemarkCloud
package import TidemarkCloudEngine
package import TidemarkModel

/// Stores subscriptions and devices in PostgreSQL. Nothing is cached.
package final class PostgresSubscriptionStorage: SubscriptionStorage {
    private let database: PostgresDatabase

    /// Brings the tables to their newest version, and opens them.
    ///
    /// - Throws: `CloudError`, made by `CloudError.init(postgres:)`.
    package static func open(_ database: PostgresDatabase) async throws(CloudError) -> PostgresSubscriptionStorage {
        do {
            try await migrations.run(on: database)
        } catch {
            throw CloudError(postgres: error)
        }
        return PostgresSubscriptionStorage(database)
    }

    private init(_ database: PostgresDatabase) { self.database = database }

    // Subscriptions

    package func subscriptions(of owner: SubscriptionOwner) async throws(CloudError) -> [StoredSubscription] {
        guard owner.isStorable else { return [] }
        return try Self.rows(
            await database.rows(
                """
                SELECT \(Self.columns) FROM subscriptions
                WHERE account = $1 AND container = $2 AND environment = $3 AND scope = $4 ORDER BY id
                """, owner.account, owner.container, owner.environment.rawValue, Int64(owner.scope.rawValue)))
    }

    package func subscription(
        _ id: String, of owner: SubscriptionOwner
    ) async throws(CloudError) -> StoredSubscription? {
        guard owner.isStorable else { return nil }
        return try Self.rows(
            await database.rows(
                """
                SELECT \(Self.columns) FROM subscriptions
                WHERE account = $1 AND container = $2 AND environment = $3 AND scope = $4 AND id = $5
                """, owner.account, owner.container, owner.environment.rawValue, Int64(owner.scope.rawValue), Data(id.utf8))
        ).first
    }

    package func save(_ subscription: StoredSubscription, most: Int) async throws(CloudError) -> Bool {
        let owner = subscription.owner
        return try await database.write { transaction in
            // Two subscriptions that are saved at once have to count each other.
            try transaction.enqueue("SELECT pg_advisory_xact_lock(hashtextextended('subscriptions ' || $1, 0))", owner.account)
            let others: Int64 = try transaction.query(
                """
                SELECT count(*) FROM subscriptions
                WHERE account = $1 AND container = $2 AND environment = $3 AND scope = $4 AND id <> $5
                """, owner.account, owner.container, owner.environment.rawValue, Int64(owner.scope.rawValue),
                Data(subscription.id.utf8))[0].value(0)
            guard others < Int64(most) else { return false }
            let place = subscription.place
            try transaction.enqueue(
                """
                INSERT INTO subscriptions (\(Self.columns)) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
                ON CONFLICT (account, container, environment, scope, id) DO UPDATE SET zone_owner = excluded.zone_owner,
                    zone = excluded.zone, record_type = excluded.record_type, content = excluded.content
                """, owner.account, owner.container, owner.environment.rawValue, Int64(owner.scope.rawValue),
                Data(subscription.id.utf8), place.map { Data($0.zoneOwner.utf8) }, place.map { Data(($0.zone ?? "").utf8) },
                (place?.recordType).map { Data($0.utf8) }, subscription.content)
            return true
        }
    }

    package func remove(_ id: String, of owner: SubscriptionOwner) async throws(CloudError) -> Bool {
        guard owner.isStorable else { return false }
        return try await database.write { transaction in
            try transaction.query(
                """
                DELETE FROM subscriptions
                WHERE account = $1 AND container = $2 AND environment = $3 AND scope = $4 AND id = $5
                """, owner.account, owner.container, owner.environment.rawValue, Int64(owner.scope.rawValue), Data(id.utf8)
            ).affected > 0
        }
    }

    /// Always `true`: only the database knows.
    package func mayConcern(_ zone: ChangedZone) -> Bool { true }

    package func subscriptions(
        to zone: ChangedZone, types: Set<String>?
    ) async throws(CloudError) -> [StoredSubscription] {
        guard zone.container.isStorable else { return [] }
        // A subscription to all zones has an empty zone.
        return try Self.rows(
            await database.rows(
                """
                SELECT \(Self.columns) FROM subscriptions
                WHERE container = $1 AND environment = $2 AND zone_owner = $3 AND zone = ANY($4) AND scope = ANY($5)
                    AND (record_type IS NULL OR $6 OR record_type = ANY($7))
                """, zone.container, zone.environment.rawValue, Data(zone.owner.utf8), [Data(), Data(zone.zone.utf8)],
                zone.scopes.map { Int64($0.rawValue) }, types == nil, (types ?? []).map { Data($0.utf8) }))
    }

    // Devices

    package func devices(
        of account: String, container: String, environment: StoreEnvironment
    ) async throws(CloudError) -> [NotifiedDevice] {
        guard account.isStorable, container.isStorable else { return [] }
        let rows = try await database.rows(
            "SELECT token FROM devices WHERE account = $1 AND container = $2 AND environment = $3 ORDER BY number", account,
            container, environment.rawValue)
        return try CloudError.ofPostgres {
            try rows.map { row in
                NotifiedDevice(
                    token: String(decoding: try row.value(0, as: Data.self), as: UTF8.self), account: account,
                    container: container, environment: environment)
            }
        }
    }

    package func has(_ device: NotifiedDevice) async throws(CloudError) -> Bool {
        guard device.account.isStorable, device.container.isStorable else { return false }
        return try await !database.rows(
            "SELECT FROM devices WHERE account = $1 AND container = $2 AND environment = $3 AND token = $4", device.account,
            device.container, device.environment.rawValue, Data(device.token.utf8)
        ).isEmpty
    }

    package func add(_ device: NotifiedDevice, most: Int) async throws(CloudError) {
        try await database.write { transaction in
            try transaction.enqueue("SELECT pg_advisory_xact_lock(hashtextextended('devices ' || $1, 0))", device.account)
            try transaction.enqueue(
                """
                INSERT INTO devices (account, container, environment, token) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING
                """, device.account, device.container, device.environment.rawValue, Data(device.token.utf8))
            try transaction.enqueue(
                """
                DELETE FROM devices WHERE account = $1 AND container = $2 AND environment = $3 AND number IN (
                    SELECT number FROM devices WHERE account = $1 AND container = $2 AND environment = $3
                    ORDER BY number DESC OFFSET $4)
                """, device.account, device.container, device.environment.rawValue, Int64(most))
        }
    }

    // Accounts

    /// The tables whose rows belong to an account.
    private static let tablesOfAccounts = ["subscriptions", "devices", "notifications", "notification_waits"]

    package func accounts() async throws(CloudError) -> [String] {
        let tables = Self.tablesOfAccounts.map { "SELECT account FROM \($0)" }
        let rows = try await database.rows(tables.joined(separator: " UNION "))
        return try CloudError.ofPostgres { try rows.map { try $0.value(0) } }
    }

    package func removeAccount(_ account: String) async throws(CloudError) {
        guard account.isStorable else { return }
        try await database.write { transaction in
            for table in Self.tablesOfAccounts {
                try transaction.enqueue("DELETE FROM \(table) WHERE account = $1", account)
            }
        }
    }

    // Rows

    private static let columns = "account, container, environment, scope, id, zone_owner, zone, record_type, content"

    private static func rows(_ rows: PostgresRows) throws(CloudError) -> [StoredSubscription] {
        try CloudError.ofPostgres { try rows.map { try subscription($0) } }
    }

    private static func subscription(_ row: PostgresRow) throws(PostgresError) -> StoredSubscription {
        guard let environment = StoreEnvironment(rawValue: try row.value(2)),
            let scope = DatabaseScope(rawValue: Int(try row.value(3, as: Int64.self)))
        else { throw PostgresError(.decoding, "the database has a subscription in no database") }
        func text(_ column: Int) throws(PostgresError) -> String? {
            try row.value(column, as: Data?.self).map { String(decoding: $0, as: UTF8.self) }
        }
        var place: StoredSubscription.Place?
        if let zoneOwner = try text(5), let zone = try text(6) {
            place = .init(zoneOwner: zoneOwner, zone: zone.isEmpty ? nil : zone, recordType: try text(7))
        }
        return StoredSubscription(
            owner: SubscriptionOwner(
                account: try row.value(0), container: try row.value(1), environment: environment, scope: scope),
            id: try text(4) ?? "", place: place, content: try row.value(8))
    }

    /// The tables of subscriptions and notifications. Names that clients choose are `bytea`, since a `text` can't contain U+0000.
    static let migrations = PostgresMigrations(
        [
            PostgresMigration(
                1, "subscriptions and notifications", oldestUser: 1,
                [
                    """
                    CREATE TABLE subscriptions (
                        account text COLLATE "C", container text COLLATE "C", environment text COLLATE "C", scope int8, id bytea,
                        zone_owner bytea, zone bytea, record_type bytea, content bytea NOT NULL,
                        PRIMARY KEY (account, container, environment, scope, id))
                    """,
                    "CREATE INDEX subscriptions_by_zone ON subscriptions (container, environment, zone_owner, zone)",
                    """
                    CREATE TABLE devices (
                        account text COLLATE "C", container text COLLATE "C", environment text COLLATE "C", token bytea,
                        number int8 NOT NULL GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (account, container, environment, token))
                    """,
                    """
                    CREATE TABLE notifications (
                        account text COLLATE "C", token bytea, number int8, frame bytea NOT NULL, cost int8 NOT NULL,
                        at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (account, token, number))
                    """,
                    "CREATE INDEX notifications_by_time ON notifications (at)",
                    "CREATE SEQUENCE notification_numbers",
                    // The newest wait for each box.
                    """
                    CREATE TABLE notification_waits (
                        account text COLLATE "C", token bytea, waiter bytea NOT NULL, PRIMARY KEY (account, token))
                    """,
                ])
        ], of: "subscriptions")
}

extension SubscriptionOwner {
    /// Whether columns of the type `text` can hold the names.
    fileprivate var isStorable: Bool { account.isStorable && container.isStorable }
}
