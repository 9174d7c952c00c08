import GRDB
package import TidemarkSQLite

/// The fields that were made again, after fields of these names were renamed, dropped or given another type.
///
/// Meanwhile the cloud's values of them were ignored, so everything is fetched again once. `tide_sync` lists the fields for which
/// this was done, under `remade_fields`.
struct RemadeFields {
    private struct Field {
        let type: StoredType
        /// The number of the type, the name, and the last change of the field that had the name before.
        let identifier: String
    }

    private let all: [Field]
    /// The fields for which nothing was fetched yet.
    private let unfetched: [Field]

    private static let key = "remade_fields"

    init(_ db: Database, types: [StoredType]) throws {
        let present = types.flatMap { type -> [Field] in
            type.remadeFields.map { field -> Field in
                let last = type.formerFields.last(named: field.name)?.until ?? 0
                return Field(type: type, identifier: "\(type.id)/\(field.name)/\(last)")
            }
        }
        all = present
        guard !present.isEmpty else {
            unfetched = []
            return
        }
        let sql = "SELECT value FROM tide_sync WHERE key = '\(Self.key)'"
        let text = try String.fetchOne(db, sql: sql) ?? ""
        let known = Set(text.split(separator: " ").map(String.init))
        unfetched = present.filter { !known.contains($0.identifier) }
    }

    /// The identifiers of the fields for which nothing was fetched yet.
    var new: [String] { unfetched.map(\.identifier) }

    /// Returns whether the cloud may have values that were ignored: it is known to have had records of the type.
    func awaitsFetch(_ db: Database) throws -> Bool {
        try unfetched.contains { field in
            let sql = "SELECT EXISTS (SELECT 1 FROM \"\(field.type.table)\" WHERE _tag IS NOT NULL)"
            return try Bool.fetchOne(db, sql: sql) ?? false
        }
    }

    /// Records that everything is fetched again for these fields.
    func note(_ db: Database) throws {
        let text = all.map(\.identifier).sorted().joined(separator: " ")
        try db.execute(sql: "INSERT OR REPLACE INTO tide_sync (key, value) VALUES (?, ?)", arguments: [Self.key, text])
    }
}

extension StoredType {
    /// The fields that have the name of a former field.
    var remadeFields: [Field] { formerFields.fields.isEmpty ? [] : fields.filter { formerFields.contains($0.name) } }
}

extension RecordStore {
    /// Returns whether a field was made again whose values in the cloud were ignored, and nothing was fetched for it since.
    package func awaitsRemadeFields() throws(StoreError) -> Bool {
        try connection.read("look for fields that are there again") { db in
            try connection.refreshSchema(db)
            return try RemadeFields(db, types: connection.types).awaitsFetch(db)
        }
    }
}

extension StoreReader {
    /// Returns whether a field was made again whose values in the cloud were ignored, so that the next synchronisation fetches
    /// them.
    package func awaitsRemadeFields() throws(StoreError) -> Bool {
        try read("look for fields that are there again") { db in
            try RemadeFields(db, types: StoredType.fetchAll(db)).awaitsFetch(db)
        }
    }
}
