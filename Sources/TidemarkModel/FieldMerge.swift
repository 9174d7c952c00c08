/// Merges the values of a record that is there on both sides: the rules of ``RecordMerge``, for values that stand in the order of their
/// fields.
///
/// What it tells is what becomes different from the store's version; so a field that nobody edited costs one comparison and nothing else.
///
/// ```swift
/// let merge = FieldMerge(type: "Destination", record: "senja", fields: ["caption", "rating"])
/// let (edits, conflicts) = try merge.run(
///     .latestEdit, ancestor: loaded, local: edited, store: saved, times: { field in (mine[field], theirs[field]) })
/// for (field, value) in edits { saved[field] = value }
/// ```
public struct FieldMerge: Sendable {
    public let type: String
    public let record: String
    /// The names of the fields. All values are in this order.
    public let fields: [String]

    /// A field, as its place among all, and the value that it gets.
    public typealias Edit = (field: Int, value: FieldValue?)
    /// When each side edited a field; `nil` where that is not known, which counts as long ago.
    public typealias Times = (_ field: Int) -> (local: EditTime?, store: EditTime?)

    public init(type: String, record: String, fields: [String]) {
        self.type = type
        self.record = record
        self.fields = fields
    }

    /// The fields that both sides changed, under ``MergePolicy/error``.
    public struct Unresolved: Error, Hashable, Sendable {
        public let fields: [String]
    }

    /// The fields that are to be other than the store has them, in order; and the conflicts there were.
    ///
    /// - Parameters:
    ///   - ancestor: What both sides began with; `nil` when each made the record by itself.
    ///   - times: Asked of fields in conflict only.
    /// - Throws: ``Unresolved`` under ``MergePolicy/error``; and what a rule of one's own throws.
    /// - Precondition: Each side has as many values as there are fields.
    public func run(
        _ policy: MergePolicy, ancestor: [FieldValue?]?, local: [FieldValue?], store: [FieldValue?], times: Times
    ) throws -> (edits: [Edit], conflicts: [MergeConflict]) {
        precondition(
            local.count == fields.count && store.count == fields.count && ancestor?.count ?? fields.count == fields.count,
            "each side has a value for each field")
        var edits: [Edit] = []
        var unsettled: [Int] = []
        for field in fields.indices where !local[field].isSame(as: store[field]) {
            let was = ancestor?[field]
            let side = policy.side(
                isMine: !local[field].isSame(as: was ?? nil), isTheirs: !store[field].isSame(as: was ?? nil),
                storeIsEdited: Self.differ(store, ancestor))
            switch side {
            case .store: break
            case .local: edits.append((field, local[field]))
            case .both: unsettled.append(field)
            }
        }
        guard !unsettled.isEmpty else { return (edits, []) }
        if case .error = policy { throw Unresolved(fields: unsettled.map { fields[$0] }) }
        var log: [MergeConflict] = []
        for field in unsettled {
            let times = times(field)
            let conflict = FieldConflict(
                type: type, record: record, field: fields[field], ancestor: ancestor?[field], local: local[field],
                store: store[field], localTime: times.local, storeTime: times.store)
            let value = try conflict.settled(under: policy, log: &log)
            if !value.isSame(as: store[field]) { edits.append((field, value)) }
        }
        if edits.count > 1 { edits.sort { $0.field < $1.field } }
        return (edits, log)
    }

    private static func differ(_ store: [FieldValue?], _ ancestor: [FieldValue?]?) -> Bool {
        store.indices.contains { !store[$0].isSame(as: ancestor?[$0] ?? nil) }
    }
}

extension MergePolicy {
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

extension FieldConflict {
    /// The value that the field gets, and a line in the log.
    func settled(under policy: MergePolicy, log: inout [MergeConflict]) throws -> FieldValue? {
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
