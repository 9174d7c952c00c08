/// Two names of record types, or of fields of one type, that differ by the case of letters only.
///
/// SQL compares names without their case: a condition over `name` would look at the field `Name`. A store has at most one of two such names.
public struct NameCollision: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of the two names.
    public enum Kind: Hashable, Sendable {
        /// Names of record types.
        case recordType
        /// Names of fields of one record type.
        case field(ofType: String)
    }

    /// The kind of the two names.
    public let kind: Kind
    /// The name that is refused.
    public let name: String
    /// The name that exists already, or came first.
    public let other: String

    /// Makes the error for a name and the other name that exists already.
    public init(_ kind: Kind, _ name: String, _ other: String) {
        self.kind = kind
        self.name = name
        self.other = other
    }

    public var description: String {
        let subject =
            switch kind {
            case .recordType: "the record type '\(name)' differs from the record type '\(other)'"
            case .field(let type): "the field '\(name)' of \(type) differs from the field '\(other)'"
            }
        return "\(subject) by the case of letters only, and SQL can't tell them apart; use one spelling, or another name"
    }

    /// Whether two names differ, but are the same name to SQL.
    package static func collide(_ one: String, _ other: String) -> Bool {
        one != other && one.utf8.count == other.utf8.count && one.lowercased() == other.lowercased()
    }
}

extension RecordTypeSchema {
    /// The first field that differs by the case of letters only from a field before it, from the name field, or from a field of `existing`;
    /// `nil` where there is none.
    ///
    /// - Complexity: O(fields).
    public func nameCollision(with existing: [Field] = []) -> NameCollision? {
        var names: [String: String] = [:]
        for field in existing where names[field.name.lowercased()] == nil { names[field.name.lowercased()] = field.name }
        let known = Set(existing.map(\.name))
        if let nameField {
            let spelling = nameField.lowercased()
            if let other = names[spelling], other != nameField { return NameCollision(.field(ofType: name), nameField, other) }
            names[spelling] = nameField
        }
        for field in fields where !known.contains(field.name) {
            let spelling = field.name.lowercased()
            if let other = names[spelling], other != field.name { return NameCollision(.field(ofType: name), field.name, other) }
            names[spelling] = field.name
        }
        return nil
    }
}
