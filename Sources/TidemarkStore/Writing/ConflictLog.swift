import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite

/// A conflict that was settled, as the store has logged it.
public struct LoggedConflict: Hashable, Sendable {
    /// The transaction that settled it; 0 where it changed nothing, and so was none.
    public let transaction: Int64
    public let type: String
    public let record: String
    /// `nil` when it was about the record as a whole: its deletion.
    public let field: String?
    /// The values as text: JSON, with bytes in Base64. `nil` for none.
    public let ancestor: String?
    public let local: String?
    public let store: String?
    public let winner: MergeConflict.Winner
    public let policy: String
}

extension StoreReader {
    /// How many conflicts were settled.
    public func conflictCount() throws(StoreError) -> Int {
        try read("count the log of conflicts") { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM tide_conflicts") ?? 0 }
    }

    /// The conflicts that were settled last, newest first.
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
