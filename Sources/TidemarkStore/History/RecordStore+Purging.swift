import Foundation
import GRDB
import TidemarkModel
public import TidemarkSQLite

/// How much of the history a purge has removed.
public struct HistoryPurge: Hashable, Sendable, Codable {
    /// How many transactions were removed.
    public var transactions = 0
    /// How many rows of `tide_changes` were removed. A row stands for the inserts of a whole batch, or for one update or deletion.
    public var changes = 0

    /// The result of a purge that has removed nothing.
    public init() {}
}

extension RecordStore {
    /// Removes transactions of history that are older than an age, with their diffs and conflicts. The last transaction stays,
    /// and so do deletions that wait to be sent.
    ///
    /// - Parameters:
    ///   - age: Only older transactions are removed.
    ///   - least: Younger transactions stay, whatever `age` is. The default is seven days, so that a process that slept, or a
    ///     widget that is seldom shown, can continue from its token.
    /// - Complexity: O(n) in the changes removed.
    public func purgeHistory(
        olderThan age: Duration = .seconds(7 * 86_400), keepingAtLeast least: Duration = .seconds(7 * 86_400)
    ) throws(StoreError) -> HistoryPurge {
        try connection.locked("purge the history") { db in
            let now = now()
            // No history is a hundred thousand years old.
            let seconds = min(max(age, least, .zero), .seconds(100_000 * 366 * 86_400)).components
            let limit = now - seconds.seconds * 1_000_000 - seconds.attoseconds / 1_000_000_000_000
            return (try HistoryPurge(db, before: limit), .commit)
        }
    }
}

extension HistoryPurge {
    /// - Parameter time: Microseconds since 1970 UTC.
    fileprivate init(_ db: Database, before time: Int64) throws {
        let sql = """
            SELECT * FROM tide_transactions
            WHERE time < ? AND id < (SELECT max(id) FROM tide_transactions) ORDER BY id DESC LIMIT 1
            """
        guard let last = try Row.fetchOne(db, sql: sql, arguments: [time]) else { return }
        let transaction = try HistoryTransaction(last)
        // A newer transaction is there, so the number behind this one exists.
        let floor = HistoryFloor(transaction: transaction.id + 1, change: transaction.changes.upperBound)
        // The outbox first ingests the changes that wait to be sent, and needs their history no longer. Deletions stay until they
        // are sent.
        try Outbox(db).ingestHistory()
        let forgotten = """
            id < \(floor.change) AND NOT (kind = \(ChangeKind.delete.rawValue) AND EXISTS (
                SELECT 1 FROM tide_outbox o WHERE o.kind = \(ExportKind.delete.rawValue) AND o.type_id = tide_changes.type_id AND o.first_row = tide_changes.first_row))
            """
        try db.execute(
            sql: """
                UPDATE tide_types SET forgotten_rows = forgotten_rows + (
                    SELECT coalesce(sum(CASE kind WHEN 1 THEN last_row - first_row + 1 WHEN 3 THEN -1 ELSE 0 END), 0)
                    FROM tide_changes WHERE type_id = tide_types.id AND \(forgotten)
                )
                """)
        try db.execute(sql: "DELETE FROM tide_changes WHERE \(forgotten)")
        changes = db.changesCount
        try db.execute(sql: "DELETE FROM tide_conflicts WHERE transaction_id < \(floor.transaction)")
        try db.execute(sql: "DELETE FROM tide_transactions WHERE id < \(floor.transaction)")
        transactions = db.changesCount
        try floor.store(db)
    }
}
