/// The difference between the schema of a container and a wanted schema.
public struct SchemaDifference: Hashable, Sendable {
    /// A field of a type.
    public struct FieldName: Hashable, Sendable {
        /// The name of the record type.
        public let type: String
        /// The name of the field.
        public let field: String

        /// Makes the name of a field of a type.
        public init(type: String, field: String) {
            self.type = type
            self.field = field
        }
    }

    /// The changes that give the container everything that the wanted schema has.
    public let changes: [SchemaChange]
    /// The container's fields whose types differ from the wanted schema's.
    public let types: [FieldName: RecordTypeSchema.Field]
    /// Types of the container that the wanted schema does not have. They stay.
    public let typesOnlyHere: [String]
    /// Fields of the container that the wanted schema does not have. They stay.
    public let fieldsOnlyHere: [FieldName]

    /// Whether the container has exactly the wanted types and fields.
    public var isEmpty: Bool { changes.isEmpty && typesOnlyHere.isEmpty && fieldsOnlyHere.isEmpty }

    /// Compares two schemas. The order of fields does not matter.
    ///
    /// - Parameters:
    ///   - present: The types of the container, with the indexes that a schema file has declared.
    ///   - wanted: The types that the container is to have.
    public init(from present: [RecordTypeSchema], to wanted: [RecordTypeSchema]) {
        var changes: [SchemaChange] = []
        var types: [FieldName: RecordTypeSchema.Field] = [:]
        var fieldsOnlyHere: [FieldName] = []
        for schema in wanted {
            guard let known = present.first(where: { $0.name == schema.name }) else {
                changes.append(.add(schema))
                continue
            }
            var added = RecordTypeSchema(
                name: schema.name, nameField: schema.nameField == known.nameField ? nil : schema.nameField,
                uniqueKeys: schema.uniqueKeys.filter { !known.uniqueKeys.contains($0) })
            var retyped: [SchemaChange] = []
            for field in schema.fields {
                guard let there = known.field(named: field.name) else {
                    added.fields.append(field)
                    continue
                }
                guard there.typeName != field.typeName else { continue }
                types[FieldName(type: schema.name, field: field.name)] = there
                retyped.append(.retypeField(field.name, of: schema.name, to: field))
            }
            changes += retyped
            added.relationships = schema.relationships.filter { (known.relationships[$0.key] ?? nil) != $0.value }
            if let indexes = schema.indexes, Set(indexes) != Set(known.indexes ?? []) { added.indexes = indexes }
            if added != RecordTypeSchema(name: schema.name) { changes.append(.add(added)) }
            fieldsOnlyHere += known.fields.filter { schema.field(named: $0.name) == nil }
                .map { FieldName(type: schema.name, field: $0.name) }
        }
        self.changes = changes
        self.types = types
        self.fieldsOnlyHere = fieldsOnlyHere
        typesOnlyHere = present.map(\.name).filter { name in !wanted.contains { $0.name == name } }
    }
}
