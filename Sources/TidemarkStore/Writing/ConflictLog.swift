import Foundation
import GRDB
public import TidemarkModel
public import TidemarkSQLite

/// A conflict that was resolved, as the store has logged it.
public struct LoggedConflict: Hashable, Sendable {
    /// The transaction that resolved the conflict; 0 where the resolution changed nothing, so that there was no transaction.
    public let transaction: Int64
    /// The name of the record type.
    public let type: String
    /// The name of the record.
    public let record: String
    /// The field; `nil` when the conflict was about the record as a whole: its deletion, or another record with its unique key.
    public let field: String?
    /// The value that both sides began with, as text: JSON, with bytes in Base64. `nil` for no value.
    public let ancestor: String?
    /// The value of the side that was merging: of the save, or of this device in a synchronisation. Text as in ``ancestor``.
    public let local: String?
    /// The value of the other side: of the store, or of the cloud in a synchronisation. Text as in ``ancestor``.
    public let store: String?
    /// Which side's value counts now.
    public let winner: MergeConflict.Winner
    /// The name of the merge policy that decided, a delete rule, or ``MergeConflict/uniqueKeyPolicy``.
    public let policy: String

    /// The name of the record with which this one has become one, because they agreed in a unique key; `nil` in any other case.
    public var replacement: String? {
        guard policy == MergeConflict.uniqueKeyPolicy, field == nil, let store else { return nil }
        // A text that is no JSON is damaged, and names no record. The line is then reported like any other conflict.
        return try? JSONDecoder().decode(String.self, from: Data(store.utf8))
    }
}

extension StoreReader {
    /// How many conflicts were resolved.
    public func conflictCount() throws(StoreError) -> Int {
        try read("count the log of conflicts") { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM tide_conflicts") ?? 0 }
    }

    /// The conflicts that were resolved last, newest first.
    public func conflicts(limit: Int? = nil) throws(StoreError) -> [LoggedConflict] {
        try read("read the log of conflicts") { db in
            try Row.fetchAll(db, sql: "SELECT * FROM tide_conflicts ORDER BY id DESC LIMIT ?", arguments: [limit ?? -1]).map {
                row in
                let table = "tide_conflicts"
                guard let winner = MergeConflict.Winner(rawValue: try row.stored("winner", of: table)) else {
                    throw StoreError(.corrupt, "tide_conflicts has a row whose winner cannot be one")
                }
                return LoggedConflict(
                    transaction: try row.stored("transaction_id", of: table), type: try row.stored("type", of: table),
                    record: try row.stored("record", of: table), field: try row.stored("field", of: table),
                    ancestor: try row.stored("ancestor", of: table), local: try row.stored("local", of: table),
                    store: try row.stored("store", of: table), winner: winner, policy: try row.stored("policy", of: table))
            }
        }
    }
}

extension FieldValue {
    /// The value as JSON.
    var logText: String {
        switch self {
        case .int64(let number), .timestamp(let number): "\(number)"
        case .double(let number): "\(number)"
        case .location(let place): StoredText.location(place)
        case .list(let elements, _): StoredText.list(elements)
        case .bytes(let bytes): Self.quoted(Data(bytes).base64EncodedString())
        case .string(let text), .reference(let text), .asset(let text): Self.quoted(text)
        }
    }

    private static func quoted(_ text: String) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        // A string is JSON whatever it holds.
        return String(decoding: try! encoder.encode(text), as: UTF8.self)
    }
}
