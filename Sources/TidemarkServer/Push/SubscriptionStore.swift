import Foundation
import GRDB
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite

/// Who has subscribed to what, and where they can be told: `subscriptions.sqlite` beside the cloud.
///
/// It is written on a thread of its own; what is asked for is in memory, as it was last written. What one server writes another one of
/// the same directory knows when it starts.
actor SubscriptionStore {
    /// Whose subscriptions they are, and in which database.
    struct Owner: Hashable, Sendable {
        let account: String
        let container: String
        let environment: StoreEnvironment
        let scope: DatabaseScope
    }

    /// Where an account can be told of something.
    struct Device: Hashable, Codable, Sendable {
        let token: String
        let account: String
        let container: String
        let environment: StoreEnvironment

        var box: NotificationMailbox.Box { .init(account: account, token: token) }
    }

    private nonisolated let executor = StoreExecutor(label: "tidemark.subscriptions")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    private let database: SharedDatabase
    nonisolated let cache: SubscriptionCache
    /// Each account's in a database; devices of an account in a container.
    /// Subscriptions in the file that can't be read, which nothing is sent for.
    nonisolated let unreadable: Int
    static let subscriptionsMost = 100
    static let devicesMost = 100

    init(at directory: URL) throws {
        let database = try SharedDatabase(
            at: directory.appendingPathComponent("subscriptions.sqlite"), migrations: Self.migrations,
            tables: Self.tables, prepare: { _ in })
        let cache = SubscriptionCache()
        unreadable = try database.reader.read { db in
            var unreadable = 0
            for row in try Row.fetchAll(db, sql: "SELECT account, container, environment, scope, content FROM subscriptions") {
                guard let environment = StoreEnvironment(rawValue: row[2]), let scope = DatabaseScope(rawValue: row[3]),
                    let subscription = try? JSONDecoder().decode(Subscription.self, from: row[4])
                else {
                    unreadable += 1
                    continue
                }
                cache.set(
                    subscription, of: Owner(account: row[0], container: row[1], environment: environment, scope: scope))
            }
            for row in try Row.fetchAll(db, sql: "SELECT token, account, container, environment FROM devices ORDER BY rowid") {
                guard let environment = StoreEnvironment(rawValue: row[3]) else { continue }
                cache.add(
                    Device(token: row[0], account: row[1], container: row[2], environment: environment), instead: nil)
            }
            return unreadable
        }
        self.database = database
        self.cache = cache
    }

    /// "TidS". Format 1 is the oldest that was frozen.
    static let migrations = FormatMigrations(applicationID: 0x5469_6453, oldest: 1)

    private static let tables = """
        CREATE TABLE subscriptions (account TEXT NOT NULL, container TEXT NOT NULL, environment TEXT NOT NULL, scope INTEGER NOT NULL,
            id TEXT NOT NULL, content BLOB NOT NULL, PRIMARY KEY (account, container, environment, scope, id)) STRICT, WITHOUT ROWID;
        CREATE TABLE devices (token TEXT NOT NULL, account TEXT NOT NULL, container TEXT NOT NULL, environment TEXT NOT NULL,
            UNIQUE (token, account, container, environment)) STRICT;
        """

    /// Removes the subscriptions and devices of accounts that are gone.
    ///
    /// - Throws: `CloudError` `internalError`.
    func forgetAccounts(goneFrom cloud: EmbeddedCloud) async throws(CloudError) {
        let accounts: [String]
        do {
            accounts = try await database.reader.read { db in
                try String.fetchAll(db, sql: "SELECT account FROM subscriptions UNION SELECT account FROM devices")
            }
        } catch {
            throw CloudError(.internalError, "the subscriptions can't be read: \(error)")
        }
        for account in accounts where try await cloud.account(id: account) == nil {
            try write { db in
                for table in ["subscriptions", "devices"] {
                    try db.execute(sql: "DELETE FROM \(table) WHERE account = ?", arguments: [account])
                }
            }
            cache.forget(account)
        }
    }

    // Subscriptions

    /// - Throws: `CloudError` `limitExceeded`, `internalError`.
    func save(_ subscription: Subscription, of owner: Owner) throws(CloudError) {
        guard cache.subscription(subscription.id, of: owner) != nil || cache.count(of: owner) < Self.subscriptionsMost else {
            throw CloudError(.limitExceeded, "an account has \(Self.subscriptionsMost) subscriptions in a database at the most")
        }
        try write { db in
            try db.execute(
                sql: """
                    INSERT OR REPLACE INTO subscriptions (account, container, environment, scope, id, content)
                    VALUES (?, ?, ?, ?, ?, ?)
                    """,
                arguments: [
                    owner.account, owner.container, owner.environment.rawValue, owner.scope.rawValue, subscription.id,
                    try JSONEncoder().encode(subscription),
                ])
        }
        cache.set(subscription, of: owner)
    }

    /// - Returns: Whether there was one.
    /// - Throws: `CloudError` `internalError`.
    func remove(_ id: String, of owner: Owner) throws(CloudError) -> Bool {
        guard cache.subscription(id, of: owner) != nil else { return false }
        try write { db in
            try db.execute(
                sql: "DELETE FROM subscriptions WHERE account = ? AND container = ? AND environment = ? AND scope = ? AND id = ?",
                arguments: [owner.account, owner.container, owner.environment.rawValue, owner.scope.rawValue, id])
        }
        cache.remove(id, of: owner)
        return true
    }

    // Devices

    /// Adds a device; the oldest of an account that has too many goes.
    ///
    /// - Throws: `CloudError` `internalError`.
    func add(_ device: Device) throws(CloudError) {
        let known = cache.devices(of: device.account, container: device.container, environment: device.environment)
        guard !known.contains(device) else { return }
        let gone = known.count >= Self.devicesMost ? known.first : nil
        try write { db in
            if let gone {
                try db.execute(
                    sql: "DELETE FROM devices WHERE token = ? AND account = ? AND container = ? AND environment = ?",
                    arguments: [gone.token, gone.account, gone.container, gone.environment.rawValue])
            }
            try db.execute(
                sql: "INSERT OR IGNORE INTO devices (token, account, container, environment) VALUES (?, ?, ?, ?)",
                arguments: [device.token, device.account, device.container, device.environment.rawValue])
        }
        cache.add(device, instead: gone)
    }

    private func write(_ body: (Database) throws -> Void) throws(CloudError) {
        do {
            try database.write { db in try body(db) }
        } catch {
            throw CloudError(.internalError, "the subscriptions can't be written: \(error)")
        }
    }
}
