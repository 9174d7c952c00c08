import Foundation
import GRDB
package import TidemarkModel
import TidemarkSQLite

/// An index of a record type as a store has it.
package struct StoredIndex: Hashable, Sendable {
    /// Who declared an index, and who can drop it. The raw values are stored.
    package enum Origin: String, Hashable, Sendable, Codable {
        /// A program, by the indexes of its record type. It is dropped when the program no longer declares it.
        case program
        /// A schema file. It is dropped when a later schema file with indexes of the type does not have it.
        case schema
        /// The command line. It stays until it is dropped there.
        case command
    }

    package let index: FieldIndex
    package let origin: Origin

    package init(_ index: FieldIndex, origin: Origin) { (self.index, self.origin) = (index, origin) }

    /// What `tide_indexes.options` has, as JSON.
    private struct Options: Codable {
        var origin: Origin
        var language: String?
    }

    fileprivate var options: String {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return String(decoding: try encoder.encode(Options(origin: origin, language: index.language)), as: UTF8.self)
        }
    }

    /// The indexes of all types, by the types' ids; none in a store of a format before 5.
    ///
    /// - Throws: ``StoreError`` `corrupt` for a row that can't be an index.
    static func fetchAll(_ db: Database) throws -> [Int64: [StoredIndex]] {
        guard try db.tableExists("tide_indexes") else { return [:] }
        let sql = "SELECT type_id, name, kind, fields, options FROM tide_indexes ORDER BY type_id, name"
        return try Row.fetchAll(db, sql: sql).reduce(into: [:]) { indexes, row in
            let (table, name): (String, String) = ("tide_indexes", try row.stored("name", of: "tide_indexes"))
            let fields: String = try row.stored("fields", of: table)
            let (text, kind): (String, String) = (try row.stored("options", of: table), try row.stored("kind", of: table))
            guard let kind = FieldIndex.Kind(rawValue: kind),
                let options = text.isEmpty
                    ? Options(origin: .command) : try? JSONDecoder().decode(Options.self, from: Data(text.utf8))
            else {
                throw StoreError(.corrupt, "the index '\(name.prefix(100))' in tide_indexes has a kind or options that can't be")
            }
            let index = FieldIndex(kind, fields.split(separator: " ").map(String.init), language: options.language)
            guard index.name == name, !index.fields.isEmpty else {
                throw StoreError(.corrupt, "the index '\(name.prefix(100))' in tide_indexes has other fields than its name says")
            }
            indexes[try row.stored("type_id", of: table), default: []].append(StoredIndex(index, origin: options.origin))
        }
    }

    fileprivate func insert(_ db: Database, type: Int64) throws {
        try db.execute(
            sql: "INSERT OR REPLACE INTO tide_indexes (type_id, name, kind, fields, options) VALUES (?, ?, ?, ?, ?)",
            arguments: [type, index.name, index.kind.rawValue, index.fields.joined(separator: " "), options])
    }
}

extension StoredType {
    /// An index of values in SQL.
    struct ValueIndex: Equatable {
        let name: String
        /// Quoted.
        let columns: String
    }

    /// The indexes of values that the table has: one for each reference that is no list, and those that are declared.
    var valueIndexes: [ValueIndex] {
        fields.filter { $0.type == .reference }.map {
            ValueIndex(name: "tide_reference_\(table).\($0.column)", columns: "\"\($0.column)\"")
        }
            + indexes.filter { $0.index.kind == .values }.map(valueIndex)
    }

    /// The names of the indexes of references.
    ///
    /// - Parameter field: The only field that counts; `nil` for all.
    func referenceIndexes(of field: String?) -> [String] {
        fields.filter { $0.type == .reference && (field == nil || $0.name == field) }.map {
            "tide_reference_\(table).\($0.column)"
        }
    }

    private func valueIndex(_ stored: StoredIndex) -> ValueIndex {
        let columns = columns(of: stored.index)
        // No identifier has a point in it, so that no two indexes of a store have one name.
        return ValueIndex(
            name: "tide_index_\(table).\(columns.joined(separator: "."))",
            columns: columns.map { "\"\($0)\"" }.joined(separator: ", "))
    }

    /// The columns of the fields of an index.
    func columns(of index: FieldIndex) -> [String] {
        index.fields.compactMap { name in fields.first { $0.name == name }?.column }
    }

    /// - Throws: ``StoreError`` `corrupt` when an index has a field that there is not.
    func checkIndexes() throws {
        for stored in indexes where columns(of: stored.index).count != stored.index.fields.count {
            throw StoreError(.corrupt, "an index of \(name) has a field that there is not: \(stored.index.name.prefix(100))")
        }
    }

    /// Makes sure that the type can have an index.
    ///
    /// - Throws: ``StoreError`` `schema` for a field that the type lacks, or whose values can't be in such an index.
    func check(_ index: FieldIndex) throws {
        guard !index.fields.isEmpty, Set(index.fields).count == index.fields.count else {
            throw StoreError(.schema, "an index of \(name) has no field, or the same field twice")
        }
        for name in index.fields {
            guard let field = fields.first(where: { $0.name == name }) else {
                throw StoreError(
                    .schema,
                    "\(self.name) has no field '\(name)' for an index; it has \(fields.map(\.name).joined(separator: ", "))")
            }
            switch index.kind {
            case .values where field.type.isList || field.type == .location || field.type == .bytes:
                throw StoreError(.schema, "'\(name)' of \(self.name) is of type \(field.type), which an index can't have")
            case .fullText where field.type != .string:
                throw StoreError(
                    .schema, "'\(name)' of \(self.name) is of type \(field.type); a full-text index has fields of type string")
            case .values, .fullText: break
            }
        }
        if let language = index.language { try TextIndex.checkLanguage(language) }
    }

    /// Declares an index, or changes who declared it. ``buildIndexes(_:)`` of the type as it is then builds one of values.
    func addIndex(_ db: Database, _ stored: StoredIndex) throws {
        try check(stored.index)
        let before = indexes.first { $0.index.name == stored.index.name }
        guard before != stored else { return }
        try stored.insert(db, type: id)
        if stored.index.kind == .fullText, before?.index != stored.index {
            try TextIndex(self, stored.index).build(db)
        }
        try Self.raiseGeneration(db)
    }

    /// Drops an index of the type, and forgets it.
    func dropIndex(_ db: Database, _ stored: StoredIndex) throws {
        try db.execute(sql: "DELETE FROM tide_indexes WHERE type_id = ? AND name = ?", arguments: [id, stored.index.name])
        switch stored.index.kind {
        case .values: try db.execute(sql: "DROP INDEX IF EXISTS \"\(valueIndex(stored).name)\"")
        case .fullText: try TextIndex(self, stored.index).drop(db)
        }
        try Self.raiseGeneration(db)
    }
}
