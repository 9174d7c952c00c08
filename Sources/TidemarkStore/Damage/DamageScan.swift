import CTideCore
package import GRDB
package import TidemarkModel
import TidemarkSQLite

/// Finds the rows of a store that do not match their digests.
package enum DamageScan {
    /// Returns the damaged rows of a type, and the number of its rows.
    ///
    /// - Complexity: Reads the whole table.
    package static func rows(_ db: Database, type: StoredType, seed: UInt64) throws -> (damaged: [Int64], count: Int) {
        var damaged: [Int64] = []
        var rows: UInt64 = 0
        let handle = try db.handle
        try withUnsafeMutablePointer(to: &damaged) { list in
            try type.withTable(siblings: []) { table in
                try checked {
                    tide_table_verify(
                        handle, seed, &table, &rows,
                        { context, row in context!.assumingMemoryBound(to: [Int64].self).pointee.append(row) }, list, &$0)
                }
            }
        }
        return (damaged, Int(rows))
    }

    /// All damaged records of a store.
    package static func records(_ db: Database, scope: StoreScope) throws -> [DamagedRecord] {
        let seed = try StoreIdentity.digestSeed(db)
        return try StoredType.fetchAll(db).flatMap { type in
            try rows(db, type: type, seed: seed).damaged.compactMap { row in
                let statement = try db.cachedStatement(
                    sql: "SELECT _key, _pending IS NOT NULL FROM \"\(type.table)\" WHERE _id = ?")
                guard let found = try Row.fetchOne(statement, arguments: [row]) else { return nil }
                let name = RecordKey.fromDatabaseValue(found[0])?.name ?? "in row \(row)"
                return DamagedRecord(
                    record: RecordName(type: type.name, name: name), scope: scope, isPending: try found.decode(atIndex: 1))
            }
        }
    }
}

/// The row of a damaged record, with its state in the cloud.
package struct DamagedRow: Hashable, Sendable {
    let typeID: Int64
    let row: Int64
    package let type: String
    package let name: String
    package let zone: Int64
    /// The tag of the cloud's version; `nil` where the cloud does not have the record.
    package let tag: String?
    package let isPending: Bool

    package var record: RecordName { RecordName(type: type, name: name) }
}
