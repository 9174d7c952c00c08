public import TidemarkCloud
public import TidemarkCloudEngine
public import TidemarkModel

/// The record types of a cloud's containers.
extension EmbeddedCloud {
    /// Returns the record types of a container, with the indexes of their fields.
    public func schema(of container: String, environment: StoreEnvironment = .development) async throws(CloudError) -> CloudSchema
    {
        try await openedContainer(container, environment).engine.schema()
    }

    /// Sets the indexes of a field. For the field `recordName`, `queryable` makes the type itself queryable. O(records of the type).
    ///
    /// - Throws: `CloudError` `unknownItem` for an unknown type; `invalidArguments` for an unknown field, or an index that its type
    ///   can't have.
    public func setIndexes(
        _ indexes: Set<CloudSchema.Index>, of field: String, in type: String, container: String,
        environment: StoreEnvironment = .development
    ) async throws(CloudError) {
        try await openedContainer(container, environment).engine.setIndexes(indexes, of: field, in: type)
    }

    /// Copies the development schema to the production environment, where the schema is fixed. Types and fields of production that
    /// development lacks stay.
    ///
    /// - Throws: `CloudError` `invalidArguments` where a field has another type in production.
    public func deploySchema(of container: String) async throws(CloudError) {
        let schema = try await schema(of: container)
        try await openedContainer(container, .production).engine.deploy(schema)
    }

    /// Deploys a development schema as it was read, to the production schema with which it was compared.
    ///
    /// - Throws: `CloudError` `invalidArguments` where a field has another type in production; `serverRecordChanged` where production has
    ///   another schema by now.
    package func deploySchema(_ schema: CloudSchema, over known: CloudSchema, of container: String) async throws(CloudError) {
        try await openedContainer(container, .production).engine.deploy(schema, over: known)
    }

    /// Removes a record type, or one of its fields, from the development schema. The next record that has it decides its type.
    /// O(records of the type).
    ///
    /// - Parameter isForced: Whether to remove it although records have it. They keep their values, which no query finds by the field.
    /// - Returns: The number of records that have it.
    /// - Throws: `CloudError` `unknownItem` for an unknown type or field; `invalidArguments` where records have it.
    @discardableResult
    public func removeFromSchema(
        type: String, field: String? = nil, of container: String, isForced: Bool = false
    ) async throws(CloudError) -> Int {
        try await openedContainer(container, .development).engine.removeFromSchema(type, field: field, isForced: isForced)
    }

    /// Counts the records of development that have a type or a field. O(records of the type).
    package func recordSpread(
        of type: String, having field: String?, in container: String
    ) async throws(CloudError) -> RecordSpread {
        try await openedContainer(container, .development).engine.recordSpread(of: type, having: field)
    }

    /// Adds types and fields to the development schema: by the names of types, the types of fields by their names.
    ///
    /// - Throws: `CloudError` `invalidArguments`, `limitExceeded`, `zoneBusy`, `internalError`.
    package func addToSchema(_ types: [String: [String: FieldType]], of container: String) async throws(CloudError) {
        try await openedContainer(container, .development).engine.addToSchema(types)
    }

    /// Sets whether saved records may add types and fields to the development schema.
    public func setSchemaFrozen(_ isFrozen: Bool, of container: String) async throws(CloudError) {
        try await openedContainer(container, .development).engine.setFrozen(isFrozen)
    }
}
