public import Foundation
import GRDB
public import TidemarkModel
public import TidemarkSQLite

/// A change of one record, without values.
public struct RecordChange: Hashable, Sendable {
    /// The type and the name of the record.
    public let record: RecordName
    /// Whether the record was inserted, updated or deleted.
    public let kind: ChangeKind
    /// Of an update, the fields that changed; of a deletion, those that had a value.
    public let fields: [String]

    /// Makes a change of one record. ``StoreReader/changes(since:without:limit:)`` returns those of a store.
    public init(record: RecordName, kind: ChangeKind, fields: [String] = []) {
        self.record = record
        self.kind = kind
        self.fields = fields
    }
}

/// A transaction and the changes of its records, without values.
public struct TransactionChanges: Hashable, Sendable {
    /// When the changes were made, by whom and how many; as `NSPersistentHistoryTransaction`.
    public let transaction: HistoryTransaction
    /// The changes, in the order in which they were made.
    public let changes: [RecordChange]
}

/// A stretch of history.
public struct HistoryPage: Hashable, Sendable {
    /// Oldest first.
    public let transactions: [TransactionChanges]
    /// The place in history behind it.
    public let token: HistoryToken
    /// Whether history went on behind it when it was read.
    public let hasMore: Bool
}

extension StoreReader {
    /// The place behind the last transaction.
    public func historyToken() throws(StoreError) -> HistoryToken {
        try read("read the history") { db in
            HistoryToken(
                history: try StoreIdentity(db, path: container.store(scope).path).history, transaction: try Self.last(db))
        }
    }

    /// What came since a token.
    ///
    /// - Parameters:
    ///   - token: `nil` for all that history has.
    ///   - writer: Transactions of this opening of the store are passed over.
    ///   - limit: The most transactions that are returned.
    /// - Throws: ``StoreError`` `historyTokenExpired` when history before the token was purged, or the token belongs to another history, as
    ///   of a store that was restored from a backup: then fetch all records again.
    /// - Complexity: O(n) in the records that were changed.
    public func changes(
        since token: HistoryToken?, without writer: UUID? = nil, limit: Int? = nil
    ) throws(StoreError) -> HistoryPage {
        try read("read the history") { db in
            let identity = try schema.identity(db, path: container.store(scope).path)
            let after = try Self.start(db, token: token, identity: identity)
            let last = try Self.last(db)
            let types = try schema.types(db)
            let sql = "SELECT * FROM tide_transactions WHERE id > ? AND writer IS NOT ? ORDER BY id LIMIT ?"
            let rows = try Row.fetchAll(
                db.cachedStatement(sql: sql), arguments: [after, writer?.uuidString, limit.map { max(0, $0) } ?? -1])
            let transactions = try rows.map { row in
                let transaction = try HistoryTransaction(row)
                return TransactionChanges(
                    transaction: transaction, changes: try Self.changes(db, of: transaction, types: types))
            }
            let isCut = limit.map { transactions.count >= $0 } ?? false
            let end = isCut ? transactions.last?.transaction.id ?? after : last
            return HistoryPage(
                transactions: transactions, token: HistoryToken(history: identity.history, transaction: end), hasMore: end < last)
        }
    }

    private static func last(_ db: Database) throws -> Int64 {
        try Int64.fetchOne(db.cachedStatement(sql: "SELECT max(id) FROM tide_transactions")) ?? 0
    }

    /// The transaction that a token stands behind.
    private static func start(_ db: Database, token: HistoryToken?, identity: StoreIdentity) throws -> Int64 {
        guard let token else { return 0 }
        guard token.history == identity.history else {
            throw StoreError(.historyTokenExpired, "the token is of another history than the store's. Fetch all records again")
        }
        guard try token.transaction <= last(db) else {
            throw StoreError(
                .historyTokenExpired, "the token is of a later state than the store's, which is a copy. Fetch all records again")
        }
        let floor = try HistoryFloor(db)
        guard token.transaction >= floor.transaction - 1 else {
            throw StoreError(
                .historyTokenExpired,
                "history before the transaction \(floor.transaction) was purged, and the token is older. Fetch all records again")
        }
        return token.transaction
    }

    private static func changes(
        _ db: Database, of transaction: HistoryTransaction, types: [StoredType]
    ) throws -> [RecordChange] {
        var changes: [RecordChange] = []
        let stored = try StoredChange.fetchAll(db, in: transaction.changes)
        // A record that moves to another zone is neither deleted nor new.
        let moves = Set(stored.compactMap { $0.isMove ? $0.previous : nil })
        for change in stored where !moves.contains(change.id) {
            guard let type = types.first(where: { $0.id == change.typeID }) else { continue }
            // A deleted row's name is in the change that deleted it.
            let sql = """
                SELECT _id, _key FROM "\(type.table)" WHERE _id BETWEEN ?1 AND ?2
                UNION ALL SELECT first_row, key FROM tide_changes WHERE kind = \(ChangeKind.delete.rawValue) AND type_id = ?3 AND first_row BETWEEN ?1 AND ?2
                ORDER BY 1
                """
            let fields =
                change.kind == .insert
                ? []
                : try String.fetchAll(
                    db.cachedStatement(
                        sql: "SELECT j.key FROM tide_changes c, \(StoredText.elementsSQL(of: "c.before")) j WHERE c.id = ?"),
                    arguments: [change.id]
                ).sorted()
            let rows = try Row.fetchCursor(
                db.cachedStatement(sql: sql), arguments: [change.rows.lowerBound, change.rows.upperBound, type.id])
            while let row = try rows.next() {
                guard let key = RecordKey.fromDatabaseValue(row[1]) else { throw change.cannotBe }
                changes.append(
                    RecordChange(
                        record: RecordName(type: type.name, name: key.name), kind: change.isMove ? .update : change.kind,
                        fields: fields))
            }
        }
        return changes
    }
}
