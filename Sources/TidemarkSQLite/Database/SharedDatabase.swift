import CTideCore
package import Foundation
package import GRDB
import TidemarkModel

/// A SQLite file beside the stores that several processes write to: what commits is durable, and one lock guards writes and checkpoints, as
/// it does for stores.
///
/// `@unchecked Sendable`: the lock is touched by whoever has the turn.
package final class SharedDatabase: @unchecked Sendable {
    private let writer: any DatabaseWriter
    private let lock: StoreLock?
    private let isShared: Bool
    private let checkpointer: WALCheckpointer
    /// `nil` in memory.
    private let migrations: FormatMigrations?
    private let path: String
    /// The lock tells processes apart and not threads.
    private let turn = LockedValue(())
    private static let lockTimeout = Duration.seconds(30)

    /// Opens a file, making it with its tables if there is none.
    ///
    /// - Parameters:
    ///   - migrations: What tells the file from others, and takes one of an older format to the newest.
    ///   - pageSize: Bytes of a page of a file that is made.
    ///   - cacheSize: Kibibytes of pages that the writing connection keeps.
    ///   - prepare: Is called for each connection.
    /// - Throws: ``StoreError`` `notAStore`, `newerFormat`, `olderFormat`, `busy`, `io`.
    package init(
        at url: URL, migrations: FormatMigrations, tables: String, pageSize: Int = 16384, cacheSize: Int = 16_000,
        prepare: @escaping @Sendable (Database) throws -> Void
    ) throws {
        let lock = try StoreLock(at: URL(fileURLWithPath: url.path + "-lock"))
        let checkpointer = WALCheckpointer(pageSize: pageSize)
        var configuration = Self.configuration(prepare)
        configuration.prepareDatabase { db in
            // First: a connection that is refused must not move the log as it closes, and remove it.
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
            // Behind the checks: what is refused stays as it is.
            try Self.makePrivate(url)
            let pool = try DatabaseCreation.openPool(url.path, configuration)
            try pool.writeWithoutTransaction { db in
                // A pool has made it less.
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

    /// Makes a file that is missing for its owner alone, and takes one that is there for its owner alone, whatever the folder and the umask
    /// say. SQLite gives what it puts beside the file the same mode.
    ///
    /// A file that is there is not opened: closing it would release the locks that SQLite has on it in this process.
    private static func makePrivate(_ url: URL) throws(StoreError) {
        let made = open(url.path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard made < 0 else {
            close(made)
            return
        }
        // What else is wrong with it, opening it tells.
        guard errno == EEXIST else { return }
        for path in [url.path, url.path + "-wal", url.path + "-shm"] {
            var status = stat()
            guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o077 != 0 else { continue }
            _ = chmod(path, 0o600)
        }
    }

    /// Keeps everything in memory.
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

    /// Reads what is committed, side by side with what is written.
    package var reader: any DatabaseReader { writer }

    /// Writes in one transaction, durable when this returns. Blocks the calling thread.
    package func write<Result>(_ body: (Database) throws -> Result) throws -> Result {
        var result: Result?
        try turn.withLock { _ in
            // In memory there is nobody to lock out.
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

    /// Moves all that has been written from the log into the database, and empties the log: a deleted row is in neither then. Blocks the
    /// calling thread.
    ///
    /// - Returns: `false` where reads or another process are in the way; a later checkpoint does the rest.
    package func tryToEmptyLog() -> Bool {
        guard isShared else { return true }
        return turn.withLock { _ -> Bool in
            // A lock that can't be had is another's; a write reports what is wrong with it.
            guard (try? lock?.acquireIfFree()) == true else { return false }
            defer { lock?.release() }
            // What can't be moved stays in the log, and a write tells what is wrong.
            guard (try? WALCheckpointer.checkpoint(writer, truncate: true)) != nil else { return false }
            var status = stat()
            return lstat(path + "-wal", &status) != 0 || status.st_size == 0
        }
    }

    /// Tries to empty the log of a database for a second at the most. It waits on no thread: who writes meanwhile has the database.
    ///
    /// - Parameter attempt: ``tryToEmptyLog()`` where it may block a thread.
    package static func emptyLog(_ attempt: @Sendable () async -> Bool) async {
        for number in 0..<20 {
            if number > 0 { try? await Task.sleep(for: .milliseconds(50)) }
            if await attempt() { return }
        }
    }

    /// Whether ``rest()`` would have something to do. By whoever has just written.
    package var isWorthResting: Bool { isShared && turn.withLock { _ in checkpointer.isWorthMoving } }

    /// Moves what has been written from the log into the database, so that no write has to do it when the log has grown long. For moments
    /// when no write waits; does nothing while another process writes. Blocks the calling thread.
    package func rest() {
        turn.withLock { _ in
            // A lock that can't be had is another's; a write reports what is wrong with it.
            guard isShared, (try? lock?.acquireIfFree()) == true else { return }
            checkpointer.checkpointIfIdle(writer)
            lock?.release()
        }
    }
}
