import Foundation
public import TidemarkModel
import TidemarkSQLite
public import TidemarkStore

extension PersistentContainer {
    /// A reader of a store's history: transactions, the changes of a record with values, the changes since a token, and
    /// conflicts.
    public nonisolated func history(_ scope: StoreScope = .private) -> StoreReader { StoreReader(stores[scope]) }

    /// Removes the history of both stores that is older than an age, and the contents of assets that nothing names afterwards.
    ///
    /// - Parameters:
    ///   - age: Transactions that are older than this are removed.
    ///   - least: Transactions that are younger than this are kept, whatever `age` is.
    /// - Returns: The numbers of removed transactions and changes.
    /// - Throws: ``StoreError``.
    @discardableResult
    public nonisolated func purgeHistory(
        olderThan age: Duration = .seconds(7 * 86_400), keepingAtLeast least: Duration = .seconds(7 * 86_400)
    ) async throws -> HistoryPurge {
        var sum = HistoryPurge()
        for store in stores.all {
            let purge = try await store.purgeHistory(olderThan: age, keepingAtLeast: least)
            sum.transactions += purge.transactions
            sum.changes += purge.changes
        }
        _ = try await AssetCleaning(directory, stores: stores.all).removeUnnamedIfDue()
        return sum
    }

    /// Undoes a transaction: inserted records are deleted, and updated or deleted records get their earlier values. The undo is a
    /// transaction itself.
    ///
    /// - Parameters:
    ///   - transaction: The number of the transaction.
    ///   - scope: The store.
    ///   - policy: The policy for fields and records that were changed since. By default nothing is undone if there are such
    ///     changes.
    /// - Throws: ``UnresolvedConflicts`` under ``MergePolicy/error``; ``StoreError`` `notFound` when the history no longer has
    ///   the transaction.
    @discardableResult
    public nonisolated func undo(
        transaction: Int64, in scope: StoreScope = .private, mergePolicy policy: MergePolicy = .error
    ) async throws -> SaveResult {
        let outcome = try await stores[scope].undo(transaction: transaction, author: author, policy: policy)
        var result = SaveResult()
        result.add(outcome, scope: scope)
        if !result.counts.isUnchanged { changeBroadcaster.post(isOwn: true) }
        return result
    }
}
