import CTideCore
package import GRDB

/// Checkpoints the WAL of a database that a connection of this process writes to: when the WAL has grown long, or when nobody waits and
/// there is something to move into the database.
///
/// `@unchecked Sendable`: the core writes the length after each commit on that connection, and it is read under the turn of writes, as is
/// what else changes here: that of a shared database, or the actor that has a store's connection.
package final class WALCheckpointer: @unchecked Sendable {
    private let frames: UnsafeMutablePointer<Int32>
    /// Pages from which on it is moved.
    private let threshold: Int
    private var nextCheckpoint: Int
    /// Pages from which on it is worth the trouble while nobody waits.
    private let worthwhile: Int
    /// How long it was when it was moved while nobody waited; 0 once it has begun anew.
    private var moved = 0

    /// - Parameter pageSize: Bytes of a page. 64 MiB of them are long.
    package init(pageSize: Int) {
        frames = .allocate(capacity: 1)
        frames.initialize(to: 0)
        threshold = (64 << 20) / pageSize
        nextCheckpoint = threshold
        worthwhile = (4 << 20) / pageSize
    }

    deinit { frames.deallocate() }

    /// Has the core note the length after each commit of a connection, which this must outlive.
    package func watch(_ db: Database) throws { tide_connection_watch_log(try db.handle, frames) }

    /// Moves the log into the database when it has grown long. Where that fails, or readers keep it from being emptied, it has to grow by
    /// a quarter before that is tried again. Under the lock of writes.
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
            // What was committed is committed, and has to be told as that. A checkpoint that is asked for says what is wrong.
        }
    }

    /// Whether there is enough to move for a moment when nobody waits.
    var isWorthMoving: Bool { Int(frames.pointee) >= moved + worthwhile }

    /// Moves the log into the database, nobody waiting: so a little at a time is moved, and whoever comes meanwhile waits for a little.
    /// Under the lock of writes.
    func checkpointIfIdle(_ database: any DatabaseWriter) {
        guard isWorthMoving else { return }
        moved = Int(frames.pointee)
        do {
            try Self.checkpoint(database, truncate: false)
        } catch {
            // As above.
        }
    }

    /// Moves the log into the database. Under the lock of writes.
    package static func checkpoint(_ database: any DatabaseWriter, truncate: Bool) throws {
        try database.writeWithoutTransaction { db in
            var remaining: Int32 = 0
            // Emptying the log waits for readers; it is not worth waiting for.
            let connection = try db.handle
            try db.execute(sql: "PRAGMA busy_timeout = 0")
            let outcome = Result { try checked { tide_connection_checkpoint(connection, truncate, &remaining, &$0) } }
            try db.execute(sql: "PRAGMA busy_timeout = 10000")
            try outcome.get()
        }
    }
}
