import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// The accounts of an embedded cloud.
actor AccountStore {
    private nonisolated let executor = StoreExecutor(label: "tidemark.accounts")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    private let database: SharedDatabase
    private nonisolated let cache: AccountCache?
    /// Makes the identifier of a new account of an address.
    private let newID: @Sendable (String) -> String

    init(at url: URL) throws {
        database = try SharedDatabase(at: url, migrations: Self.migrations, tables: Self.tables, prepare: { _ in })
        try Self.complete(database)
        cache = AccountCache(try SharedDatabase.watcher(of: url))
        newID = { _ in UUID().uuidString.lowercased() }
    }

    /// Keeps everything in memory. The identifier of an account follows from its address, so that a simulation that is repeated gives the same
    /// results: change tags depend on it.
    init() throws {
        database = try SharedDatabase(inMemoryWith: Self.tables, prepare: { _ in })
        cache = nil
        newID = { address in
            let digits = AssetDigest.asset(of: Data(address.utf8)).digest
            return "\(digits.prefix(8))-\(digits.dropFirst(8).prefix(4))-4\(digits.dropFirst(12).prefix(3))-8"
                + "\(digits.dropFirst(15).prefix(3))-\(digits.dropFirst(18).prefix(12))"
        }
    }

    /// "TidA". Format 2 is the oldest that was frozen.
    package static let migrations = FormatMigrations(applicationID: 0x5469_6441, oldest: 2)

    private static let tables = """
        CREATE TABLE accounts (id TEXT PRIMARY KEY, email TEXT NOT NULL UNIQUE, phone TEXT UNIQUE, name TEXT, quota INTEGER NOT NULL,
            status TEXT NOT NULL, discoverable INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
        """

    /// Gives a file that was made before a column the column: nobody in it can be found.
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

    static func check(_ email: String) throws(CloudError) {
        guard email.contains("@"), (3...255).contains(email.utf8.count), email.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f }) else {
            throw CloudError(.invalidArguments, "'\(email.prefix(100))' is no address of an account")
        }
    }

    func add(_ email: String, phone: String?, name: PersonName?, quota: Int64) throws(CloudError) -> StoredAccount {
        try Self.check(email)
        let (address, phone) = (UserLookUp.spelled(email), try Self.number(phone))
        return try run { () throws in
            try database.write { db in
                if let known = try Self.fetch(db, "email", address) { return known }
                try Self.check(phone, isFreeBeside: "", db)
                try db.execute(
                    sql: "INSERT INTO accounts (id, email, phone, name, quota, status) VALUES (?, ?, ?, ?, ?, 'available')",
                    arguments: [newID(address), address, phone, try Self.text(name), quota])
                return try Self.fetch(db, "email", address)!
            }
        }
    }

    func find(_ email: String) throws(CloudError) -> StoredAccount? {
        try run { () throws in try database.reader.read { db in try Self.fetch(db, "email", UserLookUp.spelled(email)) } }
    }

    func find(id: String) throws(CloudError) -> StoredAccount? {
        try run { () throws in try database.reader.read { db in try Self.fetch(db, "id", id) } }
    }

    /// All of them, by address.
    func all() throws(CloudError) -> [StoredAccount] {
        try run { () throws in
            try database.reader.read { db in
                try String.fetchAll(db, sql: "SELECT id FROM accounts ORDER BY email").compactMap { try Self.fetch(db, "id", $0) }
            }
        }
    }

    /// As ``find(id:)``, without waiting for others.
    nonisolated func known(id: String) async throws(CloudError) -> StoredAccount? {
        guard let cache else { return try await find(id: id) }
        do {
            return try cache.account(id) { db, id in try Self.fetch(db, "id", id) }
        } catch {
            throw CloudError(storage: error)
        }
    }

    /// The account of a person, as a container knows them.
    func find(_ lookUp: UserLookUp, in container: String) throws(CloudError) -> StoredAccount? {
        switch lookUp {
        case .emailAddress(let address): return try find(address)
        case .phoneNumber(let number):
            return try run { () throws in try database.reader.read { db in try Self.fetch(db, "phone", number) } }
        case .userRecordName(let name):
            if let id = users[container]?[name] { return try find(id: id) }
            // A name can't be led back to its account: all that came since are tried, once.
            let version = try cache.map { cache throws(CloudError) in
                do { return try cache.version() } catch { throw CloudError(storage: error) }
            }
            if let version, searched[container] == version { return nil }
            defer { searched[container] = version }
            let ids = try run { () throws in
                try database.reader.read { db in try String.fetchAll(db, sql: "SELECT id FROM accounts") }
            }
            let known = Set((users[container] ?? [:]).values)
            for id in ids where !known.contains(id) {
                users[container, default: [:]][EmbeddedCloud.userRecordName(id, in: container)] = id
            }
            return try users[container]?[name].flatMap { id throws(CloudError) in try find(id: id) }
        }
    }

    /// By container, the accounts by their user record names; those that are gone, too.
    private var users: [String: [String: String]] = [:]
    /// By container, the version of the file whose accounts are all among them.
    private var searched: [String: Int64] = [:]

    func isEmpty() throws(CloudError) -> Bool {
        try run { () throws in
            try database.reader.read { db in try !(Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM accounts)") ?? false) }
        }
    }

    func remove(_ account: StoredAccount) throws(CloudError) {
        try run { () throws in
            try database.write { db in try db.execute(sql: "DELETE FROM accounts WHERE id = ?", arguments: [account.id]) }
        }
    }

    func update(_ account: StoredAccount) throws(CloudError) {
        let phone = try Self.number(account.phone)
        try run { () throws in
            try database.write { db in
                try Self.check(phone, isFreeBeside: account.id, db)
                try db.execute(
                    sql: "UPDATE accounts SET phone = ?, name = ?, quota = ?, status = ?, discoverable = ? WHERE id = ?",
                    arguments: [
                        phone, try Self.text(account.name), account.quota, account.status.rawValue, account.isDiscoverable,
                        account.id,
                    ])
            }
        }
    }

    private static func number(_ phone: String?) throws(CloudError) -> String? {
        guard let phone else { return nil }
        guard let number = UserLookUp.phoneNumber(phone).normalized else {
            throw CloudError(.invalidArguments, "'\(phone.prefix(100))' is no phone number: + and the country's, then the rest")
        }
        return number.value
    }

    private static func check(_ phone: String?, isFreeBeside id: String, _ db: Database) throws {
        guard let phone, let other = try fetch(db, "phone", phone), other.id != id else { return }
        throw CloudError(.invalidArguments, "another account has the phone number \(phone)")
    }

    private static func text(_ name: PersonName?) throws -> String? {
        try name.map { String(decoding: try JSONEncoder().encode($0), as: UTF8.self) }
    }

    private static func fetch(_ db: Database, _ column: String, _ value: String) throws -> StoredAccount? {
        let statement = try db.cachedStatement(
            sql: "SELECT id, email, phone, name, quota, status, discoverable FROM accounts WHERE \(column) = ?")
        return try Row.fetchOne(statement, arguments: [value]).map { row in
            let name: String? = row[3]
            return StoredAccount(
                id: row[0], email: row[1], phone: row[2],
                name: name.flatMap { try? JSONDecoder().decode(PersonName.self, from: Data($0.utf8)) }, quota: row[4],
                status: .init(rawValue: row[5]) ?? .couldNotDetermine, isDiscoverable: row[6])
        }
    }

    private func run<Result>(_ body: () throws -> Result) throws(CloudError) -> Result {
        do {
            return try body()
        } catch {
            throw CloudError(storage: error)
        }
    }
}
