import GRDB
public import TidemarkModel
public import TidemarkSQLite

extension RecordStore {
    /// Changes the schema in one transaction. Values that change are edits of that transaction: history has them, and they are sent.
    ///
    /// No synchronisation may use the store meanwhile.
    ///
    /// A change whose type or field is not there is done: a program can make the same changes whenever it starts.
    ///
    /// - Parameters:
    ///   - changes: The changes, one after the other.
    ///   - files: What the paths of files have become, for fields that get the type asset.
    ///   - cloudTypes: The types that fields have in the cloud, by record type and field, as far as that is known.
    ///   - cloudValues: The values that deferred records have of fields which have another type here. They stay where a field gets their type,
    ///     unless an edit here is later that was not sent.
    ///   - isDryRun: Whether the outcome is only found out, and nothing is written.
    /// - Returns: What was done. If the plan has problems, nothing was done.
    /// - Throws: ``StoreError`` `schema` for a name that is taken, in production for anything but
    ///   additions, and where the cloud has what can't change there; `invalid` in a shared store.
    /// - Complexity: O(n) in the records of the types that change; the values of a field that changes are held in memory.
    package func changeSchema(
        _ changes: [SchemaChange], files: ConvertedFiles = ConvertedFiles(), cloudTypes: [String: [String: FieldType]] = [:],
        cloudValues: [CloudFieldValue] = [], isDryRun: Bool = false, author: String
    ) throws -> SchemaChangePlan {
        guard scope == .private else {
            throw StoreError(.invalid, "the record types of shared records are those of their owners, and change as they come")
        }
        return try transactOrRefuse("change the schema", author: TransactionAuthor(author, origin: .save)) { transaction in
            try Outbox(transaction.db).ingestHistory()
            try connection.endLoads()
            var plan = SchemaChangePlan()
            for change in changes {
                try transaction.apply(change, files: files, cloudTypes: cloudTypes, cloudValues: cloudValues, plan: &plan)
                // What follows would meet a store that is not changed.
                if plan.problemCount > 0 { break }
            }
            if isDryRun || plan.problemCount > 0 || plan.isDone { transaction.isAbandoned = true }
            return plan
        }
    }

    /// The different values of a field.
    ///
    /// - Returns: Nothing where there is no such field.
    package func values(of field: String, type typeName: String) throws(StoreError) -> [FieldValue] {
        try connection.read("read the field \(field)") { db in
            try connection.refreshSchema(db)
            guard let type = connection.types.first(where: { $0.name == typeName }),
                let field = type.fields.first(where: { $0.name == field })
            else { return [] }
            let sql = "SELECT DISTINCT \"\(field.column)\" FROM \"\(type.table)\" WHERE \"\(field.column)\" IS NOT NULL"
            return try DatabaseValue.fetchAll(db, sql: sql).compactMap { FieldValue($0, type: field.type) }
        }
    }
}

extension StoreReader {
    /// The record types of the store, as a schema file has them: with their unique keys, and the types that references are to.
    public func schemas() throws(StoreError) -> [RecordTypeSchema] {
        try read("read the schema") { db in
            try StoredType.fetchAll(db).map { type in
                var schema = type.schema
                for relationship in type.relationships { schema.references[relationship.field.name] = relationship.target }
                if !type.indexes.isEmpty { schema.indexes = type.indexes.map(\.index) }
                return schema
            }
        }
    }
}
