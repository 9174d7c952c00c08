import Foundation
import GRDB
package import TidemarkModel
import TidemarkSQLite

/// What texts of a field have become that is to hold assets.
package struct ConvertedFiles: Sendable {
    package var files: [String: FieldConversion.File] = [:]
    /// The contents of these files, durable already.
    package var blobs: [BlobStore.Blob] = []

    package init() {}
}

/// A value that the cloud has of a field which has another type here: a deferred record has it.
package struct CloudFieldValue: Hashable, Sendable {
    /// The name of the record type.
    package let type: String
    /// The name of the field.
    package let field: String
    /// The name of the record.
    package let record: String
    /// The number in the store of the record's zone.
    package let zone: Int64
    /// The type of the value.
    package let fieldType: FieldType
    /// When the field was edited; `nil` where that is not known.
    package let edited: EditTime?

    package init(type: String, field: String, record: String, zone: Int64, fieldType: FieldType, edited: EditTime?) {
        (self.type, self.field, self.record) = (type, field, record)
        (self.zone, self.fieldType, self.edited) = (zone, fieldType, edited)
    }
}

extension StoreTransaction {
    /// Makes a change of the schema, unless values stand in its way: these are noted in the plan, and the transaction is to be abandoned.
    ///
    /// - Throws: ``StoreError`` `schema` or `invalid` for a change that is not possible, with what helps.
    func apply(
        _ change: SchemaChange, files: ConvertedFiles, cloudTypes: [String: [String: FieldType]], cloudValues: [CloudFieldValue],
        plan: inout SchemaChangePlan
    ) throws {
        let step: SchemaChangePlan.Step
        switch change {
        case .add(let schema): step = try add(schema, change)
        case .renameType(let old, let new): step = try renameType(old, to: new, change)
        case .dropType(let name): step = try dropType(name, change)
        case .renameField(let old, let typeName, let new): step = try renameField(old, of: typeName, to: new, change, &plan)
        case .dropField(let field, let typeName): step = try dropField(field, of: typeName, change, &plan)
        case .dropUniqueKey(let key, let typeName): step = try dropUniqueKey(key, of: typeName, change)
        case .retypeField(let field, let typeName, let new):
            step = try retypeField(
                field, of: typeName, to: new, files, cloudType: cloudTypes[typeName]?[field], cloudValues: cloudValues, change,
                &plan)
        }
        // The transaction is rolled back.
        guard change.isAddition || step.isDone || connection.container.description.environment == .development else {
            throw StoreError(
                .schema,
                "in production the schema is fixed: '\(change)' is not possible. Add a field, have it deployed, and read the old one as "
                    + "its former name")
        }
        plan.steps.append(step)
    }

    private func add(_ schema: RecordTypeSchema, _ change: SchemaChange) throws -> SchemaChangePlan.Step {
        if let known = type(named: schema.name),
            schema.fields.allSatisfy({ known.schema.field(named: $0.name)?.typeName == $0.typeName }),
            schema.uniqueKeys.allSatisfy(known.uniqueKeys.contains),
            schema.relationships.allSatisfy({ name, wanted in
                known.relationships.first { $0.field.name == name }?.schema == wanted
            }),
            schema.nameField == nil || schema.nameField == known.nameField, known.hasIndexes(schema.indexes)
        {
            return .init(change, isDone: true)
        }
        if let known = type(named: schema.name), let nameField = schema.nameField, let there = known.nameField, there != nameField
        {
            throw StoreError(
                .schema, "\(schema.name) has the name field '\(there)'. To give it the name '\(nameField)', rename it")
        }
        try declare(schema, environment: .development, indexOrigin: .schema)
        return .init(change)
    }

    // Types

    private func renameType(_ old: String, to new: String, _ change: SchemaChange) throws -> SchemaChangePlan.Step {
        guard let known = type(named: old), old != new else { return .init(change, isDone: true) }
        try StoredType.checkIdentifier(new, what: "a record type")
        if let other = connection.types.first(where: { $0.id != known.id && $0.name.lowercased() == new.lowercased() }) {
            throw StoreError(.schema, "there is a record type '\(other.name)' already; choose another name")
        }
        try checkIsNotInCloud(known, "A record keeps its type there: make a type '\(new)', and save the records as that")
        let count = try Int.fetchOne(db, sql: "SELECT count(*) FROM \"\(known.table)\"") ?? 0
        let taken = try Set(
            String.fetchAll(db, sql: "SELECT lower(table_name) FROM tide_types WHERE id <> ?", arguments: [known.id]))
        let table = StoredType.freeName(new) { taken.contains($0.lowercased()) }
        try db.execute(sql: "DROP VIEW IF EXISTS \"\(known.viewName)\"")
        let declared = try takeIndexes(of: known)
        let indexes = try known.indexes(db, naming: nil)
        for index in indexes { try db.execute(sql: "DROP INDEX \"\(index.name)\"") }
        // In two steps: a name that differs by the case of letters only counts as taken.
        try db.execute(sql: "ALTER TABLE \"\(known.table)\" RENAME TO \"tide_renamed\"")
        try db.execute(sql: "ALTER TABLE \"tide_renamed\" RENAME TO \"\(table)\"")
        try db.execute(sql: "UPDATE tide_types SET name = ?, table_name = ? WHERE id = ?", arguments: [new, table, known.id])
        try db.execute(sql: "UPDATE tide_relationships SET target = ? WHERE target = ?", arguments: [new, old])
        try db.execute(sql: "UPDATE tide_conflicts SET type = ? WHERE type = ?", arguments: [new, old])
        for index in indexes { try db.execute(sql: index.definition(of: known.table, as: table)) }
        try StoredType.createView(db, table: table, nameField: known.nameField)
        try refreshChangedSchema()
        try putBack(declared, of: new)
        return .init(change, records: count)
    }

    private func dropType(_ name: String, _ change: SchemaChange) throws -> SchemaChangePlan.Step {
        guard let known = type(named: name) else { return .init(change, isDone: true) }
        try checkIsNotInCloud(
            known,
            "Delete them there first: `tidemark records delete CONTAINER --type \(name) --where TRUE`, then `tidemark sync CONTAINER`"
        )
        let referring =
            "SELECT y.name FROM tide_relationships r JOIN tide_types y ON y.id = r.type_id WHERE r.target = ? AND y.id <> ?"
        if let other = try String.fetchOne(db, sql: referring, arguments: [name, known.id]) {
            throw StoreError(.schema, "a relationship of \(other) is to \(name); remove that first")
        }
        let count = try Int.fetchOne(db, sql: "SELECT count(*) FROM \"\(known.table)\"") ?? 0
        _ = try takeIndexes(of: known)
        try db.execute(sql: "DROP VIEW IF EXISTS \"\(known.viewName)\"")
        try db.execute(sql: "DROP TABLE \"\(known.table)\"")
        for table in ["fields", "unique_keys", "relationships", "indexes", "changes", "outbox", "sync_issues", "seen"] {
            try db.execute(sql: "DELETE FROM tide_\(table) WHERE type_id = ?", arguments: [known.id])
        }
        try FormerFields.remove(type: known.id, db)
        try db.execute(sql: "DELETE FROM tide_types WHERE id = ?", arguments: [known.id])
        try refreshChangedSchema()
        return .init(change, records: count, lost: count)
    }

    private func dropUniqueKey(_ key: [String], of typeName: String, _ change: SchemaChange) throws -> SchemaChangePlan.Step {
        guard let known = type(named: typeName), let first = known.uniqueKeys.firstIndex(of: key) else {
            return .init(change, isDone: true)
        }
        // Those behind it get other numbers, and so other indexes.
        for ordinal in first..<known.uniqueKeys.count {
            try db.execute(sql: "DROP INDEX IF EXISTS \"tide_unique_\(known.table)_\(ordinal)\"")
        }
        try db.execute(sql: "DELETE FROM tide_unique_keys WHERE type_id = ? AND ordinal >= ?", arguments: [known.id, first])
        try refreshChangedSchema()
        for key in known.uniqueKeys.dropFirst(first + 1) {
            try knownType(named: typeName).addUniqueKey(db, key)
            try connection.refreshSchema(db)
        }
        return .init(change)
    }

    /// Makes sure that no cloud has records of a type, or is to be told of their deletion.
    func checkIsNotInCloud(_ type: StoredType, _ remedy: String) throws {
        let deletions = "SELECT count(*) FROM tide_changes c WHERE c.type_id = ? AND \(Outbox.isWaitingDeletion)"
        let count =
            try (Int.fetchOne(db, sql: "SELECT count(*) FROM \"\(type.table)\" WHERE _tag IS NOT NULL") ?? 0)
            + (Int.fetchOne(db, sql: deletions, arguments: [type.id]) ?? 0)
        guard try count > 0 || hasRequests(of: type) else { return }
        let records = count == 1 ? "1 record" : "\(count) records"
        throw StoreError(.schema, "the cloud has \(count == 0 ? "records" : records) of \(type.name). \(remedy)")
    }

    private func hasRequests(of type: StoredType) throws -> Bool {
        let texts = try String.fetchAll(db, sql: "SELECT items FROM tide_requests")
        return texts.contains { StoredRequest.items(of: $0).contains { $0.shape.type == type.id } }
    }

    /// Reads the schema again after a change that the core's writers do not know.
    func refreshChangedSchema() throws {
        try StoredType.raiseGeneration(db)
        try connection.refreshSchema(db)
        connection.forgetWriters()
    }
}

extension StoredType {
    /// An index of a type's table.
    struct Index {
        let name: String
        let sql: String

        /// The definition for the table of another name, which the names of indexes end with.
        func definition(of table: String, as new: String) -> String {
            let renamed = sql.replacingOccurrences(of: "ON \"\(table)\"", with: "ON \"\(new)\"")
            for prefix in ["tide_name_", "tide_unique_"] where name.hasPrefix("\(prefix)\(table)") {
                let rest = name.dropFirst(prefix.count + table.count)
                return renamed.replacingOccurrences(of: "\"\(name)\"", with: "\"\(prefix)\(new)\(rest)\"")
            }
            return renamed
        }

        /// The definition with another column in a column's place.
        func definition(naming new: String, insteadOf old: String) -> String {
            guard let open = sql.firstIndex(of: "(") else { return sql }
            return sql[..<open] + sql[open...].replacingOccurrences(of: "\"\(old)\"", with: "\"\(new)\"")
        }
    }

    /// The indexes of the table.
    ///
    /// - Parameter column: One that they name; `nil` for all indexes.
    func indexes(_ db: Database, naming column: String?) throws -> [Index] {
        let sql = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL ORDER BY name"
        let rows = try Row.fetchAll(db, sql: sql, arguments: [table])
        return try rows.map { row in try Index(name: row.decode(atIndex: 0), sql: row.decode(atIndex: 1)) }.filter { index in
            guard let column, let open = index.sql.firstIndex(of: "(") else { return column == nil }
            return index.sql[open...].contains("\"\(column)\"")
        }
    }
}

extension StoredType {
    /// Whether the type has the indexes that a schema file declares, and no other that one has declared before; `nil` declares none.
    fileprivate func hasIndexes(_ declared: [FieldIndex]?) -> Bool {
        guard let declared else { return true }
        return declared.allSatisfy { index in indexes.contains { $0.index == index } }
            && indexes.allSatisfy { $0.origin != .schema || declared.contains($0.index) }
    }
}
