import CTideCore
package import Foundation
package import GRDB

/// The first writes to a database file, and to its log, so that an interruption leaves nothing half-done.
package enum DatabaseCreation {
    /// What the name of a database that is being made ends with.
    private static let unfinished = "-new"

    /// Makes a database with a write-ahead log, in the place of a file that is missing or empty. It gets its name when it is whole and
    /// durable: a process that dies before leaves no database.
    ///
    /// Under the lock of writes. There must be no log that belongs to a database.
    ///
    /// - Parameters:
    ///   - pageSize: Bytes of a page.
    ///   - fill: Makes the tables, in a transaction.
    /// - Throws: ``StoreError``; `DatabaseError`; what `fill` throws.
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
            // The file is nobody's before it has its name: it needs no journal, and is made durable once, when it is whole.
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
            // What an interrupted making of earlier versions has left would be taken for the new file's.
            for name in besides.map({ name + $0 }) { try folder.remove(name) }
            try folder.rename(unfinished, to: name)
        } catch {
            // What went wrong first is what is told; the next one removes what stays.
            for name in [unfinished] + besides.map({ unfinished + $0 }) { try? folder.remove(name) }
            throw error
        }
        for name in besides.map({ unfinished + $0 }) { try folder.remove(name) }
        try folder.synchronize()
    }

    /// Opens a pool of connections whose log is durable from its first page on.
    ///
    /// GRDB's pool writes to a log that is empty, and does not sync that. After a power cut the index, which the system writes when it
    /// likes, could then tell of more commits than the log has: ``LogExamination`` would report a loss where nothing was saved.
    ///
    /// Under the lock of writes.
    package static func openPool(_ path: String, _ configuration: Configuration) throws -> DatabasePool {
        var status = stat()
        let isEmpty = stat(path + "-wal", &status) != 0 || status.st_size == 0
        let first = isEmpty ? try DatabaseQueue(path: path, configuration: configuration) : nil
        try first?.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA synchronous = FULL")
            try db.inTransaction(.immediate) {
                // A page is written, although it stays as it is.
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
