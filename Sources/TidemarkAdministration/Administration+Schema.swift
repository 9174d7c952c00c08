import TidemarkCloud
package import TidemarkCloudEngine
package import TidemarkEmbeddedCloud
package import TidemarkModel
import TidemarkWire

/// Schemas.
extension Administration {
    /// Returns the record types of a container.
    package func schema(
        of container: String, environment: StoreEnvironment
    ) async throws(AdministrationError) -> CloudSchema {
        try await demand(container)
        return try await wrapped { try await cloud.schema(of: container, environment: environment) }
    }

    /// Sets the indexes of a field in development: exactly these.
    package func setIndexes(
        _ indexes: Set<CloudSchema.Index>, of field: String, in type: String, container: String
    ) async throws(AdministrationError) {
        let before = try await schema(of: container, environment: .development)
        try await wrapped { try await cloud.setIndexes(indexes, of: field, in: type, container: container) }
        try await audit(
            "schema.index", container: container, environment: .development, subject: "\(type).\(field)",
            before: Self.text(before.types[type]?.indexes(of: field) ?? []), after: Self.text(indexes))
    }

    /// Adds an index to those that a field has in development.
    package func addIndex(
        _ index: CloudSchema.Index, to field: String, in type: String, container: String
    ) async throws(AdministrationError) {
        let known = try await schema(of: container, environment: .development).types[type]?.indexes(of: field) ?? []
        try await setIndexes(known.union([index]), of: field, in: type, container: container)
    }

    /// Adds types and fields to the development schema.
    ///
    /// - Parameter types: By the names of types, the types of fields by their names.
    package func addToSchema(
        _ types: [String: [String: FieldType]], of container: String
    ) async throws(AdministrationError) {
        let known = try await schema(of: container, environment: .development)
        try await wrapped { try await cloud.addToSchema(types, of: container) }
        let added = types.sorted { $0.key < $1.key }.map { name, fields in
            "\(name) (\(fields.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")))"
        }
        try await audit(
            "schema.add", container: container, environment: .development, subject: types.keys.sorted().joined(separator: ", "),
            before: types.keys.sorted().compactMap { name in known.types[name].map { Self.text($0, named: name) } }
                .joined(separator: "; "),
            after: added.joined(separator: "; "))
    }

    /// Adds the types and fields of a file to the development schema: see ``schemaFile(of:environment:)``.
    ///
    /// - Throws: ``AdministrationError`` `invalid` with the place of what can't be read.
    package func importSchema(_ text: String, into container: String) async throws(AdministrationError) {
        let types: [String: [String: FieldType]]
        do throws(CloudError) {
            types = try JSONText.read(Array(text.utf8)) { node throws(CloudError) in
                var types: [String: [String: FieldType]] = [:]
                for type in try node.required("types").asArray() {
                    var fields: [String: FieldType] = [:]
                    for field in try type.required("fields").asArray() {
                        let named = try field.required("type")
                        let name = try named.asString()
                        // Stores have booleans, which are whole numbers in a cloud.
                        guard let known = name == "boolean" ? FieldType.int64 : FieldType(name) else {
                            throw named.refusal("is no type of a field: '\(name.prefix(40))'")
                        }
                        fields[try field.required("name").asString()] = known
                    }
                    types[try type.required("name").asString()] = fields
                }
                return types
            }
        } catch {
            throw AdministrationError(error)
        }
        try await addToSchema(types, of: container)
    }

    /// Copies the development schema to production.
    package func deploySchema(of container: String) async throws(AdministrationError) {
        let differences = try await schemaDifferences(of: container)
        try await wrapped { try await cloud.deploySchema(of: container) }
        try await audit(
            "schema.deploy", container: container, environment: .production,
            after: differences.map(\.sentence).joined(separator: "; "))
    }

    /// Removes a type, or one of its fields, from the development schema.
    ///
    /// - Parameter isForced: Whether to do so although records have it.
    /// - Returns: How many records have it.
    package func removeFromSchema(
        type: String, field: String?, of container: String, isForced: Bool
    ) async throws(AdministrationError) -> Int {
        let known = try await schema(of: container, environment: .development).types[type]
        let count = try await wrapped {
            try await cloud.removeFromSchema(type: type, field: field, of: container, isForced: isForced)
        }
        var before = known
        if let field { before?.fields = known?.fields.filter { $0.key == field } ?? [:] }
        try await audit(
            "schema.remove", container: container, environment: .development, subject: field.map { "\(type).\($0)" } ?? type,
            before: [before.map { Self.text($0, named: type) }, "\(count) \(count == 1 ? "record" : "records")"].compactMap(
                \.self
            ).joined(separator: "; "))
        return count
    }

    /// Removes all records of everybody in development, and makes the schema there that of production.
    ///
    /// - Returns: What was removed.
    package func resetDevelopment(of container: String) async throws(AdministrationError) -> EmbeddedCloud.Removed {
        func text(_ schema: CloudSchema) -> String {
            schema.types.sorted { $0.key < $1.key }.map { Self.text($0.value, named: $0.key) }.joined(separator: "; ")
        }
        let before = try await schema(of: container, environment: .development)
        let removed: EmbeddedCloud.Removed
        do throws(AdministrationError) {
            removed = try await wrapped { try await cloud.resetDevelopment(of: container) }
        } catch {
            // A part of it may be gone.
            try await audit(
                "schema.reset", container: container, environment: .development, outcome: error.code.rawValue,
                before: text(before))
            throw error
        }
        let after = try await schema(of: container, environment: .development)
        try await audit(
            "schema.reset", container: container, environment: .development,
            subject: "with \(removed.records) records in \(removed.zones) zones", before: text(before), after: text(after))
        return removed
    }

    /// Sets whether saves may add types and fields to the development schema.
    package func setSchemaFrozen(_ isFrozen: Bool, of container: String) async throws(AdministrationError) {
        func text(_ isFrozen: Bool) -> String { isFrozen ? "frozen" : "grows" }
        let before = try await schema(of: container, environment: .development).isFrozen == true
        try await wrapped { try await cloud.setSchemaFrozen(isFrozen, of: container) }
        try await audit(
            "schema.freeze", container: container, environment: .development, before: text(before), after: text(isFrozen))
    }

    /// Returns what deploying would change in production, in the order of types and fields.
    package func schemaDifferences(of container: String) async throws(AdministrationError) -> [SchemaDifference] {
        SchemaDifference.between(
            try await schema(of: container, environment: .development), try await schema(of: container, environment: .production))
    }

    /// Returns the schema as a file of the form that `tidemark import --schema` reads: see `Documentation/Formats/schema.md`.
    package func schemaFile(of container: String, environment: StoreEnvironment) async throws(AdministrationError) -> String {
        let schema = try await schema(of: container, environment: environment)
        var json = JSONWriter()
        json.object {
            $0.list("types") { json in
                for (name, type) in schema.types.sorted(by: { $0.key < $1.key }) {
                    json.object {
                        $0.member("name", name)
                        $0.list("fields") { json in
                            for (field, known) in type.fields.sorted(by: { $0.key < $1.key }) {
                                json.object {
                                    $0.member("name", field)
                                    $0.member("type", known.type)
                                }
                            }
                        }
                    }
                }
            }
        }
        return RecordRequest.indented(json.bytes) + "\n"
    }

    /// A type for the audit log: `City (title string: queryable, sortable)`.
    private static func text(_ type: CloudSchema.RecordType, named name: String) -> String {
        let fields = type.fields.sorted { $0.key < $1.key }.map { field, known in
            let indexes = text(Set(known.indexes.keys))
            return "\(field) \(known.type)\(indexes.isEmpty ? "" : ": \(indexes)")"
        }
        return "\(name) (\(fields.joined(separator: ", ")))"
    }

    private static func text(_ indexes: Set<CloudSchema.Index>) -> String {
        CloudSchema.Index.allCases.filter(indexes.contains).map(\.rawValue).joined(separator: ", ")
    }
}

extension CloudSchema.RecordType {
    /// The indexes of a field; for `recordName`, whether the type can be asked for.
    package func indexes(of field: String) -> Set<CloudSchema.Index> {
        field == "recordName" ? (isQueryable ? [.queryable] : []) : Set(fields[field]?.indexes.keys.map { $0 } ?? [])
    }
}

/// One thing in which the development schema differs from that of production.
package struct SchemaDifference: Hashable, Sendable {
    /// What differs.
    package enum Change: Hashable, Sendable {
        case newType
        case newField(String)
        /// Deploying is refused because of it.
        case otherType(production: String, development: String)
        case indexes(production: [String], development: [String])
        /// Production has it, and keeps it.
        case onlyInProduction
    }

    package let type: String
    /// `nil` for the type itself.
    package let field: String?
    package let change: Change

    /// Whether deploying is refused because of it.
    package var isRefused: Bool { if case .otherType = change { true } else { false } }

    /// The difference, for people.
    package var sentence: String {
        let name = field.map { "\(type).\($0)" } ?? type
        switch change {
        case .newType: return "\(name) is new"
        case .newField(let kind): return "\(name) is new: \(kind)"
        case .otherType(let production, let development): return "\(name) is \(production) in production, and \(development) here"
        case .indexes(let production, let development):
            func text(_ names: [String]) -> String { names.isEmpty ? "no index" : names.joined(separator: ", ") }
            return "\(name): \(text(development)) in place of \(text(production))"
        case .onlyInProduction: return "\(name) is in production only, and stays there"
        }
    }

    static func between(_ development: CloudSchema, _ production: CloudSchema) -> [SchemaDifference] {
        var found: [SchemaDifference] = []
        for name in Set(development.types.keys).union(production.types.keys).sorted() {
            guard let new = development.types[name] else {
                found.append(.init(type: name, field: nil, change: .onlyInProduction))
                continue
            }
            let old = production.types[name]
            if old == nil { found.append(.init(type: name, field: nil, change: .newType)) }
            let fields = Set(new.fields.keys).union(old?.fields.keys.map { $0 } ?? [])
            for field in ["recordName"] + fields.sorted() {
                let (here, there) = (new.fields[field], old?.fields[field])
                if let here, let there, here.type != there.type {
                    found.append(
                        .init(type: name, field: field, change: .otherType(production: there.type, development: here.type)))
                    continue
                }
                if here == nil, there != nil {
                    found.append(.init(type: name, field: field, change: .onlyInProduction))
                    continue
                }
                if let here, there == nil { found.append(.init(type: name, field: field, change: .newField(here.type))) }
                let (wanted, known) = (names(new.indexes(of: field)), names(old?.indexes(of: field) ?? []))
                if wanted != known {
                    found.append(.init(type: name, field: field, change: .indexes(production: known, development: wanted)))
                }
            }
        }
        return found
    }

    private static func names(_ indexes: Set<CloudSchema.Index>) -> [String] {
        CloudSchema.Index.allCases.filter(indexes.contains).map(\.rawValue)
    }
}
