import TidemarkModel

/// The former names and the prototype's values that stand for fields without a value. They are computed once for each type.
final class RecordNaming: Sendable {
    /// The former names of fields, by their present names. A former name that is a property again is left out.
    let formerNames: [String: [String]]
    /// The prototype's values; `nil` for a type without a prototype.
    let prototype: PrototypeValues?

    /// Whether a property may have another value than its field.
    var isEmpty: Bool { formerNames.isEmpty && prototype == nil }

    private static let known = LockedValue<[ObjectIdentifier: RecordNaming]>([:])

    static func of<R: Record>(_ type: R.Type) -> RecordNaming {
        let id = ObjectIdentifier(type)
        if let naming = known.withLock({ $0[id] }) { return naming }
        let naming = RecordNaming(type)
        // If two threads have made it at the same time, both use the first one.
        return known.withLock { known in
            if let first = known[id] { return first }
            known[id] = naming
            return naming
        }
    }

    private init<R: Record>(_ type: R.Type) {
        formerNames = R.formerFieldNames
            .mapValues { names in names.filter { !PropertyNames.isProperty($0, of: type) } }
            .filter { !$0.value.isEmpty }
        prototype = PrototypeValues(of: type)
    }
}
