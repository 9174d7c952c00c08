import TidemarkModel
import TidemarkSQLite

/// A field that a command line sets: `field[:type]=value`.
struct Assignment {
    let name: String
    /// The field with the type that is written after its name; `nil` without a type.
    let given: RecordTypeSchema.Field?
    /// The value; `nil` if the field loses its value.
    let value: String?

    /// - Throws: ``StoreError`` `invalid` for a text that sets nothing, `schema` for an unknown type.
    init(_ text: String) throws {
        guard let equals = text.firstIndex(of: "=") else {
            throw StoreError(.invalid, "'\(text)' sets nothing; write field=value")
        }
        let left = text[..<equals]
        let colon = left.firstIndex(of: ":")
        let (name, value) = (String(left[..<(colon ?? equals)]), String(text[text.index(after: equals)...]))
        given = try colon.map { try Self.field(name, ofType: String(left[left.index(after: $0)...])) }
        (self.name, self.value) = (name, value.isEmpty ? nil : value)
    }

    /// A field of the type that a text names.
    ///
    /// - Throws: ``StoreError`` `schema` for an unknown type.
    static func field(_ name: String, ofType typeName: String) throws -> RecordTypeSchema.Field {
        let short = [
            "int": "int64", "integer": "int64", "bool": "boolean", "time": "timestamp", "date": "timestamp", "text": "string",
            "float": "double",
        ]
        guard let field = RecordTypeSchema.Field(name: name, typeName: short[typeName] ?? typeName) else {
            let known = RecordTypeSchema.Field.typeNames
            let remedy = Suggestion.question(typeName, among: known)
            throw StoreError(
                .schema,
                "'\(typeName)' is no type for '\(name)'; types are \(known.joined(separator: ", ")), and list<…> of them\(remedy)"
            )
        }
        return field
    }

    /// The error for a type that a field can't get, because it has another type.
    func refusal(_ existing: String, of type: String) -> StoreError {
        StoreError(
            .schema,
            "the field '\(name)' of \(type) is \(existing), not \(given?.typeName ?? "that"); leave the type away, or name another field"
        )
    }
}
