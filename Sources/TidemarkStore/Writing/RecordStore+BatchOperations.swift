import Foundation
import GRDB
package import TidemarkModel
import TidemarkSQLite

extension RecordStore {
    /// Deletes the records that a query matches, without loading them, in one transaction; history has their values. As
    /// `NSBatchDeleteRequest`.
    ///
    /// - Parameters:
    ///   - query: The query.
    ///   - author: The author of the transaction.
    ///   - isDryRun: Whether only to check that they can be deleted.
    /// - Returns: The names of the records, in the order of the query.
    /// - Throws: `PermissionDenied` for one of them that is somebody else's; ``StoreError`` `sql` when the condition is no SQL expression
    ///   over the type's fields, `schema` for an unknown type or field.
    /// - Complexity: O(n) in the records deleted; their names are held in memory.
    package func delete(
        matching query: RecordQuery, author: TransactionAuthor, isDryRun: Bool = false
    ) throws -> [String] {
        try deletion(matching: query, author: author, isDryRun: isDryRun).names
    }

    /// As ``delete(matching:author:isDryRun:)``; also returns the records that were deleted because of delete rules.
    package func deletion(
        matching query: RecordQuery, author: TransactionAuthor, isDryRun: Bool = false
    ) throws -> (names: [String], cascaded: [RecordName]) {
        try transactOrRefuse("delete records", author: author) { transaction in
            let (type, rows) = try transaction.match(query)
            let ids = rows.map(\.id).sorted()
            try transaction.permissions.get()?.check(.delete, ids, type: type, transaction.db)
            try transaction.delete(ids, type: type)
            let cascaded = try transaction.enforceRelationships()
            transaction.isAbandoned = isDryRun
            return (rows.map(\.name), cascaded)
        }
    }

    /// Sets fields of the records that a query matches, in one transaction and without loading them, like `NSBatchUpdateRequest`.
    ///
    /// - Parameters:
    ///   - query: The query.
    ///   - values: The new values by field; `nil` removes the value.
    ///   - fields: Fields of `values` that the type gets if it does not have them.
    ///   - optional: Names of fields that the type may lack when they are cleared.
    ///   - author: The author of the transaction.
    ///   - isDryRun: Whether only to check that they can be updated.
    /// - Returns: The names of the records that it matched, in the order of the query; those that have the values already are among
    ///   them.
    package func update(
        matching query: RecordQuery, set values: [String: FieldValue?], introducing fields: [RecordTypeSchema.Field] = [],
        optional: Set<String> = [], author: TransactionAuthor, isDryRun: Bool = false
    ) throws -> [String] {
        try transactOrRefuse("update records", author: author) { transaction in
            if let known = transaction.type(named: query.type) {
                let missing = fields.filter { known.schema.field(named: $0.name) == nil }
                if !missing.isEmpty {
                    try transaction.declare(
                        RecordTypeSchema(name: query.type, fields: missing), environment: container.description.environment)
                }
            }
            let (type, rows) = try transaction.match(query)
            try transaction.permissions.get()?.check(.update, rows.map(\.id), type: type, transaction.db)
            let fields = try values.compactMap { name, value -> (field: RecordTypeSchema.Field, value: FieldValue?)? in
                guard let field = type.schema.field(named: name) else {
                    if value == nil || rows.isEmpty, optional.contains(name) { return nil }
                    throw StoreError(
                        .schema, "\(type.name) has no field '\(name)'; it has \(type.fields.map(\.name).joined(separator: ", "))")
                }
                return (field: field, value: try value.map { try type.fitting(name, $0) })
            }
            for (zone, rows) in Dictionary(grouping: rows, by: \.zone).sorted(by: { $0.key < $1.key }) {
                for start in stride(from: 0, to: rows.count, by: Self.batchSize) {
                    let batch = try RecordBatch(rowLimit: .max, byteLimit: .max)
                    for row in rows[start..<min(start + Self.batchSize, rows.count)] {
                        try batch.add(name: row.name, values: fields)
                    }
                    batch.digest(seed: identity.digestSeed)
                    try transaction.write(batch, type: type, zone: zone)
                    if let refused = batch.rejections.first {
                        // The lines of a batch are counted from 1.
                        let name = rows[start + Int(refused.line) - 1].name
                        if refused.isOfDamage { throw StoreError.damaged(RecordName(type: type.name, name: name)) }
                        throw StoreError(.invalid, "\(type.name): \(refused.message)")
                    }
                }
            }
            try transaction.enforceRelationships()
            transaction.isAbandoned = isDryRun
            return rows.map(\.name)
        }
    }

    private static let batchSize = 10_000
}

private struct MatchedRow {
    let id: Int64
    let name: String
    let zone: Int64
}

extension StoreTransaction {
    fileprivate func match(_ query: RecordQuery) throws -> (StoredType, rows: [MatchedRow]) {
        let type = try knownType(named: query.type)
        var rows: [MatchedRow] = []
        let path = connection.container.store(connection.scope).path
        try query.forEachRow(db, of: path, type: type, columns: ["_id", "_key", "_zone"]) { row, _ in
            guard let key = RecordKey.fromDatabaseValue(row[1]) else {
                throw StoreError(
                    .corrupt, "the row \(row[0] as DatabaseValue) of the table \(type.table) has no key that can be one")
            }
            rows.append(MatchedRow(id: try row.decode(atIndex: 0), name: key.name, zone: try row.decode(atIndex: 2)))
        }
        return (type, rows)
    }
}
