/// Merges an edit with what the store has by then: three versions in, one out, and the conflicts between.
///
/// Pure, and the same on all devices.
///
/// ```swift
/// let merge = RecordMerge(type: "Destination", record: "senja", ancestor: loaded, local: edited, store: saved)
/// let (result, conflicts) = try merge.run(.mergeByPropertyObjectTrump)
/// ```
public struct RecordMerge: Sendable {
    /// The record type's name.
    public let type: String
    /// The record's name.
    public let record: String
    /// What both sides began with; `nil` when each made the record by itself.
    public let ancestor: RecordVersion?
    /// `nil` when the local side deletes the record.
    public let local: RecordVersion?
    /// `nil` when the record is gone from the store.
    public let store: RecordVersion?
    /// What the policy means for deletions.
    public let deletions: Deletions
    /// Whether the store's version has edits that its values do not show: values that the local side can't hold.
    package var storeHasHiddenEdits = false

    /// What a policy means where one side has deleted the record and the other has edited it.
    public enum Deletions: Sendable {
        /// The edit stays under policies that favour edits, whichever side made it, and else the deletion: so all devices end with the
        /// same, whatever comes first.
        case alike
        /// The side that the policy favours has its way, as with a field: for what one device resolves alone, as an undo.
        case bySide
    }

    /// Makes a merge of one record; see the properties.
    public init(
        type: String, record: String, ancestor: RecordVersion?, local: RecordVersion?, store: RecordVersion?,
        deletions: Deletions = .alike
    ) {
        self.type = type
        self.record = record
        self.ancestor = ancestor
        self.local = local
        self.store = store
        self.deletions = deletions
    }

    /// Under ``MergePolicy/error``: the record with its three versions.
    public struct Unresolved: Error, Hashable, Sendable {
        /// The record type's name.
        public let type: String
        /// The record's name.
        public let record: String
        /// The version that both sides began with; `nil` when each made the record by itself.
        public let ancestor: RecordVersion?
        /// The local side's version; `nil` for its deletion.
        public let local: RecordVersion?
        /// The store's version; `nil` for its deletion.
        public let store: RecordVersion?
        /// The fields that both sides changed; none when one side deleted the record.
        public let fields: [String]
    }

    /// The values that the record gets, `nil` for its deletion; and the conflicts there were.
    ///
    /// - Throws: ``Unresolved`` under ``MergePolicy/error``; and what a rule of one's own throws.
    public func run(_ policy: MergePolicy) throws -> (values: [String: FieldValue]?, conflicts: [MergeConflict]) {
        switch (local, store) {
        case (nil, nil):
            return (nil, [])
        case (let local?, let store?):
            return try mergeFields(local: local, store: store, policy)
        case (let local?, nil):
            // Never saved before, or not edited since the other side deleted it.
            guard let ancestor else { return (local.values, []) }
            guard !local.values.isSame(as: ancestor.values) else { return (nil, []) }
            return try resolveDeletion(kept: local.values, keeper: .local, policy)
        case (nil, let store?):
            guard let ancestor, storeHasHiddenEdits || !store.values.isSame(as: ancestor.values) else { return (nil, []) }
            return try resolveDeletion(kept: store.values, keeper: .store, policy)
        }
    }

    private func mergeFields(
        local: RecordVersion, store: RecordVersion, _ policy: MergePolicy
    ) throws -> (values: [String: FieldValue]?, conflicts: [MergeConflict]) {
        let fields = Self.differences(local.values, store.values)
        guard !fields.isEmpty else { return (store.values, []) }
        let merge = FieldMerge(type: type, record: record, fields: fields)
        do {
            let (edits, _, conflicts) = try merge.run(
                policy, ancestor: ancestor.map { known in fields.map { known.values[$0] } },
                local: fields.map { local.values[$0] },
                store: fields.map { store.values[$0] },
                storeIsEdited: { !store.values.isSame(as: ancestor?.values ?? [:]) },
                times: { (ancestor?.times[fields[$0]], local.times[fields[$0]], store.times[fields[$0]]) })
            var merged = store.values
            for edit in edits { merged[fields[edit.field]] = edit.value }
            return (merged, conflicts)
        } catch let error as FieldMerge.Unresolved {
            throw unresolved(error.fields)
        }
    }

    private func unresolved(_ fields: [String]) -> Unresolved {
        Unresolved(type: type, record: record, ancestor: ancestor, local: local, store: store, fields: fields)
    }

    /// The fields whose values are not the same, in order. Where both sides agree there is no conflict, whatever there was before.
    private static func differences(_ local: [String: FieldValue], _ store: [String: FieldValue]) -> [String] {
        var (fields, common): ([String], Int) = ([], 0)
        for (field, mine) in local {
            let theirs = store[field]
            if theirs != nil { common += 1 }
            if !theirs.isSame(as: mine) { fields.append(field) }
        }
        if common < store.count {
            for field in store.keys where local[field] == nil { fields.append(field) }
        }
        if fields.count > 1 { fields.sort() }
        return fields
    }

    private func resolveDeletion(
        kept: [String: FieldValue], keeper: MergeConflict.Winner, _ policy: MergePolicy
    ) throws -> (values: [String: FieldValue]?, conflicts: [MergeConflict]) {
        let isKept: Bool
        switch policy {
        case .error:
            throw unresolved([])
        case .mergeByPropertyObjectTrump, .latestEdit, .overwrite: isKept = deletions == .alike || keeper == .local
        case .mergeByPropertyStoreTrump, .rollback: isKept = deletions == .bySide && keeper == .store
        case .custom(let rule):
            isKept = try rule.deletion(
                DeletionConflict(type: type, record: record, ancestor: ancestor, local: local, store: store))
        }
        let other: MergeConflict.Winner = keeper == .local ? .store : .local
        let conflict = MergeConflict(
            type: type, record: record, field: nil, ancestor: nil, local: nil, store: nil, winner: isKept ? keeper : other,
            policy: policy.name)
        return (isKept ? kept : nil, [conflict])
    }
}
