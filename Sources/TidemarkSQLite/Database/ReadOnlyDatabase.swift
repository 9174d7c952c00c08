import CTideCore
import Foundation
package import GRDB
import TidemarkModel

/// Opens connections that can't change a byte of a database file or of the files beside it; see `tide_reader_vfs.h`.
package enum ReadOnlyDatabase {
    /// Opens a connection that reads a database of any format.
    static func openQueue(_ path: String) throws -> DatabaseQueue {
        try DatabaseQueue(path: name(of: path), configuration: configuration(of: path))
    }

    /// The configuration of connections that only read.
    ///
    /// - Parameters:
    ///   - path: The database's path, for messages.
    ///   - checkPlace: Called when a connection opens. It throws if another file is at the path by then.
    package static func configuration(
        of path: String, checkPlace: @escaping @Sendable () throws -> Void = {}
    ) throws -> Configuration {
        try checked { tide_reader_vfs_register(&$0) }
        var configuration = Configuration()
        configuration.readonly = true
        configuration.label = "tidemark.reader"
        configuration.busyMode = .timeout(10)
        configuration.prepareDatabase { db in
            try checkPlace()
            let handle = try db.handle
            try checked { tide_reader_prepare(handle, &$0) }
            try db.readFirstPage(of: path)
            SQLTrace.install(on: db)
        }
        return configuration
    }

    /// The file name with which SQLite opens a database through the reading VFS.
    package static func name(of path: String) -> String {
        let absolute = path.hasPrefix("/") ? path : "\(FileManager.default.currentDirectoryPath)/\(path)"
        return "file://\(PercentCoding.encoded(absolute, keepsSlashes: true))?vfs=\(TIDE_READER_VFS_NAME)"
    }

    /// Whether an error only means that a read has to be started again.
    package static func isVoid(_ error: any Error) -> Bool {
        switch error {
        case let error as DatabaseError:
            let results: [ResultCode] = [.SQLITE_BUSY_SNAPSHOT, .SQLITE_READONLY_RECOVERY, .SQLITE_READONLY_CANTINIT]
            return results.contains(error.extendedResultCode)
        case let error as StoreError: return error.code == .changed
        default: return false
        }
    }

    /// Runs a read, and repeats it up to 20 times while it is void; see ``isVoid(_:)``.
    ///
    /// - Parameter mayRepeat: Returns whether the read can be repeated, because no result of it was passed on yet.
    package static func reading<Result>(
        _ database: (any DatabaseReader)?, mayRepeat: () -> Bool = { true }, _ body: () throws -> Result
    ) throws -> Result {
        // A snapshot can't pin the same state again.
        guard !(database is any DatabaseSnapshotReader) else { return try body() }
        var tries = 0
        while true {
            do {
                return try body()
            } catch  where isVoid(error) && tries < 20 && mayRepeat() {
                tries += 1
                // The connection may have read a torn index. The pool closes it and opens new ones.
                (database as? DatabasePool)?.releaseMemoryEventually()
            }
        }
    }

    /// Returns a ``StoreError`` that names the file, if a read has failed because of the database's files. SQLite's own message
    /// names neither the files nor a remedy. Any other error is returned as it is.
    package static func fileError(_ error: any Error, path: String) -> any Error {
        guard let error = error as? DatabaseError,
            isVoid(error) || [.SQLITE_BUSY, .SQLITE_CANTOPEN, .SQLITE_IOERR, .SQLITE_MISUSE].contains(error.resultCode)
        else { return error }
        return StoreError(error, doing: "read \(path)")
    }

    /// Makes sure that everything that a transaction has read is still valid.
    package static func check(_ db: Database) throws {
        guard tide_reader_is_undisturbed(try db.handle) else { throw DatabaseError(resultCode: .SQLITE_BUSY_SNAPSHOT) }
    }
}
