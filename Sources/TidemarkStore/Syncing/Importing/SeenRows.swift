import GRDB
import TidemarkModel
import TidemarkSQLite

/// The rows that have come since a fetch of everything began. Records that the cloud is known to have had and that are not among them are
/// gone there. Outside of such a fetch nothing is noted.
struct SeenRows {
    private let db: Database
    private let zone: Int64
    private let isRefetching: Bool

    init(_ db: Database, zone: Int64, isRefetching: Bool) throws {
        (self.db, self.zone) = (db, zone)
        self.isRefetching = isRefetching
    }

    /// Whether a record could be missing at the end. If the cloud is known to have had no records, and none is on its way, no
    /// rows have to be recorded.
    static func areNeeded(_ db: Database, types: [StoredType], zone: Int64) throws -> Bool {
        if try !SentRequest.names(db, zone: zone).isEmpty { return true }
        if try DeferredRecord.hasAny(db, zone: zone) { return true }
        return try types.contains { type in
            let sql = "SELECT EXISTS (SELECT 1 FROM \"\(type.table)\" WHERE _tag IS NOT NULL AND _zone = ?)"
            return try Bool.fetchOne(db, sql: sql, arguments: [zone]) ?? true
        }
    }

    /// Forgets the rows of a zone.
    static func forget(_ db: Database, types: [StoredType], zone: Int64) throws {
        guard try StoreZone.areSeveral(db) else { return try db.execute(sql: "DELETE FROM tide_seen") }
        for type in types {
            let sql = """
                DELETE FROM tide_seen
                WHERE type_id = ?1 AND coalesce((SELECT _zone FROM "\(type.table)" WHERE _id = tide_seen.row), ?2) = ?2
                """
            try db.execute(sql: sql, arguments: [type.id, zone])
        }
    }

    func add(_ row: Int64, _ type: StoredType) throws {
        guard isRefetching else { return }
        try db.cachedStatement(sql: "INSERT OR IGNORE INTO tide_seen (type_id, row) VALUES (?, ?)").execute(arguments: [
            type.id, row,
        ])
    }

    /// Notes the row of a name, whichever type it has.
    func add(_ name: String, _ types: [StoredType]) throws {
        guard isRefetching else { return }
        for type in types {
            let sql = """
                INSERT OR IGNORE INTO tide_seen (type_id, row)
                SELECT ?, _id FROM "\(type.table)" WHERE _key = ? AND _zone = ?
                """
            try db.cachedStatement(sql: sql).execute(arguments: [type.id, RecordKey(name: name), zone])
        }
    }

    /// The names of rows of a type that have not come.
    func missing(_ type: StoredType) throws -> [String] {
        let statement = try db.cachedStatement(
            sql: """
                SELECT _key FROM "\(type.table)" WHERE _tag IS NOT NULL AND _zone = ?
                AND NOT EXISTS (SELECT 1 FROM tide_seen s WHERE s.type_id = \(type.id) AND s.row = _id)
                """)
        return try RecordKey.fetchAll(statement, arguments: [zone]).map(\.name)
    }

    /// The names of deferred records whose rows have not come. Records without a row may have come.
    func missingDeferred(_ types: [StoredType]) throws -> [String] {
        try DeferredRecord.fetchAll(db, zone: zone).map(\.name).filter { name in
            try !types.contains { type in
                let sql = """
                    SELECT EXISTS (
                        SELECT 1 FROM "\(type.table)" r JOIN tide_seen s ON s.type_id = ? AND s.row = r._id
                        WHERE r._key = ? AND r._zone = ?)
                    """
                let statement = try db.cachedStatement(sql: sql)
                return try Bool.fetchOne(statement, arguments: [type.id, RecordKey(name: name), zone]) ?? false
            }
        }
    }
}
