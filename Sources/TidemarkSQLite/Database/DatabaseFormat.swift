import Foundation
package import GRDB

/// Checks and settings of a database file that do not depend on its tables.
package enum DatabaseFormat {
    /// Sets the journal mode to WAL, on which the locks rely.
    package static func useLog(_ db: Database, path: String) throws {
        let answer = try String.fetchOne(db, sql: "PRAGMA journal_mode = WAL") ?? ""
        guard answer.lowercased() == "wal" else {
            throw StoreError(
                .cannotCreate,
                "\(path) is on a file system that SQLite's write-ahead log cannot work on. Put the container on a local disk")
        }
    }

    /// Checks, without changing a byte, that a file may be opened for writing: that it is not another program's database, and
    /// that this version writes its format. A file that is missing or empty passes.
    ///
    /// The check has to come first: when SQLite opens a database for writing, it may checkpoint and remove the log before the
    /// format can be read.
    package static func checkBeforeWriting(
        _ path: String, applicationID: Int32, checkFormat: (Int32) throws -> Void
    ) throws {
        var status = stat()
        guard stat(path, &status) == 0, status.st_size > 0 else { return }
        let found: (application: Int32, version: Int32)?
        do {
            found = try ReadOnlyDatabase.reading(nil) {
                try ReadOnlyDatabase.openQueue(path).read { db in
                    let application = try Int32.fetchOne(db, sql: "PRAGMA application_id") ?? 0
                    let version = try Int32.fetchOne(db, sql: "PRAGMA user_version") ?? 0
                    let isEmpty = try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master") == 0
                    return application == 0 && isEmpty ? nil : (application, version)
                }
            }
        } catch let error as DatabaseError where error.extendedResultCode == .SQLITE_READONLY_ROLLBACK {
            // The format can't be read before the journal is rolled back, and for that the file has to be opened for writing.
            return
        } catch let error as DatabaseError where error.resultCode == .SQLITE_NOTADB {
            throw StoreError(.notAStore, "\(path) is no SQLite database")
        }
        guard let found else { return }
        guard found.application == applicationID else {
            throw StoreError(.notAStore, "\(path) is a SQLite database, but no Tidemark store")
        }
        try checkFormat(found.version)
    }
}

extension Database {
    /// SQLite's connection handle, for calls of the C core.
    package var handle: OpaquePointer {
        get throws {
            guard let sqliteConnection else { throw StoreError(.core, "the database is closed") }
            return sqliteConnection
        }
    }
}

extension Statement {
    /// Calls `body` with the first row, before the statement is reset. Returns `nil` if there is no row.
    package func withRow<Result>(_ arguments: StatementArguments, _ body: (Row) throws -> Result) throws -> Result? {
        let rows = try Row.fetchCursor(self, arguments: arguments)
        // The cursor resets the statement in its `deinit`.
        return try withExtendedLifetime(rows) { try rows.next().map(body) }
    }
}
