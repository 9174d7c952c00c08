import CTideCore
import Foundation
package import GRDB

extension Database {
    /// Runs a body, and tells an error of the disk from damage: SQLite calls it damage too, where a read of the file fails with EIO.
    ///
    /// - Parameter path: The database's, for the message.
    /// - Throws: What `body` throws, by way of ``readError(_:of:)``.
    package func tellingReadErrors<Result>(of path: String, _ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch {
            throw readError(error, of: path)
        }
    }

    /// Returns an error that names the database where a read has failed by its file: ``StoreError`` `io` in place of a `DatabaseError` of
    /// damage where the system could not read, and `corrupt` in place of a `RowDecodingError`. Any other error stays as it is.
    ///
    /// A damaged page may have NULL, or a value of another type, in a column that can't have it. So rows are read by methods that throw, such as
    /// `decode(_:atIndex:)`, and not by subscripts, which trap.
    package func readError(_ error: any Error, of path: String) -> any Error {
        switch error {
        case let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT:
            guard let connection = try? handle else { return error }
            let number = tide_connection_read_errno(connection)
            guard number != 0 else { return error }
            return StoreError(.io, "cannot read \(path): \(String(cString: strerror(number)))")
        case is RowDecodingError:
            return StoreError(.corrupt, "\(path) is damaged: a row has a value of a wrong form")
        default:
            return error
        }
    }

    /// Reads the first page, which GRDB does next, and can't tell why it failed.
    ///
    /// - Throws: As ``tellingReadErrors(of:_:)``.
    package func readFirstPage(of path: String) throws {
        try tellingReadErrors(of: path) { _ = try Int.fetchOne(self, sql: "PRAGMA schema_version") }
    }
}
