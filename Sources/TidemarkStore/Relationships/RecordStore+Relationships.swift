import GRDB
import TidemarkModel
package import TidemarkSQLite

extension RecordStore {
    /// Keeps relationships where devices have met: applies the delete rules to what others have deleted, and has what they have added
    /// follow its owner. For a zone of a private store, once all its zones have been fetched to their ends.
    ///
    /// What is done here are edits like those of a program, and they are sent. All devices do the same, whichever hears of what first:
    /// - A record that goes with what is deleted is deleted, and what refers by ``DeleteRule/nullify`` loses the reference; also what has come
    ///   after the deletion and did not know of it.
    /// - Where a record denies the deletion, the deleted record comes back as it was, with its owners.
    /// - References to a record that has become one with another of its unique key follow to that one.
    /// - What belongs to a shared record, and is in no share, moves into the share's zone.
    ///
    /// The devices of participants leave this to those of the owner: what is gone from a share may be elsewhere.
    ///
    /// The log of conflicts has an entry for each record. Calls that come to nothing write nothing but how far they have looked.
    ///
    /// - Returns: Whether there may be something to send.
    /// - Complexity: Without relationships O(1); else O(n) in the changes since the last call.
    package func resolveRelationships(zone: Int64 = StoreFormat.defaultZone) throws(StoreError) -> Bool {
        guard scope == .private, try hasRelationshipsToResolve(zone: zone) else { return false }
        let round = importRound
        let author = TransactionAuthor("relationships", origin: .save, role: .sync)
        let what = "keep the relationships of what has come"
        // Moves between zones are no part of the first transaction, which can be undone.
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

/// Keeps the relationships of what has come from the cloud in one zone.
///
/// Its statements begin with the changes that are looked at: `CROSS JOIN` and `+` keep SQLite from beginning with all rows of a type, all of a
/// zone, or all deletions that history has.
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

    /// The round of imports: what was deleted since it began may have moved to a zone that was fetched before.
    private let round: ImportRound

    init(transaction: StoreTransaction, zone: Int64, round: ImportRound) {
        (self.transaction, self.zone, self.round) = (transaction, zone, round)
    }

    /// What was looked at.
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

    /// Notes what was looked at, and need not be looked at again.
    func note(_ seen: Seen) throws {
        guard !seen.hasDeferred else { return }
        let old = try SyncState(db, zone: zone)
        var state = old
        let last = seen.changes.upperBound - 1
        state.resolvedChange = seen.awaitsRound ? max(old.resolvedChange ?? 0, min(last, round.lastChange ?? last)) : last
        try state.store(db, insteadOf: old, zone: zone)
    }

    // Deletions

    /// Applies the delete rules. A record whose version from the cloud is deferred is not a deleted one, nor is one that may have moved.
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

    /// Whether another device's deletion of a record came after the round of imports began, in any zone.
    private func mayHaveMoved(_ record: GoneRecord) throws -> Bool {
        guard let last = round.lastChange, try transaction.hasSeveralZones else { return false }
        if round.deleted.contains(record.name) { return true }
        guard let type = transaction.type(named: record.type), let deletion = try deletion(of: record, type),
            deletion.change > last
        else { return false }
        let sql = "SELECT 1 FROM tide_changes c WHERE c.id = ? AND \(Self.isFromCloud)"
        return try Bool.fetchOne(db.cachedStatement(sql: sql), arguments: [deletion.change]) ?? false
    }

    /// Whether the cloud has a version of the record that waits to be applied, in whatever zone.
    private func isDeferred(_ record: GoneRecord) throws -> Bool {
        let sql = "SELECT EXISTS (SELECT 1 FROM tide_deferred WHERE zone IN (SELECT id FROM tide_zones) AND name IN (?, ?, ?))"
        let names = [record.name, record.name.lowercased(), record.name.uppercased()]
        return try Bool.fetchOne(db.cachedStatement(sql: sql), arguments: StatementArguments(names)) ?? true
    }

    /// Records that were deleted earlier, and to which changes refer that did not know of it: those from the cloud, and references that a
    /// program here has saved since. What an undo or an import brings back is wanted.
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

    /// The last deletion of a record that history has: the change and the row.
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

    /// The values that a record had before its last deletion; `nil` where history does not have them whole.
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

    /// Makes a record again that others have deleted, and its owners. Returns those that are there again, the record among them, whether
    /// or not it could be made.
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

    /// Has references follow a record that has become one with another of its unique key. Returns whether it has.
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

    /// Moves what belongs to a shared record, and is in no share, into the zone of the record.
    func followSharedOwners(_ changes: Range<Int64>) throws {
        guard !changes.isEmpty, try transaction.hasSeveralZones else { return }
        let shared = Set(try StoredShares(db).rows().map(\.zone))
        guard !shared.isEmpty else { return }
        for type in types {
            if let owner = type.owner, let target = transaction.type(named: owner.target), !shared.contains(zone) {
                // Records that have come, and are in no share.
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

    /// The rows of a type in the zone that have come, with a column of theirs.
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
