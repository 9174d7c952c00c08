import GRDB
import Synchronization

/// The record types of a store as the readers of one opening have seen them last.
final class SchemaCache: Sendable {
    private let seen = Mutex<(generation: Int64, types: [StoredType])>((-1, []))

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
}
