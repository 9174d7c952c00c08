public import Foundation
public import TidemarkModel

/// Reads a schema file: record types and their fields; see Documentation/Formats/schema.md.
///
/// ```json
/// {"types": [{"name": "Destination", "nameField": "id",
///             "fields": [{"name": "caption", "type": "string"}, {"name": "image", "type": "asset"}]}]}
/// ```
public enum SchemaFile {
    private struct File: Decodable {
        struct RecordType: Decodable {
            struct Field: Decodable {
                let name: String
                let type: String
                let target: String?
                let owning: Bool?
                let deleteRule: String?
            }
            let name: String
            let nameField: String?
            let uniqueKeys: [[String]]?
            let fields: [Field]
            let indexes: [Index]?

            struct Index: Decodable {
                let fields: [String]
                let fullText: Bool?
                let language: String?
            }
        }
        let types: [RecordType]
    }

    /// The most bytes of a schema file. 100 types of 256 fields with names of 200 bytes have fewer.
    private static let sizeLimit = 8 << 20

    /// The most types of a schema file.
    private static let typeLimit = 10_000
    /// The most unique keys, and the most indexes, of a type. SQLite allows few more for a table.
    private static let indexLimit = 64

    /// Refuses lists that are unreasonably long, before their elements are compared with each other.
    private static func checkCounts(_ file: File, _ url: URL) throws(ImportError) {
        func check(_ count: Int, _ most: Int, _ what: String, at place: String) throws(ImportError) {
            guard count > most else { return }
            throw ImportError(.schemaFile, "\(url.path): \(place): there are \(count) \(what), and at most \(most) can be")
        }
        try check(file.types.count, typeLimit, "types", at: "types")
        for (i, type) in file.types.enumerated() {
            try check(type.fields.count, RecordTypeSchema.fieldLimit, "fields", at: "types[\(i)].fields")
            try check(type.uniqueKeys?.count ?? 0, indexLimit, "unique keys", at: "types[\(i)].uniqueKeys")
            try check(type.indexes?.count ?? 0, indexLimit, "indexes", at: "types[\(i)].indexes")
        }
    }

    /// Reads a schema file.
    ///
    /// - Throws: ``ImportError`` `source` when the file can't be read; `schemaFile` when it is wrong. The message names the
    ///   place.
    public static func read(_ url: URL) throws(ImportError) -> [RecordTypeSchema] {
        let data: Data
        do {
            data = try FileHandle(forReadingFrom: url).read(upToCount: sizeLimit + 1) ?? Data()
        } catch {
            throw ImportError(.source, "cannot read the schema file \(url.path): \(error.localizedDescription)")
        }
        guard data.count <= sizeLimit else {
            throw ImportError(.schemaFile, "\(url.path): a schema file has \(sizeLimit) bytes at the most. Name a schema file")
        }
        let file: File
        do {
            file = try JSONDecoder().decode(File.self, from: data)
        } catch let error as DecodingError {
            throw ImportError(.schemaFile, "\(url.path): \(describe(error))")
        } catch {
            throw ImportError(.schemaFile, "\(url.path): \(error.localizedDescription)")
        }
        try checkCounts(file, url)
        var types: [RecordTypeSchema] = []
        // The names by their lower-case forms, to find names that differ by the case of letters only.
        var names: [String: String] = [:]
        for (i, type) in file.types.enumerated() {
            var fields: [RecordTypeSchema.Field] = []
            var references: [String: String] = [:]
            var relationships: [String: RelationshipSchema?] = [:]
            try check(type.name, names: "a record type", at: "\(url.path): types[\(i)].name")
            for (j, field) in type.fields.enumerated() {
                try check(field.name, names: "a field", at: "\(url.path): types[\(i)].fields[\(j)].name")
                guard let made = RecordTypeSchema.Field(name: field.name, typeName: field.type) else {
                    let known = RecordTypeSchema.Field.typeNames.joined(separator: ", ")
                    throw ImportError(
                        .schemaFile,
                        "\(url.path): types[\(i)].fields[\(j)].type: '\(field.type)' is no type; types are \(known), and list<…> of them"
                    )
                }
                guard !fields.contains(where: { $0.name == field.name }) else {
                    throw ImportError(.schemaFile, "\(url.path): types[\(i)].fields[\(j)].name: '\(field.name)' occurs twice")
                }
                fields.append(made)
                guard let target = field.target else {
                    guard field.owning == nil, field.deleteRule == nil else {
                        throw ImportError(
                            .schemaFile,
                            "\(url.path): types[\(i)].fields[\(j)]: 'owning' and 'deleteRule' need a 'target', the record type that '\(field.name)' refers to"
                        )
                    }
                    continue
                }
                let place = "\(url.path): types[\(i)].fields[\(j)].target"
                try check(target, names: "a record type", at: place)
                guard made.type.scalar == .reference else {
                    throw ImportError(
                        .schemaFile, "\(place): only a reference has a target, and '\(field.name)' is \(made.typeName)")
                }
                references[field.name] = target
                guard field.owning != nil || field.deleteRule != nil else { continue }
                let isOwning = field.owning ?? false
                let rule = field.deleteRule.map(DeleteRule.init) ?? (isOwning ? .cascade : .nullify)
                guard let rule else {
                    let known = DeleteRule.allCases.map(\.rawValue).joined(separator: ", ")
                    throw ImportError(
                        .schemaFile,
                        "\(url.path): types[\(i)].fields[\(j)].deleteRule: '\(field.deleteRule ?? "")' is no delete rule; rules are \(known)"
                    )
                }
                relationships[field.name] = RelationshipSchema(
                    field: field.name, target: target, isOwning: isOwning, deleteRule: rule)
            }
            var schema = RecordTypeSchema(name: type.name, nameField: type.nameField, fields: fields)
            for (j, key) in (type.uniqueKeys ?? []).enumerated() {
                let place = "\(url.path): types[\(i)].uniqueKeys[\(j)]"
                guard !key.isEmpty, Set(key).count == key.count else {
                    throw ImportError(.schemaFile, "\(place): a unique key names one or more fields, each once")
                }
                if let missing = key.first(where: { name in !fields.contains { $0.name == name } }) {
                    throw ImportError(.schemaFile, "\(place): the type has no field '\(missing)'")
                }
                if !schema.uniqueKeys.contains(key) { schema.uniqueKeys.append(key) }
            }
            schema.references = references
            schema.relationships = relationships
            if let declared = type.indexes {
                schema.indexes = try indexes(declared, of: fields, at: "\(url.path): types[\(i)].indexes")
            }
            if let collision = schema.nameCollision() {
                let index = fields.firstIndex { $0.name == collision.name }
                let place = index.map { "types[\(i)].fields[\($0)].name" } ?? "types[\(i)].nameField"
                throw ImportError(.schemaFile, "\(url.path): \(place): \(collision)")
            }
            if let other = names.updateValue(type.name, forKey: type.name.lowercased()) {
                guard other != type.name else {
                    throw ImportError(.schemaFile, "\(url.path): types[\(i)].name: '\(type.name)' occurs twice")
                }
                let collision = NameCollision(.recordType, type.name, other)
                throw ImportError(.schemaFile, "\(url.path): types[\(i)].name: \(collision)")
            }
            types.append(schema)
        }
        return types
    }

    /// Returns the indexes of a type. The store checks whether their fields can be indexed.
    private static func indexes(
        _ indexes: [File.RecordType.Index], of fields: [RecordTypeSchema.Field], at place: String
    ) throws(ImportError) -> [FieldIndex] {
        var made: [FieldIndex] = []
        for (i, index) in indexes.enumerated() {
            if let unknown = index.fields.first(where: { name in !fields.contains { $0.name == name } }) {
                throw ImportError(.schemaFile, "\(place)[\(i)].fields: the type has no field '\(unknown.prefix(100))'")
            }
            guard !index.fields.isEmpty else { throw ImportError(.schemaFile, "\(place)[\(i)].fields: an index needs a field") }
            let new = FieldIndex(index.fullText == true ? .fullText : .values, index.fields, language: index.language)
            guard !made.contains(where: { $0.name == new.name }) else {
                throw ImportError(.schemaFile, "\(place)[\(i)]: the same index occurs twice")
            }
            made.append(new)
        }
        return made
    }

    private static func check(_ name: String, names what: String, at place: String) throws(ImportError) {
        do {
            try Identifier.check(name, names: what)
        } catch {
            throw ImportError(.schemaFile, "\(place): \(error.message)")
        }
    }

    private static func describe(_ error: DecodingError) -> String {
        let context: DecodingError.Context
        switch error {
        case .typeMismatch(let type, let it): return "\(path(it.codingPath)): \(wanted(type)) is needed here"
        case .valueNotFound(let type, let it): return "\(path(it.codingPath)): \(wanted(type)) is needed here, and not null"
        case .dataCorrupted(let it): context = it
        case .keyNotFound(let key, let it): return "\(path(it.codingPath)) lacks '\(key.stringValue)'"
        @unknown default: return "\(error)"
        }
        return "\(path(context.codingPath)): \(context.debugDescription)"
    }

    /// The kind of value that the file needs, in JSON's words.
    private static func wanted(_ type: any Any.Type) -> String {
        if type is String.Type { return "a text" }
        if type is Bool.Type { return "true or false" }
        return "\(type)".hasPrefix("Array") ? "an array" : "an object"
    }

    private static func path(_ keys: [any CodingKey]) -> String {
        let joined = keys.reduce(into: "") { text, key in
            if let index = key.intValue {
                text += "[\(index)]"
            } else {
                text += text.isEmpty ? key.stringValue : ".\(key.stringValue)"
            }
        }
        return joined.isEmpty ? "the file" : joined
    }
}
