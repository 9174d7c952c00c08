import Foundation
package import GRDB
import TidemarkModel
import TidemarkSQLite

/// A place in a store's history: everything up to a transaction has been seen. As `NSPersistentHistoryToken`.
///
/// Keep it (it is `Codable`) and ask for what came since.
public struct HistoryToken: Hashable, Codable, Sendable {
    /// The history that the number belongs to.
    let history: UUID
    /// The last transaction that was seen.
    let transaction: Int64
}

extension HistoryToken: LosslessStringConvertible {
    /// `<identity of the history>:<number>`.
    public var description: String { "\(history.uuidString.lowercased()):\(transaction)" }

    /// Reads the text that ``description`` gives; `nil` for any other. A store checks a token when it is used.
    public init?(_ description: String) {
        let parts = description.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let history = UUID(uuidString: String(parts[0])), let transaction = Int64(parts[1]),
            transaction >= 0
        else { return nil }
        self.init(history: history, transaction: transaction)
    }
}

/// The oldest that a store's history still has.
package struct HistoryFloor {
    let transaction: Int64
    package let change: Int64

    package init(_ db: Database) throws {
        func number(_ key: String) throws -> Int64 {
            let value = try DatabaseValue.fetchOne(
                db.cachedStatement(sql: "SELECT value FROM tide_meta WHERE key = ?"), arguments: [key])
            guard let number = value.flatMap(Int64.fromDatabaseValue), number > 0 else {
                throw StoreError(.corrupt, "the store lacks its \(key) in tide_meta")
            }
            return number
        }
        transaction = try number("first_transaction")
        change = try number("first_change")
    }

    init(transaction: Int64, change: Int64) {
        self.transaction = transaction
        self.change = change
    }

    func store(_ db: Database) throws {
        let sql = "UPDATE tide_meta SET value = ? WHERE key = ?"
        try db.execute(sql: sql, arguments: [transaction, "first_transaction"])
        try db.execute(sql: sql, arguments: [change, "first_change"])
    }
}

extension HistoryToken {
    /// Another place in the same history.
    package init(_ other: HistoryToken, transaction: Int64) { self.init(history: other.history, transaction: transaction) }
}
