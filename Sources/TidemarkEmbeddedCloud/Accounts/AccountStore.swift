import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// Stores the accounts of an embedded cloud in `accounts.sqlite`, or in memory.
actor AccountStore: AccountStorage {
    private nonisolated let executor = StoreExecutor(label: "tidemark.accounts")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    private let database: SharedDatabase
    private nonisolated let cache: AccountCache?

    init(at url: URL) throws {
        database = try SharedDatabase(at: url, migrations: Self.migrations, tables: Self.tables, prepare: { _ in })
        try Self.complete(database)
        cache = AccountCache(try SharedDatabase.watcher(of: url))
    }

    /// Keeps everything in memory.
    init() throws {
        database = try SharedDatabase(inMemoryWith: Self.tables, prepare: { _ in })
        cache = nil
    }

    /// Makes an identifier from an address, so that a repeated simulation gives the same results: change tags depend on
    /// identifiers.
    static func repeatedID(_ address: String) -> String {
        let digits = AssetDigest.asset(of: Data(address.utf8)).digest
        return "\(digits.prefix(8))-\(digits.dropFirst(8).prefix(4))-4\(digits.dropFirst(12).prefix(3))-8"
            + "\(digits.dropFirst(15).prefix(3))-\(digits.dropFirst(18).prefix(12))"
    }

    /// The name of the database in messages.
    private static let file = "accounts.sqlite"
    /// "TidA". Format 2 is the oldest that was frozen.
    package static let migrations = FormatMigrations(applicationID: 0x5469_6441, oldest: 2)

    private static let tables = """
        CREATE TABLE accounts (id TEXT PRIMARY KEY, email TEXT NOT NULL UNIQUE, phone TEXT UNIQUE, name TEXT, quota INTEGER NOT NULL,
            status TEXT NOT NULL, discoverable INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
        """

    /// Adds the column to a file from before it. The people in such a file can't be found by others.
    private static func complete(_ database: SharedDatabase) throws {
        func isComplete(_ db: Database) throws -> Bool {
            try db.columns(in: "accounts").contains { $0.name == "discoverable" }
        }
        guard try !database.reader.read(isComplete) else { return }
        try database.write { db in
            guard try !isComplete(db) else { return }
            try db.execute(sql: "ALTER TABLE accounts ADD COLUMN discoverable INTEGER NOT NULL DEFAULT 0")
        }
    }

    // Writing

    nonisolated func emptyLog() async { await SharedDatabase.emptyLog { await self.tryToEmptyLog() } }

    private func tryToEmptyLog() -> Bool { database.tryToEmptyLog() }

    func add(_ account: StoredAccount) throws(CloudError) -> StoredAccount {
        try run { () throws in
            try database.write { db in
                if let known = try Self.fetch(db, "email", account.email) { return known }
                try Self.check(account.phone, isFreeBeside: "", db)
                try db.execute(
                    sql: """
                        INSERT INTO accounts (id, email, phone, name, quota, status, discoverable) VALUES (?, ?, ?, ?, ?, ?, ?)
                        """,
                    arguments: [
                        account.id, account.email, account.phone, try Self.text(account.name), account.quota,
                        account.status.rawValue, account.isDiscoverable,
                    ])
                return account
            }
        }
    }

    func update(_ account: StoredAccount, from before: StoredAccount?) throws(CloudError) -> Bool {
        try run { () throws in
            try database.write { db in
                guard let known = try Self.fetch(db, "id", account.id), before.map(known.isLike) ?? true
                else { return false }
                try Self.check(account.phone, isFreeBeside: account.id, db)
                try db.execute(
                    sql: "UPDATE accounts SET phone = ?, name = ?, quota = ?, status = ?, discoverable = ? WHERE id = ?",
                    arguments: [
                        account.phone, try Self.text(account.name), account.quota, account.status.rawValue,
                        account.isDiscoverable, account.id,
                    ])
                return true
            }
        }
    }

    func setAddress(_ email: String, of id: String) throws(CloudError) -> Bool {
        try run { () throws in
            try database.write { db in
                if let known = try Self.fetch(db, "email", email) { return known.id == id }
                try db.execute(sql: "UPDATE accounts SET email = ? WHERE id = ?", arguments: [email, id])
                return true
            }
        }
    }

    func remove(_ id: String) throws(CloudError) {
        try run { () throws in
            try database.write { db in try db.execute(sql: "DELETE FROM accounts WHERE id = ?", arguments: [id]) }
        }
    }

    // Reading

    /// Returns the account of an identifier without waiting for others.
    nonisolated func account(id: String) async throws(CloudError) -> StoredAccount? {
        guard let cache else { return try await found("id", id) }
        do {
            return try cache.account(id) { db, id in try Self.fetch(db, "id", id) }
        } catch {
            throw CloudError(storage: error, of: Self.file)
        }
    }

    func account(email: String) throws(CloudError) -> StoredAccount? { try found("email", email) }

    func account(phone: String) throws(CloudError) -> StoredAccount? { try found("phone", phone) }

    func account(userRecordName name: String, in container: String) throws(CloudError) -> StoredAccount? {
        if let id = users[container]?[name] { return try found("id", id) }
        // A user record name does not lead back to its account, so the names of all accounts added since are computed, once.
        let version = try cache.map { cache throws(CloudError) in
            do { return try cache.version() } catch { throw CloudError(storage: error, of: Self.file) }
        }
        if let version, searched[container] == version { return nil }
        defer { searched[container] = version }
        let ids = try run { () throws in
            try database.reader.read { db in try String.fetchAll(db, sql: "SELECT id FROM accounts") }
        }
        let known = Set((users[container] ?? [:]).values)
        for id in ids where !known.contains(id) {
            users[container, default: [:]][StoredAccount.userRecordName(of: id, in: container)] = id
        }
        return try users[container]?[name].flatMap { id throws(CloudError) in try found("id", id) }
    }

    /// For each container, the accounts by their user record names, removed accounts among them.
    private var users: [String: [String: String]] = [:]
    /// For each container, the version of the file whose accounts are all in ``users``.
    private var searched: [String: Int64] = [:]

    func accounts() throws(CloudError) -> [StoredAccount] {
        try run { () throws in
            try database.reader.read { db in
                try String.fetchAll(db, sql: "SELECT id FROM accounts ORDER BY email").compactMap { try Self.fetch(db, "id", $0) }
            }
        }
    }

    func isEmpty() throws(CloudError) -> Bool {
        try run { () throws in
            try database.reader.read { db in try !(Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM accounts)") ?? false) }
        }
    }

    private func found(_ column: String, _ value: String) throws(CloudError) -> StoredAccount? {
        try run { () throws in try database.reader.read { db in try Self.fetch(db, column, value) } }
    }

    // Rows

    private static func check(_ phone: String?, isFreeBeside id: String, _ db: Database) throws {
        guard let phone, let other = try fetch(db, "phone", phone), other.id != id else { return }
        throw CloudError.takenNumber(phone)
    }

    private static func text(_ name: PersonName?) throws -> String? {
        try name.map { String(decoding: try JSONEncoder().encode($0), as: UTF8.self) }
    }

    private static func fetch(_ db: Database, _ column: String, _ value: String) throws -> StoredAccount? {
        let statement = try db.cachedStatement(
            sql: "SELECT id, email, phone, name, quota, status, discoverable FROM accounts WHERE \(column) = ?")
        return try Row.fetchOne(statement, arguments: [value]).map { row in
            // A name that can't be read counts as missing, since the account is usable without it.
            let name: String? = try row.decode(atIndex: 3)
            return try StoredAccount(
                id: row.decode(atIndex: 0), email: row.decode(atIndex: 1), phone: row.decode(atIndex: 2),
                name: name.flatMap { try? JSONDecoder().decode(PersonName.self, from: Data($0.utf8)) },
                quota: row.decode(atIndex: 4), status: .init(rawValue: row.decode(atIndex: 5)) ?? .couldNotDetermine,
                isDiscoverable: row.decode(atIndex: 6))
        }
    }

    private func run<Result>(_ body: () throws -> Result) throws(CloudError) -> Result {
        do {
            return try body()
        } catch {
            throw CloudError(storage: error, of: Self.file)
        }
    }
}
