import GRDB
import TidemarkModel
import TidemarkSQLite

/// What is to be sent to the cloud: `tide_outbox`, filled from history.
///
/// A save writes nothing here. Changes that came since the outbox was last looked at are found in history, which has them anyway; the
/// number of the last one that was taken in is kept. Whether a record is to be sent at all, its row says (`_pending`).
struct Outbox {
    let db: Database
    /// Whose entries are written and looked for.
    let zone: Int64

    init(_ db: Database, zone: Int64 = StoreFormat.defaultZone) { (self.db, self.zone) = (db, zone) }

    /// Which goes first.
    enum Lane: Int, CaseIterable {
        /// What persons edit.
        case edits = 0
        /// Imports, and whole stores.
        case bulk = 1
    }

    /// Records that came together are sent behind what persons edit from this number on.
    static let bulkCount = 100

    /// Takes in what history has since.
    ///
    /// - Complexity: O(n) in the changes since.
    func ingestHistory() throws {
        let last = try Int64.fetchOne(db.cachedStatement(sql: "SELECT max(id) FROM tide_changes")) ?? 0
        let taken = try Int64.fetchOne(db.cachedStatement(sql: "SELECT value FROM tide_sync WHERE key = 'outbox_change'")) ?? 0
        guard last > taken else { return }
        // Of a deletion that the cloud can know of, it is told; of all others it never heard. What comes from the cloud and is to go
        // back, as a merged record, is noted when it comes.
        let new = """
            FROM tide_changes c JOIN tide_transactions t ON t.id = c.transaction_id
            WHERE c.id > ?1 AND c.id <= ?2 AND t.origin <> 'cloud'
                AND NOT (c.kind = \(ChangeKind.delete.rawValue) AND c.tag IS NULL AND NOT EXISTS (SELECT 1 FROM tide_requests))
            """
        // Where there is one zone, nothing needs a look at its rows.
        let zone = try StoreZone.areSeveral(db) ? Self.zoneOfChange(StoredType.fetchAll(db)) : "\(StoreFormat.defaultZone)"
        try db.cachedStatement(
            sql: """
                INSERT INTO tide_outbox (lane, type_id, kind, first_row, last_row, change_id, zone)
                SELECT * FROM (
                    SELECT CASE WHEN t.origin = 'import' OR t.inserted + t.updated + t.deleted >= \(Self.bulkCount) THEN 1 ELSE 0 END,
                        c.type_id, CASE c.kind WHEN 3 THEN 3 ELSE 1 END, c.first_row, c.last_row, c.id, \(zone) AS zone
                    \(new) ORDER BY c.id
                ) WHERE zone IS NOT NULL
                ON CONFLICT (type_id, kind, first_row, last_row)
                DO UPDATE SET lane = min(lane, excluded.lane), change_id = excluded.change_id, zone = excluded.zone
                """
        ).execute(arguments: [taken, last])
        // What was refused as it was is tried as it is now; or is nothing any more.
        try db.cachedStatement(
            sql: """
                DELETE FROM tide_sync_issues WHERE (type_id, row) IN (
                    SELECT c.type_id, c.first_row FROM tide_changes c JOIN tide_transactions t ON t.id = c.transaction_id
                    WHERE c.id > ?1 AND c.id <= ?2 AND t.origin <> 'cloud' AND c.first_row = c.last_row)
                """
        ).execute(arguments: [taken, last])
        let deleted =
            "SELECT EXISTS (SELECT 1 FROM tide_changes WHERE id > ? AND id <= ? AND kind = \(ChangeKind.delete.rawValue))"
        if try Bool.fetchOne(db.cachedStatement(sql: deleted), arguments: [taken, last]) ?? false { try endWaiting() }
        try note(last)
    }

    /// SQL for the zone that a change `c` concerns: what one batch has inserted is in one, and no row ever changes its zone. NULL where the
    /// rows are gone.
    private static func zoneOfChange(_ types: [StoredType]) -> String {
        let rows = types.map { type in
            "WHEN \(type.id) THEN (SELECT _zone FROM \"\(type.table)\" WHERE _id BETWEEN c.first_row AND c.last_row LIMIT 1)"
        }
        let zone = rows.isEmpty ? "NULL" : "CASE c.type_id \(rows.joined(separator: " ")) END"
        return "CASE c.kind WHEN 3 THEN coalesce(c.zone, \(StoreFormat.defaultZone)) ELSE \(zone) END"
    }

    /// Looks anew at what waits for other records; whether anything does.
    @discardableResult
    func endWaiting() throws -> Bool {
        try db.cachedStatement(sql: "DELETE FROM tide_sync_issues WHERE waits_for IS NOT NULL").execute()
        return db.changesCount > 0
    }

    /// Everything up to a change is in the outbox.
    func note(_ change: Int64) throws {
        try db.cachedStatement(sql: "INSERT OR REPLACE INTO tide_sync (key, value) VALUES ('outbox_change', ?)")
            .execute(arguments: [change])
    }

    /// Adds one row, or the deletion of one.
    func add(_ kind: ExportKind, type: Int64, row: Int64, change: Int64, lane: Lane = .edits) throws {
        try db.cachedStatement(
            sql: """
                INSERT INTO tide_outbox (lane, type_id, kind, first_row, last_row, change_id, zone) VALUES (?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (type_id, kind, first_row, last_row)
                DO UPDATE SET lane = min(lane, excluded.lane), change_id = max(change_id, excluded.change_id), zone = excluded.zone
                """
        ).execute(arguments: [lane.rawValue, type, kind.rawValue, row, row, change, zone])
    }

    /// Adds all rows of a type that are in the zone. The last one of an entry always is.
    func addAll(of type: StoredType) throws {
        let condition = try StoreZone.areSeveral(db) ? " WHERE _zone = \(zone)" : ""
        let last = try Int64.fetchOne(db, sql: "SELECT max(_id) FROM \"\(type.table)\"\(condition)") ?? 0
        guard last > 0 else { return }
        try db.execute(
            sql: """
                INSERT OR IGNORE INTO tide_outbox (lane, type_id, kind, first_row, last_row, change_id, zone)
                VALUES (1, ?, 1, 1, ?, 0, ?)
                """, arguments: [type.id, last, zone])
    }

    func remove(_ kind: ExportKind, type: Int64, row: Int64) throws {
        try db.cachedStatement(sql: "DELETE FROM tide_outbox WHERE type_id = ? AND kind = ? AND first_row = ? AND last_row = ?")
            .execute(arguments: [type, kind.rawValue, row, row])
        try db.cachedStatement(sql: "DELETE FROM tide_sync_issues WHERE type_id = ? AND row = ? AND kind = ?")
            .execute(arguments: [type, row, kind.rawValue])
    }

    /// A deletion of a name from the zone that the cloud is yet to hear of. One of which it need not hear, because it never had the record, is none.
    struct WaitingDeletion {
        let typeID: Int64
        let row: Int64
        let change: Int64
        let tag: String?
        let base: Int64?

        /// Whether nobody here has wanted the record deleted: it has moved into another zone, and is there, or was taken from there by
        /// the cloud.
        func isOfMove(_ db: Database) throws -> Bool {
            let insert =
                "SELECT first_row FROM tide_changes WHERE id = ?1 + 1 AND kind = \(ChangeKind.insert.rawValue) AND previous = ?1"
            let delete = """
                SELECT c.id, t.origin FROM tide_changes c LEFT JOIN tide_transactions t ON t.id = c.transaction_id
                WHERE c.kind = \(ChangeKind.delete.rawValue) AND c.type_id = ? AND c.first_row = ?
                """
            var (last, isFromCloud) = (change, false)
            // It may have moved on from there.
            while let row = try Int64.fetchOne(db.cachedStatement(sql: insert), arguments: [last]) {
                guard let next = try Row.fetchOne(db.cachedStatement(sql: delete), arguments: [typeID, row]) else { return true }
                // That of the transaction at hand, which is noted when it ends, is the cloud's.
                let origin: String? = next[1]
                (last, isFromCloud) = (next[0], origin.map { $0 == HistoryOrigin.cloud.rawValue } ?? true)
            }
            return last != change && isFromCloud
        }
    }

    func deletion(of key: RecordKey) throws -> WaitingDeletion? {
        let sql = """
            SELECT c.type_id, c.first_row, c.id, c.tag, c.base FROM tide_changes c
            JOIN tide_outbox o ON o.type_id = c.type_id AND o.kind = \(ExportKind.delete.rawValue) AND o.first_row = c.first_row AND o.last_row = c.first_row
            WHERE c.kind = \(ChangeKind.delete.rawValue) AND c.key = ? AND c.tag IS NOT NULL AND coalesce(c.zone, \(StoreFormat.defaultZone)) = ?
            ORDER BY c.id DESC LIMIT 1
            """
        return try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [key, zone]).map {
            WaitingDeletion(typeID: $0[0], row: $0[1], change: $0[2], tag: $0[3], base: $0[4])
        }
    }

    /// SQL that holds for a change `c` which is a deletion that the cloud is yet to hear of, whether the outbox has it or only history.
    static let isWaitingDeletion = """
        c.kind = \(ChangeKind.delete.rawValue) AND c.tag IS NOT NULL AND (
            EXISTS (SELECT 1 FROM tide_outbox o WHERE o.type_id = c.type_id AND o.kind = \(ExportKind.delete.rawValue) AND o.first_row = c.first_row)
            OR c.id > coalesce((SELECT value FROM tide_sync WHERE key = 'outbox_change'), 0)
            AND (SELECT origin FROM tide_transactions WHERE id = c.transaction_id) <> 'cloud')
        """

    /// Whether anything has come that might go before what came in bulk: history that was not looked at yet, what persons edit, or records
    /// that are to be looked up first.
    var hasNewChanges: Bool {
        get throws {
            let sql = """
                SELECT EXISTS (SELECT 1 FROM tide_outbox WHERE zone = ?1 AND lane = 0)
                    OR EXISTS (SELECT 1 FROM tide_deferred WHERE zone = ?1 AND reason = '\(DeferredRows.deferralReason)') OR coalesce((SELECT max(id) FROM tide_changes), 0) >
                    coalesce((SELECT value FROM tide_sync WHERE key = 'outbox_change'), 0)
                """
            return try Bool.fetchOne(db.cachedStatement(sql: sql), arguments: [zone]) ?? true
        }
    }

    var hasDeletions: Bool {
        get throws {
            let sql = "SELECT EXISTS (SELECT 1 FROM tide_outbox WHERE kind = \(ExportKind.delete.rawValue) AND zone = ?)"
            return try Bool.fetchOne(db.cachedStatement(sql: sql), arguments: [zone]) ?? false
        }
    }
}
