import GRDB
import TidemarkModel
import TidemarkSQLite

/// Handles records that come in another zone. In a private store a name is in one zone at most. A record that comes under the
/// name in another zone is the same record: a device has moved it, or has edited it before it knew of a move. The two are merged.
extension RemoteChangeApplier {
    /// A record's row in another zone.
    struct Copy {
        let type: StoredType
        let row: Int64
        let zone: Int64
    }

    /// The row that has the name in another zone.
    func elsewhere(_ key: RecordKey) throws -> Copy? {
        for type in transaction.connection.types {
            let statement = try db.cachedStatement(
                sql: "SELECT _id, _zone FROM \"\(type.table)\" WHERE _key = ? AND _zone <> ? ORDER BY _zone")
            if let row = try Row.fetchOne(statement, arguments: [key, zone]) {
                return Copy(type: type, row: try row.decode(atIndex: 0), zone: try row.decode(atIndex: 1))
            }
        }
        return nil
    }

    /// Merges a record that has come with the row that has its name in another zone.
    mutating func reconcileZoneMove(_ record: RemoteRecord, _ type: StoredType, with there: Copy) throws {
        guard let mine = try PendingRow.fetchOne(db, type: there.type, "_id = ?", arguments: [there.row]) else { return }
        guard there.type.id == type.id else {
            guard !planner.blocksName(mine.isPending) else { return try deferredRows.add(record, .name) }
            // The record under the name was deleted there, and this one was made here.
            try delete([mine.id], typeID: there.type.id)
            plain[type.id, default: []].append(record)
            return
        }
        guard mine.isIntact else { return try deferredRows.add(record, .damaged) }
        // If the cloud has deleted the record in the other zone, the times of the moves don't matter.
        let isMovedHere = mine.edited.map { RowTimes($0).isMoved } ?? false
        let isDeleted = try !isMovedHere && AwaitedMoves(db).isDeleted(record.name, in: there.zone)
        if try isDeleted || isHome(record, insteadOf: mine, in: there.zone) {
            try moveToRemoteZone(mine, from: there.zone, to: record, type, isDeletedThere: isDeleted)
        } else {
            try mergeIntoHomeZone(record, into: mine, in: there.zone, type)
        }
    }

    /// Whether the record has come in its own zone.
    private func isHome(_ record: RemoteRecord, insteadOf mine: PendingRow, in other: Int64) throws -> Bool {
        func copy(_ zone: Int64, _ moved: EditTime?) throws -> RemoteChangePlan.ZoneCopy {
            .init(
                isDefaultZone: zone == StoreFormat.defaultZone, zone: try StoreZone.fetch(db, id: zone)?.name.name, moved: moved)
        }
        return planner.isHome(
            try copy(zone, record.edited?.fields[EditTimes.move]),
            insteadOf: try copy(other, mine.edited.flatMap { EditTimes($0).fields[EditTimes.move] }))
    }

    /// Moves the row into the zone in which the cloud has the record, and merges local edits with the cloud's version.
    private mutating func moveToRemoteZone(
        _ mine: PendingRow, from other: Int64, to record: RemoteRecord, _ type: StoredType, isDeletedThere: Bool
    ) throws {
        // The record belongs there, whatever deletion was waiting.
        if let deletion = try deletion(of: mine.key) { try outbox.remove(.delete, type: deletion.typeID, row: deletion.row) }
        let moved = try transaction.move(mine.id, type: type, to: zone, edited: mine.edited)
        try seen.add(moved.row, type)
        try forget(mine.id, type)
        let left = Outbox(db, zone: other)
        try left.remove(.save, type: type.id, row: mine.id)
        if mine.tag != nil, !isDeletedThere { try left.add(.delete, type: type.id, row: mine.id, change: moved.deletion) }
        try db.cachedStatement(
            sql: "DELETE FROM tide_deferred WHERE zone = ? AND name = ? AND reason <> '\(DeferredRows.deferralReason)'"
        )
        .execute(arguments: [other, record.name])
        hasNewExports = true
        guard let row = try PendingRow.fetchOne(db, type: type, "_id = ?", arguments: [moved.row]) else { return }
        try rebase(row, onto: record, type: type, as: .copy(isEdited: mine.isPending))
    }

    /// Merges edits from a zone that the record has left into the record in its present zone. The cloud's copy in the old zone is deleted.
    private mutating func mergeIntoHomeZone(
        _ record: RemoteRecord, into mine: PendingRow, in home: Int64, _ type: StoredType
    ) throws {
        let deletion = try lastDeletion(of: mine.key, type)
        var ancestor: [String: FieldValue]?
        if let deletion, let base = deletion.base {
            ancestor = try chain(deletion.change).values(at: base, from: [:], type: type)
        }
        let local = try local(mine, type, ancestor: ancestor)
        guard
            case .write(let changes, let edited, let conflicts) = try planner.merge(
                copy: remote(record, type), into: local, in: context)
        else { return try deferredRows.add(record, .conflict) }
        transaction.log(conflicts)
        try endCopy(record, type, deletion: deletion)
        guard !changes.isEmpty else { return }
        try db.cachedStatement(sql: "UPDATE \"\(type.table)\" SET _edited = ? WHERE _id = ?").execute(arguments: [
            edited.description, mine.id,
        ])
        let batch = try RecordBatch(rowLimit: .max, byteLimit: .max)
        let schema = type.schema.fields
        try batch.add(name: mine.name, values: changes.map { (schema[$0.field], $0.value) })
        batch.digest(seed: transaction.connection.identity.digestSeed)
        try transaction.write(batch, type: type, zone: home, uniquePolicy: nil)
        try Outbox(db, zone: home).add(.save, type: type.id, row: mine.id, change: transaction.nextChange - 1)
    }

    /// Makes the cloud delete the copy in this zone, which the record has left.
    private mutating func endCopy(_ record: RemoteRecord, _ type: StoredType, deletion: Outbox.WaitingDeletion?) throws {
        hasNewExports = true
        if let deletion {
            // The tag of the cloud's present version.
            try db.cachedStatement(sql: "UPDATE tide_changes SET tag = ? WHERE id = ?").execute(arguments: [
                record.tag, deletion.change,
            ])
            try outbox.add(.delete, type: type.id, row: deletion.row, change: deletion.change)
            try db.cachedStatement(
                sql: "DELETE FROM tide_sync_issues WHERE type_id = ? AND row = ? AND kind = \(ExportKind.delete.rawValue)"
            )
            .execute(arguments: [type.id, deletion.row])
            return
        }
        // The copy was never in this store. It is written and deleted, so that history has a deletion to send.
        try write([record], type: type)
        let sql = "SELECT _id FROM \"\(type.table)\" WHERE _key = ? AND _zone = ?"
        guard let row = try Int64.fetchOne(db.cachedStatement(sql: sql), arguments: [RecordKey(name: record.name), zone]) else {
            return
        }
        try transaction.delete([row], type: type)
        try outbox.add(.delete, type: type.id, row: row, change: transaction.nextChange - 1)
    }

    /// The last deletion of a name from this zone in history, whether it was sent or not.
    func lastDeletion(of key: RecordKey, _ type: StoredType) throws -> Outbox.WaitingDeletion? {
        let sql = """
            SELECT type_id, first_row, id, tag, base FROM tide_changes
            WHERE kind = \(ChangeKind.delete.rawValue) AND key = ? AND type_id = ? AND coalesce(zone, \(StoreFormat.defaultZone)) = ? ORDER BY id DESC LIMIT 1
            """
        return try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [key, type.id, zone]).map {
            try Outbox.WaitingDeletion($0)
        }
    }
}
