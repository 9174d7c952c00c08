import TidemarkCloud
package import TidemarkCloudEngine
package import TidemarkEmbeddedCloud
package import TidemarkModel

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
    /// - Parameter types: For the name of each type, the types of its fields by their names.
    /// - Returns: The types and fields that are new in the schema, in their order.
    /// - Throws: ``AdministrationError`` `invalid` for a field that has another type; nothing is added then.
    @discardableResult
    package func addToSchema(
        _ types: [String: [String: FieldType]], of container: String
    ) async throws(AdministrationError) -> [CloudSchemaDifference] {
        let known = try await schema(of: container, environment: .development)
        if let conflict = SchemaTypeConflict.all(types, known).first {
            throw AdministrationError(
                .invalid,
                "\(conflict.name) is \(conflict.known) in the development schema, and can't become \(conflict.wanted). "
                    + conflict.remedy(in: container, placeOptions))
        }
        try await wrapped { try await cloud.addToSchema(types, of: container) }
        let added = types.sorted { $0.key < $1.key }.map { name, fields in
            "\(name) (\(fields.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")))"
        }
        try await audit(
            "schema.add", container: container, environment: .development, subject: types.keys.sorted().joined(separator: ", "),
            before: types.keys.sorted().compactMap { name in known.types[name].map { Self.text($0, named: name) } }
                .joined(separator: "; "),
            after: added.joined(separator: "; "))
        return types.sorted { $0.key < $1.key }.flatMap { name, fields -> [CloudSchemaDifference] in
            let there = known.types[name]
            let type = there == nil ? [CloudSchemaDifference(type: name, field: nil, change: .newType)] : []
            return type
                + fields.sorted { $0.key < $1.key }.filter { there?.fields[$0.key] == nil }.map {
                    CloudSchemaDifference(type: name, field: $0.key, change: .newField("\($0.value)"))
                }
        }
    }

    /// Copies the development schema to production, if it is still the one that a person has seen.
    ///
    /// - Parameter digest: The ``CloudSchemaDifference/digest(of:)`` of the differences that the person has confirmed: those that
    ///   are deployed.
    /// - Throws: ``AdministrationError`` `conflict` where there are other differences by now, and `invalid` for a field that has another type
    ///   in production; nothing is deployed then.
    package func deploySchema(of container: String, expecting digest: String) async throws(AdministrationError) {
        let development = try await schema(of: container, environment: .development)
        let production = try await schema(of: container, environment: .production)
        let differences = CloudSchemaDifference.between(development, production).filter(\.isDeployed)
        guard CloudSchemaDifference.digest(of: differences) == digest else {
            throw AdministrationError(
                .conflict,
                "nothing is deployed: the development schema has changed since its differences from production were listed; look again"
            )
        }
        // Fields that saves add to the development schema from now on are not part of this deployment.
        try await wrapped { try await cloud.deploySchema(development, over: production, of: container) }
        try await audit(
            "schema.deploy", container: container, environment: .production,
            after: differences.map(\.sentence).joined(separator: "; "))
    }

    /// Counts the development records of a type, or those with one of its fields, and the accounts that have them.
    package func recordSpread(
        of type: String, having field: String?, in container: String
    ) async throws(AdministrationError) -> RecordSpread {
        try await demand(container)
        return try await wrapped { try await cloud.recordSpread(of: type, having: field, in: container) }
    }

    /// Removes a type, or one of its fields, from the development schema.
    ///
    /// - Parameter isForced: Whether to remove it even if records have it.
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
            before: [before.map { Self.text($0, named: type) }, counted(count, "record")].compactMap(\.self).joined(
                separator: "; "))
        return count
    }

    /// Removes all records of all accounts in development, and copies the schema of production there.
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
            // Some of the records may be gone.
            try await audit(
                "schema.reset", container: container, environment: .development, outcome: error.code.rawValue,
                before: text(before))
            throw error
        }
        let after = try await schema(of: container, environment: .development)
        try await audit(
            "schema.reset", container: container, environment: .development,
            subject: removed.auditSubject, before: text(before), after: text(after))
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
    package func schemaDifferences(of container: String) async throws(AdministrationError) -> [CloudSchemaDifference] {
        CloudSchemaDifference.between(
            try await schema(of: container, environment: .development), try await schema(of: container, environment: .production))
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

extension RecordSpread {
    /// Says whose the records are: `7 records of 2 accounts`.
    package var text: String {
        let all = counted(records, "record")
        guard publicRecords > 0 else { return "\(all) of \(counted(accounts, "account"))" }
        guard publicRecords < records else { return "\(all) of the public database" }
        return "\(all), \(records - publicRecords) of \(counted(accounts, "account")) and \(publicRecords) of the public database"
    }
}

extension CloudSchema.RecordType {
    /// The indexes of a field; for `recordName`, `queryable` if the type can be queried.
    package func indexes(of field: String) -> Set<CloudSchema.Index> {
        field == "recordName" ? (isQueryable ? [.queryable] : []) : Set(fields[field]?.indexes.keys.map { $0 } ?? [])
    }
}
