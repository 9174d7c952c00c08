import CTideCore
import Foundation
package import GRDB
import TidemarkModel

/// Connections to a database file that can't change a byte of it, or of what lies beside it; see `tide_reader_vfs.h`.
package enum ReadOnlyDatabase {
    /// Opens one connection that reads a database of any kind.
    static func openQueue(_ path: String) throws -> DatabaseQueue {
        try DatabaseQueue(path: name(of: path), configuration: configuration(of: path))
    }

    /// - Parameters:
    ///   - path: The database's, for messages.
    ///   - checkPlace: Is called as connections open: a late connection must not be to another file at the same path.
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

    /// The name under which SQLite opens a file so.
    package static func name(of path: String) -> String {
        let absolute = path.hasPrefix("/") ? path : "\(FileManager.default.currentDirectoryPath)/\(path)"
        return "file://\(PercentCoding.encoded(absolute, keepsSlashes: true))?vfs=\(TIDE_READER_VFS_NAME)"
    }

    /// Whether an error means no more than that a read has to be begun again.
    package static func isVoid(_ error: any Error) -> Bool {
        switch error {
        case let error as DatabaseError:
            let results: [ResultCode] = [.SQLITE_BUSY_SNAPSHOT, .SQLITE_READONLY_RECOVERY, .SQLITE_READONLY_CANTINIT]
            return results.contains(error.extendedResultCode)
        case let error as StoreError: return error.code == .changed
        default: return false
        }
    }

    /// Runs a read, and runs it again as long as it is void.
    ///
    /// - Parameter mayRepeat: Whether nothing of it has got out yet.
    package static func reading<Result>(
        _ database: (any DatabaseReader)?, mayRepeat: () -> Bool = { true }, _ body: () throws -> Result
    ) throws -> Result {
        // What a snapshot has pinned does not come back.
        guard !(database is any DatabaseSnapshotReader) else { return try body() }
        var tries = 0
        while true {
            do {
                return try body()
            } catch  where isVoid(error) && tries < 20 && mayRepeat() {
                tries += 1
                // A torn index may be all that a connection has; new ones come.
                (database as? DatabasePool)?.releaseMemoryEventually()
            }
        }
    }

    /// The error of a read as one that names the file, where the files have made it fail and not what was asked: SQLite's own words
    /// name neither them nor a remedy. Any other error comes back as it is.
    package static func fileError(_ error: any Error, path: String) -> any Error {
        guard let error = error as? DatabaseError,
            isVoid(error) || [.SQLITE_BUSY, .SQLITE_CANTOPEN, .SQLITE_IOERR, .SQLITE_MISUSE].contains(error.resultCode)
        else { return error }
        return StoreError(error, doing: "read \(path)")
    }

    /// Makes sure that what a transaction has read still stands.
    package static func check(_ db: Database) throws {
        guard tide_reader_is_undisturbed(try db.handle) else { throw DatabaseError(resultCode: .SQLITE_BUSY_SNAPSHOT) }
    }
}
