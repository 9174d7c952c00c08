/// Merges an edited record with the version that the store has by then. Three versions go in; one version and the conflicts come
/// out.
///
/// The merge is a pure function with the same result on all devices.
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
    /// The version that both sides began with; `nil` when each created the record by itself.
    public let ancestor: RecordVersion?
    /// The local side's version; `nil` when the local side deletes the record.
    public let local: RecordVersion?
    /// The store's version; `nil` when the record was deleted from the store.
    public let store: RecordVersion?
    /// The meaning of the policy for deletions.
    public let deletions: Deletions
    /// Whether the store's version has edits that ``store`` does not show, because the local side can't hold the values.
    package var storeHasHiddenEdits = false

    /// The meaning of a policy for a record that one side deleted and the other edited.
    public enum Deletions: Sendable {
        /// The edit wins under `mergeByPropertyObjectTrump`, `latestEdit` and `overwrite`, whichever side made it. The deletion
        /// wins under `mergeByPropertyStoreTrump` and `rollback`. So all devices end with the same result, in whatever order
        /// changes arrive.
        case alike
        /// The side that the policy favours wins, as with a field. For merges that one device makes alone, as in an undo.
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

    /// The error of a merge under ``MergePolicy/error``: the record with its three versions.
    public struct Unresolved: Error, Hashable, Sendable {
        /// The record type's name.
        public let type: String
        /// The record's name.
        public let record: String
        /// The version that both sides began with; `nil` when each created the record by itself.
        public let ancestor: RecordVersion?
        /// The local side's version; `nil` for its deletion.
        public let local: RecordVersion?
        /// The store's version; `nil` for its deletion.
        public let store: RecordVersion?
        /// The fields that both sides changed; none when one side deleted the record.
        public let fields: [String]
    }

    /// Merges the two sides under a policy.
    ///
    /// - Returns: The values that the record gets, or `nil` if it is deleted; and the resolved conflicts.
    /// - Throws: ``Unresolved`` under ``MergePolicy/error``; and errors of a custom rule.
    public func run(_ policy: MergePolicy) throws -> (values: [String: FieldValue]?, conflicts: [MergeConflict]) {
        switch (local, store) {
        case (nil, nil):
            return (nil, [])
        case (let local?, let store?):
            return try mergeFields(local: local, store: store, policy)
        case (let local?, nil):
            // Without an ancestor the record is new, and stays. A record that the local side has not edited goes with the other
            // side's deletion.
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

    /// The fields whose values differ, in order. Where both sides have the same value there is no conflict, whatever the ancestor
    /// has.
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
