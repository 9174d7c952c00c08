import GRDB
import TidemarkModel
package import TidemarkSQLite

extension RecordStore {
    /// Removes a zone with everything in it, because the user left it, its owner stopped sharing it, or it was deleted in the
    /// cloud. Nothing is sent to the cloud.
    ///
    /// Pending changes are kept as ``RefusedSave``. In a private store, records that were on their way here from another zone go
    /// back. Of the default zone only the content and the state of its cloud are removed.
    ///
    /// - Parameters:
    ///   - zone: The zone. Nothing happens if no zone has this number and name any more.
    ///   - reason: The reason, for people.
    ///   - code: The error code, by the names of CloudKit Web Services.
    ///   - author: The name that history gives the transaction.
    ///   - role: The part of the process that removes it.
    ///   - change: Sets what is remembered of the default zone's cloud afterwards. Other zones remember nothing.
    /// - Complexity: O(n) in the records of the zone.
    package func removeZone(
        _ zone: StoreZone, reason: String, code: String, author: String, role: WriterRole = .sync,
        state change: (inout SyncState) -> Void = { _ in }
    ) throws(StoreError) {
        try transact("remove a zone", author: TransactionAuthor(author, origin: .cloud, role: role)) { transaction in
            guard try StoreZone.fetch(transaction.db, id: zone.id) == zone else { return }
            try ZoneRemoval(transaction: transaction, zone: zone.id).run(code: code, reason: reason)
            guard zone.id == StoreFormat.defaultZone else { return }
            let old = try SyncState(transaction.db, zone: zone.id)
            var state = old
            change(&state)
            try state.store(transaction.db, insteadOf: old, zone: zone.id)
        }
    }
}

/// Removes a zone from a store.
struct ZoneRemoval {
    let transaction: StoreTransaction
    let zone: Int64

    private var db: Database { transaction.db }

    func run(code: String, reason: String) throws {
        try Outbox(db).ingestHistory()
        let types = transaction.connection.types
        if transaction.connection.scope != .shared { try sendBack(types) }
        try RejectedChanges(transaction: transaction, zone: zone).keepPending(code: code, reason: reason)
        try Self.forgetSync(db, types: types, zone: zone)
        for type in types {
            let rows = try Int64.fetchAll(
                db, sql: "SELECT _id FROM \"\(type.table)\" WHERE _zone = ? ORDER BY _id", arguments: [zone])
            try transaction.deleteUnsent(rows, type: type, zone: zone)
        }
        try StoredShares(db).forget(zone: zone)
        transaction.changesShares = true
        if zone != StoreFormat.defaultZone { try db.execute(sql: "DELETE FROM tide_zones WHERE id = ?", arguments: [zone]) }
    }

    /// Moves records back that were moved here and that the cloud still has in their former zone.
    private func sendBack(_ types: [StoredType]) throws {
        for type in types {
            let sql = """
                SELECT r._id, coalesce(d.zone, \(StoreFormat.defaultZone)), r._edited FROM "\(type.table)" r
                JOIN tide_changes d ON d.kind = \(ChangeKind.delete.rawValue) AND d.key = r._key AND d.type_id = ?1 AND d.tag IS NOT NULL
                    AND coalesce(d.zone, \(StoreFormat.defaultZone)) <> ?2
                JOIN tide_outbox o ON o.type_id = d.type_id AND o.kind = \(ExportKind.delete.rawValue) AND o.first_row = d.first_row
                WHERE r._zone = ?2 AND r._tag IS NULL AND r._pending IS NOT NULL ORDER BY r._id
                """
            var moved: Set<Int64> = []
            for row in try Row.fetchAll(db, sql: sql, arguments: [type.id, zone]) {
                let (id, home): (Int64, Int64) = (try row.decode(atIndex: 0), try row.decode(atIndex: 1))
                guard moved.insert(id).inserted else { continue }
                let edited: String? = try row.decode(atIndex: 2)
                let there = try transaction.move(id, type: type, to: home, edited: transaction.noted(moveOf: edited))
                try Outbox(db, zone: home).add(.save, type: type.id, row: there.row, change: transaction.nextChange - 1)
            }
        }
    }

    /// Forgets the state of a zone's cloud, and what waits to be sent there.
    static func forgetSync(_ db: Database, types: [StoredType], zone: Int64) throws {
        try SeenRows.forget(db, types: types, zone: zone)
        for type in types {
            let sql = """
                DELETE FROM tide_sync_issues WHERE type_id = ?1 AND (
                    row IN (SELECT first_row FROM tide_outbox WHERE type_id = ?1 AND kind = \(ExportKind.delete.rawValue) AND zone = ?2)
                    OR (SELECT _zone FROM "\(type.table)" WHERE _id = tide_sync_issues.row) = ?2)
                """
            try db.execute(sql: sql, arguments: [type.id, zone])
        }
        for table in ["outbox", "requests", "deferred"] {
            try db.execute(sql: "DELETE FROM tide_\(table) WHERE zone = ?", arguments: [zone])
        }
        let old = try SyncState(db, zone: zone)
        try SyncState.forget(db, zone: zone)
        // The account of the other zones stays known.
        if zone == StoreFormat.defaultZone {
            var state = SyncState()
            state.user = old.user
            try state.store(db, insteadOf: SyncState(), zone: zone)
        }
    }
}
