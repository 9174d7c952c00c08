import GRDB
package import TidemarkModel
package import TidemarkSQLite

extension StoreTransaction {
    /// Makes the indexes that a program or a schema file declares for a type, and drops those that it no longer declares. An index that
    /// another origin has declared stays as it is.
    ///
    /// Indexes are no part of the schema that a cloud knows, so this is the same in every environment.
    ///
    /// - Throws: ``StoreError`` `schema` for fields that an index can't have.
    func declareIndexes(_ schema: RecordTypeSchema, origin: StoredIndex.Origin) throws {
        guard let declared = schema.indexes, let stored = type(named: schema.name) else { return }
        guard !declared.isEmpty || !stored.indexes.isEmpty else { return }
        let names = Set(declared.map(\.name))
        let fields = Set(stored.fields.map(\.name))
        var isChanged = false
        for known in stored.indexes where known.origin == origin && !names.contains(known.index.name) {
            try stored.dropIndex(db, known)
            isChanged = true
        }
        for index in declared {
            // A property gets a field with its first value, and the index with it.
            if origin == .program, !fields.isSuperset(of: index.fields) { continue }
            if let known = stored.indexes.first(where: { $0.index.name == index.name }),
                known.index == index || known.origin != origin
            {
                continue
            }
            try stored.addIndex(db, StoredIndex(index, origin: origin))
            isChanged = true
        }
        guard isChanged else { return }
        try connection.refreshSchema(db)
        try type(named: schema.name)?.buildIndexes(db)
    }
}

extension StoreTransaction {
    /// Makes the indexes that the program has declared for a type, as soon as the type has their fields. It has none of those that it can't
    /// have, such as one of a field that came as a list: records must not wait for them, and a save tells what is wrong.
    func declareProgramIndexes(of type: String) throws {
        guard let indexes = connection.programIndexes[type], let stored = self.type(named: type) else { return }
        var schema = RecordTypeSchema(name: type)
        schema.indexes = try indexes.filter { index in
            guard Set(stored.fields.map(\.name)).isSuperset(of: index.fields) else { return true }
            do {
                try stored.check(index)
                return true
            } catch let error as StoreError where error.code == .schema {
                return false
            }
        }
        try declareIndexes(schema, origin: .program)
    }
}

extension RecordStore {
    /// Builds the indexes that a program declares, and drops those that it no longer declares. Types and fields that the store does not have
    /// yet get theirs when they come, whoever brings them.
    ///
    /// - Parameter indexes: All indexes of each type.
    /// - Throws: ``StoreError`` `schema` for what is no language.
    /// - Complexity: O(n log n) in the records of the types whose indexes change; otherwise a look at the schema.
    package func declareIndexes(_ indexes: [String: [FieldIndex]]) throws(StoreError) {
        for index in indexes.values.joined() { if let language = index.language { try TextIndex.checkLanguage(language) } }
        connection.programIndexes.merge(indexes) { $1 }
        let changed = try connection.read("read the schema") { db in
            try connection.refreshSchema(db)
            return connection.types.filter { type in indexes[type.name].map { !type.hasIndexes($0) } ?? false }.map(\.name)
        }
        guard !changed.isEmpty else { return }
        try transact("declare indexes", author: TransactionAuthor("", origin: .save)) { transaction in
            for type in changed { try transaction.declareProgramIndexes(of: type) }
        }
    }
}

extension StoredType {
    /// Whether the type has all indexes of a program that its fields allow, and no others of the program.
    fileprivate func hasIndexes(_ declared: [FieldIndex]) -> Bool {
        let fields = Set(fields.map(\.name))
        let possible = declared.filter { fields.isSuperset(of: $0.fields) }
        return indexes.allSatisfy { $0.origin != .program || declared.contains($0.index) }
            && possible.allSatisfy { index in
                indexes.contains { $0.index == index || $0.index.name == index.name && $0.origin != .program }
            }
    }
}

extension StoreTransaction {
    /// Drops the declared indexes of a type and those of its references, before its table, or a column of it, gets another name.
    ///
    /// - Parameter field: The field whose indexes are dropped; `nil` for all fields.
    /// - Returns: The declared indexes.
    func takeIndexes(of type: StoredType, naming field: String? = nil) throws -> [StoredIndex] {
        let declared = type.indexes.filter { index in field.map(index.index.fields.contains) ?? true }
        for index in declared { try type.dropIndex(db, index) }
        for reference in type.referenceIndexes(of: field) { try db.execute(sql: "DROP INDEX IF EXISTS \"\(reference)\"") }
        // No trigger of the connection may name what changes.
        if !declared.isEmpty { try refreshChangedSchema() }
        return declared
    }

    /// Declares indexes again, and builds them with those of the references.
    ///
    /// - Parameter rename: Returns the present name of a field.
    func putBack(_ indexes: [StoredIndex], of typeName: String, _ rename: (String) -> String = { $0 }) throws {
        for stored in indexes {
            let index = FieldIndex(stored.index.kind, stored.index.fields.map(rename), language: stored.index.language)
            try knownType(named: typeName).addIndex(db, StoredIndex(index, origin: stored.origin))
            try refreshChangedSchema()
        }
        try knownType(named: typeName).buildIndexes(db)
    }
}

extension RecordStore {
    /// Declares an index of a type, builds it, and keeps it until it is dropped by ``dropIndex(named:of:)``.
    ///
    /// - Throws: ``StoreError`` `schema` when the store has no such type, or the type has no such fields.
    /// - Complexity: O(n log n) in the records of the type.
    package func addIndex(_ index: FieldIndex, to type: String) throws(StoreError) {
        try connection.locked("add an index to \(type)") { db in
            try connection.refreshSchema(db)
            try knownType(type).addIndex(db, StoredIndex(index, origin: .command))
            try connection.refreshSchema(db)
            try knownType(type).buildIndexes(db)
            return ((), .commit)
        }
    }

    /// Drops an index of a type.
    ///
    /// - Parameters:
    ///   - name: The name of the index, or its fields separated by points.
    ///   - type: The record type.
    /// - Returns: The index, and who had declared it.
    /// - Throws: ``StoreError`` `schema` when the store has no such type; `notFound` when the type has no such index.
    @discardableResult
    package func dropIndex(named name: String, of type: String) throws(StoreError) -> StoredIndex {
        try connection.locked("drop an index of \(type)") { db in
            try connection.refreshSchema(db)
            let stored = try knownType(type)
            guard let index = stored.indexes.first(where: { $0.index.name == name }) else {
                let known = stored.indexes.map(\.index.name).joined(separator: ", ")
                throw StoreError(
                    .notFound,
                    "\(type) has no index '\(name.prefix(100))'; " + (known.isEmpty ? "it has none" : "it has \(known)"))
            }
            try stored.dropIndex(db, index)
            try connection.refreshSchema(db)
            return (index, .commit)
        }
    }

    private func knownType(_ name: String) throws -> StoredType {
        guard let type = connection.types.first(where: { $0.name == name }) else {
            let known = connection.types.map(\.name).joined(separator: ", ")
            throw StoreError(
                .schema, "the store has no record type '\(name)'" + (known.isEmpty ? "; it has none yet" : "; it has \(known)"))
        }
        return type
    }
}

extension StoreReader {
    /// The declared indexes of each record type.
    package func indexes() throws(StoreError) -> [(type: String, indexes: [StoredIndex])] {
        try read("read the indexes") { db in try StoredType.fetchAll(db).map { ($0.name, $0.indexes) } }
    }
}
