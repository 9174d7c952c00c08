import Foundation
import GRDB
import TidemarkModel
package import TidemarkSQLite

/// The fields that a type had before they were renamed, dropped or given another type; in `tide_meta` under `former_fields`.
///
/// By them history stays readable, and what the cloud still has of such fields is left alone.
struct FormerFields: Equatable {
    struct Field: Codable, Equatable {
        /// `tide_types.id`.
        let type: Int64
        let name: String
        /// The core's code of the field's type.
        let code: UInt32
        /// The last change of history that may name the field as it was.
        let until: Int64
        /// The name that the field has got, where its values stayed as they were.
        var successor: String?
        /// `true` for a field whose name stayed with another type; otherwise the key is missing.
        var isRetyped: Bool?
        /// How many records the cloud had with the value that they had here, when the field went; `nil` where an earlier version has not
        /// counted them.
        var records: Int?
    }

    /// In the order in which they went.
    var fields: [Field] = []

    private static let key = "former_fields"

    static func fetchAll(_ db: Database) throws -> [Int64: FormerFields] {
        let sql = "SELECT value FROM tide_meta WHERE key = '\(key)'"
        guard let text = try String.fetchOne(db.cachedStatement(sql: sql)) else { return [:] }
        guard let fields = try? JSONDecoder().decode([Field].self, from: Data(text.utf8)) else {
            throw StoreError(.corrupt, "tide_meta has former fields that can't be read")
        }
        return Dictionary(grouping: fields, by: \.type).mapValues { FormerFields(fields: $0) }
    }

    /// Notes a field that goes now.
    static func add(_ field: Field, _ db: Database) throws {
        try store(fetchAll(db).values.flatMap(\.fields) + [field], db)
    }

    /// Forgets the fields of a type that goes.
    static func remove(type: Int64, _ db: Database) throws {
        try store(fetchAll(db).values.flatMap(\.fields).filter { $0.type != type }, db)
    }

    private static func store(_ fields: [Field], _ db: Database) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let sorted = fields.enumerated().sorted {
            ($0.element.type, $0.element.until, $0.offset) < ($1.element.type, $1.element.until, $1.offset)
        }
        let text = String(decoding: try encoder.encode(sorted.map(\.element)), as: UTF8.self)
        try db.execute(sql: "INSERT OR REPLACE INTO tide_meta (key, value) VALUES (?, ?)", arguments: [key, text])
    }

    /// Whether a field of that name was there once.
    func contains(_ name: String) -> Bool { fields.contains { $0.name == name } }

    /// The field that had a name last.
    func last(named name: String) -> Field? { fields.last { $0.name == name } }

    /// Whether a field of that name and type went without another one in its place, or was the last of the name.
    func isGone(_ name: String, _ type: FieldType) -> Bool {
        if let last = last(named: name), FieldType(code: last.code) == type { return true }
        return fields.contains {
            $0.name == name && $0.successor == nil && $0.isRetyped != true && FieldType(code: $0.code) == type
        }
    }
}

extension StoreReader {
    /// Returns the fields whose values in the cloud the store leaves alone: they were renamed, dropped or given another type here. With each,
    /// how many records the cloud had with the value that they had here, when that was done; `nil` where it is not known.
    ///
    /// - Complexity: O(fields). What other devices have written since is not counted: nobody here has it.
    package func ignoredFields() throws(StoreError) -> [(type: String, field: String, records: Int?)] {
        try read("read the schema") { db in
            try StoredType.fetchAll(db).flatMap { type in
                Set(type.formerFields.fields.map(\.name)).filter { type.ignores($0) }.sorted().map {
                    (type: type.name, field: $0, records: type.formerFields.last(named: $0)?.records)
                }
            }
        }
    }
}

extension StoredType {
    /// What a name in the history of the type stands for.
    struct HistoryField {
        /// The name that it has now, or had last.
        let name: String
        let type: FieldType
        let isRenamed: Bool
    }

    /// The field that a change names; `nil` for a name that no field had.
    func historyField(_ name: String, at change: Int64) -> HistoryField? {
        var (current, position, isRenamed) = (name, change, false)
        while let former = formerFields.fields.filter({ $0.name == current && $0.until >= position }).min(by: {
            $0.until < $1.until
        }) {
            guard let type = FieldType(code: former.code) else { return nil }
            guard let successor = former.successor else {
                return HistoryField(name: current, type: type, isRenamed: isRenamed)
            }
            (current, position, isRenamed) = (successor, former.until + 1, true)
        }
        return fields.first { $0.name == current }
            .map { HistoryField(name: current, type: $0.type, isRenamed: isRenamed) }
    }

    /// Whether what the cloud has of a field is left alone: the field was renamed, dropped or given another type here.
    func ignores(_ field: String) -> Bool { formerFields.contains(field) && !fields.contains { $0.name == field } }

    /// Whether values of a type are left alone that the cloud has of a field. Values of another type than the field had here are those of
    /// another field: the store never had that one, and takes it up.
    func ignores(_ field: String, _ type: FieldType) -> Bool {
        ignores(field) && formerFields.isGone(field, type)
    }

    /// Whether a value is left alone that the cloud has of a field. A list without elements may be of any type.
    func ignores(_ field: String, _ value: FieldValue) -> Bool {
        if case .list(let elements, _) = value, elements.isEmpty { return ignores(field) }
        return ignores(field, value.type)
    }
}
