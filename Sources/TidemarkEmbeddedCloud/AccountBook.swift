import Foundation
import GRDB
import TidemarkCloud
import TidemarkStore

/// The accounts of an embedded cloud.
actor AccountBook {
    private nonisolated let executor = StoreExecutor(label: "tidemark.accounts")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    private let database: SharedDatabase

    init(at url: URL) throws {
        database = try SharedDatabase(at: url, applicationID: 0x5469_6441, version: 1, tables: Self.tables, prepare: { _ in })
    }

    /// Keeps everything in memory.
    init() throws {
        database = try SharedDatabase(inMemoryWith: Self.tables, prepare: { _ in })
    }

    private static let tables = """
        CREATE TABLE accounts (id TEXT PRIMARY KEY, email TEXT NOT NULL UNIQUE, quota INTEGER NOT NULL, status TEXT NOT NULL)
        STRICT, WITHOUT ROWID;
        """

    static func check(_ email: String) throws(CloudError) {
        guard email.contains("@"), (3...255).contains(email.utf8.count), email.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f }) else {
            throw CloudError(.invalidArguments, "'\(email.prefix(100))' is no address of an account")
        }
    }

    func add(_ email: String, quota: Int64) throws(CloudError) -> EmbeddedAccount {
        try Self.check(email)
        return try run { () throws in
            try database.write { db in
                try db.execute(
                    sql: "INSERT OR IGNORE INTO accounts (id, email, quota, status) VALUES (?, ?, ?, 'available')",
                    arguments: [UUID().uuidString.lowercased(), email.lowercased(), quota])
                return try Self.fetch(db, "email", email.lowercased())!
            }
        }
    }

    func find(_ email: String) throws(CloudError) -> EmbeddedAccount? {
        try run { () throws in try database.reader.read { db in try Self.fetch(db, "email", email.lowercased()) } }
    }

    func find(id: String) throws(CloudError) -> EmbeddedAccount? {
        try run { () throws in try database.reader.read { db in try Self.fetch(db, "id", id) } }
    }

    func isEmpty() throws(CloudError) -> Bool {
        try run { () throws in
            try database.reader.read { db in try !(Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM accounts)") ?? false) }
        }
    }

    func remove(_ account: EmbeddedAccount) throws(CloudError) {
        try run { () throws in
            try database.write { db in try db.execute(sql: "DELETE FROM accounts WHERE id = ?", arguments: [account.id]) }
        }
    }

    func update(_ account: EmbeddedAccount) throws(CloudError) {
        try run { () throws in
            try database.write { db in
                try db.execute(
                    sql: "UPDATE accounts SET quota = ?, status = ? WHERE id = ?",
                    arguments: [account.quota, account.status.rawValue, account.id])
            }
        }
    }

    private static func fetch(_ db: Database, _ column: String, _ value: String) throws -> EmbeddedAccount? {
        let statement = try db.cachedStatement(sql: "SELECT id, email, quota, status FROM accounts WHERE \(column) = ?")
        return try Row.fetchOne(statement, arguments: [value]).map { row in
            EmbeddedAccount(id: row[0], email: row[1], quota: row[2], status: .init(rawValue: row[3]) ?? .couldNotDetermine)
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
