import GRDB
import TidemarkModel
import TidemarkSQLite

/// Records that were deleted in the cloud, and records of the cloud that were deleted here.
extension RemoteChangeApplier {
    mutating func apply(deletionOf name: String) throws {
        let key = RecordKey(name: name)
        try deferredRows.end(name)
        for (typeID, records) in plain { plain[typeID] = records.filter { $0.name != name } }
        for type in transaction.connection.types {
            guard let mine = try PendingRow.fetchOne(db, type: type, "_key = ? AND _zone = ?", arguments: [key, zone]) else {
                continue
            }
            if compares, try isMadeAgain(mine, type) { return try makeAgain(mine, type) }
            return try apply(deletionOf: mine, type: type)
        }
        // Both sides have deleted the record.
        if let deletion = try deletion(of: key) {
            try outbox.remove(.delete, type: deletion.typeID, row: deletion.row)
        }
    }

    private mutating func apply(deletionOf mine: PendingRow, type: StoredType) throws {
        let isNew = mine.base == nil || mine.edited.map { RowTimes($0).isMoved } ?? false
        switch planner.plan(forDeletionOf: .init(tag: mine.tag, isPending: mine.isPending, isNew: isNew)) {
        case .endConflict: return try endConflict(of: mine, type)
        case .delete:
            gone[type.id, default: []].append(mine.id)
            return
        case .merge: break
        }
        if mayMove, ![.resolved, .awaitedDeletion].contains(occasion) { return try awaitMove(of: mine, type) }
        switch try planner.plan(forDeletionOf: local(mine, type, ancestor: ancestor(of: mine, type))) {
        case .delete(let conflicts):
            transaction.log(conflicts)
            gone[type.id, default: []].append(mine.id)
        case .sendAgain(let conflicts):
            transaction.log(conflicts)
            try makeAgain(mine, type)
        case .unresolved:
            try deferredRows.add(deletionOf: mine.name, type: type.name, .deletion)
            try note(conflictOf: mine, type, reason: Self.reason("it was edited here and deleted elsewhere"))
        }
    }

    /// Leaves the row as it is until all zones have been fetched: the record may have moved.
    private mutating func awaitMove(of mine: PendingRow, _ type: StoredType) throws {
        try deferredRows.add(deletionOf: mine.name, type: type.name, .move)
        awaited.insert(mine.name)
        try note(
            conflictOf: mine, type,
            reason: "it was deleted in its zone; the next sync finds out whether it has moved to another one")
    }

    /// Sends the record to the cloud as a new one. The cloud's last version stays known: other devices may make the record again,
    /// too, and then their values count in the fields that were not edited here.
    ///
    /// - Parameter isLost: Whether the record is missing because the cloud was put back, and not because someone deleted it.
    mutating func makeAgain(_ mine: PendingRow, _ type: StoredType, isLost: Bool = false) throws {
        try renewAll(mine, type, isLost: isLost)
        try forget(mine.id, type)
        try outbox.add(.save, type: type.id, row: mine.id, change: mine.version)
        hasNewExports = true
    }

    /// Marks every field to be sent, as in a record that the cloud does not have, with the time of its last edit.
    func renewAll(_ mine: PendingRow, _ type: StoredType, isLost: Bool = false) throws {
        let (times, fields) = (try localTimes(mine), type.fields.map(\.name))
        var edited = mine.edited.map { RowTimes($0) } ?? RowTimes(cloud: EditTimes())
        if isLost {
            edited = .lost(times, fields: fields)
        } else {
            for name in fields { edited.set(times[name], of: name) }
        }
        try db.cachedStatement(
            sql: "UPDATE \"\(type.table)\" SET _tag = NULL, _edited = ?, _pending = -1 WHERE _id = ?"
        ).execute(arguments: [edited.description, mine.id])
    }

    /// Whether a record stays although it was deleted here and the deletion is not sent yet.
    mutating func isRestored(
        _ record: RemoteRecord, deletedBy deletion: Outbox.WaitingDeletion, type: StoredType
    ) throws -> Bool {
        let known = RemoteChangePlan.KnownDeletion(tag: deletion.tag, isOfType: deletion.typeID == type.id, mayMove: mayMove)
        switch try planner.plan(for: known, tag: record.tag, occasion: occasion, isMove: { try deletion.isOfMove(db) }) {
        case .keep: return false
        case .lookUp:
            try deferredRows.deferUntilReply(record.name)
            return false
        case .restore:
            try outbox.remove(.delete, type: deletion.typeID, row: deletion.row)
            return true
        case .merge: break
        }
        let fields = type.fields.map(\.name)
        var ancestor: [FieldValue?]?
        if let base = deletion.base {
            // If history does not reach that far, nothing tells whether the record has changed.
            let values = try chain(deletion.change).values(at: base, from: [:], type: type) ?? [:]
            ancestor = fields.map { values[$0] }
        }
        let name = RecordName(type: type.name, name: record.name)
        switch try planner.plan(forDeleted: name, fields: fields, ancestor: ancestor, edited: remote(record, type)) {
        case .restore(let conflicts):
            transaction.log(conflicts)
            try outbox.remove(.delete, type: deletion.typeID, row: deletion.row)
            return true
        case .deleteAgain(let conflicts):
            transaction.log(conflicts)
            // The next try deletes the cloud's present version.
            hasNewExports = true
            try db.cachedStatement(sql: "UPDATE tide_changes SET tag = ? WHERE id = ?").execute(arguments: [
                record.tag, deletion.change,
            ])
            try db.cachedStatement(
                sql: "DELETE FROM tide_sync_issues WHERE type_id = ? AND row = ? AND kind = \(ExportKind.delete.rawValue)"
            )
            .execute(arguments: [deletion.typeID, deletion.row])
        case .unresolved:
            try deferredRows.add(record, .conflict)
            try SyncIssue.note(
                db, .init(typeID: deletion.typeID, row: deletion.row, kind: .delete), version: deletion.change, code: "conflict",
                reason:
                    "it was deleted here and edited elsewhere, and the merge policy is to ask. Resolve it with another policy",
                at: transaction.time, nextTry: nil, waitsFor: nil)
        }
        return false
    }

    func delete(_ rows: [Int64], typeID: Int64) throws {
        guard let type = transaction.connection.types.first(where: { $0.id == typeID }) else { return }
        try transaction.deleteUnsent(rows, type: type, zone: zone)
    }

    /// Ends a fetch of everything: records that the cloud is known to have had and that did not come are gone there.
    mutating func deleteUnseen() throws {
        // Only a look-up tells whether the cloud has these records.
        for name in sent.sorted() { try deferredRows.deferUntilReply(name) }
        for type in transaction.connection.types {
            // A record may have come otherwise meanwhile, as with the reply to a request: each is looked up before it is deleted.
            for name in try seen.missing(type) { try deferredRows.deferUntilReply(name) }
        }
        // Deferred records may be gone in the cloud, too, which would never report it.
        for name in try seen.missingDeferred(transaction.connection.types) { try deferredRows.deferUntilReply(name) }
        try SeenRows.forget(db, types: transaction.connection.types, zone: zone)
    }
}

extension StoreTransaction {
    /// Deletes rows of a zone without sending their deletion.
    func deleteUnsent(_ rows: [Int64], type: StoredType, zone: Int64) throws {
        // The cloud has nothing to delete of a row without a tag.
        let clear = try db.cachedStatement(sql: "UPDATE \"\(type.table)\" SET _tag = NULL, _base = NULL WHERE _id = ?")
        let outbox = Outbox(db, zone: zone)
        for row in rows {
            try clear.execute(arguments: [row])
            try outbox.remove(.save, type: type.id, row: row)
        }
        try delete(rows.sorted(), type: type)
    }
}
