/// What a record type has: its name and its fields in order.
public struct RecordTypeSchema: Hashable, Sendable {
    /// A field of a record type.
    public struct Field: Hashable, Sendable {
        /// The field's name: an identifier of letters, digits and underscores.
        public let name: String
        /// The type of its values.
        public let type: FieldType
        /// Whether an int64 is a Boolean to people: `true` and `false` in manifests and in the tool's output. To SQL and to the cloud it is
        /// 1 and 0; another device shows these where no schema of its own says that they are Booleans.
        public let isBoolean: Bool

        /// Makes a field. Only an int64 can be a Boolean.
        public init(name: String, type: FieldType, isBoolean: Bool = false) {
            self.name = name
            self.type = type
            self.isBoolean = isBoolean && type == .int64
        }

        /// Makes a field of the type that a text names: one that ``FieldType`` reads, or `boolean`. `nil` where the text names none.
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

    /// The most fields that a type is given: a cloud has 256 for each type, and one of them says when the others were edited.
    public static let fieldLimit = 255

    /// The record type's name: an identifier of letters, digits and underscores.
    public let name: String
    /// The field of the source that holds the record name, and under which exports show it; `nil` when there is none.
    public var nameField: String?
    /// The fields, in the order in which they came.
    public var fields: [Field]
    /// Sets of fields of which no two records may agree: those that do become one.
    public var uniqueKeys: [[String]]
    /// The indexes that a program or a schema file declares, which replace those that it declared before; `nil` where it says nothing
    /// of indexes.
    public var indexes: [FieldIndex]?
    /// Of reference fields, the type of the records that they refer to; only what a schema file says, no store keeps it.
    public var references: [String: String] = [:]
    /// The relationships of reference fields, by the fields' names. A field that is there with `nil` has no relationship; of a field that is
    /// not there, the schema says nothing.
    public var relationships: [String: RelationshipSchema?] = [:]

    /// Makes a record type.
    public init(name: String, nameField: String? = nil, fields: [Field] = [], uniqueKeys: [[String]] = []) {
        self.name = name
        self.nameField = nameField
        self.fields = fields
        self.uniqueKeys = uniqueKeys
    }

    /// The field of a name; `nil` when the type has none. Names are compared with their case.
    public func field(named name: String) -> Field? { fields.first { $0.name == name } }
}
