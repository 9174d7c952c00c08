import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite

/// Records that were edited here, and have changed in the cloud.
extension RemoteChangeApplier {
    func chain(_ version: Int64) -> RecordChain {
        RecordChain(db, row: version, cloudBegins: transaction.firstChange)
    }

    func localTimes(_ mine: PendingRow) throws -> EditTimes {
        try chain(mine.version).editTimes(
            since: mine.base ?? 0, known: mine.edited.map { EditTimes($0) },
            device: transaction.connection.identity.device.uuidString, until: transaction.time)
    }

    /// Returns the cloud's last known version; `nil` if the cloud had none. If history does not reach back to it, only the fields
    /// that were not edited here are known.
    func ancestor(of mine: PendingRow, _ type: StoredType) throws -> [String: FieldValue]? {
        guard let base = mine.base else { return nil }
        let current = mine.state(type)
        if let known = try chain(mine.version).values(at: base, from: current, type: type) { return known }
        let edited = Set(type.fields(ofPending: mine.pending?.databaseValue ?? Int64(-1).databaseValue))
        return current.filter { !edited.contains($0.key) }
    }

    /// A row's record, as a merge needs it.
    ///
    /// - Parameter ancestor: The version that both sides began with, by field.
    func local(_ mine: PendingRow, _ type: StoredType, ancestor: [String: FieldValue]?) throws -> LocalRecord {
        LocalRecord(
            type: type.name, name: mine.name, fields: type.fields.map(\.name), values: mine.values,
            isPending: type.fields.map { mine.isPending($0.ordinal) }, tag: mine.tag, stored: mine.edited.map { RowTimes($0) },
            times: try localTimes(mine), ancestor: ancestor.map { known in type.fields.map { known[$0.name] } })
    }

    var context: RemoteChangeContext {
        RemoteChangeContext(
            device: transaction.connection.identity.device.uuidString, time: transaction.time, mayMove: mayMove)
    }

    /// Writes the cloud's version of the record, and then the merged one, so that history has the version that both sides began with. The
    /// local times and the ancestor are read before anything is written: afterwards history ends with the cloud's version.
    mutating func rebase(
        _ mine: PendingRow, onto record: RemoteRecord, type: StoredType, as relation: RemoteChangePlan.Relation = .edit
    ) throws {
        let local = try local(mine, type, ancestor: ancestor(of: mine, type))
        let merged: RemoteChangePlan.Merged
        switch try planner.merge(local, with: remote(record, type), as: relation, in: context) {
        case .unresolved(let fields): return try leave(mine, record, type, fields: fields)
        case .write(let plan): merged = plan
        }
        transaction.log(merged.conflicts)
        try write([record], type: type)
        try forget(mine.id, type)
        let (edits, renewals) = (merged.edits, merged.renewals)
        guard !edits.isEmpty || !renewals.isEmpty else { return }
        let renewed = type.pendingMask(of: Set(renewals.map { type.fields[$0].name }))
        try db.cachedStatement(sql: "UPDATE \"\(type.table)\" SET _edited = ?, _pending = ? WHERE _id = ?").execute(arguments: [
            merged.edited.description, renewed, mine.id,
        ])
        if !edits.isEmpty {
            let batch = try RecordBatch(rowLimit: .max, byteLimit: .max)
            let fields = type.schema.fields
            try batch.add(name: record.name, values: edits.map { (fields[$0.field], $0.value) })
            batch.digest(seed: transaction.connection.identity.digestSeed)
            try transaction.write(batch, type: type, zone: zone, uniquePolicy: nil)
        }
        try outbox.add(.save, type: type.id, row: mine.id, change: transaction.nextChange - 1)
        hasNewExports = true
    }

    /// The cloud's version, with the values that the type can hold.
    func remote(_ record: RemoteRecord, _ type: StoredType) -> RemoteVersion {
        let values = type.fields.map { field in record.values[field.name].flatMap { $0.type == field.type ? $0 : nil } }
        let known = record.values.count { !type.ignores($0.key, $0.value) }
        let isWhole = !record.isPartial && known == values.count { $0 != nil }
        return RemoteVersion(tag: record.tag, values: values, edited: record.edited, isWhole: isWhole)
    }

    /// Removes the sync issues of a row, which were about its old version.
    func forget(_ row: Int64, _ type: StoredType) throws {
        try db.cachedStatement(sql: "DELETE FROM tide_sync_issues WHERE type_id = ? AND row = ?").execute(arguments: [
            type.id, row,
        ])
    }

    /// Ends a conflict: a person has nothing left to decide, and nothing is left to delete.
    mutating func endConflict(of mine: PendingRow, _ type: StoredType) throws {
        try db.cachedStatement(sql: "DELETE FROM tide_sync_issues WHERE type_id = ? AND row = ? AND code = 'conflict'")
            .execute(arguments: [type.id, mine.id])
        // The record was deleted here before it was made again.
        if let deletion = try deletion(of: mine.key) {
            try outbox.remove(.delete, type: deletion.typeID, row: deletion.row)
        }
        hasNewExports = true
    }

    /// Leaves a conflict to a person.
    private mutating func leave(_ mine: PendingRow, _ record: RemoteRecord, _ type: StoredType, fields: [String]) throws {
        try deferredRows.add(record, .conflict)
        // The row's tag is from a time that the cloud has lost: later edits must not be sent as changes of that version.
        if compares { try renewAll(mine, type) }
        try note(conflictOf: mine, type, reason: Self.reason("both sides changed \(fields.joined(separator: ", "))"))
    }

    /// Defers the cloud's version of a record that is damaged here and has unsent edits, so that nothing is merged with damaged
    /// values. When the record is repaired, the deferred version is applied again.
    mutating func leave(damaged mine: PendingRow, _ record: RemoteRecord, _ type: StoredType) throws {
        try deferredRows.add(record, .damaged)
        // The export repairs the record, or notes it as damaged.
        try outbox.add(.save, type: type.id, row: mine.id, change: mine.version)
        hasNewExports = true
    }

    /// The reason of a conflict that is left to a person.
    static func reason(_ what: String) -> String { "\(what), and the merge policy is to ask. Resolve it with another policy" }

    /// Notes why a row is not sent for the present.
    func note(conflictOf mine: PendingRow, _ type: StoredType, reason: String) throws {
        try outbox.add(.save, type: type.id, row: mine.id, change: mine.version)
        try SyncIssue.note(
            db, .init(typeID: type.id, row: mine.id, kind: .save), version: mine.version, code: "conflict", reason: reason,
            at: transaction.time, nextTry: nil, waitsFor: nil)
    }
}
