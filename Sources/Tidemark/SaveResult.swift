public import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// What a save did.
public struct SaveResult: Hashable, Sendable {
    /// In records.
    public internal(set) var counts = ChangeCounts()
    /// Conflicts that the merge policy has resolved.
    public internal(set) var conflicts: [MergeConflict] = []
    /// Records that have become one with another of their unique key, and the name that it has.
    public internal(set) var replaced: [RecordName: String] = [:]
    /// Records that were deleted with a record that they refer to, by the delete rule cascade.
    public internal(set) var cascaded: [RecordName] = []
    /// The transactions of history that it has become: one for each store that was changed.
    public internal(set) var transactions: [StoreScope: Int64] = [:]

    init() {}

    /// Creates the result of a transaction of which nothing else is known.
    package init(transaction: Int64, in scope: StoreScope) { transactions = [scope: transaction] }

    /// Adds the result of a later save.
    mutating func add(_ later: SaveResult) {
        counts += later.counts
        conflicts += later.conflicts
        for (record, name) in replaced where later.replaced[RecordName(type: record.type, name: name)] != nil {
            replaced[record] = later.replaced[RecordName(type: record.type, name: name)]
        }
        replaced.merge(later.replaced) { $1 }
        cascaded += later.cascaded
        transactions.merge(later.transactions) { $1 }
    }

    mutating func add(_ outcome: SaveOutcome, scope: StoreScope) {
        counts += outcome.counts
        conflicts += outcome.conflicts
        replaced.merge(outcome.replaced) { $1 }
        cascaded += outcome.cascaded
        if let transaction = outcome.transaction { transactions[scope] = transaction }
    }
}
