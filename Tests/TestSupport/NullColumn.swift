import Foundation
import GRDB

/// A column that has NULL in all rows though its table declares it NOT NULL, as rows of a damaged page may.
public struct NullColumn: CustomStringConvertible, Sendable {
    public let table, name: String
    public var description: String { "\(table).\(name)" }

    /// Inserts a row into each empty table of a database, and removes NOT NULL from all columns. No other connection may have the
    /// database open.
    ///
    /// - Parameters:
    ///   - tables: The names of the tables; `nil` for all.
    ///   - values: SQL expressions for values of the rows, by the column's name or by `table.column`. Any other value is 0 if the
    ///     column's name begins with `is_`, and 1 otherwise, as a number, a text or a byte.
    /// - Returns: All columns that are not part of a primary key.
    public static func allow(
        in database: URL, tables: Set<String>? = nil, values: [String: String] = [:]
    ) throws -> [NullColumn] {
        let queue = try DatabaseQueue(path: database.path)
        let columns = try queue.inDatabase { db in
            let sql = """
                SELECT m.name, c.name, c.type, c.pk FROM sqlite_master m, pragma_table_info(m.name) c
                WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, c.cid
                """
            let rows = try Row.fetchAll(db, sql: sql).filter { tables?.contains($0[0]) ?? true }
            for (table, cells) in Dictionary(grouping: rows, by: { $0[0] as String }) {
                guard try Int.fetchOne(db, sql: "SELECT count(*) FROM \"\(table)\"") == 0 else { continue }
                let given = cells.map { cell -> String in
                    let (name, type): (String, String) = (cell[1], cell[2])
                    let digit = name.hasPrefix("is_") ? "0" : "1"
                    let usual = type == "TEXT" ? "'\(digit)'" : type == "BLOB" ? "x'0\(digit)'" : digit
                    return values["\(table).\(name)"] ?? values[name] ?? usual
                }
                try db.execute(sql: "INSERT INTO \"\(table)\" VALUES (\(given.joined(separator: ", ")))")
            }
            try db.execute(
                sql: """
                    PRAGMA writable_schema = ON;
                    UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE type = 'table';
                    PRAGMA writable_schema = RESET;
                    """)
            return rows.filter { ($0[3] as Int) == 0 }.map { NullColumn(table: $0[0], name: $0[1]) }
        }
        try queue.close()
        return columns
    }

    /// Copies a folder, and puts NULL into the column in a database of the copy.
    ///
    /// - Parameter path: The path of the database, relative to the folder.
    public func copy(_ folder: URL, to copy: URL, database path: String) throws {
        try FileManager.default.copyItem(at: folder, to: copy)
        let queue = try DatabaseQueue(path: copy.appendingPathComponent(path).path)
        try queue.inDatabase { db in
            // A trigger may keep rows from being changed, so all triggers of the table go.
            let sql = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?"
            for trigger in try String.fetchAll(db, sql: sql, arguments: [table]) {
                try db.execute(sql: "DROP TRIGGER \"\(trigger)\"")
            }
            try db.execute(sql: "PRAGMA synchronous = OFF; UPDATE \"\(table)\" SET \"\(name)\" = NULL")
        }
        try queue.close()
    }
}
