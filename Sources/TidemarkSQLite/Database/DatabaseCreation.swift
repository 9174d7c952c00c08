import CTideCore
package import Foundation
package import GRDB

/// Makes the first writes to a database file and to its log in a way that an interruption leaves neither of them incomplete.
package enum DatabaseCreation {
    /// The suffix of the file name while a database is being made.
    private static let unfinished = "-new"

    /// Makes a database with a write-ahead log, in place of a file that is missing or empty. The file gets its name when it is
    /// complete and durable. A process that dies before that leaves no database.
    ///
    /// Under the lock of writes. There must be no log that belongs to a database.
    ///
    /// - Parameters:
    ///   - url: The file.
    ///   - pageSize: Bytes of a page.
    ///   - fill: Makes the tables, in a transaction.
    /// - Throws: ``StoreError``; `DatabaseError`; the errors of `fill`.
    package static func make(at url: URL, pageSize: Int, fill: (Database) throws -> Void) throws {
        let folder = try Folder(at: url.deletingLastPathComponent(), followsLink: true)
        let (name, unfinished) = (url.lastPathComponent, url.lastPathComponent + unfinished)
        let besides = ["-journal", "-wal", "-shm"]
        for name in [unfinished] + besides.map({ unfinished + $0 }) { try folder.remove(name) }
        var configuration = Configuration()
        configuration.label = "tidemark.new"
        configuration.prepareDatabase { db in
            let handle = try db.handle
            try checked { tide_connection_prepare(handle, &$0) }
            // No process opens the file before it has its name. So it needs no journal, and is made durable once, at the end.
            try db.execute(sql: "PRAGMA page_size = \(pageSize); PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF")
        }
        let path = url.deletingLastPathComponent().appendingPathComponent(unfinished).path
        do {
            let queue = try DatabaseQueue(path: path, configuration: configuration)
            try queue.writeWithoutTransaction { db in
                try db.inTransaction(.immediate) {
                    try fill(db)
                    return .commit
                }
                try DatabaseFormat.useLog(db, path: url.path)
            }
            try queue.close()
            let file = try folder.openFile(unfinished)
            try DurableFile.synchronize(file, path: path)
            // An earlier version that was interrupted may have left such files. SQLite would take them for the new file's.
            for name in besides.map({ name + $0 }) { try folder.remove(name) }
            try folder.rename(unfinished, to: name)
        } catch {
            // The caller gets the first error. Files that stay are removed by the next call.
            for name in [unfinished] + besides.map({ unfinished + $0 }) { try? folder.remove(name) }
            throw error
        }
        for name in besides.map({ unfinished + $0 }) { try folder.remove(name) }
        try folder.synchronize()
    }

    /// Opens a pool of connections whose log is durable from its first page on.
    ///
    /// When the log is empty, GRDB's pool writes a first page to it and does not sync it. After a power cut, the index of the log
    /// could then have more commits than the log, because the system writes the index at any time. ``LogExamination`` would
    /// report a loss although nothing was saved.
    ///
    /// Under the lock of writes.
    package static func openPool(_ path: String, _ configuration: Configuration) throws -> DatabasePool {
        var status = stat()
        let isEmpty = stat(path + "-wal", &status) != 0 || status.st_size == 0
        let first = isEmpty ? try DatabaseQueue(path: path, configuration: configuration) : nil
        try first?.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA synchronous = FULL")
            try db.inTransaction(.immediate) {
                // Setting the same number writes a page all the same.
                let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
                try db.execute(sql: "PRAGMA user_version = \(version)")
                return .commit
            }
        }
        let pool = try DatabasePool(path: path, configuration: configuration)
        try first?.close()
        return pool
    }
}
