package import Foundation
import GRDB
import TidemarkSQLite

/// What tells a store from all others; kept in `tide_meta`.
package struct StoreIdentity: Hashable, Sendable {
    /// Seeds the digests of rows; secret to the store.
    package let digestSeed: UInt64
    /// Which history the numbers of transactions belong to: a store restored from a backup has a new one.
    package let history: UUID
    /// The device, as the clock of edits names it.
    package let device: UUID

    init(digestSeed: UInt64) {
        self.digestSeed = digestSeed
        history = UUID()
        device = UUID()
    }

    /// - Throws: ``StoreError`` `corrupt` when the store lacks it.
    init(_ db: Database, path: String) throws {
        func value<Value: DatabaseValueConvertible>(_ key: String) throws -> Value {
            let stored = try DatabaseValue.fetchOne(db, sql: "SELECT value FROM tide_meta WHERE key = ?", arguments: [key])
            guard let value = stored.flatMap(Value.fromDatabaseValue) else {
                throw StoreError(.corrupt, "\(path) lacks its \(key) in tide_meta")
            }
            return value
        }
        digestSeed = UInt64(bitPattern: try value("digest_seed"))
        history = try value("history_identity")
        device = try value("device")
    }

    /// The seed of the digests of a store's rows.
    ///
    /// - Throws: ``StoreError`` `corrupt` when the store lacks it.
    static func digestSeed(_ db: Database) throws -> UInt64 {
        let statement = try db.cachedStatement(sql: "SELECT value FROM tide_meta WHERE key = 'digest_seed'")
        guard let stored = try DatabaseValue.fetchOne(statement), let seed = Int64.fromDatabaseValue(stored) else {
            throw StoreError(.corrupt, "the store lacks its digest_seed in tide_meta")
        }
        return UInt64(bitPattern: seed)
    }

    func store(_ db: Database) throws {
        try db.execute(
            sql: "INSERT INTO tide_meta (key, value) VALUES ('digest_seed', ?), ('history_identity', ?), ('device', ?)",
            arguments: [Int64(bitPattern: digestSeed), history.uuidString, device.uuidString])
    }
}
