import CTideCore
package import GRDB
package import TidemarkModel
import TidemarkSQLite

/// A record type as a store has it: its schema and where that lies in SQL.
///
/// A class, because each record of a save has its type beside it.
package final class StoredType: Equatable, Sendable {
    package struct Field: Equatable {
        let ordinal: Int
        let name: String
        package let column: String
        package let type: FieldType
        let isBoolean: Bool

        var schema: RecordTypeSchema.Field { .init(name: name, type: type, isBoolean: isBoolean) }
    }

    package let id: Int64
    package let name: String
    /// A checked identifier, as are the columns.
    package let table: String
    let nameField: String?
    package let fields: [Field]
    /// Sets of fields of which no two records may agree.
    let uniqueKeys: [[String]]
    /// What its references mean, by the order of the fields.
    let relationships: [StoredRelationship]
    /// The indexes that are declared.
    package let indexes: [StoredIndex]
    /// Compares rows with their digests.
    let digest: RowDigest
    /// Fields that the type had before a change of the schema.
    let formerFields: FormerFields

    init(
        id: Int64, name: String, table: String, nameField: String?, fields: [Field], uniqueKeys: [[String]] = [],
        relationships: [StoredRelationship] = [], indexes: [StoredIndex] = [], digest: RowDigest,
        formerFields: FormerFields = FormerFields()
    ) {
        (self.id, self.name, self.table, self.nameField, self.fields) = (id, name, table, nameField, fields)
        (self.uniqueKeys, self.relationships, self.indexes) = (uniqueKeys, relationships, indexes)
        (self.digest, self.formerFields) = (digest, formerFields)
    }

    package static func == (one: StoredType, other: StoredType) -> Bool {
        one === other
            || one.id == other.id && one.name == other.name && one.table == other.table && one.nameField == other.nameField
                && one.fields == other.fields && one.uniqueKeys == other.uniqueKeys && one.relationships == other.relationships
                && one.indexes == other.indexes && one.digest == other.digest && one.formerFields == other.formerFields
    }

    var indexName: String { "tide_name_\(table)" }
    package var viewName: String { "_\(table)" }
    var hasReferences: Bool { fields.contains { $0.type.scalar == .reference } }
    var schema: RecordTypeSchema {
        var schema = RecordTypeSchema(
            name: name, nameField: nameField, fields: fields.map(\.schema), uniqueKeys: uniqueKeys)
        for it in relationships { schema.relationships[it.field.name] = it.schema }
        return schema
    }

    /// Whether exports can show the record names under that field: it is free, and could be a column.
    func canHaveNameField(_ name: String) -> Bool {
        nameField == nil && Self.isIdentifier(name) && !fields.contains { $0.name.lowercased() == name.lowercased() }
    }

    /// Makes sure that a condition in SQL means the fields that it names, and compares them with what they can be. A store that was made
    /// before the names of fields were compared without case may have two that SQL can't tell apart.
    ///
    /// - Parameter values: What stands for `?`, in their order.
    /// - Throws: ``StoreError`` `sql`.
    func check(condition: String, _ values: [DatabaseValue] = []) throws {
        if let collision = RecordTypeSchema(name: name, fields: schema.fields).nameCollision() {
            throw StoreError(.sql, "a condition in SQL can't be used: \(collision)")
        }
        try ConditionCheck(condition, of: self, values).run()
    }

    static func isIdentifier(_ name: String) -> Bool {
        let utf8 = Array(name.utf8CString.dropLast())
        return tide_identifier_is_valid(utf8, utf8.count)
    }

    /// - Throws: ``StoreError`` `corrupt` unless all names are identifiers, and everything that they name is there.
    package static func fetchAll(_ db: Database) throws -> [StoredType] {
        let fields = try Dictionary(
            grouping: Row.fetchAll(
                db, sql: "SELECT type_id, ordinal, name, column_name, type FROM tide_fields ORDER BY type_id, ordinal"),
            by: { row in try row.stored("type_id", of: "tide_fields") as Int64 })
        let seed = try StoreIdentity.digestSeed(db)
        let relationships = try StoredRelationship.fetchAll(db)
        let indexes = try StoredIndex.fetchAll(db)
        let former = try FormerFields.fetchAll(db)
        let types = try Row.fetchAll(db, sql: "SELECT id, name, table_name, name_field FROM tide_types ORDER BY id").map { row in
            let id: Int64 = try row.stored("id", of: "tide_types")
            let fields = try (fields[id] ?? []).map(Field.init)
            let nameField: String? = try row.stored("name_field", of: "tide_types")
            let type = StoredType(
                id: id, name: try row.stored("name", of: "tide_types"), table: try row.stored("table_name", of: "tide_types"),
                // Where both are there, the field is the one that has values.
                nameField: fields.contains { $0.name.lowercased() == nameField?.lowercased() } ? nil : nameField,
                fields: fields, uniqueKeys: try uniqueKeys(db, typeID: id),
                relationships: try StoredRelationship.read(relationships[id] ?? [], fields: fields), indexes: indexes[id] ?? [],
                digest: RowDigest(seed: seed, fields: fields), formerFields: former[id] ?? FormerFields())
            try type.check(db)
            return type
        }
        let (names, tables) = (Set(types.map(\.name)), Set(types.map { $0.table.lowercased() }))
        guard names.count == types.count, tables.count == types.count else {
            throw StoreError(.corrupt, "two record types have one name or one table in tide_types")
        }
        return types
    }

    private static func uniqueKeys(_ db: Database, typeID: Int64) throws -> [[String]] {
        let sql = "SELECT fields FROM tide_unique_keys WHERE type_id = ? ORDER BY ordinal"
        return try Row.fetchAll(db, sql: sql, arguments: [typeID]).map { row in
            let text: String = try row.stored("fields", of: "tide_unique_keys")
            return text.split(separator: " ").map(String.init)
        }
    }

    private func check(_ db: Database) throws {
        guard Self.isIdentifier(name), Self.isPlace(table, of: name), nameField.map(Self.isIdentifier) ?? true else {
            throw StoreError(.corrupt, "tide_types has a name that cannot be one: \(Self.shown(name, table, nameField ?? ""))")
        }
        guard fields.count <= Self.fieldLimit else {
            throw StoreError(
                .corrupt, "\(name) has \(fields.count) fields in tide_fields; at most \(Self.fieldLimit) are allowed")
        }
        for (index, field) in fields.enumerated() {
            guard Self.isIdentifier(field.name), Self.isPlace(field.column, of: field.name), field.ordinal == index else {
                throw StoreError(
                    .corrupt, "tide_fields has a field of \(name) that cannot be one: \(Self.shown(field.name, field.column))")
            }
        }
        let (names, places) = (Set(fields.map(\.name)), Set(fields.map { $0.column.lowercased() }))
        guard names.count == fields.count, places.count == fields.count else {
            throw StoreError(.corrupt, "two fields of \(name) have one name or one column in tide_fields")
        }
        if let unknown = uniqueKeys.joined().first(where: { !names.contains($0) }) {
            throw StoreError(.corrupt, "a unique key of \(name) has a field that there is not: \(Self.shown(unknown))")
        }
        try checkIndexes()
        guard let columns = try StoreFormat.columns(db, of: table)[table] else {
            throw StoreError(.corrupt, "the store lacks the table \(table) of the record type \(name)")
        }
        if let missing = (Self.bookkeeping + fields.map(\.column)).first(where: { !columns.contains($0) }) {
            throw StoreError(.corrupt, "the table \(table) of the record type \(name) lacks the column \(missing)")
        }
    }

    static let bookkeeping = ["_id", "_key", "_zone", "_version", "_tag", "_base", "_edited", "_pending", "_digest"]
    static let fieldLimit = Int(TIDE_BATCH_COLUMN_LIMIT)

    /// Whether a table or a column can be that of a name: it is the name itself, or has a number at its end.
    private static func isPlace(_ place: String, of name: String) -> Bool {
        guard place.utf8.starts(with: name.utf8) else { return false }
        let rest = place.utf8.dropFirst(name.utf8.count)
        return rest.isEmpty
            || rest.count > 1 && rest.first == UInt8(ascii: "_") && rest.dropFirst().allSatisfy { (0x30...0x39).contains($0) }
    }

    private static func shown(_ names: String...) -> String {
        names.map { "'\($0.prefix(100))'" }.joined(separator: ", ")
    }

    /// Makes the type's table, without the index on its names, and its view.
    static func create(_ db: Database, name: String, nameField: String?, fields: [RecordTypeSchema.Field]) throws {
        try checkIdentifier(name, what: "a record type")
        if let other = try String.fetchAll(db, sql: "SELECT name FROM tide_types").first(where: {
            NameCollision.collide($0, name)
        }) {
            throw StoreError(.schema, NameCollision(.recordType, name, other).description)
        }
        let taken = try Set(String.fetchAll(db, sql: "SELECT lower(table_name) FROM tide_types"))
        let table = freeName(name) { taken.contains($0.lowercased()) }
        try db.execute(
            sql: "INSERT INTO tide_types (name, table_name) VALUES (?, ?)", arguments: [name, table])
        let id = db.lastInsertedRowID
        let nameField = nameField.flatMap { name in
            isIdentifier(name) && !fields.contains { $0.name.lowercased() == name.lowercased() } ? name : nil
        }
        try db.execute(sql: "UPDATE tide_types SET name_field = ? WHERE id = ?", arguments: [nameField, id])
        let type = StoredType(
            id: id, name: name, table: table, nameField: nameField, fields: [], digest: RowDigest(seed: 0, fields: []))
        let columns = try type.noteFields(db, fields).map { ", \($0)" }.joined()
        try db.execute(
            sql: """
                CREATE TABLE "\(table)" (
                    _id INTEGER PRIMARY KEY, _key ANY NOT NULL, _zone INTEGER NOT NULL, _version INTEGER NOT NULL, _tag TEXT,
                    _base INTEGER, _edited TEXT, _pending ANY, _digest INTEGER NOT NULL\(columns)
                ) STRICT
                """)
        try createView(db, table: table, nameField: nameField)
        try raiseGeneration(db)
    }

    /// Adds columns for fields. Where one has the name of the name field, the type has no name field from then on: a name can't mean
    /// two columns.
    ///
    /// - Throws: ``StoreError`` `schema` when there would be more than ``RecordTypeSchema/fieldLimit`` fields.
    func addFields(_ db: Database, _ new: [RecordTypeSchema.Field]) throws {
        for column in try noteFields(db, new) { try db.execute(sql: "ALTER TABLE \"\(table)\" ADD COLUMN \(column)") }
        if let nameField, new.contains(where: { $0.name.lowercased() == nameField.lowercased() }) {
            try setNameField(db, to: nil)
        }
        try Self.raiseGeneration(db)
    }

    /// Registers fields, and returns the definitions of their columns.
    private func noteFields(_ db: Database, _ new: [RecordTypeSchema.Field]) throws -> [String] {
        guard new.isEmpty || fields.count + new.count <= RecordTypeSchema.fieldLimit else {
            throw StoreError(
                .schema,
                """
                the record type '\(name)' would have \(fields.count + new.count) fields; at most \(RecordTypeSchema.fieldLimit) can be \
                synchronised. Divide the fields among several types, or leave some out
                """)
        }
        if let collision = RecordTypeSchema(name: name, fields: new).nameCollision(with: schema.fields) {
            throw StoreError(.schema, collision.description)
        }
        var taken = Set(fields.map { $0.column.lowercased() })
        return try zip(fields.count..., new).map { ordinal, field in
            try Self.checkIdentifier(field.name, what: "a field")
            let column = Self.freeName(field.name) { taken.contains($0.lowercased()) }
            taken.insert(column.lowercased())
            try db.execute(
                sql: "INSERT INTO tide_fields (type_id, ordinal, name, column_name, type) VALUES (?, ?, ?, ?, ?)",
                arguments: [id, ordinal, field.name, column, field.code.rawValue])
            return "\"\(column)\" \(field.type.columnType)"
        }
    }

    /// Has records that agree in these fields become one from now on.
    ///
    /// - Throws: ``StoreError`` `schema` when the type lacks one of the fields.
    func addUniqueKey(_ db: Database, _ key: [String]) throws {
        let columns = try key.map { name in
            guard let field = fields.first(where: { $0.name == name }) else {
                throw StoreError(.schema, "\(self.name) has no field '\(name)' for a unique key")
            }
            return "\"\(field.column)\""
        }
        try db.execute(
            sql: "INSERT INTO tide_unique_keys (type_id, ordinal, fields) VALUES (?, ?, ?)",
            arguments: [id, uniqueKeys.count, key.joined(separator: " ")])
        try db.execute(
            sql: "CREATE INDEX \"tide_unique_\(table)_\(uniqueKeys.count)\" ON \"\(table)\" (\(columns.joined(separator: ", ")))")
        try Self.raiseGeneration(db)
    }

    /// Has people read an int64 as a Boolean from now on, if all its values are 0 or 1.
    func setBoolean(_ db: Database, _ field: Field) throws {
        let sql = "SELECT EXISTS (SELECT 1 FROM \"\(table)\" WHERE \"\(field.column)\" NOT IN (0, 1))"
        guard try Bool.fetchOne(db, sql: sql) == false else { return }
        try db.execute(
            sql: "UPDATE tide_fields SET type = ? WHERE type_id = ? AND ordinal = ?",
            arguments: [RecordTypeSchema.Field(name: field.name, type: .int64, isBoolean: true).code.rawValue, id, field.ordinal])
        try Self.raiseGeneration(db)
    }

    /// Names the field under which a type's names are known outside.
    func setNameField(_ db: Database, to nameField: String?) throws {
        try db.execute(sql: "UPDATE tide_types SET name_field = ? WHERE id = ?", arguments: [nameField, id])
        try db.execute(sql: "DROP VIEW IF EXISTS \"\(viewName)\"")
        try Self.createView(db, table: table, nameField: nameField)
        try Self.raiseGeneration(db)
    }

    /// Other connections read the schema anew when it has risen.
    static func raiseGeneration(_ db: Database) throws {
        try db.execute(sql: "UPDATE tide_meta SET value = value + 1 WHERE key = 'schema_generation'")
    }

    static func createView(_ db: Database, table: String, nameField: String?) throws {
        try db.execute(sql: viewDefinition(table: table, nameField: nameField))
    }

    private static func viewDefinition(table: String, nameField: String?) -> String {
        "CREATE VIEW \"_\(table)\" AS \(viewSQL(table: table, nameField: nameField))"
    }

    /// What SQLite's schema says of the view.
    package var viewDefinition: String { Self.viewDefinition(table: table, nameField: nameField) }

    /// The view shows what the table has, and record names as text.
    var viewSQL: String { Self.viewSQL(table: table, nameField: nameField) }

    private static func viewSQL(table: String, nameField: String?) -> String {
        let alias = nameField.map { ", \(RecordKey.nameSQL) AS \"\($0)\"" } ?? ""
        return "SELECT \(RecordKey.nameSQL) AS _name\(alias), * FROM \"\(table)\""
    }

    /// What a user's condition is about: the view, where the name field has the names as their source has them.
    var querySQL: String {
        guard let nameField else { return viewSQL }
        let prefix = "\(name):"
        let short = """
            CASE WHEN typeof(_key) = 'text' AND substr(_key, 1, \(prefix.utf8.count)) = '\(prefix)' \
            THEN substr(_key, \(prefix.utf8.count + 1)) ELSE \(RecordKey.nameSQL) END
            """
        return "SELECT \(RecordKey.nameSQL) AS _name, \(short) AS \"\(nameField)\", * FROM \"\(table)\""
    }

    static func freeName(_ name: String, isTaken: (String) -> Bool) -> String {
        guard isTaken(name) else { return name }
        var number = 2
        while isTaken("\(name)_\(number)") { number += 1 }
        return "\(name)_\(number)"
    }

    static func checkIdentifier(_ name: String, what: String) throws {
        guard isIdentifier(name) else {
            throw StoreError(
                .schema, "'\(name.prefix(100))' cannot name \(what): a letter, then letters, digits or '_', at most 255 bytes")
        }
    }
}

extension StoredType.Field {
    init(_ row: Row) throws {
        let table = "tide_fields"
        let code: UInt32 = try row.stored("type", of: table)
        name = try row.stored("name", of: table)
        guard let type = FieldType(code: code) else {
            throw StoreError(.corrupt, "the field '\(name.prefix(100))' has the unknown type \(code)")
        }
        self.type = type
        isBoolean = RecordTypeSchema.Field(name: name, code: code)?.isBoolean ?? false
        ordinal = try row.stored("ordinal", of: table)
        column = try row.stored("column_name", of: table)
    }
}

extension FieldType {
    /// The type of the SQL column; lists and locations are JSON text.
    var columnType: String {
        if isList { return "TEXT" }
        switch scalar {
        case .int64, .timestamp: return "INTEGER"
        case .double: return "REAL"
        case .bytes: return "BLOB"
        case .string, .location, .reference, .asset: return "TEXT"
        }
    }
}
