import GRDB
import TidemarkModel
import TidemarkSQLite

/// The changes that are to be sent to the cloud: `tide_outbox`, filled from history.
///
/// A save writes nothing here. The outbox ingests new changes from history, which has them anyway, and stores the number of the last one.
/// The row of a record says whether the record is to be sent at all (`_pending`).
struct Outbox {
    let db: Database
    /// The zone whose entries are written and looked for.
    let zone: Int64

    init(_ db: Database, zone: Int64 = StoreFormat.defaultZone) { (self.db, self.zone) = (db, zone) }

    /// The order in which changes are sent.
    enum Lane: Int, CaseIterable {
        /// Edits of persons.
        case edits = 0
        /// Imports and whole stores.
        case bulk = 1
    }

    /// From this number on, records that came together are sent behind the edits of persons.
    static let bulkCount = 100

    /// Ingests the changes that history has got since.
    ///
    /// - Complexity: O(n) in the changes since.
    func ingestHistory() throws {
        let last = try Int64.fetchOne(db.cachedStatement(sql: "SELECT max(id) FROM tide_changes")) ?? 0
        let taken = try Int64.fetchOne(db.cachedStatement(sql: "SELECT value FROM tide_sync WHERE key = 'outbox_change'")) ?? 0
        guard last > taken else { return }
        // A deletion is sent if the cloud can know the record. A change from the cloud that has to go back, such as a merge, is noted when
        // it comes.
        let new = """
            FROM tide_changes c JOIN tide_transactions t ON t.id = c.transaction_id
            WHERE c.id > ?1 AND c.id <= ?2 AND t.origin <> 'cloud'
                AND NOT (c.kind = \(ChangeKind.delete.rawValue) AND c.tag IS NULL AND NOT EXISTS (SELECT 1 FROM tide_requests))
            """
        // With a single zone, no row has to be read for its zone.
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
        // A refused change is tried again as the record is now, or has nothing to send any more.
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

    /// SQL for the zone of a change `c`: the records that a batch has inserted are in the same zone, and no row ever changes its zone. NULL
    /// if the rows are gone.
    private static func zoneOfChange(_ types: [StoredType]) -> String {
        let rows = types.map { type in
            "WHEN \(type.id) THEN (SELECT _zone FROM \"\(type.table)\" WHERE _id BETWEEN c.first_row AND c.last_row LIMIT 1)"
        }
        let zone = rows.isEmpty ? "NULL" : "CASE c.type_id \(rows.joined(separator: " ")) END"
        return "CASE c.kind WHEN 3 THEN coalesce(c.zone, \(StoreFormat.defaultZone)) ELSE \(zone) END"
    }

    /// Lets changes that wait for other records be tried again. Returns whether there are any.
    @discardableResult
    func endWaiting() throws -> Bool {
        try db.cachedStatement(sql: "DELETE FROM tide_sync_issues WHERE waits_for IS NOT NULL").execute()
        return db.changesCount > 0
    }

    /// Notes that the outbox has everything up to a change.
    func note(_ change: Int64) throws {
        try db.cachedStatement(sql: "INSERT OR REPLACE INTO tide_sync (key, value) VALUES ('outbox_change', ?)")
            .execute(arguments: [change])
    }

    /// Adds a row, or the deletion of a row.
    func add(_ kind: ExportKind, type: Int64, row: Int64, change: Int64, lane: Lane = .edits) throws {
        try db.cachedStatement(
            sql: """
                INSERT INTO tide_outbox (lane, type_id, kind, first_row, last_row, change_id, zone) VALUES (?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (type_id, kind, first_row, last_row)
                DO UPDATE SET lane = min(lane, excluded.lane), change_id = max(change_id, excluded.change_id), zone = excluded.zone
                """
        ).execute(arguments: [lane.rawValue, type, kind.rawValue, row, row, change, zone])
    }

    /// Adds all rows of a type that are in the zone. The last row of an entry is always in the zone.
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

    /// A deletion of a name from the zone that is not sent yet. A deletion that need not be sent, because the cloud never had the record,
    /// does not count.
    struct WaitingDeletion {
        let typeID: Int64
        let row: Int64
        let change: Int64
        let tag: String?
        let base: Int64?

        /// - Parameter row: Columns `type_id`, `first_row`, `id`, `tag` and `base` of `tide_changes`, in this order.
        init(_ row: Row) throws {
            (typeID, self.row, change) = (try row.decode(atIndex: 0), try row.decode(atIndex: 1), try row.decode(atIndex: 2))
            (tag, base) = (try row.decode(atIndex: 3), try row.decode(atIndex: 4))
        }

        /// Whether the deletion belongs to a move and is no person's wish: the record has moved into another zone and is there, or the
        /// cloud has deleted it there.
        func isOfMove(_ db: Database) throws -> Bool {
            let insert =
                "SELECT first_row FROM tide_changes WHERE id = ?1 + 1 AND kind = \(ChangeKind.insert.rawValue) AND previous = ?1"
            let delete = """
                SELECT c.id, t.origin FROM tide_changes c LEFT JOIN tide_transactions t ON t.id = c.transaction_id
                WHERE c.kind = \(ChangeKind.delete.rawValue) AND c.type_id = ? AND c.first_row = ?
                """
            var (last, isFromCloud) = (change, false)
            // The record may have moved on from there.
            while let row = try Int64.fetchOne(db.cachedStatement(sql: insert), arguments: [last]) {
                guard let next = try Row.fetchOne(db.cachedStatement(sql: delete), arguments: [typeID, row]) else { return true }
                // The transaction at hand is noted when it ends. Its origin is the cloud.
                let origin: String? = try next.decode(atIndex: 1)
                (last, isFromCloud) = (try next.decode(atIndex: 0), origin.map { $0 == HistoryOrigin.cloud.rawValue } ?? true)
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
        return try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [key, zone]).map { try WaitingDeletion($0) }
    }

    /// SQL that holds for a change `c` that is an unsent deletion, whether the outbox has it or only history.
    static let isWaitingDeletion = """
        c.kind = \(ChangeKind.delete.rawValue) AND c.tag IS NOT NULL AND (
            EXISTS (SELECT 1 FROM tide_outbox o WHERE o.type_id = c.type_id AND o.kind = \(ExportKind.delete.rawValue) AND o.first_row = c.first_row)
            OR c.id > coalesce((SELECT value FROM tide_sync WHERE key = 'outbox_change'), 0)
            AND (SELECT origin FROM tide_transactions WHERE id = c.transaction_id) <> 'cloud')
        """

    /// Whether there may be changes that go before bulk changes: history that was not ingested yet, edits of persons, or records that have
    /// to be looked up first.
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
