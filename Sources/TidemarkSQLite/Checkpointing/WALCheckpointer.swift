import CTideCore
package import GRDB

/// Checkpoints the WAL of a database that a connection of this process writes to: when the WAL has grown long, and when no write
/// waits and the WAL has enough pages to move.
///
/// `@unchecked Sendable`: every access is serialised with the writes, by the turn of a shared database or by the actor that has a
/// store's connection. The core writes the length of the log after each commit on that connection.
package final class WALCheckpointer: @unchecked Sendable {
    private let frames: UnsafeMutablePointer<Int32>
    /// The number of pages in the log from which on it is checkpointed.
    private let threshold: Int
    private var nextCheckpoint: Int
    /// The number of new pages from which on a checkpoint is worthwhile while no write waits.
    private let worthwhile: Int
    /// The length of the log at the last checkpoint while no write waited; 0 after the log was restarted.
    private var moved = 0

    /// - Parameter pageSize: Bytes of a page. A log of 64 MiB counts as long.
    package init(pageSize: Int) {
        frames = .allocate(capacity: 1)
        frames.initialize(to: 0)
        threshold = (64 << 20) / pageSize
        nextCheckpoint = threshold
        worthwhile = (4 << 20) / pageSize
    }

    deinit { frames.deallocate() }

    /// Makes the core record the length of the log after each commit of a connection. The checkpointer must outlive the
    /// connection.
    package func watch(_ db: Database) throws { tide_connection_watch_log(try db.handle, frames) }

    /// Moves the log into the database when it has grown long. If that fails, or if readers keep the log from being emptied, the
    /// next try comes when the log has grown by a quarter. Under the lock of writes.
    package func checkpointIfLong(_ database: any DatabaseWriter) {
        let length = Int(frames.pointee)
        if length < moved { moved = 0 }
        guard length >= threshold else {
            nextCheckpoint = threshold
            return
        }
        guard length >= nextCheckpoint else { return }
        nextCheckpoint = length + length / 4
        do {
            try Self.checkpoint(database, truncate: false)
        } catch {
            // The transaction is committed, so its caller must get no error. An explicit checkpoint reports what is wrong.
        }
    }

    /// Whether the log has enough new pages for a checkpoint while no write waits.
    var isWorthMoving: Bool { Int(frames.pointee) >= moved + worthwhile }

    /// Moves the log into the database while no write waits. Such checkpoints are small, so a write that comes meanwhile does not
    /// wait for long. Under the lock of writes.
    func checkpointIfIdle(_ database: any DatabaseWriter) {
        guard isWorthMoving else { return }
        moved = Int(frames.pointee)
        do {
            try Self.checkpoint(database, truncate: false)
        } catch {
            // The next checkpoint tries again, and an explicit one reports what is wrong.
        }
    }

    /// Moves the log into the database. Under the lock of writes.
    package static func checkpoint(_ database: any DatabaseWriter, truncate: Bool) throws {
        try database.writeWithoutTransaction { db in
            var remaining: Int32 = 0
            // Emptying the log would wait for readers, which is not worthwhile.
            let connection = try db.handle
            try db.execute(sql: "PRAGMA busy_timeout = 0")
            let outcome = Result { try checked { tide_connection_checkpoint(connection, truncate, &remaining, &$0) } }
            try db.execute(sql: "PRAGMA busy_timeout = 10000")
            try outcome.get()
        }
    }
}
