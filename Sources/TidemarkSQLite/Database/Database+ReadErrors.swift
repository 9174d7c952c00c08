import CTideCore
import Foundation
package import GRDB

extension Database {
    /// Runs a body, and distinguishes errors of the disk from damage. SQLite reports damage in both cases, also when a read of
    /// the file fails with EIO.
    ///
    /// - Parameter path: The database's, for the message.
    /// - Throws: The errors of `body`, converted by ``readError(_:of:)``.
    package func tellingReadErrors<Result>(of path: String, _ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch {
            throw readError(error, of: path)
        }
    }

    /// Returns an error that names the database file, if a read has failed because of the file: ``StoreError`` `io` for a
    /// `DatabaseError` of damage if the system could not read, and `corrupt` for a `RowDecodingError`. Any other error is
    /// returned as it is.
    ///
    /// A damaged page may have NULL, or a value of another type, in a column that can't have it. So rows are read by methods that
    /// throw, such as `decode(_:atIndex:)`, and not by subscripts, which trap.
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

    /// Reads the first page. GRDB would read it next, but could not report why the read failed.
    ///
    /// - Throws: As ``tellingReadErrors(of:_:)``.
    package func readFirstPage(of path: String) throws {
        try tellingReadErrors(of: path) { _ = try Int.fetchOne(self, sql: "PRAGMA schema_version") }
    }
}
