import TidemarkModel

/// The former names and the prototype's values that stand for fields without a value. A type's are computed once.
final class RecordNaming: Sendable {
    /// The names that fields had before, by their names now. A former name that is a property again is left out.
    let formerNames: [String: [String]]
    /// `nil` for a type without a prototype.
    let prototype: PrototypeValues?

    /// Whether a property may have another value than its field.
    var isEmpty: Bool { formerNames.isEmpty && prototype == nil }

    private static let known = LockedValue<[ObjectIdentifier: RecordNaming]>([:])

    static func of<R: Record>(_ type: R.Type) -> RecordNaming {
        let id = ObjectIdentifier(type)
        if let naming = known.withLock({ $0[id] }) { return naming }
        let naming = RecordNaming(type)
        // Where two have made it at once, all use the same.
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
