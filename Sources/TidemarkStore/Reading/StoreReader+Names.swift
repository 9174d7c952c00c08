import GRDB
public import TidemarkModel
public import TidemarkSQLite

extension StoreReader {
    /// The record of a name, of whatever type, with the type's schema; `nil` when there is none. It is compared with its digest.
    ///
    /// - Complexity: A look-up for each type.
    public func record(named name: String) throws(StoreError) -> (RecordTypeSchema, StoredRecord)? {
        let keys = RecordKey.all(name: name)
        return try read("look up a record") { db in
            for type in try StoredType.fetchAll(db) {
                let columns = ["_id", "_key", "_version"] + type.fields.map { "\"\($0.column)\"" } + ["_digest"]
                let sql =
                    "SELECT \(columns.joined(separator: ", ")) FROM \"\(type.table)\" WHERE \(RecordKey.condition(in: type.table))"
                let statement = try db.cachedStatement(sql: sql)
                let found = try statement.withRow([keys[0], keys[keys.count - 1]]) { row in
                    let isIntact = type.digest.isIntact(statement, key: 1, digest: type.fields.count + 3, fields: 3)
                    return try StoredRecord(row, type: type, isIntact: isIntact)
                }
                if let found { return (type.schema, found) }
            }
            return nil
        }
    }
}
