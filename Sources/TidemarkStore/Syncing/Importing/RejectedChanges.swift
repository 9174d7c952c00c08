import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite

/// Keeps edits that the cloud has rejected, or that have lost their zone, as refused saves.
struct RejectedChanges {
    let transaction: StoreTransaction
    let zone: Int64

    private var db: Database { transaction.db }

    private func chain(_ version: Int64) -> RecordChain {
        RecordChain(db, row: version, cloudBegins: transaction.firstChange)
    }

    /// The cloud's version of a record; `nil` where history does not reach back to it.
    func known(_ mine: PendingRow, _ type: StoredType) throws -> [String: FieldValue]? {
        guard mine.isIntact, let base = mine.base else { return nil }
        return try chain(mine.version).values(at: base, from: mine.state(type), type: type)
    }

    /// Keeps the values of a record that the cloud does not have, as a refused save.
    func keep(_ mine: PendingRow, _ type: StoredType, code: String, reason: String) throws {
        // The damaged values may be all that is left of an edit: they are kept, and the reason names the damage.
        let reason =
            mine.isIntact ? reason : "\(reason). The record was damaged here, and some of these values are not what was saved"
        let current = mine.state(type)
        guard mine.tag != nil else {
            return try refuse(.insert, type, mine.name, before: [:], after: current.mapValues { $0 }, code: code, reason: reason)
        }
        let was = try known(mine, type)
        let fields = type.fields(ofPending: mine.pending?.databaseValue ?? Int64(-1).databaseValue)
            .filter { was == nil || !was![$0].isSame(as: current[$0]) }
        guard !fields.isEmpty else { return }
        func values(_ state: [String: FieldValue]) -> [String: FieldValue?] {
            fields.reduce(into: [:]) { $0[$1] = .some(state[$1]) }
        }
        try refuse(
            .update, type, mine.name, before: was.map(values) ?? [:], after: values(current), code: code, reason: reason)
    }

    func refuse(
        _ kind: ChangeKind, _ type: StoredType, _ name: String, before: [String: FieldValue?], after: [String: FieldValue?],
        code: String, reason: String
    ) throws {
        let place = try StoreZone.fetch(db, id: zone)?.name ?? .default
        try RefusedSaves(db).add(
            kind, type: type, name: name, zone: place, before: before, after: after, code: code, reason: reason,
            at: transaction.time)
    }

    func waitingDeletion(_ type: StoredType, row: Int64) throws -> Outbox.WaitingDeletion? {
        let sql =
            "SELECT type_id, first_row, id, tag, base FROM tide_changes WHERE type_id = ? AND first_row = ? AND kind = \(ChangeKind.delete.rawValue)"
        return try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [type.id, row]).map { try Outbox.WaitingDeletion($0) }
    }

    /// The cloud's version of a record that was deleted here; the local version, if history does not reach back to it.
    ///
    /// - Returns: The values, and whether the record was whole when it was deleted.
    func values(
        before deletion: Outbox.WaitingDeletion, _ type: StoredType
    ) throws -> (values: [String: FieldValue], isIntact: Bool) {
        let chain = chain(deletion.change)
        if let base = deletion.base, let known = try chain.values(at: base, from: [:], type: type) { return (known, true) }
        var (values, isIntact): ([String: FieldValue], Bool) = ([:], true)
        try chain.forEach(after: deletion.change - 1) { link in
            isIntact = !link.isDamaged
            for (name, before) in link.before {
                guard let field = type.fields.first(where: { $0.name == name }) else { continue }
                values[name] = FieldValue(noted: before, type: field.type)
            }
            return false
        }
        return (values, isIntact)
    }

    /// Keeps all pending changes of the zone.
    func keepPending(code: String, reason: String) throws {
        let scope = transaction.connection.scope
        for type in transaction.connection.types {
            let condition = "_zone = ? AND _pending IS NOT NULL ORDER BY _id"
            for row in try PendingRow.fetchAll(db, type: type, condition, arguments: [zone]) {
                try keep(row, type, code: code, reason: reason)
            }
            // A record that has moved into another zone was not deleted by a person. In a shared store, equal names in other zones are
            // other records.
            let deleted = """
                SELECT o.first_row FROM tide_outbox o JOIN tide_changes c
                ON c.type_id = o.type_id AND c.first_row = o.first_row AND c.kind = \(ChangeKind.delete.rawValue)
                WHERE o.type_id = ? AND o.zone = ? AND o.kind = \(ExportKind.delete.rawValue) AND c.tag IS NOT NULL
                AND NOT EXISTS (
                    SELECT 1 FROM "\(type.table)" r WHERE r._key = c.key AND (r._zone = o.zone OR \(scope != .shared))
                ) ORDER BY o.first_row
                """
            for row in try Int64.fetchAll(db.cachedStatement(sql: deleted), arguments: [type.id, zone]) {
                guard let deletion = try waitingDeletion(type, row: row) else { continue }
                let key = try RecordKey.fetchOne(
                    db.cachedStatement(sql: "SELECT key FROM tide_changes WHERE id = ?"), arguments: [deletion.change])
                guard let key else { continue }
                let was = try values(before: deletion, type).values
                try refuse(.delete, type, key.name, before: was.mapValues { $0 }, after: [:], code: code, reason: reason)
            }
        }
    }
}
