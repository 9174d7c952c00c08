import CTideCore
import GRDB
import TidemarkSQLite
import TidemarkStore

/// A digest of a database's contents: for each table the number of rows and a digest of all their values.
struct ContentDigest: Equatable, Sendable {
    struct Table: Equatable, Sendable {
        let rows: UInt64
        let low: UInt64
        let high: UInt64
    }

    /// The tables by name. The definitions of tables, indexes and views are under "".
    private(set) var tables: [String: Table] = [:]
    /// Values of the file's header: application id, format and page size.
    private let format: [Int64]

    /// - Throws: ``StoreError`` `corrupt` when a table can't be read to its end.
    /// - Complexity: Reads the whole database once.
    init(of db: Database) throws {
        format = try ["application_id", "user_version", "page_size"].map { try Int64.fetchOne(db, sql: "PRAGMA \($0)") ?? 0 }
        let handle = try db.handle
        let sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY name"
        let names = try String.fetchAll(db, sql: sql)
        tables[""] = try Self.digest(handle, "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid")
        for name in names {
            let quoted = name.replacing("\"", with: "\"\"")
            tables[name] = try Self.digest(handle, "SELECT * FROM \"\(quoted)\" NOT INDEXED")
        }
    }

    private static func digest(_ handle: OpaquePointer, _ sql: String) throws(StoreError) -> Table {
        var digest = tide_digest()
        try checked { tide_digest_rows(handle, sql, &digest, &$0) }
        return Table(rows: digest.rows, low: digest.low, high: digest.high)
    }

    /// Describes the first difference from another digest; `nil` if there is none.
    func difference(to other: ContentDigest) -> String? {
        if self == other { return nil }
        if format != other.format { return "the header of the file" }
        for name in Set(tables.keys).union(other.tables.keys).sorted() where tables[name] != other.tables[name] {
            guard !name.isEmpty else { return "the definitions of tables" }
            guard let mine = tables[name], let theirs = other.tables[name] else {
                return "the table \(name), which one of them lacks"
            }
            return mine.rows == theirs.rows
                ? "values in the table \(name)"
                : "the table \(name), which has \(mine.rows) rows in one and \(theirs.rows) in the other"
        }
        return nil
    }
}
