import Foundation
public import TidemarkModel
import TidemarkSQLite
public import TidemarkStore

extension PersistentContainer {
    /// The history of a store, read only: transactions, the changes of a record with values, what came since a token, conflicts.
    public nonisolated func history(_ scope: StoreScope = .private) -> StoreReader { StoreReader(stores[scope]) }

    /// Removes the history of both stores that is older than an age, and the contents of assets that nothing names then.
    ///
    /// - Parameters:
    ///   - age: Only what is older goes.
    ///   - least: What is younger stays, whatever `age` says.
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

    /// Undoes a transaction: what it inserted goes, what it updated or deleted is as before. That is a transaction itself.
    ///
    /// - Parameter policy: What becomes of fields and records that were changed since; by default nothing is undone then.
    /// - Throws: ``UnresolvedConflicts`` under ``MergePolicy/error``; ``StoreError`` `notFound` when history has it no more.
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
