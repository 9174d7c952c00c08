import GRDB
import TidemarkModel
package import TidemarkSQLite

extension RecordStore {
    /// Resolves relationships after changes from the cloud: it applies the delete rules to records that others have deleted, and
    /// moves added records to the zone of their owner. It works on a zone of a private store, after all zones have been fetched
    /// to their ends.
    ///
    /// The outcomes are edits like those of a program, and are sent. All devices reach the same outcome, in whatever order they
    /// hear of the changes:
    /// - A record that goes with a deleted record is deleted. A record that refers to it by ``DeleteRule/nullify`` loses the
    ///   reference. That holds for records that came after the deletion, too.
    /// - If a record denies the deletion, the deleted record is made again as it was, with its owners.
    /// - References to a record that was merged with another of its unique key are redirected to that one.
    /// - A record that belongs to a shared record, and is in no share, moves into the zone of the share.
    ///
    /// Participants' devices leave this to the owner's: a record that has left a share may exist elsewhere.
    ///
    /// The log of conflicts has an entry for each record. A call that changes nothing writes only how far it has looked.
    ///
    /// - Returns: Whether there may be something to send.
    /// - Complexity: Without relationships O(1); else O(n) in the changes since the last call.
    package func resolveRelationships(zone: Int64 = StoreFormat.defaultZone) throws(StoreError) -> Bool {
        guard scope == .private, try hasRelationshipsToResolve(zone: zone) else { return false }
        let round = importRound
        let author = TransactionAuthor("relationships", origin: .save, role: .sync)
        let what = "keep the relationships of what has come"
        // Moves between zones are not part of the first transaction, so that it can be undone.
        let ruled: (seen: RelationshipResolution.Seen, hasWritten: Bool)? = try transact(what, author: author) { transaction in
            guard try StoreZone.isThere(transaction.db, id: zone) else { return nil }
            let resolution = RelationshipResolution(transaction: transaction, zone: zone, round: round)
            return (try resolution.applyRules(), !transaction.counts.isUnchanged)
        }
        guard let ruled else { return false }
        if ruled.seen.awaitsRound { importRound.needsAnother = true }
        let hasMoved = try transact(what, author: author) { transaction in
            let resolution = RelationshipResolution(transaction: transaction, zone: zone, round: round)
            try resolution.followSharedOwners(ruled.seen.changes)
            try resolution.note(ruled.seen)
            return !transaction.counts.isUnchanged
        }
        return ruled.hasWritten || hasMoved
    }

    private func hasRelationshipsToResolve(zone: Int64) throws(StoreError) -> Bool {
        try connection.read("look for relationships") { db in
            try connection.refreshSchema(db)
            guard connection.types.contains(where: { !$0.relationships.isEmpty }) else { return false }
            let known = try SyncState(db, zone: zone).resolvedChange ?? 0
            return try Int64.fetchOne(db.cachedStatement(sql: "SELECT max(id) FROM tide_changes")) ?? 0 > known
        }
    }
}

/// Resolves the relationships of changes that have come from the cloud in one zone.
///
/// Its SQL begins with the changes to look at. `CROSS JOIN` and `+` keep SQLite from beginning with all rows of a type or zone,
/// or all deletions in history.
private struct RelationshipResolution {
    let transaction: StoreTransaction
    let zone: Int64

    private var db: Database { transaction.db }
    private var types: [StoredType] { transaction.connection.types }
    /// SQL that holds for a change `c` from the cloud.
    private static let isFromCloud =
        "(SELECT t.origin FROM tide_transactions t WHERE t.id = c.transaction_id) = '\(HistoryOrigin.cloud.rawValue)'"

    /// SQL that holds for a change `c` that a program has saved.
    private static let isSaved =
        "(SELECT t.origin FROM tide_transactions t WHERE t.id = c.transaction_id) = '\(HistoryOrigin.save.rawValue)'"

    /// The round of imports. A record that was deleted since its beginning may have moved to a zone that was fetched before.
    private let round: ImportRound

    init(transaction: StoreTransaction, zone: Int64, round: ImportRound) {
        (self.transaction, self.zone, self.round) = (transaction, zone, round)
    }

    /// The changes that were looked at.
    struct Seen {
        var changes: Range<Int64>
        /// Whether some changes have to be read again, because versions from the cloud are deferred.
        var hasDeferred = false
        /// Whether deletions that came after the round of imports began have to be read again after the next round.
        var awaitsRound = false
    }

    /// Applies the delete rules to what has changed since the last time.
    func applyRules() throws -> Seen {
        let changes = (try SyncState(db, zone: zone).resolvedChange ?? 0) + 1..<transaction.firstChange
        var seen = Seen(changes: changes)
        if !changes.isEmpty { try applyRules(&seen) }
        return seen
    }

    /// Records the changes that need not be looked at again.
    func note(_ seen: Seen) throws {
        guard !seen.hasDeferred else { return }
        let old = try SyncState(db, zone: zone)
        var state = old
        let last = seen.changes.upperBound - 1
        state.resolvedChange = seen.awaitsRound ? max(old.resolvedChange ?? 0, min(last, round.lastChange ?? last)) : last
        try state.store(db, insteadOf: old, zone: zone)
    }

    // Deletions

    /// Applies the delete rules. A record with a deferred version from the cloud does not count as deleted, nor does one that may
    /// have moved.
    private func applyRules(_ seen: inout Seen) throws {
        let changes = seen.changes
        let here = "coalesce(c.zone, \(StoreFormat.defaultZone)) = \(zone) AND \(Self.isFromCloud)"
        var gone = Set(try transaction.deletedTargets(in: changes, here))
        gone.formUnion(try deletedBefore(changes))
        let late = try gone.filter { try mayHaveMoved($0) }
        seen.awaitsRound = !late.isEmpty
        gone.subtract(late)
        let count = gone.count
        gone = try gone.filter { try !isDeferred($0) }
        seen.hasDeferred = gone.count < count
        for record in gone where try redirect(record) { gone.remove(record) }
        while !gone.isEmpty {
            let found = try DeletionConsequences(of: gone, db, types: types, scope: transaction.connection.scope)
            let denials = found.denials
            guard !denials.isEmpty else {
                log(found)
                try transaction.apply(found)
                break
            }
            for denial in denials {
                let root = found.root(of: denial.target)
                guard gone.remove(root) != nil else { continue }
                for back in try restore(root) { gone.remove(back) }
            }
        }
    }

    /// Returns whether another device's deletion of a record, in any zone, came after the beginning of the round of imports.
    private func mayHaveMoved(_ record: GoneRecord) throws -> Bool {
        guard let last = round.lastChange, try transaction.hasSeveralZones else { return false }
        if round.deleted.contains(record.name) { return true }
        guard let type = transaction.type(named: record.type), let deletion = try deletion(of: record, type),
            deletion.change > last
        else { return false }
        let sql = "SELECT 1 FROM tide_changes c WHERE c.id = ? AND \(Self.isFromCloud)"
        return try Bool.fetchOne(db.cachedStatement(sql: sql), arguments: [deletion.change]) ?? false
    }

    /// Returns whether a version of the record from the cloud waits to be applied, in any zone.
    private func isDeferred(_ record: GoneRecord) throws -> Bool {
        let sql = "SELECT EXISTS (SELECT 1 FROM tide_deferred WHERE zone IN (SELECT id FROM tide_zones) AND name IN (?, ?, ?))"
        let names = [record.name, record.name.lowercased(), record.name.uppercased()]
        return try Bool.fetchOne(db.cachedStatement(sql: sql), arguments: StatementArguments(names)) ?? true
    }

    /// Returns records that were deleted earlier, and to which changes refer that did not know of the deletion: changes from the
    /// cloud, and references that a program has saved here since. A reference that comes from an undo or an import is deliberate.
    private func deletedBefore(_ changes: Range<Int64>) throws -> Set<GoneRecord> {
        var (gone, known): (Set<GoneRecord>, Set<GoneRecord>) = ([], [])
        for type in types {
            for relationship in type.relationships {
                guard let target = transaction.type(named: relationship.target) else { continue }
                let any = "SELECT EXISTS (SELECT 1 FROM tide_changes WHERE type_id = ? AND kind = \(ChangeKind.delete.rawValue))"
                guard try Bool.fetchOne(db.cachedStatement(sql: any), arguments: [target.id]) ?? false else { continue }
                let column = "r.\"\(relationship.field.column)\""
                let sql = """
                    SELECT DISTINCT \(column) FROM tide_changes c CROSS JOIN "\(type.table)" r ON r._id BETWEEN c.first_row AND c.last_row
                    WHERE c.id >= ?1 AND c.id < ?2 AND c.type_id = ?3 AND c.kind <> \(ChangeKind.delete.rawValue) AND +r._zone = ?4
                        AND \(column) IS NOT NULL AND (\(Self.isFromCloud) OR \(Self.isSaved) AND (
                            c.kind = \(ChangeKind.insert.rawValue) AND c.previous IS NULL
                            OR c.kind = \(ChangeKind.update.rawValue) AND json_type(c.before, ?5) IS NOT NULL))
                    """
                let rows = try Row.fetchAll(
                    db.cachedStatement(sql: sql),
                    arguments: [
                        changes.lowerBound, changes.upperBound, type.id, zone, "$.\(relationship.field.name)",
                    ])
                for row in rows {
                    let value = FieldValue(row[0] as DatabaseValue, type: relationship.field.type)
                    for name in value?.referenceNames ?? [] {
                        let record = GoneRecord(type: target.name, name: name, zone: nil)
                        guard known.insert(record).inserted, try transaction.find(name, type: target) == nil,
                            try deletion(of: record, target) != nil
                        else { continue }
                        gone.insert(record)
                    }
                }
            }
        }
        return gone
    }

    /// Returns the last deletion of a record in history: the change, the row and the zone.
    private func deletion(of record: GoneRecord, _ type: StoredType) throws -> (change: Int64, row: Int64, zone: Int64)? {
        let keys = RecordKey.all(name: record.name)
        let sql = """
            SELECT c.id, c.first_row, coalesce(c.zone, \(StoreFormat.defaultZone)) FROM tide_changes c
            WHERE c.kind = \(ChangeKind.delete.rawValue) AND c.key IN (?, ?) AND +c.type_id = ? ORDER BY c.id DESC LIMIT 1
            """
        let row = try Row.fetchOne(
            db.cachedStatement(sql: sql), arguments: [keys[0], keys[keys.count - 1], type.id])
        return try row.map { row in
            (change: try row.decode(atIndex: 0), row: try row.decode(atIndex: 1), zone: try row.decode(atIndex: 2))
        }
    }

    /// Returns the values that a record had before its last deletion; `nil` where history does not have all of them.
    private func valuesBeforeDeletion(
        of record: GoneRecord, _ type: StoredType
    ) throws -> (name: String, zone: Int64, values: [String: FieldValue])? {
        guard let deletion = try deletion(of: record, type),
            let history = try RecordHistory(db, type: type, rowID: deletion.row, oldest: deletion.change),
            history.damagedChange == nil, let last = history.changes.first, last.kind == .delete
        else { return nil }
        var values: [String: FieldValue] = [:]
        for field in last.fields { values[field.field] = field.before }
        return (history.name, deletion.zone, values)
    }

    /// Makes a record that others have deleted again, with its owners. Returns these records, including the given one even if it
    /// could not be made.
    private func restore(_ record: GoneRecord) throws -> [GoneRecord] {
        var (next, done): (GoneRecord?, [GoneRecord]) = (record, [])
        while let record = next, !done.contains(record) {
            next = nil
            done.append(record)
            guard let type = transaction.type(named: record.type), let before = try valuesBeforeDeletion(of: record, type),
                try transaction.find(before.name, type: type) == nil
            else { continue }
            let zone = try StoreZone.isThere(db, id: before.zone) ? before.zone : StoreFormat.defaultZone
            try transaction.apply(
                [
                    MergedRecord(
                        type: type, name: before.name, zone: zone, row: nil, current: [:], values: before.values)
                ], policy: { _ in .mergeByPropertyObjectTrump })
            log(record.record, field: nil, value: nil, winner: .local, rule: .deny)
            guard let owner = type.owner, let name = before.values[owner.field.name]?.referenceNames.first else { continue }
            next = GoneRecord(type: owner.target, name: name, zone: nil)
        }
        return done
    }

    /// Redirects references to a record that was merged with another of its unique key. Returns whether it was.
    private func redirect(_ record: GoneRecord) throws -> Bool {
        guard let type = transaction.type(named: record.type), !type.uniqueKeys.isEmpty,
            let before = try valuesBeforeDeletion(of: record, type)
        else { return false }
        for (ordinal, key) in type.uniqueKeys.enumerated() {
            let values = key.map { before.values[$0]?.stored ?? .null }
            guard !values.contains(.null) else { continue }
            let columns = key.compactMap { name in type.fields.first { $0.name == name }?.column }
            let condition = columns.map { "\"\($0)\" = ?" }.joined(separator: " AND ")
            let sql = """
                SELECT _key FROM "\(type.table)" INDEXED BY "tide_unique_\(type.table)_\(ordinal)"
                WHERE \(condition) AND _zone = ? ORDER BY _id LIMIT 1
                """
            let arguments = StatementArguments(values + [before.zone.databaseValue])
            guard let found = try DatabaseValue.fetchOne(db.cachedStatement(sql: sql), arguments: arguments),
                let name = RecordKey.fromDatabaseValue(found)?.name
            else { continue }
            try transaction.redirectReferences(
                RecordReplacements.Group(type: type.name, zone: before.zone, names: [record.name: name]))
            return true
        }
        return false
    }

    // Owners

    /// Moves records that belong to a shared record, and are in no share, into its zone.
    func followSharedOwners(_ changes: Range<Int64>) throws {
        guard !changes.isEmpty, try transaction.hasSeveralZones else { return }
        let shared = Set(try StoredShares(db).rows().map(\.zone))
        guard !shared.isEmpty else { return }
        for type in types {
            if let owner = type.owner, let target = transaction.type(named: owner.target), !shared.contains(zone) {
                // Records that have come and are in no share.
                for (row, name) in try come(changes, type, column: owner.field.column) {
                    guard let name, let found = try transaction.find(name, type: target), shared.contains(found.zone) else {
                        continue
                    }
                    try transaction.move(row, type: type, withOwnedTo: found.zone) { !shared.contains($0) }
                }
            }
            guard shared.contains(zone), types.contains(where: { $0.owner?.target == type.name }) else { continue }
            // Owners that have come with their share.
            for (row, _) in try come(changes, type, column: nil) {
                try transaction.move(row, type: type, withOwnedTo: zone) { !shared.contains($0) }
            }
        }
    }

    /// Returns the rows of a type that have come in the zone, each with one of its columns.
    private func come(_ changes: Range<Int64>, _ type: StoredType, column: String?) throws -> [(row: Int64, name: String?)] {
        let sql = """
            SELECT DISTINCT r._id, \(column.map { "r.\"\($0)\"" } ?? "NULL") FROM tide_changes c
            CROSS JOIN "\(type.table)" r ON r._id BETWEEN c.first_row AND c.last_row
            WHERE c.id >= ?1 AND c.id < ?2 AND c.type_id = ?3 AND c.kind <> \(ChangeKind.delete.rawValue) AND +r._zone = ?4
                AND \(Self.isFromCloud)
            """
        return try Row.fetchAll(
            db.cachedStatement(sql: sql), arguments: [changes.lowerBound, changes.upperBound, type.id, zone]
        ).map { row in (row: try row.decode(atIndex: 0), name: String.fromDatabaseValue(row[1])) }
    }

    // The log

    private func log(_ found: DeletionConsequences) {
        for it in found.cascades {
            log(it.record, field: it.field, value: .reference(it.target.name), winner: .store, rule: .cascade)
        }
        for loss in found.losses {
            for (place, field) in loss.fields.sorted(by: { $0.key < $1.key }) {
                log(
                    RecordName(type: loss.type.name, name: loss.name), field: loss.type.fields[place].name, value: field.value,
                    winner: .store, rule: .nullify)
            }
        }
    }

    private func log(
        _ record: RecordName, field: String?, value: FieldValue?, winner: MergeConflict.Winner, rule: DeleteRule
    ) {
        transaction.log([
            MergeConflict(
                type: record.type, record: record.name, field: field, ancestor: nil, local: value, store: nil, winner: winner,
                policy: rule.rawValue)
        ])
    }
}
