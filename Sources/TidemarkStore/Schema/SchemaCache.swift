import GRDB
import TidemarkModel
import TidemarkSQLite

/// The record types of a store as the readers of one opening have seen them last.
final class SchemaCache: Sendable {
    private let seen = LockedValue<(generation: Int64, types: [StoredType])>((-1, []))

    private let known = LockedValue<(generation: Int64, identity: StoreIdentity)?>(nil)

    /// What tells the store from others. A store that was emptied has another history, and another number of the schema.
    func identity(_ db: Database, path: String) throws -> StoreIdentity {
        let generation = try generation(db)
        if let known = known.withLock({ $0 }), known.generation == generation { return known.identity }
        let identity = try StoreIdentity(db, path: path)
        known.withLock { $0 = (generation, identity) }
        return identity
    }

    private func generation(_ db: Database) throws -> Int64 {
        try Int64.fetchOne(db.cachedStatement(sql: "SELECT value FROM tide_meta WHERE key = 'schema_generation'")) ?? 0
    }

    /// The types as the database at hand has them.
    func types(_ db: Database) throws -> [StoredType] {
        let generation = try generation(db)
        let (known, types) = seen.withLock { $0 }
        if known == generation { return types }
        let read = try StoredType.fetchAll(db)
        seen.withLock { $0 = (generation, read) }
        return read
    }
}
