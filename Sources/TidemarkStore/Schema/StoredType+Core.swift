import CTideCore
import GRDB
import TidemarkModel
import TidemarkSQLite

extension StoredType {
    /// Builds the indexes of the table that are missing.
    func buildIndexes(_ db: Database) throws {
        let handle = try db.handle
        try withTable(siblings: []) { table in try checked { tide_indexes_build(handle, &table, &$0) } }
    }

    /// Builds the indexes of the table again from its rows, those of the names only where asked for.
    func rebuildIndexes(_ db: Database, withNames: Bool) throws {
        let (handle, table, names) = (try db.handle, table, indexName)
        try checked { tide_indexes_rebuild(handle, table, withNames ? nil : names, &$0) }
    }

    /// Lends the core a description of the table for the length of a call.
    func withTable(siblings: [String], _ body: (inout tide_table) throws -> Void) throws {
        var strings: [UnsafeMutablePointer<CChar>] = []
        defer { for string in strings { string.deallocate() } }
        func lend(_ text: String) -> UnsafePointer<CChar> {
            let utf8 = text.utf8CString
            let copy = UnsafeMutablePointer<CChar>.allocate(capacity: utf8.count)
            utf8.withUnsafeBufferPointer { copy.initialize(from: $0.baseAddress!, count: $0.count) }
            strings.append(copy)
            return UnsafePointer(copy)
        }
        let fields = self.fields.map { tide_field(name: lend($0.name), column: lend($0.column), type: $0.type.code) }
        let indexes = valueIndexes.map { tide_index(name: lend($0.name), columns: lend($0.columns)) }
        let siblingNames = siblings.map(lend)
        try fields.withUnsafeBufferPointer { fields in
            try indexes.withUnsafeBufferPointer { indexes in
                try siblingNames.withUnsafeBufferPointer { siblings in
                    var table = tide_table(
                        name: lend(self.table), index_name: lend(indexName), type_id: id, fields: fields.baseAddress,
                        field_count: UInt32(fields.count), indexes: indexes.baseAddress, index_count: UInt32(indexes.count),
                        siblings: siblings.baseAddress, sibling_count: UInt32(siblings.count))
                    try body(&table)
                }
            }
        }
    }
}
