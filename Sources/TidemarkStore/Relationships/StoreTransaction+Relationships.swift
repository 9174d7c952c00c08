import GRDB
import TidemarkModel
import TidemarkSQLite

/// Enforces relationships while a program writes.
extension StoreTransaction {
    /// Applies the delete rules to records that this transaction has deleted, and moves new records to the zones of their owners.
    ///
    /// Deletions from the cloud are resolved after their zone was fetched to its end
    /// (``RecordStore/resolveRelationships(zone:)``).
    ///
    /// - Returns: The records that were deleted with a record that they refer to.
    /// - Throws: `DeletionDenied` where a rule or a permission forbids it. The transaction must not be committed then.
    /// - Complexity: Without relationships O(1). Else a look-up for each deleted record in each relationship to its type.
    @discardableResult
    func enforceRelationships() throws -> [RecordName] {
        // The caller's report of this transaction includes the redirected references.
        try redirectReferences()
        let types = connection.types
        guard !leavesRelationships, nextChange > firstChange, types.contains(where: { !$0.relationships.isEmpty }) else {
            return []
        }
        try followOwners(in: firstChange..<nextChange)
        try redirectReferences()
        // A record that was merged with another one does not count as deleted. A reference that can't be redirected, because its
        // record is damaged or may not be changed, stays.
        let gone = try deletedTargets(in: firstChange..<nextChange).filter { !replacements.contains($0) }
        guard !gone.isEmpty else { return [] }
        let found = try DeletionConsequences(of: gone, db, types: types, scope: connection.scope)
        var refusals = found.denials.map {
            DeletionDenied.Refusal(record: $0.target.record, reason: .isReferredTo(by: $0.record, field: $0.field))
        }
        if let permissions = try permissions.get() {
            func ask(_ operation: SharePolicy.Operation, _ record: RecordName, _ zone: Int64) {
                let decision = permissions.decide(operation, record: record.name, zone: zone)
                if !decision.isAllowed { refusals.append(.init(record: record, reason: .notPermitted(decision))) }
            }
            for it in found.cascades { ask(.delete, it.record, it.zone) }
            for it in found.losses { ask(.update, RecordName(type: it.type.name, name: it.name), it.zone) }
        }
        guard refusals.isEmpty else { throw DeletionDenied(refusals: refusals) }
        try apply(found)
        return found.cascades.map(\.record)
    }

    /// Deletes records that go with deleted ones, and removes references from records that stay. A damaged record keeps its
    /// references.
    func apply(_ found: DeletionConsequences) throws {
        for (_, rows) in Dictionary(grouping: found.cascades, by: \.type.id).sorted(by: { $0.key < $1.key }) {
            try delete(rows.map(\.row).sorted(), type: rows[0].type)
        }
        try change(
            found.losses.map { loss in
                ReferenceChange(
                    type: loss.type, name: loss.name, zone: loss.zone,
                    values: loss.fields.sorted { $0.key < $1.key }.map { place, field in
                        (place, field.value.replacingReferences { field.gone.contains(RecordName.canonical($0)) ? nil : $0 })
                    })
            })
    }

    /// New values of a record's references.
    struct ReferenceChange {
        let type: StoredType
        let name: String
        let zone: Int64
        /// By the places of the fields.
        let values: [(field: Int, value: FieldValue?)]
    }

    /// Writes references. Damaged records are left out, since their references are unknown.
    func change(_ changes: [ReferenceChange], uniquePolicy: MergePolicy? = nil) throws {
        struct Place: Hashable {
            let type: Int64
            let zone: Int64
        }
        let groups = Dictionary(grouping: changes) { Place(type: $0.type.id, zone: $0.zone) }
        for (place, changes) in groups.sorted(by: { ($0.key.type, $0.key.zone) < ($1.key.type, $1.key.zone) }) {
            let type = changes[0].type
            let batch = try RecordBatch(rowLimit: .max, byteLimit: .max)
            let columns = try batch.columns(of: type.fields)
            for it in changes { try batch.add(name: it.name, changes: it.values, fields: type.fields, columns: columns) }
            batch.digest(seed: connection.identity.digestSeed)
            try write(batch, type: type, zone: place.zone, uniquePolicy: uniquePolicy)
            if let refused = batch.rejections.first(where: { !$0.isOfDamage }) {
                throw StoreError(.invalid, "references of \(type.name) can't be changed: \(refused.message)")
            }
        }
    }

    /// Returns the records that some changes have deleted, that have not been made again, and to whose types relationships lead.
    ///
    /// - Parameter condition: SQL for further conditions on the change `c`.
    func deletedTargets(in changes: Range<Int64>, _ condition: String = "TRUE") throws -> [GoneRecord] {
        let targets = DeletionConsequences.targets(of: connection.types)
        var gone: [GoneRecord] = []
        for type in connection.types where targets.contains(type.name) {
            // The `+` keeps SQLite from beginning with all deletions of the type in history.
            let sql = """
                SELECT c.key, coalesce(c.zone, \(StoreFormat.defaultZone)) FROM tide_changes c
                WHERE c.id >= ?1 AND c.id < ?2 AND c.kind = \(ChangeKind.delete.rawValue) AND +c.type_id = ?3 AND \(condition)
                ORDER BY c.id
                """
            let statement = try db.cachedStatement(sql: sql)
            let rows = try Row.fetchAll(statement, arguments: [changes.lowerBound, changes.upperBound, type.id])
            for row in rows {
                guard let key = RecordKey.fromDatabaseValue(row[0]) else {
                    throw StoreError(.corrupt, "tide_changes has a deletion whose key cannot be one")
                }
                let zone: Int64? = try connection.scope == .shared ? row.decode(Int64.self, atIndex: 1) : nil
                // It may have moved into another zone, or been made again.
                guard try find(key.name, type: type, zone: zone) == nil else { continue }
                gone.append(GoneRecord(type: type.name, name: key.name, zone: zone))
            }
        }
        return gone
    }
}
