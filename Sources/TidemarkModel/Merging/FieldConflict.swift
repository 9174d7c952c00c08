/// A field that both sides changed, to different values.
public struct FieldConflict: Hashable, Sendable {
    /// The record type's name.
    public let type: String
    /// The record's name.
    public let record: String
    /// The field's name.
    public let field: String
    /// The value that both sides began with; `nil` if it was empty or is not known.
    public let ancestor: FieldValue?
    /// The local side's value: that of the save or of this device.
    public let local: FieldValue?
    /// The store's value, or the cloud's where a synchronisation merges.
    public let store: FieldValue?
    /// The time of the local side's edit. `nil` if it is not known; it then counts as long ago.
    public let localTime: EditTime?
    /// The time of the edit on the store's side; see ``localTime``.
    public let storeTime: EditTime?

    /// Makes a conflict, as a merge passes it to a rule. For tests of rules.
    public init(
        type: String, record: String, field: String, ancestor: FieldValue?, local: FieldValue?, store: FieldValue?,
        localTime: EditTime? = nil, storeTime: EditTime? = nil
    ) {
        self.type = type
        self.record = record
        self.field = field
        self.ancestor = ancestor
        self.local = local
        self.store = store
        self.localTime = localTime
        self.storeTime = storeTime
    }
}

extension FieldConflict {
    /// The error that ``value(under:)`` throws for a field whose policy is ``MergePolicy/error``.
    struct IsError: Error {}

    /// The value that the field gets.
    func value(under policy: MergePolicy) throws -> FieldValue? {
        switch policy {
        case .error: throw IsError()
        case .mergeByPropertyObjectTrump, .overwrite: return local
        case .mergeByPropertyStoreTrump, .rollback: return store
        case .latestEdit:
            guard let storeTime else { return local }
            guard let localTime else { return store }
            return localTime > storeTime ? local : store
        case .custom(let rule): return try rule.field(self)
        }
    }

    /// Returns the value that the field gets, and appends the conflict to the log.
    func resolved(under policy: MergePolicy, log: inout [MergeConflict]) throws -> FieldValue? {
        let value: FieldValue?
        do {
            value = try self.value(under: policy)
        } catch is IsError {
            throw FieldMerge.Unresolved(fields: [field])
        }
        log.append(
            MergeConflict(
                type: type, record: record, field: field, ancestor: ancestor, local: local, store: store,
                winner: value.isSame(as: local) ? .local : value.isSame(as: store) ? .store : .merged, policy: policy.name))
        return value
    }
}
