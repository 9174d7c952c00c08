import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite

/// Finds the rows whose references name certain records.
struct ReferrerSearch {
    let db: Database

    /// A row that refers to some of the records.
    struct Referrer {
        let row: Int64
        let name: String
        let zone: Int64
        /// The value of the field.
        let value: FieldValue
    }

    /// - Parameters:
    ///   - type: The record type whose rows are looked through.
    ///   - field: The reference field.
    ///   - names: Names of records. UUIDs are found in upper and lower case.
    ///   - zone: The only zone that counts; `nil` for all zones.
    /// - Returns: The rows that can be read. A row whose field is damaged refers to nothing.
    /// - Complexity: A look-up for each name where the field has an index; else the rows of the type. A list is read in each row.
    func rows(
        of type: StoredType, by field: StoredType.Field, to names: some Collection<String>, inZone zone: Int64? = nil
    ) throws -> [Referrer] {
        let column = "\"\(type.table)\".\"\(field.column)\""
        let named = "SELECT value FROM json_each(?1)"
        let condition =
            field.type.isList
            ? """
            EXISTS (SELECT 1 FROM \(StoredText.elementsSQL(of: column)) AS element
                WHERE element.value IN (SELECT value FROM named))
            """
            : "\(column) IN (SELECT value FROM named)"
        let sql = """
            WITH named AS MATERIALIZED (\(named))
            SELECT _id, _key, _zone, \(column) FROM "\(type.table)"
            WHERE \(condition) AND (?2 IS NULL OR _zone = ?2) ORDER BY _id
            """
        let statement = try db.cachedStatement(sql: sql)
        var found: [Referrer] = []
        let all = Array(Set(names.lazy.flatMap(RecordName.spellings)))
        for start in stride(from: 0, to: all.count, by: Self.namesPerQuery) {
            let part = Array(all[start..<min(start + Self.namesPerQuery, all.count)])
            let list = String(decoding: try JSONEncoder().encode(part), as: UTF8.self)
            let rows = try Row.fetchCursor(statement, arguments: [list, zone])
            while let row = try rows.next() {
                guard let key = RecordKey.fromDatabaseValue(row[1]),
                    let value = FieldValue(row[3] as DatabaseValue, type: field.type)
                else { continue }
                found.append(
                    Referrer(row: try row.decode(atIndex: 0), name: key.name, zone: try row.decode(atIndex: 2), value: value))
            }
        }
        return found
    }

    private static let namesPerQuery = 5000
}

extension RecordName {
    /// The name under which two names of one record are equal: a UUID in lower case, another name in the normal form C of Unicode.
    static func canonical(_ name: String) -> String { UUID(uuidString: name) == nil ? name.composed : name.lowercased() }

    /// The ways in which a reference may spell a name.
    static func spellings(_ name: String) -> [String] {
        UUID(uuidString: name) == nil ? [name, name.composed] : [name, name.lowercased(), name.uppercased()]
    }
}
