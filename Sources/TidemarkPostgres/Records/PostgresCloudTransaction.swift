import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// What all transactions of a ``PostgresCloudStorage`` have in common.
struct PostgresCloudContext: Sendable {
    /// The container's number.
    let container: Int64
    let schemas = PostgresSchemaCache()
    let zones = PostgresZoneNumbers()
    /// Random bytes of this storage.
    let writer: Data
    /// As ``CloudStorage/commonChanges``.
    let commonChanges: Int64
}

/// A transaction over the rows of a ``PostgresCloudStorage``.
///
/// The container and the owner come first in each table and in each statement of a request. Statements whose result nobody needs
/// wait for the next that has one.
///
/// A transaction that writes rows of an owner locks the owner's row, so no other transaction writes them. The public database has
/// no such row. There a transaction locks the records that it reads, and assets by their digests. A record that it has found
/// missing, or a number that it has chosen, may exist when it writes. Then the transaction runs again. there by the time when it
/// writes: then it runs again.
struct PostgresCloudTransaction: CloudTransaction {
    let db: PostgresTransaction
    let context: PostgresCloudContext
    /// The owners whose rows it may change; `nil` for a transaction that reads.
    let written: WrittenOwners?
    let state = State()

    var container: Int64 { context.container }

    /// What the transaction knows of rows that no other transaction changes meanwhile.
    final class State {
        /// The last changes of the owners whose rows are locked.
        var changes: [String: Int64] = [:]
        /// Locked owners that have a row for this writer.
        var noted: Set<String> = []
        /// The result of ``PostgresCloudTransaction/firstChange()``, while the locks keep an incarnation from beginning.
        var firstChange: Int64?
        /// The version of the schema that was read; 0 where there is none.
        var schema: Int64?
        /// Records that were looked for and are not there.
        var absent: Set<RecordKey> = []
        /// Whether something was to be written.
        var hasWritten = false
        /// The answer that tells whether the transaction is committed.
        var kept: StoredReply?
        /// A zone and records that were read before.
        var together: PostgresZoneRows?
    }

    /// The answer to a request that is kept under its client token.
    struct StoredReply: Sendable {
        let user, token: String
        let answer: Data
    }

    /// A record by the bytes of its name. Two Unicode spellings of a name are equal as strings, and yet name two records.
    struct RecordKey: Hashable {
        let zone: StoredZone.ID
        let name: Data
    }

    init(_ db: PostgresTransaction, _ context: PostgresCloudContext, writing written: WrittenOwners? = nil) {
        (self.db, self.context, self.written) = (db, context, written)
    }

    func run<Result>(_ body: () throws -> Result) throws(CloudError) -> Result {
        do {
            return try body()
        } catch let error as PostgresError where isRace(error) {
            throw CloudError(postgres: db.restart("another server has changed the public database meanwhile"))
        } catch {
            throw CloudError(postgres: error)
        }
    }

    /// Returns whether a constraint was broken because another transaction has written rows that nothing locks.
    private func isRace(_ error: PostgresError) -> Bool {
        guard error.code == .constraint, written?.contains("") == true, let constraint = error.constraint else { return false }
        return [
            "tidemark_records_by_name", "tidemark_records_by_change", "tidemark_zones_by_number", "tidemark_zones_by_name",
        ].contains(constraint)
    }

    /// Whether the transaction writes rows of an owner without a lock on the owner: those of the public database.
    func isShared(_ owner: String) -> Bool { owner.isEmpty && written != nil && written != .all }

    /// Returns an owner's key.
    ///
    /// - Throws: `CloudError` `internalError` where the transaction has not declared that it writes rows of the owner.
    func key(writing owner: String) throws(CloudError) -> Data {
        guard written?.contains(owner) == true else {
            throw CloudError(.internalError, "a transaction writes rows of the owner '\(owner)', which it has not declared")
        }
        state.hasWritten = true
        return owner.key
    }

    /// Makes sure that the transaction has declared that it writes rows of all owners.
    func checkWritesAll() throws(CloudError) {
        guard written == .all else {
            throw CloudError(.internalError, "a transaction writes rows of all owners, and has not declared that")
        }
        state.hasWritten = true
    }

    /// SQL of the rows of a zone that have one of the names in `$4`. Each is looked up by itself. The server does not know how
    /// many rows an owner has: if an average owner has few, it would read all rows of the owner, or the whole table.
    ///
    /// - Parameters:
    ///   - columns: Columns of the table, which is called `r`.
    ///   - end: What makes the server look the rows up one by one: `OFFSET 0`, or a lock.
    static func byName(_ columns: String, in table: String, _ end: String = "OFFSET 0") -> String {
        """
        SELECT x.* FROM unnest($4) AS n (name) CROSS JOIN LATERAL (SELECT \(columns) FROM \(table) r
            WHERE r.container = $1 AND r.owner = $2 AND r.zone = $3 AND r.name = n.name \(end)) x
        """
    }

    /// SQL that looks the assets up that records name, as ``byName(_:in:_:)``.
    static let assetsNamed = byName("r.digest", in: "tidemark_named", "AND r.\(PostgresCloudTables.hasName) OFFSET 0")

    /// SQL that deletes the rows that ``byName(_:in:_:)`` finds.
    static func deletion(byNameIn table: String, _ end: String = "OFFSET 0") -> String {
        deletion(from: table, byName("r.ctid", in: table, end))
    }

    /// SQL that deletes rows whose places another statement has found.
    ///
    /// PostgreSQL may expect a single row of the owner, and then read all of the owner's rows by an index instead of the places.
    /// Each index begins with the container, and no index can serve a condition with `IS TRUE`.
    static func deletion(from table: String, _ places: String) -> String {
        "DELETE FROM \(table) d WHERE (d.container = $1) IS TRUE AND d.owner = $2 AND d.ctid = ANY (ARRAY(\(places)))"
    }

    // Changes

    func lastChange(of owner: String) throws(CloudError) -> Int64 {
        try run {
            if let known = state.changes[owner] { return try max(firstChange(), known) }
            let sql =
                owner.isEmpty
                ? """
                SELECT max((SELECT max(r.changed) FROM tidemark_records r
                    WHERE r.container = z.container AND r.owner = z.owner AND r.zone = z.number
                        AND r.\(PostgresCloudTables.hasChange)))
                FROM tidemark_zones z WHERE z.container = $1 AND z.owner = $2
                """ : "SELECT max(change) FROM tidemark_owners WHERE container = $1 AND owner = $2"
            let stored: Int64? = try db.query(sql, container, owner.key)[0].value(0)
            return try max(firstChange(), stored ?? 0)
        }
    }

    /// The number that the next change of every owner has to follow, since the last incarnation began.
    func firstChange() throws -> Int64 {
        if let known = state.firstChange { return known }
        let began: Int64 = try db.query(Self.newestIncarnation, container)[0].value(0)
        return max(context.commonChanges, began)
    }

    static let newestIncarnation = "SELECT coalesce(max(began), 0) FROM tidemark_incarnations WHERE container = $1"

    /// Returns the number of the last change that an owner has counted, in a transaction that writes the owner's rows.
    private func counted(_ owner: String) throws -> Int64 {
        if let known = state.changes[owner] { return known }
        let sql = "SELECT max(change) FROM tidemark_owners WHERE container = $1 AND owner = $2"
        let stored: Int64? = try db.query(sql, container, owner.key)[0].value(0)
        return stored ?? 0
    }

    func setLastChange(_ number: Int64, of owner: String) throws(CloudError) {
        try run {
            let key = try self.key(writing: owner)
            let stored = try counted(owner)
            try noteLostTime(after: stored, of: key)
            if !state.noted.contains(owner) {
                try noteWriter(upTo: number, after: max(stored, firstChange()), of: owner)
            }
            let sql = """
                INSERT INTO tidemark_owners (container, owner, change) VALUES ($1, $2, $3)
                ON CONFLICT (container, owner) DO UPDATE SET change = excluded.change
                """
            try db.enqueue(sql, container, key, number)
            state.changes[owner] = number
        }
    }

    // Zones

    static let zoneColumns = "number, scope, owner, name, state, made, changed, sharing, digest"

    func zone(_ place: StoredZone.Place) throws(CloudError) -> StoredZone? {
        try run {
            if let together = state.together, together.place == place { return try together.zone() }
            guard let zone = try db.query(command(zone: place)).first.map({ try StoredZone(checked: $0) }) else { return nil }
            if written != nil { context.zones.keep(zone) }
            return zone
        }
    }

    func zone(_ id: StoredZone.ID) throws(CloudError) -> StoredZone? {
        try run {
            let sql = "SELECT \(Self.zoneColumns) FROM tidemark_zones WHERE container = $1 AND owner = $2 AND number = $3"
            return try db.query(sql, container, id.owner.key, id.number).first.map { try StoredZone(checked: $0) }
        }
    }

    func newestChange(of owner: String) throws(CloudError) -> Int64 {
        try run {
            let sql = "SELECT coalesce(max(changed), 0) FROM tidemark_zones WHERE container = $1 AND owner = $2"
            return try db.query(sql, container, owner.key)[0].value(0)
        }
    }

    func zones(of owner: String, after change: Int64, limit: Int) throws(CloudError) -> [StoredZone] {
        try run {
            let sql = """
                SELECT \(Self.zoneColumns) FROM tidemark_zones WHERE container = $1 AND owner = $2 AND changed > $3
                ORDER BY changed LIMIT $4
                """
            return try db.query(sql, container, owner.key, change, Int64(limit)).map { try StoredZone($0) }
        }
    }

    func save(_ zone: StoredZone) throws(CloudError) -> StoredZone {
        try run {
            let sql = """
                INSERT INTO tidemark_zones (container, owner, number, scope, name, state, made, changed, sharing, digest)
                SELECT $1, $2, coalesce((SELECT number FROM tidemark_zones WHERE container = $1 AND owner = $2 AND name = $4),
                    nextval('tidemark_zone_numbers')), $3, $4, $5, $6, $7, $8, $9
                ON CONFLICT (container, owner, name) DO UPDATE SET state = excluded.state, made = excluded.made,
                    changed = excluded.changed, sharing = excluded.sharing, digest = excluded.digest
                RETURNING number
                """
            var saved = zone
            saved.number = try db.query(
                sql, container, key(writing: zone.place.owner), Int64(zone.place.scope.rawValue), zone.place.name.key,
                Int64(zone.state.rawValue), zone.made, zone.changed, Int64(zone.sharing.rawValue), zone.rowDigest
            )[0].value(0)
            return saved
        }
    }

    // Assets

    func assets(_ digests: Set<String>, owner: String) throws(CloudError) -> [String: Int64] {
        try run {
            guard !digests.isEmpty else { return [:] }
            try lock(digests, of: owner)
            let sql = """
                SELECT x.* FROM unnest($3) AS n (digest) CROSS JOIN LATERAL (SELECT a.digest, a.size FROM tidemark_assets a
                    WHERE a.container = $1 AND a.owner = $2 AND a.digest = n.digest OFFSET 0) x
                """
            let rows = try db.query(sql, container, owner.key, digests.map(\.key))
            return Dictionary(try rows.map { (try $0.text(0), try $0.value(1)) }) { $1 }
        }
    }

    /// Locks assets of the public database until the transaction ends. Whether an asset has a row decides whether its content may
    /// be removed, and a row that is not there can't be locked.
    func lock(_ digests: Set<String>, of owner: String) throws {
        guard isShared(owner) else { return }
        // There are 512 numbers, since the server has room for a limited number of locks.
        let buckets = Set(digests.map { $0.utf8.reduce(0 as Int64) { ($0 &* 31 &+ Int64($1)) & 0x1ff } })
        let space: Int64 = 0x7464 << 48 | (container & 0xffff_ffff) << 16
        try db.enqueue(
            "SELECT count(pg_advisory_xact_lock(number)) FROM unnest($1) AS number", buckets.sorted().map { space | $0 })
    }

    func assetsNamed(by records: [String], in zone: StoredZone.ID) throws(CloudError) -> Set<String> {
        try run {
            return Set(
                try db.query(Self.assetsNamed, container, zone.owner.key, zone.number, records.map(\.key)).map { try $0.text(0) })
        }
    }

    func addAsset(_ asset: CloudAsset, owner: String, payer: String) throws(CloudError) {
        try run {
            let key = try key(writing: owner)
            try lock([asset.digest], of: owner)
            let sql = """
                INSERT INTO tidemark_assets (container, owner, digest, size, payer) VALUES ($1, $2, $3, $4, $5)
                ON CONFLICT (container, owner, digest) DO NOTHING
                """
            try db.enqueue(sql, container, key, asset.digest.key, asset.size, payer.key)
        }
    }

    // Requests

    func answer(to token: String, of user: String) throws(CloudError) -> Data? {
        try run {
            try db.query(command(answerTo: token, of: user)).first?.value(0)
        }
    }

    func keep(_ answer: Data, to token: String, of user: String, at time: Int64) throws(CloudError) {
        try run {
            let sql = """
                INSERT INTO tidemark_answers (container, owner, token, time, answer) VALUES ($1, $2, $3,
                    greatest($4, (SELECT max(time) + 1 FROM tidemark_answers WHERE container = $1 AND owner = $2)), $5)
                ON CONFLICT (container, owner, token) DO UPDATE SET time = excluded.time, answer = excluded.answer
                """
            try db.enqueue(sql, container, key(writing: user), token.key, time, answer)
            state.kept = StoredReply(user: user, token: token, answer: answer)
        }
    }
}

extension String {
    /// The text as the tables have it: UTF-8, which is compared by its bytes.
    var key: Data { Data(utf8) }
}

extension PostgresRow {
    /// Returns a text that a table has as bytes.
    func text(_ column: Int) throws(PostgresError) -> String { String(decoding: try value(column, as: Data.self), as: UTF8.self) }

    func optionalText(_ column: Int) throws(PostgresError) -> String? {
        try value(column, as: Data?.self).map { String(decoding: $0, as: UTF8.self) }
    }
}
