import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// What all transactions of a ``SQLiteCloudStorage`` share.
struct SQLiteCloudContext: Sendable {
    let schemas = CloudSchemaCache()
    let owners = OwnerNumberCache()
    /// The path of the file, for messages.
    let path: String
    /// 8 random bytes of this opening of the database.
    let writer: Data
    /// As ``CloudStorage/commonChanges``.
    let commonChanges: Int64
    /// Called with the text of each statement before it is prepared.
    var observe: (@Sendable (String) -> Void)?
}

/// Caches the numbers of owners that are committed. An owner's number never changes.
final class OwnerNumberCache: Sendable {
    private let known = LockedValue(BoundedCache<String, Int64>(capacity: 10_000))

    subscript(owner: String) -> Int64? {
        get { known.withLock { $0[owner] } }
        set { known.withLock { $0[owner] = newValue } }
    }
}

/// The numbers of owners, in a transaction: the first column of each table.
final class OwnerNumbers {
    private let committed: OwnerNumberCache
    /// Owners that the transaction has added. It may still be rolled back.
    private var added: [String: Int64] = [:]
    /// The owner of the last look-up: most transactions have one owner.
    private var last: (owner: String, number: Int64)?

    init(_ committed: OwnerNumberCache) { self.committed = committed }

    /// Returns the number of an owner; `nil` where there is none.
    func find(_ owner: String, _ select: () throws -> Int64?) rethrows -> Int64? {
        if let last, last.owner == owner { return last.number }
        var found = added[owner] ?? committed[owner]
        if found == nil {
            found = try select()
            if let found { committed[owner] = found }
        }
        if let found { last = (owner, found) }
        return found
    }

    func add(_ owner: String, _ number: Int64) {
        added[owner] = number
        last = (owner, number)
    }
}

extension SQLiteCloudTransaction {
    /// Returns the number of an owner; of one without rows, a number that no row has.
    func number(of owner: String) throws -> Int64 {
        try owners.find(owner) {
            try Int64.fetchOne(statement("SELECT number FROM owners WHERE name = ?"), arguments: [owner])
        } ?? -1
    }

    /// Returns the number of an owner whose rows are to be written, and gives the owner one if it has none.
    ///
    /// - Throws: `CloudError` `internalError` where the transaction has not declared that it writes rows of the owner.
    func number(writing owner: String) throws -> Int64 {
        try checkWrites(owner)
        let known = try number(of: owner)
        guard known < 0 else { return known }
        try statement("INSERT INTO owners (name, change) VALUES (?, 0)").execute(arguments: [owner])
        owners.add(owner, db.lastInsertedRowID)
        return db.lastInsertedRowID
    }

    /// Checks that the transaction has declared an owner whose rows it writes. Here one lock orders all writes, but a storage
    /// that locks only the declared owners depends on it.
    private func checkWrites(_ owner: String) throws(CloudError) {
        guard written.contains(owner) else {
            throw CloudError(.internalError, "a transaction writes rows of the owner '\(owner)', which it has not declared")
        }
    }

    /// Checks that the transaction has declared that it writes rows of all owners.
    func checkWritesAll() throws(CloudError) {
        guard written == .all else {
            throw CloudError(.internalError, "a transaction writes rows of all owners, and has not declared that")
        }
    }
}
