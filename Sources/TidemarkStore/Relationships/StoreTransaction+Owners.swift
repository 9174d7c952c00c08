import GRDB
import TidemarkModel
import TidemarkSQLite

/// Keeps owned records in the zone of their owner.
extension StoreTransaction {
    /// Returns edits in which each new record without a given zone goes into the zone of its owner. The owner may be one of the
    /// edits.
    ///
    /// - Complexity: With one zone O(1); else two look-ups for each record that has an owner.
    func placedWithOwners(_ edits: [RecordEdit]) throws -> [RecordEdit] {
        guard try hasSeveralZones, edits.contains(where: { type(named: $0.record.type)?.owner != nil }) else { return edits }
        let byRecord = Dictionary(edits.map { ($0.record, $0) }, uniquingKeysWith: { $1 })
        var zones: [RecordName: Int64?] = [:]
        return try edits.map { edit in
            guard edit.zone == nil, !edit.isDeletion, let zone = try zoneOfOwner(edit, among: byRecord, known: &zones),
                let type = type(named: edit.record.type), try find(edit.record.name, type: type) == nil
            else { return edit }
            var placed = edit
            placed.zone = zone
            return placed
        }
    }

    /// Returns the zone of an edited record's owner; `nil` where it has no owner, or the owner does not exist.
    ///
    /// - Parameters:
    ///   - others: The edits that are saved together, by their records: an owner may be among them.
    ///   - known: The results for these edits, so that a chain of owners is followed only once.
    private func zoneOfOwner(
        _ edit: RecordEdit, among others: [RecordName: RecordEdit], known: inout [RecordName: Int64?]
    ) throws -> Int64? {
        var (edit, passed): (RecordEdit, [RecordName]) = (edit, [])
        var zone: Int64?
        while true {
            if let found = known[edit.record] {
                zone = found
                break
            }
            passed.append(edit.record)
            // Owners in a circle don't lead to an existing one.
            known[edit.record] = .some(nil)
            guard let owner = type(named: edit.record.type)?.owner, case .reference(let name)? = edit.values?[owner.field.name]
            else { break }
            if let type = type(named: owner.target), let found = try find(name, type: type, zone: edit.zone) {
                zone = found.zone
                break
            }
            guard let next = others[RecordName(type: owner.target, name: name)] else { break }
            if next.zone != nil {
                zone = next.zone
                break
            }
            edit = next
        }
        for record in passed { known[record] = .some(zone) }
        return zone
    }

    /// Moves records that changes have inserted or given another owner into the zones of their owners, with everything that they
    /// own.
    ///
    /// - Throws: ``StoreError`` `invalid` in a shared store, where records don't move between zones.
    /// - Complexity: With one zone O(1); else a look-up for each of these records.
    func followOwners(in changes: Range<Int64>) throws {
        guard try hasSeveralZones else { return }
        for type in connection.types {
            guard let owner = type.owner, let target = self.type(named: owner.target) else { continue }
            // CROSS: SQLite would begin with all rows of the type.
            let sql = """
                SELECT DISTINCT r._id, r._zone, r."\(owner.field.column)" FROM tide_changes c
                CROSS JOIN "\(type.table)" r ON r._id BETWEEN c.first_row AND c.last_row
                WHERE c.id >= ?1 AND c.id < ?2 AND c.type_id = ?3 AND r."\(owner.field.column)" IS NOT NULL
                    AND (c.kind = \(ChangeKind.insert.rawValue) AND c.previous IS NULL
                        OR c.kind = \(ChangeKind.update.rawValue) AND json_type(c.before, '$.\(owner.field.name)') IS NOT NULL)
                """
            let statement = try db.cachedStatement(sql: sql)
            for row in try Row.fetchAll(statement, arguments: [changes.lowerBound, changes.upperBound, type.id]) {
                guard let name = String.fromDatabaseValue(row[2]) else { continue }
                let (id, zone): (Int64, Int64) = (try row.decode(atIndex: 0), try row.decode(atIndex: 1))
                if connection.scope == .shared, try find(name, type: target, zone: zone) != nil { continue }
                guard let found = try find(name, type: target), found.zone != zone else { continue }
                guard connection.scope != .shared else {
                    throw StoreError(
                        .invalid,
                        """
                        a record of \(type.name) belongs to \(target.name) \(name), which is in another share. Records don't move between the \
                        shares of others: delete this one, and save a new one there
                        """)
                }
                try move(id, type: type, withOwnedTo: found.zone)
            }
        }
        guard nextChange > changes.upperBound else { return }
        // In their new zone, they may agree with other records in a unique key.
        for type in connection.types where !type.uniqueKeys.isEmpty {
            try mergeUniqueKeys(of: type, changes: changes.upperBound..<nextChange, .mergeByPropertyObjectTrump)
        }
    }

    /// Moves a record and everything that it owns into a zone.
    ///
    /// - Parameter isFree: Returns whether a record may leave a zone. A record that may not stays, with everything that it owns.
    func move(_ row: Int64, type: StoredType, withOwnedTo zone: Int64, from isFree: (Int64) throws -> Bool = { _ in true }) throws
    {
        var open = [(type: type, row: row)]
        while let next = open.popLast() {
            guard let found = try find(row: next.row, type: next.type) else { continue }
            if found.zone != zone {
                guard found.isIntact, try isFree(found.zone),
                    let pending = try PendingRow.fetchOne(db, type: next.type, "_id = ?", arguments: [next.row])
                else { continue }
                _ = try move(next.row, type: next.type, to: zone, edited: noted(moveOf: pending.edited))
            }
            open += try owned(by: found.name, next.type).filter { $0.zone != zone }.map { ($0.type, $0.row) }
        }
    }

    /// Returns the records that a record owns.
    func owned(by name: String, _ type: StoredType) throws -> [(type: StoredType, row: Int64, zone: Int64)] {
        try connection.types.flatMap { other -> [(type: StoredType, row: Int64, zone: Int64)] in
            guard let owner = other.owner, owner.target == type.name else { return [] }
            return try ReferrerSearch(db: db).rows(of: other, by: owner.field, to: [name]).map { (other, $0.row, $0.zone) }
        }
    }
}
