/// Merges the values of a record that both sides have. Values are in the order of their fields.
///
/// This is the only three-way merge. Synchronisation calls it directly. Saves, undo and records with equal unique keys call it
/// through ``RecordMerge``.
///
/// The result names only the fields that become different from the store's version. Where edit times do not matter, a field that
/// neither side edited costs one comparison.
///
/// ```swift
/// let merge = FieldMerge(type: "Destination", record: "senja", fields: ["caption", "rating"])
/// let (edits, renewals, conflicts) = try merge.run(
///     .latestEdit, ancestor: loaded, local: edited, store: saved,
///     times: { field in (before[field], mine[field], theirs[field]) })
/// for (field, value) in edits { (saved[field], theirs[field]) = (value, mine[field]) }
/// for field in renewals { theirs[field] = mine[field] }
/// ```
public struct FieldMerge: Sendable {
    /// The record type's name, for the log of conflicts.
    public let type: String
    /// The record's name, for the log of conflicts.
    public let record: String
    /// The names of the fields. All values are in this order.
    public let fields: [String]

    /// An edit: the place of a field in ``fields``, and the value that the field gets.
    public typealias Edit = (field: Int, value: FieldValue?)
    /// The edit times of a field: of the value that both sides began with, and of each side's value. `nil` if a time is not
    /// known; it then counts as long ago.
    public typealias Times = (_ field: Int) -> (ancestor: EditTime?, local: EditTime?, store: EditTime?)

    /// Makes a merge of one record.
    ///
    /// - Parameters:
    ///   - type: The record type's name, for the log of conflicts.
    ///   - record: The record's name, for the log of conflicts.
    ///   - fields: The names of the fields. All values are in this order.
    public init(type: String, record: String, fields: [String]) {
        self.type = type
        self.record = record
        self.fields = fields
    }

    /// The error of a merge under ``MergePolicy/error``: both sides changed the same fields.
    public struct Unresolved: Error, Hashable, Sendable {
        /// The names of these fields, in the order of the merge's fields.
        public let fields: [String]
    }

    /// Merges the two sides under a policy.
    ///
    /// - Parameters:
    ///   - policy: The policy that resolves conflicts.
    ///   - ancestor: The values that both sides began with; `nil` when each side created the record by itself.
    ///   - local: The values of the local side.
    ///   - store: The values of the store.
    ///   - mayBeEdited: Returns whether the local side may have edited a field. It is called only if the policy compares edit
    ///     times, for fields whose values do not show an edit.
    ///   - times: Returns the edit times of a field. It is called for fields in conflict; if the policy compares edit times, for
    ///     all fields that either side may have edited.
    /// - Returns: `edits` are the fields that become different from the store's version, in order. `renewals` are fields, found
    ///   only if the policy compares edit times, whose values are the same on both sides and which the local side edited later.
    ///   Their values stay, but the caller has to store and send the later times: otherwise an edit made between the two times
    ///   would win over the later one. `conflicts` are the resolved conflicts.
    /// - Throws: ``Unresolved`` under ``MergePolicy/error``; and errors of a custom rule.
    /// - Precondition: Each side has as many values as there are fields.
    public func run(
        _ policy: MergePolicy, ancestor: [FieldValue?]?, local: [FieldValue?], store: [FieldValue?],
        mayBeEdited: (_ field: Int) -> Bool = { _ in true }, times: Times
    ) throws -> (edits: [Edit], renewals: [Int], conflicts: [MergeConflict]) {
        try run(
            policy, ancestor: ancestor, local: local, store: store, mayBeEdited: mayBeEdited,
            storeIsEdited: { Self.differ(store, ancestor) }, times: times)
    }

    /// - Parameter storeIsEdited: Returns whether the store has changed any field of the record, including fields outside
    ///   ``fields``.
    func run(
        _ policy: MergePolicy, ancestor: [FieldValue?]?, local: [FieldValue?], store: [FieldValue?],
        mayBeEdited: (_ field: Int) -> Bool = { _ in true }, storeIsEdited: () -> Bool, times: Times
    ) throws -> (edits: [Edit], renewals: [Int], conflicts: [MergeConflict]) {
        precondition(
            local.count == fields.count && store.count == fields.count && ancestor?.count ?? fields.count == fields.count,
            "each side has a value for each field")
        var edits: [Edit] = []
        var (renewals, conflicting): ([Int], [Int]) = ([], [])
        let mayWeigh = policy.mayWeighTimes
        for field in fields.indices {
            let isSame = local[field].isSame(as: store[field])
            if isSame, !mayWeigh || !mayBeEdited(field) { continue }
            let was = ancestor?[field] ?? nil
            var isMine = !local[field].isSame(as: was)
            var isTheirs = isSame ? isMine : !store[field].isSame(as: was)
            if mayWeigh, isSame || !(isMine && isTheirs), policy.weighsTimes(of: fields[field]) {
                let times = times(field)
                if !isMine, mayBeEdited(field) { isMine = local[field].isEdit(at: times.local, since: times.ancestor) }
                if isSame {
                    if isMine, let later = times.local, times.store.map({ later > $0 }) ?? true { renewals.append(field) }
                    continue
                }
                if !isTheirs { isTheirs = store[field].isEdit(at: times.store, since: times.ancestor) }
            }
            if isSame { continue }
            let side = policy.side(isMine: isMine, isTheirs: isTheirs, storeIsEdited: storeIsEdited())
            switch side {
            case .store: break
            case .local: edits.append((field, local[field]))
            case .both: conflicting.append(field)
            }
        }
        guard !conflicting.isEmpty else { return (edits, renewals, []) }
        if case .error = policy { throw Unresolved(fields: conflicting.map { fields[$0] }) }
        var log: [MergeConflict] = []
        for field in conflicting {
            let times = times(field)
            let conflict = FieldConflict(
                type: type, record: record, field: fields[field], ancestor: ancestor?[field], local: local[field],
                store: store[field], localTime: times.local, storeTime: times.store)
            let value = try conflict.resolved(under: policy, log: &log)
            if !value.isSame(as: store[field]) { edits.append((field, value)) }
        }
        if edits.count > 1 { edits.sort { $0.field < $1.field } }
        return (edits, renewals, log)
    }

    private static func differ(_ store: [FieldValue?], _ ancestor: [FieldValue?]?) -> Bool {
        store.indices.contains { !store[$0].isSame(as: ancestor?[$0] ?? nil) }
    }
}

extension FieldValue? {
    /// Whether the edit times show that a value was changed and changed back, although it equals the earlier value.
    ///
    /// For a field without a value the times show nothing: a record's insertion gives a time to each of its fields.
    func isEdit(at time: EditTime?, since before: EditTime?) -> Bool {
        guard self != nil, let time, let before else { return false }
        return time != before
    }
}

extension MergePolicy {
    /// Whether the policy may compare the edit times of some field. It is read once for each record.
    var mayWeighTimes: Bool {
        switch self {
        case .latestEdit, .error, .custom: true
        case .mergeByPropertyStoreTrump, .mergeByPropertyObjectTrump, .overwrite, .rollback: false
        }
    }

    /// Whether the policy compares the edit times of a field even if its value is the earlier one.
    func weighsTimes(of field: String) -> Bool {
        switch self {
        // A person who resolves the conflict may compare the times.
        case .latestEdit, .error: true
        case .mergeByPropertyStoreTrump, .mergeByPropertyObjectTrump, .overwrite, .rollback: false
        case .custom(let rule): rule.weighsTimes(field)
        }
    }

    /// The side whose edit of a field counts.
    enum Side {
        case local, store
        /// Both sides edited the field: a conflict.
        case both
    }

    /// Returns the side whose value a field gets, for a field that differs between the sides.
    ///
    /// - Parameters:
    ///   - isMine: Whether the local side has changed the field.
    ///   - isTheirs: Whether the store has changed the field.
    ///   - storeIsEdited: Whether the store has changed any field of the record.
    func side(
        isMine: Bool, isTheirs: Bool, storeIsEdited: @autoclosure () -> Bool
    ) -> Side {
        let isConflict =
            switch self {
            case .overwrite: isTheirs
            // If the store has not changed, there is nothing to roll back to.
            case .rollback: isMine && storeIsEdited()
            default: isMine && isTheirs
            }
        return isConflict ? .both : isMine ? .local : .store
    }
}
