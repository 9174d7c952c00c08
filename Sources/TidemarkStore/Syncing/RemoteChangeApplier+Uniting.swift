import GRDB
import TidemarkModel

/// In a private store a name is in one zone at the most. What comes under it in another one is the same record: it was moved, here or
/// elsewhere, or edited by somebody who had not heard of that. Both become one.
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
                return Copy(type: type, row: row[0], zone: row[1])
            }
        }
        return nil
    }

    /// Has a record that has come become one with what is there under its name.
    mutating func reconcileZoneMove(_ record: RemoteRecord, _ type: StoredType, with there: Copy) throws {
        guard let mine = try PendingRow.fetchOne(db, type: there.type, "_id = ?", arguments: [there.row]) else { return }
        guard there.type.id == type.id else {
            guard !mine.isPending else { return try keeping.keep(record, .name) }
            // What was under the name was deleted there, and this made here.
            try delete([mine.id], typeID: there.type.id)
            plain[type.id, default: []].append(record)
            return
        }
        guard mine.isIntact else { return try keeping.keep(record, .damaged) }
        if try isHome(record, insteadOf: mine, in: there.zone) {
            try moveToRemoteZone(mine, from: there.zone, to: record, type)
        } else {
            try mergeIntoHomeZone(record, into: mine, in: there.zone, type)
        }
    }

    /// Whether the record's place is the zone that it has come in: where it was moved to last. Where nothing tells of that, what is shared
    /// comes before what is not, and else the lesser name. All devices find the same.
    private func isHome(_ record: RemoteRecord, insteadOf mine: PendingRow, in other: Int64) throws -> Bool {
        let ours = mine.edited.flatMap { EditTimes($0).fields[EditTimes.move] }
        let theirs = record.edited?.fields[EditTimes.move]
        if ours != theirs {
            guard let ours else { return true }
            guard let theirs else { return false }
            return theirs > ours
        }
        if zone == StoreFormat.defaultZone { return false }
        if other == StoreFormat.defaultZone { return true }
        guard let here = try StoreZone.fetch(db, id: zone), let there = try StoreZone.fetch(db, id: other) else { return false }
        return Array(here.name.name.utf8).lexicographicallyPrecedes(Array(there.name.name.utf8))
    }

    /// Has what is here go on where the cloud has the record: what was edited here is merged with what it is there.
    private mutating func moveToRemoteZone(
        _ mine: PendingRow, from other: Int64, to record: RemoteRecord, _ type: StoredType
    ) throws {
        // It is there by right, whatever was to be deleted before.
        if let deletion = try deletion(of: mine.key) { try outbox.remove(.delete, type: deletion.typeID, row: deletion.row) }
        let moved = try transaction.move(mine.id, type: type, to: zone, edited: mine.edited)
        try seen.add(moved.row, type)
        try forget(mine.id, type)
        let left = Outbox(db, zone: other)
        try left.remove(.save, type: type.id, row: mine.id)
        if mine.tag != nil { try left.add(.delete, type: type.id, row: mine.id, change: moved.deletion) }
        try db.cachedStatement(
            sql: "DELETE FROM tide_deferred WHERE zone = ? AND name = ? AND reason <> '\(DeferredRows.deferralReason)'"
        )
        .execute(arguments: [other, record.name])
        hasNewExports = true
        guard let row = try PendingRow.fetchOne(db, type: type, "_id = ?", arguments: [moved.row]) else { return }
        // What came from the cloud, and whoever moved the record did not know of, is no conflict.
        try rebase(
            row, onto: record, type: type, policy: mine.isPending ? nil : .mergeByPropertyObjectTrump,
            isCopy: true)
    }

    /// Has what was edited in a zone that the record has left go on where it is now. The cloud's copy there goes.
    private mutating func mergeIntoHomeZone(
        _ record: RemoteRecord, into mine: PendingRow, in home: Int64, _ type: StoredType
    ) throws {
        let deletion = try lastDeletion(of: mine.key, type)
        var ancestor: [FieldValue?]?
        if let deletion, let base = deletion.base {
            ancestor = try chain(deletion.change).values(at: base, from: [:], type: type).map { known in
                type.fields.map { known[$0.name] }
            }
        }
        let (mineTimes, fields) = (try localTimes(mine), type.fields.map(\.name))
        let theirs = values(inOrder: record, type)
        let times = copyTimes(mine.values, mineTimes, theirs, record.edited, type)
        ancestor = common(ancestor, mine: mine.values, theirs: theirs, times: times, areCopies: true)
        let merge = FieldMerge(type: type.name, record: record.name, fields: fields)
        var merged = theirs
        do {
            let outcome = try merge.run(
                policy(type.name), ancestor: ancestor, local: mine.values, store: theirs,
                times: { (nil, times[$0].0?.clamped(to: transaction.time), times[$0].1?.clamped(to: transaction.time)) })
            for edit in outcome.edits { merged[edit.field] = edit.value }
            transaction.log(outcome.conflicts)
        } catch is FieldMerge.Unresolved {
            return try keeping.keep(record, .conflict)
        }
        try endCopy(record, type, deletion: deletion)
        let changed = fields.indices.filter { !merged[$0].isSame(as: mine.values[$0]) }
        guard !changed.isEmpty else { return }
        var edited = mine.edited.map { RowTimes($0) } ?? RowTimes(cloud: EditTimes())
        for field in changed { edited.set(times[field].1, of: fields[field]) }
        try db.cachedStatement(sql: "UPDATE \"\(type.table)\" SET _edited = ? WHERE _id = ?").execute(arguments: [
            edited.description, mine.id,
        ])
        let batch = try RecordBatch(rowLimit: .max, byteLimit: .max)
        let schema = type.schema.fields
        try batch.add(name: mine.name, values: changed.map { (schema[$0], merged[$0]) })
        batch.digest(seed: transaction.connection.identity.digestSeed)
        try transaction.write(batch, type: type, zone: home, uniquePolicy: nil)
        try Outbox(db, zone: home).add(.save, type: type.id, row: mine.id, change: transaction.nextChange - 1)
    }

    /// The cloud is to be told that the record is not in this zone any more.
    private mutating func endCopy(_ record: RemoteRecord, _ type: StoredType, deletion: Outbox.WaitingDeletion?) throws {
        hasNewExports = true
        if let deletion {
            // As the cloud has it by now.
            try db.cachedStatement(sql: "UPDATE tide_changes SET tag = ? WHERE id = ?").execute(arguments: [
                record.tag, deletion.change,
            ])
            try outbox.add(.delete, type: type.id, row: deletion.row, change: deletion.change)
            try db.cachedStatement(sql: "DELETE FROM tide_sync_issues WHERE type_id = ? AND row = ? AND kind = 3")
                .execute(arguments: [type.id, deletion.row])
            return
        }
        // It was never here: it comes and goes, so that history has what is to be deleted.
        try write([record], type: type)
        let sql = "SELECT _id FROM \"\(type.table)\" WHERE _key = ? AND _zone = ?"
        guard let row = try Int64.fetchOne(db.cachedStatement(sql: sql), arguments: [RecordKey(name: record.name), zone]) else {
            return
        }
        try transaction.delete([row], type: type)
        try outbox.add(.delete, type: type.id, row: row, change: transaction.nextChange - 1)
    }

    /// The last deletion of a name from this zone that history has, whether the cloud has heard of it or not.
    func lastDeletion(of key: RecordKey, _ type: StoredType) throws -> Outbox.WaitingDeletion? {
        let sql = """
            SELECT type_id, first_row, id, tag, base FROM tide_changes
            WHERE kind = 3 AND key = ? AND type_id = ? AND coalesce(zone, \(StoreFormat.defaultZone)) = ? ORDER BY id DESC LIMIT 1
            """
        return try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [key, type.id, zone]).map {
            Outbox.WaitingDeletion(typeID: $0[0], row: $0[1], change: $0[2], tag: $0[3], base: $0[4])
        }
    }

    /// When two copies of a record got their values. That a field has none was an edit only where it has a time of its own: a record's insertion
    /// gives one to all.
    func copyTimes(
        _ mine: [FieldValue?], _ ours: EditTimes, _ theirs: [FieldValue?], _ others: EditTimes?, _ type: StoredType
    ) -> [(EditTime?, EditTime?)] {
        type.fields.indices.map { index in
            let name = type.fields[index].name
            return (
                mine[index] == nil ? ours.fields[name] : ours[name], theirs[index] == nil ? others?.fields[name] : others?[name]
            )
        }
    }

    /// What two states of a record began with, so that only what somebody has edited here is in conflict with others' edits.
    ///
    /// What has come here from another zone is somebody else's edit, and so is what one's own device has once written and the cloud brings back:
    /// of these the later counts. Of two copies one may not know of the other's edits: of a field that only one of them seems to have changed,
    /// an older value than the other's is no edit, and no value that nobody took away is none either. Where nobody knows what they began
    /// with, the later edit of a field counts; without times it stays a conflict.
    func common(
        _ ancestor: [FieldValue?]?, mine: [FieldValue?], theirs: [FieldValue?], times: [(EditTime?, EditTime?)], areCopies: Bool
    ) -> [FieldValue?] {
        let device = transaction.connection.identity.device.uuidString
        var common = ancestor ?? mine.map { _ in nil }
        for field in mine.indices where !mine[field].isSame(as: theirs[field]) {
            if areCopies, mine[field] == nil && times[field].0 == nil || theirs[field] == nil && times[field].1 == nil {
                common[field] = nil
                continue
            }
            guard let ours = times[field].0, let others = times[field].1, ours != others else { continue }
            let earlier = ours > others ? theirs[field] : mine[field]
            guard let ancestor else {
                common[field] = earlier
                continue
            }
            guard !theirs[field].isSame(as: ancestor[field]) else { continue }
            if mine[field].isSame(as: ancestor[field]) {
                if areCopies, ours > others { common[field] = earlier }
            } else if ours.device != device || others.device == device {
                common[field] = earlier
            }
        }
        return common
    }
}
