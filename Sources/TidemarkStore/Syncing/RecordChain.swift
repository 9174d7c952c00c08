import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite

/// The changes of a record, from a version backwards.
struct RecordChain {
    struct Link {
        let id: Int64
        let kind: ChangeKind
        let isFromCloud: Bool
        let time: Int64?
        let before: [(String, DatabaseValue)]
        /// Whether the record was damaged before the change.
        let isDamaged: Bool
    }

    let db: Database
    let version: Int64
    /// Changes from this number on are from the cloud: the changes of the transaction at hand.
    let cloudBegins: Int64

    init(_ db: Database, row version: Int64, cloudBegins: Int64 = .max) {
        (self.db, self.version, self.cloudBegins) = (db, version, cloudBegins)
    }

    /// Calls `body` for each change after `base`, the newest first, until it returns false or history has no more.
    ///
    /// - Returns: Whether `base` was reached: history may have been purged before.
    @discardableResult
    func forEach(after base: Int64, _ body: (Link) throws -> Bool) throws -> Bool {
        var next: Int64? = version
        while let id = next, id > base {
            // The present transaction is added to the table only when it ends.
            let sql = """
                SELECT c.kind, c.previous, c.before, t.origin, t.time FROM tide_changes c
                LEFT JOIN tide_transactions t ON t.id = c.transaction_id WHERE c.id = ?
                """
            guard let row = try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [id]),
                let kind = ChangeKind(rawValue: try row.stored("kind", of: "tide_changes"))
            else { return false }
            let previous: Int64? = try row.stored("previous", of: "tide_changes")
            if kind == .insert, let previous {
                // The record was moved here from another zone. Its earlier changes are those of its row there.
                guard previous < id, let before = try self.previous(ofDeletion: previous) else { return false }
                guard before >= base else { return false }
                next = before < id ? before : nil
                continue
            }
            let origin: String? = try row.stored("origin", of: "tide_transactions")
            let noted = try NotedValues(row.stored("before", of: "tide_changes"), change: id)
            let link = Link(
                id: id, kind: kind, isFromCloud: id >= cloudBegins || origin == HistoryOrigin.cloud.rawValue,
                time: try row.stored("time", of: "tide_transactions"), before: noted.fields, isDamaged: noted.isDamaged)
            guard try body(link) else { return false }
            // Change numbers rise along a history. A chain that goes up would never end.
            next = previous.flatMap { $0 < id ? $0 : nil }
        }
        return next == base
    }

    private func previous(ofDeletion id: Int64) throws -> Int64? {
        try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT previous FROM tide_changes WHERE id = ? AND kind = \(ChangeKind.delete.rawValue)"),
            arguments: [id])
    }

    /// Returns the values at an earlier version; `nil` if the record did not exist then, history does not reach back to it, or
    /// the record was damaged since.
    ///
    /// - Parameter values: The values of the version at which the chain begins.
    func values(at base: Int64, from values: [String: FieldValue], type: StoredType) throws -> [String: FieldValue]? {
        guard base > 0 else { return nil }
        var values = values
        let isReached = try forEach(after: base) { link in
            guard link.kind != .insert, !link.isDamaged else { return false }
            for (name, before) in link.before {
                // A value of a former field with another type does not belong to this field.
                guard let field = type.fields.first(where: { $0.name == name }),
                    type.historyField(name, at: link.id).map({ $0.name == name && $0.type == field.type }) ?? false
                else { continue }
                values[name] = FieldValue(noted: before, type: field.type)
            }
            return true
        }
        return isReached ? values : nil
    }

    /// The names of the fields that were changed after a version; `nil` if all were, or history does not have the changes.
    func fields(after base: Int64) throws -> Set<String>? {
        var fields: Set<String> = []
        let isReached = try forEach(after: base) { link in
            fields.formUnion(link.before.map(\.0))
            return link.kind != .insert
        }
        return isReached ? fields : nil
    }

    /// Returns when fields were edited here after a version, with the known times of the others.
    ///
    /// - Parameter now: The time of the present transaction.
    func editTimes(since base: Int64, known: EditTimes?, device: String, until now: Int64) throws -> EditTimes {
        var times = known ?? EditTimes()
        /// The fields whose times are known.
        var timed: Set<String> = []
        try forEach(after: base) { link in
            guard !link.isFromCloud else {
                // The times of values from another zone's copy are known.
                timed.formUnion(link.before.map(\.0))
                return true
            }
            let time = EditTime(microseconds: link.time ?? now, device: device)
            if link.kind == .insert {
                let later = times.fields.filter { timed.contains($0.key) || $0.key == EditTimes.move }
                times = EditTimes(otherwise: time, fields: later)
                return false
            }
            for (field, _) in link.before where timed.insert(field).inserted { times.fields[field] = time }
            return true
        }
        return times
    }
}
