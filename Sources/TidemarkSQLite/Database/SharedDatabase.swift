import CTideCore
package import Foundation
package import GRDB
import TidemarkModel

/// A SQLite file that several processes write to and that is not a store. Commits are durable, and one lock guards writes and
/// checkpoints, as for stores.
///
/// `@unchecked Sendable`: a thread accesses the lock only while it has the turn.
package final class SharedDatabase: @unchecked Sendable {
    private let writer: any DatabaseWriter
    private let lock: StoreLock?
    private let isShared: Bool
    private let checkpointer: WALCheckpointer
    /// `nil` for a database in memory.
    private let migrations: FormatMigrations?
    private let path: String
    /// Serialises the threads of this process; the lock only excludes other processes.
    private let turn = LockedValue(())
    private static let lockTimeout = Duration.seconds(30)

    /// Opens a file, and creates it with its tables if it is missing.
    ///
    /// - Parameters:
    ///   - url: The file.
    ///   - migrations: The application id and the formats of the file, with the steps from an older format to the newest.
    ///   - tables: SQL that creates the tables.
    ///   - pageSize: Bytes of a page, for a file that is created.
    ///   - cacheSize: Kibibytes of pages that the writing connection keeps.
    ///   - prepare: Called for each connection.
    /// - Throws: ``StoreError`` `notAStore`, `newerFormat`, `olderFormat`, `busy`, `io`.
    package init(
        at url: URL, migrations: FormatMigrations, tables: String, pageSize: Int = 16384, cacheSize: Int = 16_000,
        prepare: @escaping @Sendable (Database) throws -> Void
    ) throws {
        let lock = try StoreLock(at: URL(fileURLWithPath: url.path + "-lock"))
        let checkpointer = WALCheckpointer(pageSize: pageSize)
        var configuration = Self.configuration(prepare)
        configuration.prepareDatabase { db in
            // This comes first: otherwise a connection that is refused later would checkpoint and remove the log when it closes.
            let handle = try db.handle
            try checked { tide_connection_prepare(handle, &$0) }
            try db.readFirstPage(of: url.path)
            if !db.configuration.readonly {
                try db.execute(sql: "PRAGMA page_size = \(pageSize); PRAGMA cache_size = -\(cacheSize)")
                try DatabaseFormat.useLog(db, path: url.path)
            }
        }
        writer = try lock.withLock(timeout: Self.lockTimeout) {
            do {
                try DatabaseFormat.checkBeforeWriting(url.path, applicationID: migrations.applicationID) { found in
                    try migrations.checkIsKnown(Int(found), of: url.path)
                }
            } catch let error as StoreError where error.code == .notAStore {
                throw StoreError(.notAStore, "\(url.path) is a SQLite database of another kind")
            }
            try LogExamination.checkBeforeWriting(url.path)
            // This comes after the checks: a file that is refused stays as it is.
            try Self.makePrivate(url)
            let pool = try DatabaseCreation.openPool(url.path, configuration)
            try pool.writeWithoutTransaction { db in
                // `DatabasePool` sets `synchronous` to NORMAL.
                try db.execute(sql: "PRAGMA synchronous = FULL")
                try checkpointer.watch(db)
                try Self.makeTables(db, path: url.path, migrations: migrations, tables: tables)
            }
            return pool
        }
        self.lock = consume lock
        (self.migrations, path) = (migrations, url.path)
        self.checkpointer = checkpointer
        isShared = true
    }

    /// Creates a missing file with permissions for its owner alone, and restricts an existing file to its owner, whatever the
    /// umask is. SQLite gives the files beside it the same permissions.
    ///
    /// An existing file is not opened: closing it would release the locks that SQLite has on it in this process.
    private static func makePrivate(_ url: URL) throws(StoreError) {
        let made = open(url.path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard made < 0 else {
            close(made)
            return
        }
        // Opening the database reports any other problem.
        guard errno == EEXIST else { return }
        for path in [url.path, url.path + "-wal", url.path + "-shm"] {
            var status = stat()
            guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o077 != 0 else { continue }
            _ = chmod(path, 0o600)
        }
    }

    /// Makes a database in memory.
    package init(inMemoryWith tables: String, prepare: @escaping @Sendable (Database) throws -> Void) throws {
        let queue = try DatabaseQueue(configuration: Self.configuration(prepare))
        try queue.write { db in try db.execute(sql: tables) }
        writer = queue
        lock = nil
        (migrations, path) = (nil, "")
        isShared = false
        checkpointer = WALCheckpointer(pageSize: 16384)
    }

    private static func configuration(_ prepare: @escaping @Sendable (Database) throws -> Void) -> Configuration {
        var configuration = Configuration()
        configuration.label = "tidemark.shared"
        configuration.busyMode = .timeout(10)
        configuration.prepareDatabase(prepare)
        return configuration
    }

    private static func makeTables(_ db: Database, path: String, migrations: FormatMigrations, tables: String) throws {
        guard try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master") != 0 else {
            return try db.inTransaction(.immediate) {
                try db.execute(sql: tables)
                try db.execute(
                    sql: "PRAGMA user_version = \(migrations.newest); PRAGMA application_id = \(migrations.applicationID)")
                return .commit
            }
        }
        try migrations.migrate(db, path: path)
    }

    /// A reader of committed data. It reads while other threads write.
    package var reader: any DatabaseReader { writer }

    /// Writes in one transaction, which is durable when this returns. Blocks the calling thread.
    ///
    /// - Throws: ``StoreError`` `busy` when another process has held the lock for 30 s; `newerFormat` or `olderFormat` when the
    ///   file's format has changed; `io`; the errors of `body`, after which nothing is written.
    package func write<Result>(_ body: (Database) throws -> Result) throws -> Result {
        var result: Result?
        try turn.withLock { _ in
            // No other process can have a database in memory.
            guard isShared else {
                result = try writer.write(body)
                return
            }
            try lock?.withLock(timeout: Self.lockTimeout) {
                try writer.writeWithoutTransaction { db in
                    try db.tellingReadErrors(of: path) {
                        try db.inTransaction(.immediate) {
                            try migrations?.checkIsUnchanged(db, path: path)
                            result = try body(db)
                            return .commit
                        }
                    }
                }
                checkpointer.checkpointIfLong(writer)
            }
        }
        return result!
    }

    /// Moves the whole log into the database, and empties the log. A deleted row is in neither file afterwards. Blocks the
    /// calling thread.
    ///
    /// - Returns: `false` if readers or another process prevent it; a later checkpoint does the rest.
    package func tryToEmptyLog() -> Bool {
        guard isShared else { return true }
        return turn.withLock { _ -> Bool in
            // If the lock can't be taken for another reason than another process, the next write reports it.
            guard (try? lock?.acquireIfFree()) == true else { return false }
            defer { lock?.release() }
            // Pages that can't be moved stay in the log, and the next write reports the problem.
            guard (try? WALCheckpointer.checkpoint(writer, truncate: true)) != nil else { return false }
            var status = stat()
            return lstat(path + "-wal", &status) != 0 || status.st_size == 0
        }
    }

    /// Tries to empty the log of a database, for about a second at the most. Between the tries it blocks no thread, and other
    /// writes can run.
    ///
    /// - Parameter attempt: Calls ``tryToEmptyLog()`` on a thread that may be blocked.
    package static func emptyLog(_ attempt: @Sendable () async -> Bool) async {
        for number in 0..<20 {
            if number > 0 { try? await Task.sleep(for: .milliseconds(50)) }
            if await attempt() { return }
        }
    }

    /// Whether ``rest()`` would checkpoint. To be read after a write.
    package var isWorthResting: Bool { isShared && turn.withLock { _ in checkpointer.isWorthMoving } }

    /// Checkpoints the log while no write waits, so that no later write has to do it when the log has grown long. Does nothing
    /// while another process writes. Blocks the calling thread.
    package func rest() {
        turn.withLock { _ in
            // If the lock can't be taken for another reason than another process, the next write reports it.
            guard isShared, (try? lock?.acquireIfFree()) == true else { return }
            checkpointer.checkpointIfIdle(writer)
            lock?.release()
        }
    }
}
