import Foundation
import GRDB
import Synchronization
import TidemarkCloud
import TidemarkModel
import TidemarkStore

/// Who has subscribed to what, and where they can be told: `subscriptions.sqlite` beside the cloud.
///
/// What one server writes another one of the same directory knows when it starts.
final class SubscriptionBook: Sendable {
    /// Whose subscriptions they are, and in which database.
    struct Owner: Hashable, Sendable {
        let account: String
        let container: String
        let environment: StoreEnvironment
        let scope: DatabaseScope
    }

    /// Where an account can be told of something.
    struct Device: Hashable, Sendable {
        let token: String
        let account: String
        let container: String
        let environment: StoreEnvironment
    }

    private struct Picture {
        var subscriptions: [Owner: [String: Subscription]] = [:]
        var devices: [Device] = []
    }

    private let database: SharedDatabase
    private let picture: Mutex<Picture>
    /// Each account's in a database; devices of an account in a container.
    static let subscriptionsMost = 1_000
    static let devicesMost = 100

    init(at directory: URL) throws {
        database = try SharedDatabase(
            at: directory.appendingPathComponent("subscriptions.sqlite"), applicationID: 0x5469_6453, version: 1,
            tables: Self.tables, prepare: { _ in })
        let read = try database.reader.read { db in
            var picture = Picture()
            for row in try Row.fetchAll(db, sql: "SELECT account, container, environment, scope, content FROM subscriptions") {
                guard let environment = StoreEnvironment(rawValue: row[2]), let scope = DatabaseScope(rawValue: row[3]),
                    let subscription = try? JSONDecoder().decode(Subscription.self, from: row[4])
                else { continue }
                let owner = Owner(account: row[0], container: row[1], environment: environment, scope: scope)
                picture.subscriptions[owner, default: [:]][subscription.id] = subscription
            }
            for row in try Row.fetchAll(db, sql: "SELECT token, account, container, environment FROM devices ORDER BY rowid") {
                guard let environment = StoreEnvironment(rawValue: row[3]) else { continue }
                picture.devices.append(Device(token: row[0], account: row[1], container: row[2], environment: environment))
            }
            return picture
        }
        picture = Mutex(read)
    }

    private static let tables = """
        CREATE TABLE subscriptions (account TEXT NOT NULL, container TEXT NOT NULL, environment TEXT NOT NULL, scope INTEGER NOT NULL,
            id TEXT NOT NULL, content BLOB NOT NULL, PRIMARY KEY (account, container, environment, scope, id)) STRICT, WITHOUT ROWID;
        CREATE TABLE devices (token TEXT NOT NULL, account TEXT NOT NULL, container TEXT NOT NULL, environment TEXT NOT NULL,
            UNIQUE (token, account, container, environment)) STRICT;
        """

    func subscriptions(of owner: Owner) -> [Subscription] {
        picture.withLock { $0.subscriptions[owner].map { Array($0.values) } ?? [] }.sorted { $0.id < $1.id }
    }

    func subscription(_ id: String, of owner: Owner) -> Subscription? { picture.withLock { $0.subscriptions[owner]?[id] } }

    /// All of a container that may have to do with a change in a database of it.
    func subscriptions(
        container: String, environment: StoreEnvironment, isPublic: Bool
    ) -> [(owner: Owner, subscription: Subscription)] {
        picture.withLock { picture in
            var found: [(Owner, Subscription)] = []
            for (owner, subscriptions) in picture.subscriptions
            where owner.container == container && owner.environment == environment && (owner.scope == .public) == isPublic {
                for subscription in subscriptions.values { found.append((owner, subscription)) }
            }
            return found
        }
    }

    /// - Throws: `CloudError` `limitExceeded`, `internalError`.
    func save(_ subscription: Subscription, of owner: Owner) throws(CloudError) {
        try picture.withTypedLock { picture throws(CloudError) in
            let known = picture.subscriptions[owner] ?? [:]
            guard known[subscription.id] != nil || known.count < Self.subscriptionsMost else {
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
            picture.subscriptions[owner, default: [:]][subscription.id] = subscription
        }
    }

    /// - Returns: Whether there was one.
    func remove(_ id: String, of owner: Owner) throws(CloudError) -> Bool {
        try picture.withTypedLock { picture throws(CloudError) in
            guard picture.subscriptions[owner]?[id] != nil else { return false }
            try write { db in
                try db.execute(
                    sql: "DELETE FROM subscriptions WHERE account = ? AND container = ? AND environment = ? AND scope = ? AND id = ?",
                    arguments: [owner.account, owner.container, owner.environment.rawValue, owner.scope.rawValue, id])
            }
            picture.subscriptions[owner]?[id] = nil
            return true
        }
    }

    // Devices

    /// Adds a device; the oldest of an account that has too many goes.
    func add(_ device: Device) throws(CloudError) {
        try picture.withTypedLock { picture throws(CloudError) in
            guard !picture.devices.contains(device) else { return }
            let others = picture.devices.filter {
                $0.account == device.account && $0.container == device.container && $0.environment == device.environment
            }
            let gone = others.count >= Self.devicesMost ? others.first : nil
            try write { db in
                if let gone {
                    try db.execute(
                        sql: "DELETE FROM devices WHERE token = ? AND account = ? AND container = ? AND environment = ?",
                        arguments: [gone.token, gone.account, gone.container, gone.environment.rawValue])
                }
                try db.execute(
                    sql: "INSERT INTO devices (token, account, container, environment) VALUES (?, ?, ?, ?)",
                    arguments: [device.token, device.account, device.container, device.environment.rawValue])
            }
            picture.devices.removeAll { $0 == gone }
            picture.devices.append(device)
        }
    }

    func devices(of account: String, container: String, environment: StoreEnvironment) -> [Device] {
        picture.withLock {
            $0.devices.filter { $0.account == account && $0.container == container && $0.environment == environment }
        }
    }

    private func write(_ body: (Database) throws -> Void) throws(CloudError) {
        do {
            try database.write { db in try body(db) }
        } catch {
            throw CloudError(.internalError, "the subscriptions can't be written: \(error)")
        }
    }
}

extension Mutex where Value: ~Copyable {
    /// As `withLock`, for bodies that throw errors of one type.
    fileprivate borrowing func withTypedLock<Result, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try withLock(body)
    }
}
