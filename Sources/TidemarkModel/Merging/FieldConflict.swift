/// A field that both sides changed, to different values.
public struct FieldConflict: Hashable, Sendable {
    /// The record type's name.
    public let type: String
    /// The record's name.
    public let record: String
    /// The field's name.
    public let field: String
    /// The value that both sides began with; `nil` for none, and where that is not known.
    public let ancestor: FieldValue?
    /// The local side's value: that of the save or of this device.
    public let local: FieldValue?
    /// The store's value, or the cloud's where a synchronisation merges.
    public let store: FieldValue?
    /// When each side edited it; `nil` where that is not known, which counts as long ago.
    public let localTime: EditTime?
    /// When the store's side edited it; see ``localTime``.
    public let storeTime: EditTime?

    /// Makes a conflict, as a merge gives it to a rule.
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
    /// The policy of this field is to fail.
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

    /// The value that the field gets, and a line in the log.
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
