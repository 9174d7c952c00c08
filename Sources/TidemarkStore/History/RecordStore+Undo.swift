import GRDB
package import TidemarkModel
import TidemarkSQLite

extension RecordStore {
    /// Undoes a transaction: records that it inserted are deleted, and records that it updated or deleted get their former
    /// values. The undo is a transaction itself, and can be undone.
    ///
    /// - Parameter policy: Decides about a field or a record that was changed or deleted since. By default nothing is undone
    ///   then. ``MergePolicy/mergeByPropertyStoreTrump`` keeps the later change, ``MergePolicy/mergeByPropertyObjectTrump``
    ///   undoes it, too.
    /// - Parameter isDryRun: Whether only the outcome is computed, and nothing is written.
    /// - Throws: ``UnresolvedConflicts`` under ``MergePolicy/error``; ``StoreError`` `notFound` when history has no such transaction.
    /// - Complexity: O(n) in its changes and those that the records had since.
    package func undo(
        transaction id: Int64, author: String, policy: MergePolicy = .error, isDryRun: Bool = false
    ) throws -> SaveOutcome {
        try transactOrRefuse("undo the transaction \(id)", author: TransactionAuthor(author, origin: .undo)) { transaction in
            let outcome = try transaction.undo(id, policy: policy)
            if isDryRun { transaction.isAbandoned = true }
            return outcome
        }
    }
}

extension StoreTransaction {
    /// A row's first and last change within the transaction that is undone.
    private struct Touched {
        let type: StoredType
        let row: Int64
        var first: Int64
        var last: Int64
    }

    fileprivate func undo(_ id: Int64, policy: MergePolicy) throws -> SaveOutcome {
        guard let row = try Row.fetchOne(db, sql: "SELECT * FROM tide_transactions WHERE id = ?", arguments: [id]) else {
            let oldest = try HistoryFloor(db).transaction
            let reason = id > 0 && id < oldest ? "is no longer in history, which begins with \(oldest)" : "is not in history"
            throw StoreError(.notFound, "the transaction \(id) \(reason)")
        }
        let changes = try StoredChange.fetchAll(db, in: HistoryTransaction(row).changes)
        if changes.contains(where: \.isMove) {
            throw StoreError(
                .invalid,
                "the transaction \(id) moved records into another zone, which can't be undone. Stop sharing them instead")
        }
        var touched: [Touched] = []
        var places: [[Int64]: Int] = [:]
        for change in changes {
            guard let type = connection.types.first(where: { $0.id == change.typeID }) else { continue }
            if change.kind == .insert {
                // Records that were not touched since are deleted without being read.
                let rows = try untouched(change, type: type)
                try permissions.get()?.check(.delete, rows, type: type, db)
                try delete(rows, type: type)
            }
            for row in change.kind == .insert ? try changed(change, type: type) : Array(change.rows) {
                if let place = places[[type.id, row]] {
                    touched[place].last = change.id
                } else {
                    places[[type.id, row]] = touched.count
                    touched.append(Touched(type: type, row: row, first: change.id, last: change.id))
                }
            }
        }
        var merged: [MergedRecord] = []
        var unresolved: [RecordMerge.Unresolved] = []
        for it in touched {
            do {
                if let record = try restore(it, policy: policy) { merged.append(record) }
            } catch let error as RecordMerge.Unresolved {
                unresolved.append(error)
            }
        }
        guard unresolved.isEmpty else { throw UnresolvedConflicts(records: unresolved) }
        try permissions.get()?.check(merged)
        try applyOrRefuse(merged, policy: { _ in policy })
        let cascaded = try enforceRelationships()
        return SaveOutcome(
            counts: counts, conflicts: conflicts, replaced: replacements.names, cascaded: cascaded,
            transaction: counts.isUnchanged ? nil : self.id)
    }

    private func untouched(_ change: StoredChange, type: StoredType) throws -> [Int64] {
        try rows(change, type: type, "_version = ?")
    }

    /// Returns the rows that an insertion made and that were changed or deleted since.
    private func changed(_ change: StoredChange, type: StoredType) throws -> [Int64] {
        let gone = try Int64.fetchAll(
            db,
            sql:
                "SELECT first_row FROM tide_changes WHERE kind = \(ChangeKind.delete.rawValue) AND type_id = ? AND first_row BETWEEN ? AND ? AND id < ?",
            arguments: [type.id, change.rows.lowerBound, change.rows.upperBound, firstChange])
        return try rows(change, type: type, "_version <> ?") + gone
    }

    private func rows(_ change: StoredChange, type: StoredType, _ condition: String) throws -> [Int64] {
        try Int64.fetchAll(
            db, sql: "SELECT _id FROM \"\(type.table)\" WHERE _id BETWEEN ? AND ? AND \(condition) ORDER BY _id",
            arguments: [change.rows.lowerBound, change.rows.upperBound, change.id])
    }

    /// Returns the new state of a row: its state before the transaction, merged with the later changes.
    private func restore(_ it: Touched, policy: MergePolicy) throws -> MergedRecord? {
        guard let history = try RecordHistory(db, type: it.type, rowID: it.row, oldest: it.first) else { return nil }
        if let change = history.damagedChange {
            throw StoreError(
                .damaged,
                "\(it.type.name) \(history.name) was damaged when the change \(change) was made, and history has no whole state of it from before that"
            )
        }
        // Later changes of such fields are ignored: a change of the schema makes some.
        if let lost = history.changes.filter({ $0.id <= it.last }).lazy.flatMap(\.fields).first(where: { field in
            !it.type.fields.contains { $0.name == field.field && $0.type == field.type }
        }) {
            throw StoreError(
                .invalid,
                """
                the field '\(lost.field)' of \(it.type.name), a \(lost.type) then, was dropped or has another type since, so the values \
                from before can't be put back. Add the field again with that type, or read the values with `tidemark history --record`
                """)
        }
        // A record that was deleted since may exist again under another row.
        let zone = try zone(of: it)
        let found = try find(history.name, type: it.type, zone: zone)
        try found?.checkIntact()
        // Goes backwards from the row's present state.
        let row = try find(row: it.row, type: it.type)
        try row?.checkIntact()
        var values: [String: FieldValue]? = row?.state.values
        var after: [String: FieldValue]?
        for change in history.changes {
            if change.id == it.last { after = values }
            switch change.kind {
            case .insert: values = nil
            case .update, .delete:
                var before = values ?? [:]
                for field in change.fields { before[field.field] = field.before }
                values = before
            }
        }
        let merge = RecordMerge(
            type: it.type.name, record: history.name, ancestor: after.map { RecordVersion($0) },
            local: values.map { RecordVersion($0) }, store: found.map { RecordVersion($0.state.values) },
            deletions: .bySide)
        let (merged, conflicts) = try merge.run(policy)
        log(conflicts)
        if merged == nil, found == nil { return nil }
        return MergedRecord(
            type: it.type, name: history.name, zone: found?.zone ?? zone, row: found?.row, current: found?.state.values ?? [:],
            values: merged)
    }

    /// Returns the zone that a row is in or was in.
    private func zone(of it: Touched) throws -> Int64 {
        if let there = try find(row: it.row, type: it.type) { return there.zone }
        let sql = "SELECT zone FROM tide_changes WHERE type_id = ? AND first_row = ? AND kind = \(ChangeKind.delete.rawValue)"
        let zone = try Int64.fetchOne(db.cachedStatement(sql: sql), arguments: [it.type.id, it.row]) ?? StoreFormat.defaultZone
        // The zone may have been removed meanwhile.
        return try StoreZone.fetch(db, id: zone) == nil ? StoreFormat.defaultZone : zone
    }
}
