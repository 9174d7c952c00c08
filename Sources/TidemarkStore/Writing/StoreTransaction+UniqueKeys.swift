import GRDB
import TidemarkModel
import TidemarkSQLite

extension StoreTransaction {
    /// Merges records of a zone with equal unique keys, if changes of this transaction have touched one of them.
    ///
    /// The record with the lowest name, by its bytes, stays. The later edit is the local side of the merge, so all devices that
    /// know the same edits reach the same record.
    ///
    /// In a synchronisation no caller learns of the merge, so the log of conflicts says which records were merged.
    ///
    /// - Complexity: A look-up in the key's index for each touched record.
    func mergeUniqueKeys(of type: StoredType, changes: Range<Int64>, _ policy: MergePolicy) throws {
        let touched = try StoredChange.fetchAll(db, in: changes).filter { $0.typeID == type.id && $0.kind != .delete }
        for (ordinal, key) in type.uniqueKeys.enumerated() {
            let columns = key.compactMap { name in type.fields.first { $0.name == name }?.column }
            let equal = columns.map { "o.\"\($0)\" = r.\"\($0)\"" }.joined(separator: " AND ")
            // A key with a missing value is equal to no other: in SQL, `=` never holds for NULL.
            let sql = """
                SELECT o._id FROM "\(type.table)" r JOIN "\(type.table)" o INDEXED BY "tide_unique_\(type.table)_\(ordinal)"
                ON \(equal) AND o._zone = r._zone WHERE r._id = ? ORDER BY o._id
                """
            for change in touched {
                for row in change.rows {
                    let rows = try Int64.fetchAll(db.cachedStatement(sql: sql), arguments: [row])
                    if rows.count > 1 { try mergeRows(rows, type: type, policy) }
                }
            }
        }
    }

    private func mergeRows(_ rows: [Int64], type: StoredType, _ policy: MergePolicy) throws {
        var records: [(found: FoundRecord, times: [String: EditTime])] = []
        for row in rows {
            guard let found = try find(row: row, type: type) else { continue }
            // A damaged record is not merged. That happens when it is repaired and changed.
            guard found.isIntact else { return }
            records.append((found, try editTimes(type: type, row: row, since: 0)))
        }
        records.sort { Array($0.found.name.utf8).lexicographicallyPrecedes(Array($1.found.name.utf8)) }
        guard let first = records.first else { return }
        func last(_ times: [String: EditTime]) -> Int64 { times.values.map(\.microseconds).max() ?? 0 }
        var (values, times) = (first.found.state.values, first.times)
        for other in records.dropFirst() {
            let theirs = RecordVersion(other.found.state.values, times: other.times)
            let mine = RecordVersion(values, times: times)
            let isLater = last(other.times) > last(times)
            let merge = RecordMerge(
                type: type.name, record: first.found.name, ancestor: nil, local: isLater ? theirs : mine,
                store: isLater ? mine : theirs)
            let (merged, conflicts) = try merge.run(policy)
            log(conflicts)
            if isFromCloud { log([MergeConflict(type: type.name, replaced: other.found.name, by: first.found.name)]) }
            values = merged ?? values
            times.merge(theirs.times) { max($0, $1) }
            replacements.note(other.found.name, as: first.found.name, of: type.name, zone: first.found.zone)
        }
        let writes =
            records.dropFirst().map {
                MergedRecord(
                    type: type, name: $0.found.name, zone: $0.found.zone, row: $0.found.row, current: $0.found.state.values,
                    values: nil)
            } + [
                MergedRecord(
                    type: type, name: first.found.name, zone: first.found.zone, row: first.found.row,
                    current: first.found.state.values, values: values)
            ]
        // Once the duplicates are deleted, the written record has a unique key.
        try apply(writes, policy: { _ in policy })
    }
}
