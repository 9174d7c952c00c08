import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite

/// Where a transaction came from. The raw values are stored.
public enum HistoryOrigin: String, Hashable, Codable, Sendable {
    /// A program saved it.
    case save
    case `import`
    /// A transaction was undone.
    case undo
    /// It was fetched from the cloud.
    case cloud
}

/// One transaction of a store's history.
public struct HistoryTransaction: Hashable, Sendable {
    public let id: Int64
    /// Microseconds since 1970 UTC; rises from transaction to transaction.
    public let time: Int64
    /// The name that the program gave itself.
    public let author: String
    public let origin: HistoryOrigin
    /// The opening of the store that wrote it. A synchronisation that uses the same opening has a UUID of its own.
    public let writer: UUID
    public let inserted: Int
    public let updated: Int
    public let deleted: Int
    /// The numbers of its changes.
    let changes: Range<Int64>
}

/// One change of one record, with values.
public struct HistoryChange: Hashable, Sendable {
    /// The raw values are stored.
    public enum Kind: Int, Sendable {
        case insert = 1
        case update = 2
        case delete = 3
    }

    /// What a field was and what it became, as the store holds values.
    public struct FieldChange: Hashable, Sendable {
        public let field: String
        public let type: FieldType
        public let before: FieldValue?
        public let after: FieldValue?

        public init(field: String, type: FieldType, before: FieldValue?, after: FieldValue?) {
            self.field = field
            self.type = type
            self.before = before
            self.after = after
        }
    }

    public let id: Int64
    public let transaction: HistoryTransaction
    public let type: String
    public let record: String
    public let kind: Kind
    /// Of an update those that changed, of a deletion those that had a value.
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
