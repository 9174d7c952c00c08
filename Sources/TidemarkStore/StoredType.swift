import CTideCore
import GRDB
import TidemarkModel

/// A record type as a store has it: its schema and where that lies in SQL.
struct StoredType: Equatable {
    struct Field: Equatable {
        let ordinal: Int
        let name: String
        let column: String
        let type: FieldType
    }

    let id: Int64
    let name: String
    /// A checked identifier, as are the columns.
    let table: String
    let nameField: String?
    let fields: [Field]

    var indexName: String { "tide_name_\(table)" }
    var viewName: String { "_\(table)" }
    var schema: RecordTypeSchema {
        RecordTypeSchema(name: name, nameField: nameField, fields: fields.map { .init(name: $0.name, type: $0.type) })
    }

    /// Whether exports can show the record names under that field: it is free, and could be a column.
    func canHaveNameField(_ name: String) -> Bool {
        nameField == nil && Self.isIdentifier(name) && !fields.contains { $0.name.lowercased() == name.lowercased() }
    }

    static func isIdentifier(_ name: String) -> Bool {
        let utf8 = Array(name.utf8CString.dropLast())
        return tide_identifier_is_valid(utf8, utf8.count)
    }

    static func fetchAll(_ db: Database) throws -> [StoredType] {
        let fields = try Dictionary(
            grouping: Row.fetchAll(db, sql: "SELECT * FROM tide_fields ORDER BY type_id, ordinal"), by: { $0["type_id"] as Int64 }
        )
        return try Row.fetchAll(db, sql: "SELECT * FROM tide_types ORDER BY id").map { row in
            let id: Int64 = row["id"]
            return try StoredType(
                id: id, name: row["name"], table: row["table_name"], nameField: row["name_field"],
                fields: (fields[id] ?? []).map { field in
                    let code: UInt32 = field["type"]
                    guard let type = FieldType(code: code) else {
                        throw StoreError(.corrupt, "field \(field["name"] as String) has the unknown type \(code)")
                    }
                    return Field(ordinal: field["ordinal"], name: field["name"], column: field["column_name"], type: type)
                })
        }
    }

    /// Makes the type's table, without the index on its names, and its view.
    static func create(_ db: Database, name: String, nameField: String?, fields: [RecordTypeSchema.Field]) throws {
        try checkIdentifier(name, what: "a record type")
        let taken = try Set(String.fetchAll(db, sql: "SELECT lower(table_name) FROM tide_types"))
        let table = freeName(name) { taken.contains($0.lowercased()) }
        try db.execute(
            sql: "INSERT INTO tide_types (name, table_name, next_row) VALUES (?, ?, 1)", arguments: [name, table])
        let id = db.lastInsertedRowID
        let nameField = nameField.flatMap { name in
            isIdentifier(name) && !fields.contains { $0.name.lowercased() == name.lowercased() } ? name : nil
        }
        try db.execute(sql: "UPDATE tide_types SET name_field = ? WHERE id = ?", arguments: [nameField, id])
        try db.execute(
            sql: """
                CREATE TABLE "\(table)" (
                    _id INTEGER PRIMARY KEY, _key ANY NOT NULL, _zone INTEGER NOT NULL, _version INTEGER NOT NULL, _tag TEXT,
                    _pending ANY, _digest INTEGER NOT NULL
                ) STRICT
                """)
        try addFields(db, typeID: id, table: table, existing: [], fields: fields)
        try createView(db, table: table, nameField: nameField)
    }

    /// Adds columns for fields; bumps the schema's generation, so that other connections take notice.
    static func addFields(
        _ db: Database, typeID: Int64, table: String, existing: [Field], fields: [RecordTypeSchema.Field]
    ) throws {
        var taken = Set(existing.map { $0.column.lowercased() })
        var ordinal = (existing.map(\.ordinal).max() ?? -1) + 1
        for field in fields {
            try checkIdentifier(field.name, what: "a field")
            let column = freeName(field.name) { taken.contains($0.lowercased()) }
            taken.insert(column.lowercased())
            try db.execute(
                sql: "INSERT INTO tide_fields (type_id, ordinal, name, column_name, type) VALUES (?, ?, ?, ?, ?)",
                arguments: [typeID, ordinal, field.name, column, field.type.code.rawValue])
            try db.execute(sql: "ALTER TABLE \"\(table)\" ADD COLUMN \"\(column)\" \(field.type.columnType)")
            ordinal += 1
        }
        try db.execute(sql: "UPDATE tide_meta SET value = value + 1 WHERE key = 'schema_generation'")
    }

    /// Names the field under which a type's names are known outside.
    static func setNameField(_ db: Database, type: StoredType, to nameField: String) throws {
        try db.execute(sql: "UPDATE tide_types SET name_field = ? WHERE id = ?", arguments: [nameField, type.id])
        try db.execute(sql: "DROP VIEW IF EXISTS \"\(type.viewName)\"")
        try createView(db, table: type.table, nameField: nameField)
        try db.execute(sql: "UPDATE tide_meta SET value = value + 1 WHERE key = 'schema_generation'")
    }

    /// The view shows what the table has, and record names as text.
    private static func createView(_ db: Database, table: String, nameField: String?) throws {
        let alias = nameField.map { ", \(RecordKey.nameSQL) AS \"\($0)\"" } ?? ""
        try db.execute(
            sql: "CREATE VIEW \"_\(table)\" AS SELECT \(RecordKey.nameSQL) AS _name\(alias), * FROM \"\(table)\"")
    }

    private static func freeName(_ name: String, isTaken: (String) -> Bool) -> String {
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
