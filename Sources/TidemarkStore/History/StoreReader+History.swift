import Foundation
import GRDB
import TidemarkModel
public import TidemarkSQLite

extension StoreReader {
    /// The newest transactions, newest first.
    public func transactions(limit: Int? = nil) throws(StoreError) -> [HistoryTransaction] {
        try read("read the history") { db in
            try Row.fetchAll(
                db, sql: "SELECT * FROM tide_transactions ORDER BY id DESC LIMIT ?", arguments: [limit ?? -1]
            ).map { row in try HistoryTransaction(row) }
        }
    }

    /// Returns whether a transaction is one that can be undone: history has it, and it did not move records into another zone, as sharing does.
    ///
    /// The undo can still be refused: where records were changed since, by damage, by a field that is gone, by a permission or a delete rule.
    ///
    /// - Complexity: O(n) in the changes of the transaction.
    public func canUndo(transaction id: Int64) throws(StoreError) -> Bool {
        try read("read the history") { db in
            guard let row = try Row.fetchOne(db, sql: "SELECT * FROM tide_transactions WHERE id = ?", arguments: [id]) else {
                return false
            }
            return try !StoredChange.fetchAll(db, in: HistoryTransaction(row).changes).contains(where: \.isMove)
        }
    }

    /// Returns the changes of a record, newest first, with its deletions and the changes before them. Empty where no record ever
    /// had the name.
    public func changes(ofRecord name: String) throws(StoreError) -> [HistoryChange] {
        try read("read the history") { db in
            let key = RecordKey(name: name)
            var changes: [HistoryChange] = []
            for type in try StoredType.fetchAll(db) {
                let there = try Int64.fetchAll(db, sql: "SELECT _id FROM \"\(type.table)\" WHERE _key = ?", arguments: [key])
                let deleted = try Int64.fetchAll(
                    db,
                    sql:
                        "SELECT first_row FROM tide_changes WHERE kind = \(ChangeKind.delete.rawValue) AND key = ? AND type_id = ?",
                    arguments: [key, type.id])
                for row in there + deleted {
                    changes += try RecordHistory(db, type: type, rowID: row)?.changes ?? []
                }
            }
            return changes.sorted { $0.id > $1.id }
        }
    }

    /// The updates and deletions of one transaction, in order; and how many records it inserted, per type.
    public func changes(
        ofTransaction id: Int64
    ) throws(StoreError) -> (changes: [HistoryChange], inserted: [String: Int]) {
        try read("read the history") { db in
            let types = try StoredType.fetchAll(db)
            var changes: [HistoryChange] = []
            var inserted: [String: Int] = [:]
            guard let row = try Row.fetchOne(db, sql: "SELECT * FROM tide_transactions WHERE id = ?", arguments: [id]) else {
                return ([], [:])
            }
            for change in try StoredChange.fetchAll(db, in: HistoryTransaction(row).changes) {
                guard let type = types.first(where: { $0.id == change.typeID }) else { continue }
                if change.kind == .insert {
                    let (sum, overflows) = inserted[type.name, default: 0].addingReportingOverflow(change.rows.count)
                    guard !overflows else { throw change.cannotBe }
                    inserted[type.name] = sum
                } else {
                    let history = try RecordHistory(db, type: type, rowID: change.rows.lowerBound, oldest: change.id)
                    changes += history?.changes.filter { $0.id == change.id } ?? []
                }
            }
            return (changes, inserted)
        }
    }
}

/// A row of `tide_changes`, without its values.
struct StoredChange {
    let id: Int64
    let transaction: Int64
    let typeID: Int64
    let kind: ChangeKind
    let rows: ClosedRange<Int64>
    /// The record's change before this one.
    let previous: Int64?

    /// Whether the change moves a record here from another zone. ``previous`` is the deletion there.
    var isMove: Bool { kind == .insert && previous != nil }

    static func fetchAll(_ db: Database, in range: Range<Int64>) throws -> [StoredChange] {
        let sql = """
            SELECT id, transaction_id, type_id, kind, first_row, last_row, previous FROM tide_changes
            WHERE id >= ? AND id < ? ORDER BY id
            """
        return try Row.fetchAll(db.cachedStatement(sql: sql), arguments: [range.lowerBound, range.upperBound])
            .map { row in try StoredChange(row) }
    }

    private init(_ row: Row) throws {
        let table = "tide_changes"
        id = try row.stored("id", of: table)
        transaction = try row.stored("transaction_id", of: table)
        typeID = try row.stored("type_id", of: table)
        let (first, last): (Int64, Int64) = (try row.stored("first_row", of: table), try row.stored("last_row", of: table))
        guard let kind = ChangeKind(rawValue: try row.stored("kind", of: table)), first > 0, last >= first, last < .max
        else { throw Self.cannotBe(id) }
        self.kind = kind
        rows = first...last
        previous = try row.stored("previous", of: table)
    }

    var cannotBe: StoreError { Self.cannotBe(id) }

    private static func cannotBe(_ id: Int64) -> StoreError {
        StoreError(.corrupt, "the change \(id) in tide_changes names a kind or rows that cannot be")
    }
}
