package import Foundation
package import GRDB
package import TidemarkModel
package import TidemarkSQLite

/// A store from which typed records are read, in the state that its reader sees.
package struct RecordSource: Sendable {
    package let scope: StoreScope
    package let database: any DatabaseReader
    package let container: ContainerDirectory
    let schema: SchemaCache

    package init(_ reader: StoreReader) {
        self.init(scope: reader.scope, database: reader.database, container: reader.container, schema: SchemaCache())
    }

    package init(_ store: RecordStore) {
        self.init(scope: store.scope, database: store.reader, container: store.container, schema: SchemaCache())
    }

    private init(scope: StoreScope, database: any DatabaseReader, container: ContainerDirectory, schema: SchemaCache) {
        self.scope = scope
        self.database = database
        self.container = container
        self.schema = schema
    }

    /// Where the assets of its records lie.
    package var assets: URL { container.assets }

    /// Whether it sees one pinned state of the store.
    private var isSnapshot: Bool { database is any DatabaseSnapshotReader }

    /// Makes sure that this is still the store that was opened.
    ///
    /// - Throws: ``StoreError`` `moved`, except in a snapshot, which reads its pinned state.
    package func checkPlace() throws(StoreError) {
        if !isSnapshot { try container.checkPlace() }
    }

    /// Reads in one transaction, on a thread of the reader's.
    ///
    /// - Parameter body: May be called again from its beginning, when a writer has invalidated what it read.
    /// - Throws: ``StoreError`` `moved`; `newerFormat` when a newer version has migrated the store; what the body throws.
    package func read<Result: Sendable>(_ body: @escaping @Sendable (Database) throws -> Result) async throws -> Result {
        try checkPlace()
        var tries = 0
        while true {
            do {
                return try await database.read { [container, scope] db in
                    do {
                        try container.checkFormat(db, of: scope)
                        let result = try body(db)
                        try ReadOnlyDatabase.check(db)
                        return result
                    } catch {
                        throw db.readError(error, of: container.store(scope).path)
                    }
                }
            } catch {
                // The pinned state of a snapshot does not come back.
                guard ReadOnlyDatabase.isVoid(error), tries < 20, !isSnapshot else {
                    // The files may have been removed meanwhile.
                    try checkPlace()
                    throw ReadOnlyDatabase.fileError(error, path: container.store(scope).path)
                }
                tries += 1
                (database as? DatabasePool)?.releaseMemoryEventually()
            }
        }
    }

    /// The same store, through another reader.
    package func reading(_ database: any DatabaseReader) -> RecordSource {
        RecordSource(scope: scope, database: database, container: container, schema: schema)
    }

    /// The fields that a type has in this store; none when it has no such type. Reads on the calling thread.
    package func fieldNames(of type: String) throws -> [String] {
        try database.unsafeReentrantRead { db in try self.type(db, named: type)?.fields.map(\.name) ?? [] }
    }

    /// A record type for queries in SQL; `nil` when the store has none of that name.
    package func type(_ db: Database, named name: String) throws -> QueriedType? {
        let types = try schema.types(db)
        return types.first { $0.name == name }.map { QueriedType($0, among: types) }
    }
}

/// A record type as queries of typed records need it.
package struct QueriedType: Sendable {
    let type: StoredType
    /// All types of the store.
    private let types: [StoredType]
    /// Fields in which every record is known to have a value.
    private var complete: Set<String> = []

    init(_ type: StoredType, among types: [StoredType]) { (self.type, self.types) = (type, types) }

    /// Returns the type with the knowledge of which fields have a value in every record, as far as one look-up in an index shows.
    package func findingComplete(_ db: Database, among fields: some Sequence<String>) throws -> QueriedType {
        var found = self
        for field in fields {
            guard let column = column(field),
                type.valueIndexes.contains(where: { $0.columns == column || $0.columns.hasPrefix("\(column),") })
            else { continue }
            let lacks = "SELECT EXISTS (SELECT 1 FROM \"\(type.table)\" WHERE \(column) IS NULL)"
            if try Bool.fetchOne(db.cachedStatement(sql: lacks)) == false { found.complete.insert(field) }
        }
        return found
    }

    /// Whether every record is known to have a value in a field.
    package func isComplete(_ field: String) -> Bool { complete.contains(field) }

    /// The record type of that name in the same store; `nil` when it has none.
    package func related(_ name: String) -> QueriedType? {
        types.first { $0.name == name }.map { QueriedType($0, among: types) }
    }

    package var fields: [RecordTypeSchema.Field] { type.fields.map(\.schema) }
    package var nameField: String? { type.nameField }
    package var name: String { type.name }

    /// A full-text index: its FTS5 table, and its fields in the order of the table's columns.
    package struct TextSearch: Sendable {
        package let table: String
        package let fields: [String]
    }

    /// The full-text indexes of the type.
    package var textIndexes: [TextSearch] {
        type.indexes.filter { $0.index.kind == .fullText }.map {
            TextSearch(table: TextIndex(type, $0.index).table, fields: $0.index.fields)
        }
    }

    /// The quoted column of a field; `nil` when there is not one of that name.
    package func column(_ field: String) -> String? {
        type.fields.first { $0.name == field }.map { "\"\($0.column)\"" }
    }

    /// Key, version and the fields, in this order, in SQL.
    package static let keyColumn = 0
    package static let versionColumn = 1
    package static let firstField = 2
    package var columns: [String] { ["_key", "_version"] + type.fields.map { "\"\($0.column)\"" } }

    /// SQL that selects them.
    package var selection: String { "SELECT \(columns.joined(separator: ", ")) FROM \"\(type.table)\"" }

    /// Checks that a user's SQL condition names fields of the type, and compares them with values that they can have.
    ///
    /// - Parameter values: The values of the `?` parameters, in their order.
    /// - Throws: ``StoreError`` `sql`.
    package func check(condition: String, _ values: [DatabaseValue]) throws { try type.check(condition: condition, values) }

    /// The view of the type, for a user's condition.
    package var view: String { "(\(type.viewSQL))" }

    /// A record's key, as an argument of SQL.
    package static func key(_ name: String) -> any DatabaseValueConvertible { RecordKey(name: name) }

    /// SQL that selects the record of a name. Its two arguments are the keys that the record may have; the first takes
    /// precedence.
    package var selectionByName: String { selection + " WHERE \(RecordKey.condition(in: type.table))" }

    /// The keys that a record of a name may have, the likeliest first; see ``RecordKey/all(name:)``.
    package static func keys(_ name: String) -> [any DatabaseValueConvertible] { RecordKey.all(name: name) }

    /// SQL that gives a record's name.
    package static var nameSQL: String { RecordKey.nameSQL }
}

extension StoreReader {
    /// The record name of a stored key; `nil` when it is none.
    package static func recordName(key: DatabaseValue) -> String? { RecordKey.fromDatabaseValue(key)?.name }
}

extension StoredVersion {
    /// From a row of a ``QueriedType/selection``.
    package init(_ row: Row, type: QueriedType) throws {
        guard let version = Int64.fromDatabaseValue(row[QueriedType.versionColumn]) else {
            throw StoreError(.corrupt, "a row of the record type \(type.name) has no version that can be one")
        }
        var values: [String: FieldValue] = [:]
        for (index, field) in type.type.fields.enumerated() {
            values[field.name] = FieldValue(row[index + QueriedType.firstField] as DatabaseValue, type: field.type)
        }
        self.init(version: version, values: values)
    }
}
