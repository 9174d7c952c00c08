public import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// The result of a save.
public struct SaveResult: Hashable, Sendable {
    /// The numbers of records that were inserted, updated, left unchanged and deleted.
    public internal(set) var counts = ChangeCounts()
    /// The conflicts that the merge policy has resolved.
    public internal(set) var conflicts: [MergeConflict] = []
    /// The records that were merged into another record with the same unique key, each with the name of that record.
    public internal(set) var replaced: [RecordName: String] = [:]
    /// The records that were deleted with a record that they refer to, by the delete rule cascade.
    public internal(set) var cascaded: [RecordName] = []
    /// The numbers of the save's transactions in history: one for each store that was changed.
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
