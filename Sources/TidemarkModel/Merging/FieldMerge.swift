/// Merges the values of a record that is there on both sides. Values stand in the order of their fields.
///
/// This is the one three-way merge: of saves, undo and records with equal keys, by way of ``RecordMerge``, and of synchronisation.
///
/// What it tells is what becomes different from the store's version; so a field that nobody edited costs one comparison and nothing else,
/// where times do not matter.
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

    /// A field, as its place among all, and the value that it gets.
    public typealias Edit = (field: Int, value: FieldValue?)
    /// When a field was edited that both sides began with, and when each side edited it; `nil` where that is not known, which counts as
    /// long ago.
    public typealias Times = (_ field: Int) -> (ancestor: EditTime?, local: EditTime?, store: EditTime?)

    /// Makes a merge of one record.
    ///
    /// - Parameter fields: The names of the fields; all values that are given later stand in this order.
    public init(type: String, record: String, fields: [String]) {
        self.type = type
        self.record = record
        self.fields = fields
    }

    /// The fields that both sides changed, under ``MergePolicy/error``.
    public struct Unresolved: Error, Hashable, Sendable {
        /// Their names, in the order of the merge's fields.
        public let fields: [String]
    }

    /// The fields that are to be other than the store has them, in order; and the conflicts there were.
    ///
    /// Where the policy weighs times, `renewals` are fields which both sides have alike and the local side has edited later. Their values
    /// stay, and the later times are to go where the values go: else an edit that was made between the two wins over the later one.
    ///
    /// - Parameters:
    ///   - ancestor: What both sides began with; `nil` when each made the record by itself.
    ///   - mayBeEdited: Whether the local side may have edited a field; asked where the policy weighs times, of fields whose values do not
    ///     tell.
    ///   - times: Asked of fields in conflict; where the policy weighs times, of all that one side or the other may have edited.
    /// - Throws: ``Unresolved`` under ``MergePolicy/error``; and what a rule of one's own throws.
    /// - Precondition: Each side has as many values as there are fields.
    public func run(
        _ policy: MergePolicy, ancestor: [FieldValue?]?, local: [FieldValue?], store: [FieldValue?],
        mayBeEdited: (_ field: Int) -> Bool = { _ in true }, times: Times
    ) throws -> (edits: [Edit], renewals: [Int], conflicts: [MergeConflict]) {
        try run(
            policy, ancestor: ancestor, local: local, store: store, mayBeEdited: mayBeEdited,
            storeIsEdited: { Self.differ(store, ancestor) }, times: times)
    }

    /// - Parameter storeIsEdited: Whether the store has changed anything of the record, also of fields that are not among these.
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
    /// Whether times tell that what is as it was before has been changed, and changed back.
    ///
    /// They do not where there is no value: a record's insertion gives a time to each of its fields.
    func isEdit(at time: EditTime?, since before: EditTime?) -> Bool {
        guard self != nil, let time, let before else { return false }
        return time != before
    }
}

extension MergePolicy {
    /// Whether it may matter of some field when it was edited; asked once for a record.
    var mayWeighTimes: Bool {
        switch self {
        case .latestEdit, .error, .custom: true
        case .mergeByPropertyStoreTrump, .mergeByPropertyObjectTrump, .overwrite, .rollback: false
        }
    }

    /// Whether it matters when a field was edited, whatever it was before.
    func weighsTimes(of field: String) -> Bool {
        switch self {
        // A person may resolve it by times.
        case .latestEdit, .error: true
        case .mergeByPropertyStoreTrump, .mergeByPropertyObjectTrump, .overwrite, .rollback: false
        case .custom(let rule): rule.weighsTimes(field)
        }
    }

    /// Whose edit of a field counts.
    enum Side {
        case local, store
        /// Both: a conflict.
        case both
    }

    /// Whose value a field gets that is not the same on both sides.
    ///
    /// - Parameters:
    ///   - isMine: Whether the local side has changed it.
    ///   - isTheirs: Whether the store has.
    ///   - storeIsEdited: Whether the store has changed anything of the record.
    func side(
        isMine: Bool, isTheirs: Bool, storeIsEdited: @autoclosure () -> Bool
    ) -> Side {
        let isConflict =
            switch self {
            case .overwrite: isTheirs
            // Where the store has not changed there is nothing to go back to.
            case .rollback: isMine && storeIsEdited()
            default: isMine && isTheirs
            }
        return isConflict ? .both : isMine ? .local : .store
    }
}
