public import Foundation
package import GRDB
import Synchronization
public import TidemarkCloud
public import TidemarkCloudEngine
import TidemarkModel
package import TidemarkSQLite

/// Stores the rows of one container and environment in a SQLite file. Several processes may have it open.
///
/// As in a store, a lock between processes orders all writes and checkpoints. A write waits up to 30 seconds for it, and then throws
/// `zoneBusy`.
public final class SQLiteCloudStorage: CloudStorage {
    /// Sixteen random bytes, made with the file and kept in it.
    public let key: [UInt8]
    /// The time when the file was made, in microseconds since 1970 UTC.
    public let began: Int64
    private let writer: Writer
    private let readers: any DatabaseReader
    /// The connection for reads on the calling thread; `nil` in memory.
    private let inlineReads: DatabaseQueue?
    /// The number up to which the container counted the changes of all owners together, before format 6.
    public let commonChanges: Int64
    /// It has random bytes of this opening. A database that was put back is opened again, and so gives out numbers under other
    /// bytes.
    private let context: SQLiteCloudContext

    /// Opens a file, and makes it if there is none. A file of an older format is migrated.
    ///
    /// - Throws: `CloudError` `zoneBusy` where another process writes for too long; `internalError`, also for a file of a newer format
    ///   or of another kind.
    public convenience init(at url: URL) throws(CloudError) { try self.init(at: url, observing: nil) }

    /// - Parameter observe: Called with the text of each statement before it is prepared, on any thread.
    package init(at url: URL, observing observe: (@Sendable (String) -> Void)?) throws(CloudError) {
        do {
            let database = try SharedDatabase(
                at: url, migrations: Self.migrations, tables: Self.tables,
                pageSize: Self.pageSize, cacheSize: Self.cacheSize, prepare: Self.prepare)
            (key, began, commonChanges) = try Self.made(database)
            context = SQLiteCloudContext(
                path: url.path, writer: Data(EmbeddedCloud.systemRandom(8)), commonChanges: commonChanges, observe: observe)
            writer = Writer(database, context)
            readers = database.reader
            inlineReads = try SharedDatabase.watcher(of: url)
        } catch {
            throw CloudError(storage: error)
        }
    }

    /// Makes the key, the time and the first incarnation of a new database, and returns those of an existing one.
    private static func made(_ database: SharedDatabase) throws -> (key: [UInt8], began: Int64, commonChanges: Int64) {
        func document(_ name: String, _ db: Database) throws -> Data? {
            try Data.fetchOne(db, sql: "SELECT content FROM documents WHERE name = ?", arguments: [name])
        }
        func stored(_ db: Database) throws -> (key: [UInt8], began: Int64, commonChanges: Int64)? {
            guard let key = try document("key", db), let began = try document("began", db) else { return nil }
            // With a time that can't be read, no file counts as newer than the database.
            return (Array(key), Int64(String(decoding: began, as: UTF8.self)) ?? .max, try commonChanges(db))
        }
        if let made = try database.reader.read(stored) { return made }
        return try database.write { db in
            // Another process may just have made them. An earlier version made a key and no time.
            let sql = "INSERT OR IGNORE INTO documents (name, content) VALUES (?, ?)"
            try db.execute(sql: sql, arguments: ["key", Data(EmbeddedCloud.systemRandom(16))])
            try SQLiteCloudTransaction.makeIncarnation(db, id: Data(EmbeddedCloud.systemRandom(16)))
            try db.execute(sql: sql, arguments: ["began", Data("\(systemTime())".utf8)])
            guard let made = try stored(db) else { throw CloudError(.internalError, "the cloud's database forgets its key") }
            return made
        }
    }

    /// Reads ``commonChanges``.
    static func commonChanges(_ db: Database) throws -> Int64 {
        try Int64.fetchOne(db, sql: "SELECT value FROM counters WHERE name = 'change'") ?? 0
    }

    /// The present time in microseconds since 1970 UTC, by the clock that gives files their times.
    private static func systemTime() -> Int64 { Int64((Date().timeIntervalSince1970 * 1e6).rounded()) }

    /// Keeps everything in memory, for simulations. All such storages have the same key, so that a simulation that is repeated gives
    /// the same results.
    public convenience init() throws(CloudError) { try self.init(inMemoryObserving: nil) }

    /// - Parameter observe: Called with the text of each statement before it is prepared.
    package init(inMemoryObserving observe: (@Sendable (String) -> Void)?) throws(CloudError) {
        do {
            let database = try SharedDatabase(inMemoryWith: Self.tables, prepare: Self.prepare)
            try database.write { db in try SQLiteCloudTransaction.makeIncarnation(db, id: Data(count: 16)) }
            key = Array(0..<16)
            began = Self.systemTime()
            commonChanges = 0
            context = SQLiteCloudContext(path: "memory", writer: Data(count: 8), commonChanges: 0, observe: observe)
            writer = Writer(database, context)
            readers = database.reader
            inlineReads = nil
        } catch {
            throw CloudError(storage: error)
        }
    }

    /// Runs a body on a thread for reads, over one committed state. Several run at a time, beside a write.
    public func read<Answer: Sendable>(
        _ body: @escaping @Sendable (any CloudTransaction) throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer {
        do {
            return try await readers.read { [context] db in
                try db.tellingReadErrors(of: context.path) { try body(SQLiteCloudTransaction(db, context)) }
            }
        } catch {
            throw CloudError(storage: error)
        }
    }

    /// Runs a body on the thread for writes, in one transaction that is durable when this returns. Bodies run one after the other, whichever
    /// owners' rows they write, and each runs once. A checkpoint may follow, for which nothing waits.
    ///
    /// - Throws: What the body throws; `CloudError` `zoneBusy` where other processes write for 30 seconds; `internalError`, also for a body
    ///   that writes rows of an owner whom it has not declared.
    public func write<Answer: Sendable>(
        owners: WrittenOwners, _ body: @escaping @Sendable (any CloudTransaction) throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer {
        do {
            writer.expect()
            let (answer, mayRest) = try await writer.write(owners, body)
            // Work that no request waits for is done after the answer.
            if mayRest { Task { [writer] in await writer.rest() } }
            return answer
        } catch {
            throw CloudError(storage: error)
        }
    }

    /// Runs a body on the calling thread, over one committed state. In memory it returns `nil` without running it.
    public func readInline<Answer>(
        _ body: (any CloudTransaction) throws(CloudError) -> Answer
    ) throws(CloudError) -> Answer? {
        do {
            return try inlineReads?.read { db in
                try db.tellingReadErrors(of: context.path) { try body(SQLiteCloudTransaction(db, context)) }
            }
        } catch {
            throw CloudError(storage: error)
        }
    }

    /// Empties the write-ahead log of the file.
    public func emptyLog() async { await SharedDatabase.emptyLog { [writer] in await writer.tryToEmptyLog() } }

    /// Runs the writes one after the other, on a thread of its own.
    private actor Writer {
        private nonisolated let executor = StoreExecutor(label: "tidemark.cloud")
        nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
        private let database: SharedDatabase
        /// The number of writes that wait to begin.
        private let waiting = Atomic(0)

        private let context: SQLiteCloudContext

        init(_ database: SharedDatabase, _ context: SQLiteCloudContext) {
            (self.database, self.context) = (database, context)
        }

        /// Counts a write that is about to be requested.
        nonisolated func expect() { waiting.add(1, ordering: .relaxed) }

        /// - Returns: The answer, and whether to call ``rest()`` when no write waits.
        func write<Answer>(
            _ owners: WrittenOwners, _ body: (any CloudTransaction) throws(CloudError) -> Answer
        ) throws -> (answer: Answer, mayRest: Bool) {
            waiting.subtract(1, ordering: .relaxed)
            let answer = try database.write { db in
                try body(SQLiteCloudTransaction(db, context, writing: owners))
            }
            return (answer, database.isWorthResting)
        }

        func tryToEmptyLog() -> Bool { database.tryToEmptyLog() }

        /// Does the work that no request waits for, unless a write waits. The next write then asks for it again.
        func rest() {
            guard waiting.load(ordering: .relaxed) == 0 else { return }
            database.rest()
        }
    }

    /// "TidC". Format 4 is the oldest that was frozen.
    package static let migrations = FormatMigrations(
        applicationID: 0x5469_6443, oldest: 4,
        steps: [
            .init("zones know how often they were made again") { db in
                // Earlier formats did not count this, so each zone counts as one that was never deleted.
                try db.execute(
                    sql: """
                        CREATE TABLE zone_lives (zone INTEGER PRIMARY KEY, remade INTEGER NOT NULL, purged INTEGER NOT NULL) STRICT
                        """)
            },
            .init("each row begins with its owner") { db in try OwnerFirst.migrate(db) },
            .init("records without a value are found in order") { db in try RecordsWithoutValue.migrate(db) },
        ])
    /// Checks that a database is a cloud's, of this format.
    ///
    /// - Throws: ``StoreError`` `notAStore`, `newerFormat`, `olderFormat`.
    package static func check(_ db: Database, path: String) throws {
        guard try Int32.fetchOne(db, sql: "PRAGMA application_id") == migrations.applicationID else {
            throw StoreError(.notAStore, "\(path) is no database of a cloud's records")
        }
        let found = try Int32.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        try migrations.checkIsNewest(
            Int(found), of: path,
            remedy: "To migrate it, open the cloud once: start its server, or run a command of `tidemark admin`")
    }

    /// The size of a page in bytes. Names come in random order: each record changes a page of their index, and the whole page
    /// goes into the log.
    private static let pageSize = 4096
    /// The size of the cache in kibibytes: enough for the index of the names of some 500,000 records.
    private static let cacheSize = 32_000

    @Sendable private static func prepare(_ db: Database) { db.add(function: SQLiteCloudTransaction.distance) }

    private static let tables =
        recordTables + SQLiteCloudTransaction.incarnationTables + SQLiteCloudTransaction.sharingTables
        + SQLiteCloudTransaction.quotaTables + SQLiteCloudTransaction.removalTables

    private static let recordTables = """
        CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE owners (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, change INTEGER NOT NULL) STRICT;
        CREATE TABLE zones (
            owner INTEGER NOT NULL, id INTEGER PRIMARY KEY, scope INTEGER NOT NULL, owner_name TEXT NOT NULL, name TEXT NOT NULL,
            state INTEGER NOT NULL, made INTEGER NOT NULL, changed INTEGER NOT NULL, sharing INTEGER NOT NULL, digest BLOB NOT NULL,
            UNIQUE (owner, name)
        ) STRICT;
        CREATE INDEX zones_by_change ON zones (owner, changed);
        CREATE TABLE records (
            owner INTEGER NOT NULL, id INTEGER PRIMARY KEY, zone INTEGER NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL,
            fields BLOB NOT NULL, parent TEXT, changed INTEGER NOT NULL, created INTEGER NOT NULL, created_by TEXT NOT NULL,
            modified INTEGER NOT NULL, modified_by TEXT NOT NULL, is_deleted INTEGER NOT NULL, digest BLOB NOT NULL, damaged INTEGER
        ) STRICT;
        CREATE UNIQUE INDEX records_by_name ON records (owner, zone, name);
        CREATE UNIQUE INDEX records_by_change ON records (owner, zone, changed);
        CREATE INDEX records_by_type ON records (owner, zone, type) WHERE is_deleted = 0;
        CREATE INDEX records_by_parent ON records (owner, zone, parent) WHERE parent IS NOT NULL;
        CREATE TABLE dependencies (owner INTEGER NOT NULL, zone INTEGER NOT NULL, target TEXT NOT NULL, record INTEGER NOT NULL,
            PRIMARY KEY (owner, zone, target, record)) STRICT, WITHOUT ROWID;
        CREATE INDEX dependencies_by_record ON dependencies (owner, record);
        CREATE TABLE found (owner INTEGER NOT NULL, zone INTEGER NOT NULL, idx INTEGER NOT NULL, value ANY NOT NULL,
            record INTEGER NOT NULL, ordinal INTEGER NOT NULL, PRIMARY KEY (owner, zone, idx, value, record, ordinal))
            STRICT, WITHOUT ROWID;
        CREATE INDEX found_by_record ON found (owner, record, idx);
        CREATE TABLE assets (owner INTEGER NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL, payer TEXT NOT NULL,
            PRIMARY KEY (owner, digest)) STRICT, WITHOUT ROWID;
        CREATE TABLE named (owner INTEGER NOT NULL, zone INTEGER NOT NULL, digest TEXT NOT NULL, record INTEGER NOT NULL,
            PRIMARY KEY (owner, zone, digest, record)) STRICT, WITHOUT ROWID;
        CREATE INDEX named_by_record ON named (owner, record);
        CREATE TABLE answers (owner INTEGER NOT NULL, token TEXT NOT NULL, time INTEGER NOT NULL, answer BLOB NOT NULL,
            PRIMARY KEY (owner, token)) STRICT, WITHOUT ROWID;
        CREATE INDEX answers_by_time ON answers (owner, time);
        CREATE TABLE documents (name TEXT PRIMARY KEY, content BLOB NOT NULL) STRICT, WITHOUT ROWID;

        """
}

extension CloudError {
    /// Makes an error of what a storage has thrown. An error of the rules stays as it is, and any other becomes an internal
    /// error.
    ///
    /// - Parameter database: The name of the database in the message.
    init(storage error: any Error, of database: String = "the cloud's database") {
        switch error {
        case let error as CloudError: self = error
        case let error as StoreError where error.code == .busy:
            self.init(.zoneBusy, "the cloud is busy", retryAfter: .seconds(1))
        case let error as StoreError: self.init(.internalError, error.message)
        // The error's description would show values of the row.
        case is RowDecodingError: self.init(.internalError, StoreError(error, doing: "read a row", with: database).message)
        // SQLite's message names neither the file nor the cause.
        case let error as DatabaseError where error.resultCode == .SQLITE_READONLY:
            self.init(.internalError, StoreError(error, doing: "write to \(database)").message)
        default: self.init(.internalError, "\(database) has failed: \(error)")
        }
    }
}
