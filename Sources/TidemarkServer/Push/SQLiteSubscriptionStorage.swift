import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// Stores subscriptions and devices in `subscriptions.sqlite` beside the cloud.
///
/// Writes have a thread of their own. Reads come from memory, which has what this server last wrote. Another server of the same
/// directory sees these writes only when it starts.
actor SQLiteSubscriptionStorage: SubscriptionStorage {
    private nonisolated let executor = StoreExecutor(label: "tidemark.subscriptions")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    private let database: SharedDatabase
    private nonisolated let cache: SubscriptionCache
    /// The rows of the file that can't be read.
    nonisolated let unreadable: UnreadableRows

    /// - Parameter row: Makes a row from the file's values; `nil` for values that can't be read.
    init(at directory: URL, row: (SubscriptionOwner, Data) -> StoredSubscription?) throws {
        let database = try SharedDatabase(
            at: directory.appendingPathComponent("subscriptions.sqlite"), migrations: Self.migrations,
            tables: Self.tables, prepare: { _ in })
        let cache = SubscriptionCache()
        unreadable = try database.reader.read { db in
            var unreadable = UnreadableRows()
            for stored in try Row.fetchAll(db, sql: "SELECT account, container, environment, scope, content FROM subscriptions") {
                guard let owner = SubscriptionOwner(stored), let content = Data.fromDatabaseValue(stored[4]),
                    let subscription = row(owner, content)
                else {
                    unreadable.subscriptions += 1
                    continue
                }
                cache.set(subscription)
            }
            for row in try Row.fetchAll(db, sql: "SELECT token, account, container, environment FROM devices ORDER BY rowid") {
                guard let device = NotifiedDevice(row) else {
                    unreadable.devices += 1
                    continue
                }
                cache.add(device, instead: nil)
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

    // Subscriptions

    nonisolated func subscriptions(of owner: SubscriptionOwner) async throws(CloudError) -> [StoredSubscription] {
        cache.subscriptions(of: owner)
    }

    nonisolated func subscription(
        _ id: String, of owner: SubscriptionOwner
    ) async throws(CloudError) -> StoredSubscription? {
        cache.subscription(id, of: owner)
    }

    func save(_ subscription: StoredSubscription, most: Int) throws(CloudError) -> Bool {
        let owner = subscription.owner
        guard cache.subscription(subscription.id, of: owner) != nil || cache.count(of: owner) < most else { return false }
        try write { db in
            try db.execute(
                sql: """
                    INSERT OR REPLACE INTO subscriptions (account, container, environment, scope, id, content)
                    VALUES (?, ?, ?, ?, ?, ?)
                    """,
                arguments: [
                    owner.account, owner.container, owner.environment.rawValue, owner.scope.rawValue, subscription.id,
                    subscription.content,
                ])
        }
        cache.set(subscription)
        return true
    }

    func remove(_ id: String, of owner: SubscriptionOwner) throws(CloudError) -> Bool {
        guard cache.subscription(id, of: owner) != nil else { return false }
        try write { db in
            try db.execute(
                sql: "DELETE FROM subscriptions WHERE account = ? AND container = ? AND environment = ? AND scope = ? AND id = ?",
                arguments: [owner.account, owner.container, owner.environment.rawValue, owner.scope.rawValue, id])
        }
        cache.remove(id, of: owner)
        return true
    }

    nonisolated func mayConcern(_ zone: ChangedZone) -> Bool { cache.isWatched(zone) }

    nonisolated func subscriptions(
        to zone: ChangedZone, types: Set<String>?
    ) async throws(CloudError) -> [StoredSubscription] {
        cache.subscriptions(to: zone, types: types)
    }

    // Devices

    nonisolated func devices(
        of account: String, container: String, environment: StoreEnvironment
    ) async throws(CloudError) -> [NotifiedDevice] {
        cache.devices(of: account, container: container, environment: environment)
    }

    nonisolated func has(_ device: NotifiedDevice) async throws(CloudError) -> Bool { cache.has(device) }

    func add(_ device: NotifiedDevice, most: Int) throws(CloudError) {
        let known = cache.devices(of: device.account, container: device.container, environment: device.environment)
        guard !known.contains(device) else { return }
        let gone = known.count >= most ? known.first : nil
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

    // Accounts

    func accounts() throws(CloudError) -> [String] {
        do {
            return try database.reader.read { db in
                // A damaged row may have no account.
                let sql = "SELECT account FROM subscriptions UNION SELECT account FROM devices"
                return try String?.fetchAll(db, sql: sql).compactMap(\.self)
            }
        } catch {
            throw CloudError(.internalError, "the subscriptions can't be read: \(error)")
        }
    }

    func removeAccount(_ account: String) throws(CloudError) {
        try write { db in
            for table in ["subscriptions", "devices"] {
                try db.execute(sql: "DELETE FROM \(table) WHERE account = ?", arguments: [account])
            }
        }
        cache.forget(account)
    }

    private func write(_ body: (Database) throws -> Void) throws(CloudError) {
        do {
            try database.write { db in try body(db) }
        } catch {
            throw CloudError(.internalError, "the subscriptions can't be written: \(error)")
        }
    }
}

extension SubscriptionOwner {
    /// Makes the owner of a row; `nil` where a value can't be read.
    fileprivate init?(_ row: Row) {
        guard let account = String.fromDatabaseValue(row[0]), let container = String.fromDatabaseValue(row[1]),
            let environment = String.fromDatabaseValue(row[2]).flatMap(StoreEnvironment.init(rawValue:)),
            let scope = Int.fromDatabaseValue(row[3]).flatMap(DatabaseScope.init(rawValue:))
        else { return nil }
        self.init(account: account, container: container, environment: environment, scope: scope)
    }
}

extension NotifiedDevice {
    /// Makes the device of a row; `nil` where a value can't be read.
    fileprivate init?(_ row: Row) {
        guard let token = String.fromDatabaseValue(row[0]), let account = String.fromDatabaseValue(row[1]),
            let container = String.fromDatabaseValue(row[2]),
            let environment = String.fromDatabaseValue(row[3]).flatMap(StoreEnvironment.init(rawValue:))
        else { return nil }
        self.init(token: token, account: account, container: container, environment: environment)
    }
}
