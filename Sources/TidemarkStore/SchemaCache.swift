import GRDB
import Synchronization

/// The record types of a store as the readers of one opening have seen them last.
final class SchemaCache: Sendable {
    private let seen = Mutex<(generation: Int64, types: [StoredType])>((-1, []))

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
