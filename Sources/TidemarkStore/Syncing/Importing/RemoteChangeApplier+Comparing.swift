import Foundation
import GRDB
import TidemarkModel
package import TidemarkSQLite

/// The cloud was put back to an earlier state: what it has lost since is to be sent again, and what others have sent again is to be merged
/// with what is here. Until everything was fetched, each record that comes is compared with the one that is here.
///
/// A row's tag says nothing then: its number may stand for another change by now. When its fields were edited says what is newer.
extension RemoteChangeApplier {
    /// Merges a record with what is here of it, whether that was edited since it was sent or not.
    mutating func compare(_ row: Int64, with record: RemoteRecord, _ type: StoredType) throws {
        guard let mine = try PendingRow.fetchOne(db, type: type, "_id = ?", arguments: [row]) else { return }
        guard mine.isIntact else {
            // What the store itself proves that it was may be newer than what the cloud was put back to.
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

    /// Whether a record that is not here was deleted here after it had been edited last: the cloud has lost that, and is to hear of it again.
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
            let time: Int64 = row[5], planner.deletesAgain(record.edited, deleted: time)
        else { return false }
        let deletion = Outbox.WaitingDeletion(typeID: row[0], row: row[1], change: row[2], tag: row[3], base: row[4])
        if mayMove, try deletion.isOfMove(db) { return false }
        try db.cachedStatement(sql: "UPDATE tide_changes SET tag = ? WHERE id = ?").execute(arguments: [
            record.tag, deletion.change,
        ])
        try outbox.add(.delete, type: deletion.typeID, row: deletion.row, change: deletion.change)
        if let type = transaction.connection.types.first(where: { $0.id == deletion.typeID }) { try seen.add(deletion.row, type) }
        hasNewExports = true
        return true
    }

    /// Whether a record that the cloud tells was deleted was made again since, as far as is known here: then the cloud may have lost that.
    func isMadeAgain(_ mine: PendingRow, _ type: StoredType) throws -> Bool {
        guard let deletion = try lastDeletion(of: mine.key, type), mine.version > deletion.change else { return false }
        return try !deletion.isOfMove(db)
    }

    /// Everything was compared: what the cloud was known to have and did not come is sent again.
    mutating func sendUnseen() throws {
        for type in transaction.connection.types {
            for name in try seen.missing(type) {
                let arguments: StatementArguments = [RecordKey(name: name), zone]
                guard let mine = try PendingRow.fetchOne(db, type: type, "_key = ? AND _zone = ?", arguments: arguments) else {
                    continue
                }
                // The cloud has lost the version that was deferred, too.
                try deferredRows.end(name)
                try makeAgain(mine, type)
            }
            // A deletion of what did not come has nothing to delete.
            let sql = """
                DELETE FROM tide_outbox WHERE zone = ?1 AND kind = \(ExportKind.delete.rawValue) AND type_id = ?2
                AND NOT EXISTS (SELECT 1 FROM tide_seen s WHERE s.type_id = ?2 AND s.row = tide_outbox.first_row)
                """
            try db.cachedStatement(sql: sql).execute(arguments: [zone, type.id])
        }
        // Other deferred records may be lost there, too: nothing would ever say so.
        for name in try seen.missingDeferred(transaction.connection.types) { try deferredRows.deferUntilReply(name) }
        hasNewExports = true
        try SeenRows.forget(db, types: transaction.connection.types, zone: zone)
    }
}

extension RecordStore {
    /// Begins to compare what is here with what the cloud has: it was put back to an earlier state.
    ///
    /// Of requests that are on their way nothing is known any more, and what was deleted here is deleted again where it comes.
    ///
    /// - Parameters:
    ///   - incarnation: The name of the life that the cloud's database has now.
    ///   - isLost: Whether the cloud does not have the zone, and so no share of it.
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

    /// The name of the life of the cloud's database in which it was asked last which zones have changed.
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
