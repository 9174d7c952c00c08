import GRDB
import TidemarkModel

extension RecordStore {
    /// Deletes the records that a query matches, without loading them, in one transaction; history has their values. As
    /// `NSBatchDeleteRequest`.
    ///
    /// - Returns: The names of the records, in the order of the query.
    /// - Throws: ``StoreError`` `sql` when the condition is no SQL expression over the type's fields, `schema` for an unknown type or
    ///   field.
    /// - Complexity: O(n) in the records deleted; their names are held in memory.
    package func delete(matching query: RecordQuery, author: TransactionAuthor) throws(StoreError) -> [String] {
        try transact("delete records", author: author) { transaction in
            let (type, rows, names) = try transaction.match(query)
            try transaction.delete(rows.sorted(), type: type)
            return names
        }
    }

    /// Gives the records that a query matches these values, without loading them, in one transaction. As `NSBatchUpdateRequest`.
    ///
    /// - Parameter values: `nil` for no value.
    /// - Returns: The names of the records that it matched, in the order of the query; those that have the values already are among
    ///   them.
    package func update(
        matching query: RecordQuery, set values: [String: FieldValue?], author: TransactionAuthor
    ) throws(StoreError) -> [String] {
        try transact("update records", author: author) { transaction in
            let (type, _, names) = try transaction.match(query)
            let fields = try values.map { name, value in
                guard let field = type.schema.field(named: name) else {
                    throw StoreError(
                        .schema, "\(type.name) has no field '\(name)'; it has \(type.fields.map(\.name).joined(separator: ", "))")
                }
                return (field: field, value: value)
            }
            for start in stride(from: 0, to: names.count, by: Self.batchSize) {
                let batch = try RecordBatch(rowLimit: .max, byteLimit: .max)
                for name in names[start..<min(start + Self.batchSize, names.count)] { try batch.add(name: name, values: fields) }
                batch.digest(seed: identity.digestSeed)
                try transaction.write(batch, type: type)
                if let refused = batch.rejections.first { throw StoreError(.invalid, "\(type.name): \(refused.message)") }
            }
            return names
        }
    }

    private static let batchSize = 10_000
}

extension StoreTransaction {
    fileprivate func match(_ query: RecordQuery) throws -> (StoredType, rows: [Int64], names: [String]) {
        let type = try knownType(named: query.type)
        var rows: [Int64] = []
        var names: [String] = []
        try query.forEachRow(db, type: type, columns: ["_id", "_key"]) { row in
            guard let key = RecordKey.fromDatabaseValue(row[1]) else {
                throw StoreError(
                    .corrupt, "the row \(row[0] as DatabaseValue) of the table \(type.table) has no key that can be one")
            }
            rows.append(row[0])
            names.append(key.name)
        }
        return (type, rows, names)
    }
}
