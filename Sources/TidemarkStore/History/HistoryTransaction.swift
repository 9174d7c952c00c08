public import Foundation
package import GRDB
public import TidemarkModel
import TidemarkSQLite

/// Where a transaction came from. The raw values are stored.
public enum HistoryOrigin: String, Hashable, Codable, Sendable {
    /// A program saved it.
    case save
    /// A bulk import wrote it.
    case `import`
    /// A transaction was undone.
    case undo
    /// It was fetched from the cloud.
    case cloud
}

/// One transaction of a store's history.
public struct HistoryTransaction: Hashable, Sendable {
    /// The transaction's number in its store; rises from transaction to transaction.
    public let id: Int64
    /// Microseconds since 1970 UTC; rises from transaction to transaction.
    public let time: Int64
    /// The time of the transaction.
    public var date: Date { Timestamp.date(microseconds: time) }
    /// The name that the program gave itself.
    public let author: String
    /// Which kind of work wrote the transaction.
    public let origin: HistoryOrigin
    /// The opening of the store that wrote it. A synchronisation that uses the same opening has a UUID of its own.
    public let writer: UUID
    /// How many records the transaction inserted.
    public let inserted: Int
    /// How many records the transaction updated.
    public let updated: Int
    /// How many records the transaction deleted.
    public let deleted: Int
    /// The numbers of its changes.
    let changes: Range<Int64>
}

/// One change of one record, with values.
public struct HistoryChange: Hashable, Sendable {
    /// What a field was and what it became, as the store holds values.
    public struct FieldChange: Hashable, Sendable {
        /// The name of the field.
        public let field: String
        /// The type of the field.
        public let type: FieldType
        /// The value before the change; `nil` for no value.
        public let before: FieldValue?
        /// The value after the change; `nil` for no value.
        public let after: FieldValue?

        /// Makes a change of one field. `nil` stands for no value.
        public init(field: String, type: FieldType, before: FieldValue?, after: FieldValue?) {
            self.field = field
            self.type = type
            self.before = before
            self.after = after
        }
    }

    /// The change's number in its store; rises from change to change.
    public let id: Int64
    /// The transaction that made the change.
    public let transaction: HistoryTransaction
    /// The type of the record.
    public let type: String
    /// The name of the record.
    public let record: String
    /// Whether the record was inserted, updated or deleted.
    public let kind: ChangeKind
    /// The fields concerned: of an update, the changed ones; of a deletion, the ones that had a value.
    public let fields: [FieldChange]
}

extension HistoryTransaction {
    package init(_ row: Row) throws {
        let table = "tide_transactions"
        id = try row.stored("id", of: table)
        time = try row.stored("time", of: table)
        author = try row.stored("author", of: table)
        let (origin, writer): (String, String) = (try row.stored("origin", of: table), try row.stored("writer", of: table))
        guard let origin = HistoryOrigin(rawValue: origin), let writer = UUID(uuidString: writer) else {
            throw StoreError(.corrupt, "the transaction \(id) in tide_transactions has an origin or a writer that cannot be one")
        }
        self.origin = origin
        self.writer = writer
        inserted = try row.stored("inserted", of: table)
        updated = try row.stored("updated", of: table)
        deleted = try row.stored("deleted", of: table)
        let (first, last): (Int64, Int64) = (try row.stored("first_change", of: table), try row.stored("last_change", of: table))
        guard first > 0, last >= first, last < .max else {
            throw StoreError(.corrupt, "the transaction \(id) in tide_transactions has changes that cannot be")
        }
        changes = first..<last + 1
    }
}
