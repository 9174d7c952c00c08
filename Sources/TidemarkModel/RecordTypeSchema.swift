/// The schema of a record type: its name, its fields in order, its unique keys, indexes and relationships.
public struct RecordTypeSchema: Hashable, Sendable {
    /// A field of a record type.
    public struct Field: Hashable, Sendable {
        /// The field's name: an identifier of letters, digits and underscores.
        public let name: String
        /// The type of its values.
        public let type: FieldType
        /// Whether an int64 is a Boolean, shown as `true` and `false` in manifests and in the tool's output. SQL and the cloud
        /// have 1 and 0. Another device shows 1 and 0, too, unless its own schema declares the Boolean.
        public let isBoolean: Bool

        /// Makes a field. Only an int64 can be a Boolean.
        public init(name: String, type: FieldType, isBoolean: Bool = false) {
            self.name = name
            self.type = type
            self.isBoolean = isBoolean && type == .int64
        }

        /// Makes a field of the named type: a name that ``FieldType`` reads, or `boolean`. `nil` for any other name.
        public init?(name: String, typeName: String) {
            let isBoolean = typeName == Self.boolean
            guard let type = isBoolean ? .int64 : FieldType(typeName) else { return nil }
            self.init(name: name, type: type, isBoolean: isBoolean)
        }

        /// The name of the type, which ``init(name:typeName:)`` reads.
        public var typeName: String { isBoolean ? Self.boolean : type.description }

        /// The names of the types that a field can have, without lists.
        public static let typeNames = FieldType.Scalar.allCases.map(\.name) + [boolean]

        private static let boolean = "boolean"
    }

    /// The most fields of a type. A cloud allows 256 fields for each type, and one of them holds the edit times of the others.
    public static let fieldLimit = 255

    /// The record type's name: an identifier of letters, digits and underscores.
    public let name: String
    /// The column of a source that holds the record's name; exports write the name under it. `nil` when there is none.
    public var nameField: String?
    /// The fields, in the order in which they were added.
    public var fields: [Field]
    /// The unique keys: sets of fields. Records that agree in all fields of a set are merged into one.
    public var uniqueKeys: [[String]]
    /// The indexes that a program or a schema file declares. They replace those that it declared before; an empty list removes
    /// them. `nil` leaves them as they are.
    public var indexes: [FieldIndex]?
    /// The target types of reference fields, by the fields' names, as a schema file declares them. No store keeps them.
    public var references: [String: String] = [:]
    /// The relationships of reference fields, by the fields' names. The value `nil` declares that a field has no relationship.
    /// For a field without an entry the schema declares nothing.
    public var relationships: [String: RelationshipSchema?] = [:]

    /// Makes a record type.
    public init(name: String, nameField: String? = nil, fields: [Field] = [], uniqueKeys: [[String]] = []) {
        self.name = name
        self.nameField = nameField
        self.fields = fields
        self.uniqueKeys = uniqueKeys
    }

    /// The field of a name; `nil` when the type has no such field. The comparison is case-sensitive.
    public func field(named name: String) -> Field? { fields.first { $0.name == name } }
}
