import Foundation
import GRDB
import TidemarkModel
package import TidemarkSQLite

/// The comparison after the cloud was put back to an earlier state. Changes that the cloud has lost are sent again, and changes that other
/// devices have sent again are merged with the local records. Until everything was fetched, each record that comes is compared with the
/// local one.
///
/// A row's tag says nothing then, because its number may stand for another change by now. The times of edits tell which version is newer.
extension RemoteChangeApplier {
    /// Merges a record with the local one, whether that was edited since it was sent or not.
    mutating func compare(_ row: Int64, with record: RemoteRecord, _ type: StoredType) throws {
        guard let mine = try PendingRow.fetchOne(db, type: type, "_id = ?", arguments: [row]) else { return }
        guard mine.isIntact else {
            // A version that the store can prove may be newer than the state that the cloud was put back to.
            let repair = RowRepair(db: db, type: type, row: row, seed: transaction.connection.identity.digestSeed)
            if try repair.run(from: nil) != nil { return try compare(row, with: record, type) }
            // Damaged values are never merged. Where no edit waits, the cloud's copy repairs the row.
            guard !mine.isPending else { return try leave(damaged: mine, record, type) }
            try write([record], type: type)
            return try forget(mine.id, type)
        }
        let theirs = remote(record, type)
        if planner.isUpToDate(mine.values, tag: mine.tag, isPending: mine.isPending, with: theirs) { return }
        try rebase(mine, onto: record, type: type, as: .copy(isEdited: mine.isPending))
    }

    /// Whether a missing record was deleted here after its last edit. Then the cloud has lost the deletion, which is sent again.
    ///
    /// - Parameter last: The number of the last change that the cloud may have lost.
    mutating func deletesAgain(_ record: RemoteRecord, _ key: RecordKey, until last: Int64) throws -> Bool {
        guard record.edited?.latest != nil else { return false }
        let sql = """
            SELECT c.type_id, c.first_row, c.id, c.tag, c.base, t.time FROM tide_changes c
            JOIN tide_transactions t ON t.id = c.transaction_id
            WHERE c.kind = \(ChangeKind.delete.rawValue) AND c.key = ? AND c.id <= ? AND c.tag IS NOT NULL AND t.origin <> 'cloud'
                AND coalesce(c.zone, \(StoreFormat.defaultZone)) = ?
            ORDER BY c.id DESC LIMIT 1
            """
        guard let row = try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [key, last, zone]),
            planner.deletesAgain(record.edited, deleted: try row.stored("time", of: "tide_transactions"))
        else { return false }
        let deletion = try Outbox.WaitingDeletion(row)
        if mayMove, try deletion.isOfMove(db) { return false }
        try db.cachedStatement(sql: "UPDATE tide_changes SET tag = ? WHERE id = ?").execute(arguments: [
            record.tag, deletion.change,
        ])
        try outbox.add(.delete, type: deletion.typeID, row: deletion.row, change: deletion.change)
        if let type = transaction.connection.types.first(where: { $0.id == deletion.typeID }) { try seen.add(deletion.row, type) }
        hasNewExports = true
        return true
    }

    /// Whether a record that was deleted in the cloud was made again since, as far as this device knows. Then the cloud may have lost the
    /// new record.
    func isMadeAgain(_ mine: PendingRow, _ type: StoredType) throws -> Bool {
        guard let deletion = try lastDeletion(of: mine.key, type), mine.version > deletion.change else { return false }
        return try !deletion.isOfMove(db)
    }

    /// Ends the comparison: records that the cloud was known to have and that did not come are sent again.
    mutating func sendUnseen() throws {
        for type in transaction.connection.types {
            for name in try seen.missing(type) {
                let arguments: StatementArguments = [RecordKey(name: name), zone]
                guard let mine = try PendingRow.fetchOne(db, type: type, "_key = ? AND _zone = ?", arguments: arguments) else {
                    continue
                }
                // The cloud has lost the version that was deferred, too.
                try deferredRows.end(name)
                try makeAgain(mine, type, isLost: true)
            }
            // A deletion of a record that did not come has nothing to delete.
            let sql = """
                DELETE FROM tide_outbox WHERE zone = ?1 AND kind = \(ExportKind.delete.rawValue) AND type_id = ?2
                AND NOT EXISTS (SELECT 1 FROM tide_seen s WHERE s.type_id = ?2 AND s.row = tide_outbox.first_row)
                """
            try db.cachedStatement(sql: sql).execute(arguments: [zone, type.id])
            // Nor is there anything for a person to decide about it.
            let issues = """
                DELETE FROM tide_sync_issues WHERE kind = \(ExportKind.delete.rawValue) AND type_id = ?1 AND NOT EXISTS (
                    SELECT 1 FROM tide_outbox o WHERE o.type_id = ?1 AND o.kind = \(ExportKind.delete.rawValue)
                    AND tide_sync_issues.row BETWEEN o.first_row AND o.last_row)
                """
            try db.cachedStatement(sql: issues).execute(arguments: [type.id])
        }
        // The cloud may have lost other deferred records, too, and would never report it.
        for name in try seen.missingDeferred(transaction.connection.types) { try deferredRows.deferUntilReply(name) }
        hasNewExports = true
        try SeenRows.forget(db, types: transaction.connection.types, zone: zone)
    }
}

extension RecordStore {
    /// Begins to compare the store with the cloud, which was put back to an earlier state.
    ///
    /// Requests that are on their way are forgotten. A record that was deleted here is deleted again if it comes.
    ///
    /// - Parameters:
    ///   - incarnation: The present incarnation of the cloud's database.
    ///   - isLost: Whether the cloud lacks the zone, and so its shares.
    package func beginComparing(
        in incarnation: String, isLost: Bool = false, zone: Int64 = StoreFormat.defaultZone
    ) throws(StoreError) {
        try connection.locked("begin to compare with the cloud") { db in
            guard try StoreZone.isThere(db, id: zone) else { return ((), .commit) }
            try connection.refreshSchema(db)
            try Outbox(db).ingestHistory()
            try SeenRows.forget(db, types: connection.types, zone: zone)
            try db.execute(sql: "DELETE FROM tide_requests WHERE zone = ?", arguments: [zone])
            try db.execute(
                sql: "DELETE FROM tide_deferred WHERE zone = ? AND reason = '\(DeferredRows.deferralReason)'", arguments: [zone])
            try db.execute(
                sql: "DELETE FROM tide_outbox WHERE zone = ? AND kind = \(ExportKind.delete.rawValue)", arguments: [zone])
            try db.execute(
                sql: "DELETE FROM tide_sync_issues WHERE kind = \(ExportKind.delete.rawValue) OR waits_for IS NOT NULL")
            let old = try SyncState(db, zone: zone)
            var state = old
            if isLost {
                try StoredShares(db).forget(zone: zone)
                state.zoneIsMade = false
            }
            state.token = nil
            state.incarnation = incarnation
            state.isRefetching = true
            state.isComparing = true
            state.comparedChange = try Int64.fetchOne(db, sql: "SELECT max(id) FROM tide_changes")
            try state.store(db, insteadOf: old, zone: zone)
            return ((), .commit)
        }
    }

    /// The incarnation of the cloud's database when the changed zones were asked for last.
    package func databaseIncarnation() throws(StoreError) -> String? {
        try connection.read("read the state of the sync") { db in
            try String.fetchOne(db, sql: "SELECT value FROM tide_sync WHERE key = 'database_incarnation'")
        }
    }

    package func noteDatabaseIncarnation(_ name: String) throws(StoreError) {
        try connection.locked("note the cloud's incarnation") { db in
            try db.execute(
                sql: "INSERT OR REPLACE INTO tide_sync (key, value) VALUES ('database_incarnation', ?)", arguments: [name])
            return ((), .commit)
        }
    }
}
