/// What a record type has: its name and its fields in order.
public struct RecordTypeSchema: Hashable, Sendable {
    public struct Field: Hashable, Sendable {
        public let name: String
        public let type: FieldType

        public init(name: String, type: FieldType) {
            self.name = name
            self.type = type
        }
    }

    public let name: String
    /// The field of the source that holds the record name, and under which exports show it; `nil` when there is none.
    public var nameField: String?
    public var fields: [Field]
    /// Sets of fields of which no two records may agree: those that do become one.
    public var uniqueKeys: [[String]]
    /// Of reference fields, the type of the records that they refer to; only what a schema file says, no store keeps it.
    public var references: [String: String] = [:]

    public init(name: String, nameField: String? = nil, fields: [Field] = [], uniqueKeys: [[String]] = []) {
        self.name = name
        self.nameField = nameField
        self.fields = fields
        self.uniqueKeys = uniqueKeys
    }

    public func field(named name: String) -> Field? { fields.first { $0.name == name } }
}
