import Foundation
import GRDB
import Synchronization

/// The record types of a store as the readers of one opening have seen them last.
final class SchemaCache: Sendable {
    private let seen = Mutex<(generation: Int64, types: [StoredType])>((-1, []))
    /// When the types were last looked for on disk and were few, for who asks for one that is not there.
    private let stamp = Mutex<StoreStamp?>(nil)

    private let known = Mutex<StoreIdentity?>(nil)

    /// What tells the store from others; that never changes while it is open.
    func identity(_ db: Database, path: String) throws -> StoreIdentity {
        if let identity = known.withLock({ $0 }) { return identity }
        let identity = try StoreIdentity(db, path: path)
        known.withLock { $0 = identity }
        return identity
    }

    /// The types as the database at hand has them.
    func types(_ db: Database) throws -> [StoredType] {
        let generation =
            try Int64.fetchOne(db.cachedStatement(sql: "SELECT value FROM tide_meta WHERE key = 'schema_generation'")) ?? 0
        let (known, types) = seen.withLock { $0 }
        if known == generation { return types }
        let read = try StoredType.fetchAll(db)
        seen.withLock { $0 = (generation, read) }
        return read
    }

    /// Whether a store certainly has no such type, as far as can be told without opening it for reading.
    ///
    /// - Complexity: Two looks into the file system while nobody writes to the store.
    func certainlyLacks(_ type: String, in database: any DatabaseReader, at url: URL) throws -> Bool {
        let now = StoreStamp(url)
        if stamp.withLock({ $0 == now }) { return seen.withLock { !$0.types.contains { $0.name == type } } }
        let types = try database.read(types)
        stamp.withLock { $0 = now.isSettled ? now : nil }
        return !types.contains { $0.name == type }
    }
}
