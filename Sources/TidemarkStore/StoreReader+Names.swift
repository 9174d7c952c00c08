import GRDB
import TidemarkModel

extension StoreReader {
    /// The record of a name, of whatever type, with the type's schema; `nil` when there is none.
    ///
    /// - Complexity: A look-up for each type.
    public func record(named name: String) throws(StoreError) -> (RecordTypeSchema, StoredRecord)? {
        try read("look up a record") { db in
            for type in try StoredType.fetchAll(db) {
                let columns = ["_id", "_key", "_version"] + type.fields.map { "\"\($0.column)\"" }
                let sql = "SELECT \(columns.joined(separator: ", ")) FROM \"\(type.table)\" WHERE _key = ? ORDER BY _zone LIMIT 1"
                if let row = try Row.fetchOne(db, sql: sql, arguments: [RecordKey(name: name)]) {
                    return (type.schema, try StoredRecord(row, type: type))
                }
            }
            return nil
        }
    }
}
