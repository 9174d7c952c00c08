import CTideCore
import Foundation
package import GRDB

extension Database {
    /// Runs a body, and tells an error of the disk from damage: SQLite calls it damage too, where a read of the file fails with EIO.
    ///
    /// - Parameter path: The database's, for the message.
    /// - Throws: What `body` throws; ``StoreError`` `io` in place of a `DatabaseError` of damage, where the system could not read.
    package func tellingReadErrors<Result>(of path: String, _ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
            let number = tide_connection_read_errno(try handle)
            guard number != 0 else { throw error }
            throw StoreError(.io, "cannot read \(path): \(String(cString: strerror(number)))")
        }
    }

    /// Reads the first page, which GRDB does next, and can't tell why it failed.
    ///
    /// - Throws: As ``tellingReadErrors(of:_:)``.
    package func readFirstPage(of path: String) throws {
        try tellingReadErrors(of: path) { _ = try Int.fetchOne(self, sql: "PRAGMA schema_version") }
    }
}
