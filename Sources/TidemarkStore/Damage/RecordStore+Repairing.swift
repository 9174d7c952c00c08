import CTideCore
import Foundation
import GRDB
import TidemarkModel
package import TidemarkSQLite

extension RecordStore {
    /// Finds damaged records.
    ///
    /// - Complexity: Reads the whole database.
    package nonisolated func damagedRows() async throws -> [DamagedRow] {
        let seed = identity.digestSeed
        return try await readConcurrently("look for damaged records") { db in
            try StoredType.fetchAll(db).flatMap { type in
                try DamageScan.rows(db, type: type, seed: seed).damaged.compactMap { row in
                    try Self.damagedRow(row, type: type, db)
                }
            }
        }
    }

    /// Returns the rows of records that were found damaged when they were to be sent.
    package func damagedRows(_ found: [ExportBatch.Damaged]) throws(StoreError) -> [DamagedRow] {
        try connection.read("look for damaged records") { db in
            try connection.refreshSchema(db)
            return try found.compactMap { damaged in
                guard let type = connection.types.first(where: { $0.id == damaged.key.typeID }) else { return nil }
                return try Self.damagedRow(damaged.key.row, type: type, db)
            }
        }
    }

    /// Returns those of some rows that are still damaged.
    package func stillDamaged(_ rows: [DamagedRow]) throws(StoreError) -> [DamagedRow] {
        try connection.read("look for damaged records") { db in
            try connection.refreshSchema(db)
            return try rows.filter { row in
                guard let type = connection.types.first(where: { $0.id == row.typeID }) else { return false }
                return try PendingRow.fetchOne(db, type: type, "_id = ?", arguments: [row.row]).map { !$0.isIntact } ?? false
            }
        }
    }

    private static func damagedRow(_ row: Int64, type: StoredType, _ db: Database) throws -> DamagedRow? {
        let statement = try db.cachedStatement(
            sql: "SELECT _key, _zone, _tag, _pending IS NOT NULL FROM \"\(type.table)\" WHERE _id = ?")
        return try Row.fetchOne(statement, arguments: [row]).map { found in
            try DamagedRow(
                typeID: type.id, row: row, type: type.name, name: RecordKey.fromDatabaseValue(found[0])?.name ?? "in row \(row)",
                zone: found.stored("_zone", of: type.table), tag: found.stored("_tag", of: type.table),
                isPending: found.decode(atIndex: 3))
        }
    }

    /// Repairs damaged records, as far as the store or the cloud's version proves what they were.
    ///
    /// A repair changes no version and makes no history, since the record is what it always was. Changes that waited for the
    /// repair are sent with the next synchronisation.
    ///
    /// - Parameter remote: The cloud's versions of the records, by name; all of one zone.
    /// - Returns: The repaired records. Rows that are gone or whole by now are left out.
    /// - Complexity: For each record some milliseconds, and a look-up for each change that it had.
    package func repair(
        _ rows: [DamagedRow], from remote: [String: RemoteRecord] = [:]
    ) throws(StoreError) -> [RepairReport.Repaired] {
        guard !rows.isEmpty else { return [] }
        return try connection.locked("repair damaged records") { db in
            try connection.refreshSchema(db)
            var repaired: [RepairReport.Repaired] = []
            for row in rows {
                guard let type = connection.types.first(where: { $0.id == row.typeID }) else { continue }
                let repair = RowRepair(db: db, type: type, row: row.row, seed: identity.digestSeed)
                guard let source = try repair.run(from: remote[row.name]) else { continue }
                try forgetDamage(of: row, db)
                try db.notifyChanges(in: Table(type.table))
                repaired.append(.init(record: RecordName(type: type.name, name: row.name), scope: scope, source: source))
            }
            return (repaired, .commit)
        }
    }

    /// Accepts a damaged record as it is: it gets a new digest, and is sent to the cloud as an edit of all its fields.
    ///
    /// - Throws: ``StoreError`` `notFound` when there is no damaged record of that name; `corrupt` when its values are of other types than
    ///   its fields.
    package func accept(_ rows: [DamagedRow]) throws(StoreError) -> [RepairReport.Repaired] {
        try connection.locked("accept damaged records") { db in
            try connection.refreshSchema(db)
            try Outbox(db).ingestHistory()
            var accepted: [RepairReport.Repaired] = []
            for row in rows {
                guard let type = connection.types.first(where: { $0.id == row.typeID }) else { continue }
                let repair = RowRepair(db: db, type: type, row: row.row, seed: identity.digestSeed)
                guard let version = try repair.accept() else { continue }
                try forgetDamage(of: row, db)
                if row.tag != nil || row.isPending {
                    try db.execute(sql: "UPDATE \"\(type.table)\" SET _pending = -1 WHERE _id = ?", arguments: [row.row])
                    try Outbox(db, zone: row.zone).add(.save, type: type.id, row: row.row, change: version)
                }
                try db.notifyChanges(in: Table(type.table))
                accepted.append(.init(record: RecordName(type: type.name, name: row.name), scope: scope, source: .accepted))
            }
            return (accepted, .commit)
        }
    }

    /// Removes the sync issue of the damage. A cloud version that came meanwhile is looked up.
    private func forgetDamage(of row: DamagedRow, _ db: Database) throws {
        try db.execute(
            sql: "DELETE FROM tide_sync_issues WHERE type_id = ? AND row = ? AND code = ?",
            arguments: [row.typeID, row.row, StoreError.damagedCode])
        try db.execute(
            sql:
                "UPDATE tide_deferred SET reason = ?, type = '', tag = NULL, fields = x'' WHERE zone = ? AND name = ? AND reason = ?",
            arguments: [DeferredRows.deferralReason, row.zone, row.name, DeferredRecord.Reason.damaged.rawValue])
    }
}

/// Repairs one row: among the values that its fields may have had, finds those that match its digest.
struct RowRepair {
    let db: Database
    let type: StoredType
    let row: Int64
    let seed: UInt64

    private static let firstField = 7

    private func statement() throws -> Statement {
        let fields = type.fields.map { ", \"\($0.column)\"" }.joined()
        return try db.cachedStatement(
            sql: "SELECT _id, _key, _digest, _version, _tag, _pending, _base\(fields) FROM \"\(type.table)\" WHERE _id = ?")
    }

    /// The present row.
    private struct Current {
        let version: Int64
        let tag: String?
        let pending: DatabaseValue
        let digest: Int64
        /// The share of each field in the digest, and the digest without all of them.
        let parts: [UInt64]
        let missing: UInt64
        /// Whether each value has the type of its field.
        let hasTypes: Bool
    }

    /// Returns the present row; `nil` where it is gone or whole.
    private func current() throws -> Current? {
        let statement = try statement()
        let current: Current?? = try statement.withRow([row]) { found in
            guard !type.digest.isIntact(statement, key: 1, digest: 2, fields: Self.firstField) else { return nil }
            let (parts, missing) = type.digest.parts(statement, key: 1, digest: 2, fields: Self.firstField)
            let hasTypes = type.fields.indices.allSatisfy { index in
                let value = found[Self.firstField + index] as DatabaseValue
                return value.isNull || FieldValue(value, type: type.fields[index].type) != nil
            }
            guard let version = Int64.fromDatabaseValue(found[3]), let digest = Int64.fromDatabaseValue(found[2]) else {
                return nil
            }
            return Current(
                version: version, tag: try found.stored("_tag", of: type.table), pending: found[5] as DatabaseValue,
                digest: digest, parts: parts, missing: missing, hasTypes: hasTypes)
        }
        return current ?? nil
    }

    func run(from remote: RemoteRecord?) throws -> RepairReport.Source? {
        guard let current = try current() else { return nil }
        if try mendBit() { return .digest }
        if try substitute(candidates(current), current) { return .history }
        guard let remote, remote.type == type.name, remote.tag == current.tag, !remote.isPartial, !remote.lacksAssets else {
            return nil
        }
        let known = type.fields.map { field in remote.values[field.name].flatMap { $0.type == field.type ? $0 : nil } }
        let waiting = Set(type.fields(ofPending: current.pending))
        // Only the fields that wait to be sent differ in the cloud.
        let sent = type.fields.indices.filter { !waiting.contains(type.fields[$0].name) }
        let values = sent.map { ($0, known[$0]) }
        if waiting.isEmpty || isProved(values, current) {
            try write(values, digest: waiting.isEmpty ? digest(of: known) : nil)
            return .cloud
        }
        let single = sent.map { (field: $0, value: known[$0]) }
        return try substitute(single, current) ? .cloud : nil
    }

    /// - Returns: The row's version; `nil` where it is gone, or whole.
    func accept() throws -> Int64? {
        guard let current = try current() else { return nil }
        guard current.hasTypes else {
            throw StoreError(
                .corrupt,
                "a value of the row \(row) of \(type.name) has another type than its field, and can't be accepted; delete the record"
            )
        }
        try db.execute(
            sql: "UPDATE \"\(type.table)\" SET _digest = ? WHERE _id = ?",
            arguments: [Int64(bitPattern: UInt64(bitPattern: current.digest) &- current.missing), row])
        return current.version
    }

    private func mendBit() throws -> Bool {
        var isMended = false
        let handle = try db.handle
        try type.withTable(siblings: []) { table in
            try checked { tide_row_mend_bit(handle, seed, &table, row, &isMended, &$0) }
        }
        return isMended
    }

    /// Returns the values that fields had before, as far as history has them, and no value for each field.
    private func candidates(_ current: Current) throws -> [(field: Int, value: FieldValue?)] {
        var candidates: [(field: Int, value: FieldValue?)] = type.fields.indices.map { ($0, nil) }
        try RecordChain(db, row: current.version).forEach(after: 0) { link in
            guard !link.isDamaged else { return true }
            for (name, before) in link.before {
                guard let index = type.fields.firstIndex(where: { $0.name == name }) else { continue }
                candidates.append((index, FieldValue(noted: before, type: type.fields[index].type)))
            }
            return candidates.count < 10_000
        }
        return candidates
    }

    /// Replaces one field's value by a candidate that makes the digest right, if there is one.
    private func substitute(_ candidates: [(field: Int, value: FieldValue?)], _ current: Current) throws -> Bool {
        guard let found = candidates.first(where: { isProved([($0.field, $0.value)], current) }) else { return false }
        try write([(found.field, found.value)], digest: nil)
        return true
    }

    /// Returns whether the row with these values matches its digest.
    private func isProved(_ values: [(Int, FieldValue?)], _ current: Current) -> Bool {
        let replaced = Set(values.map(\.0))
        // A value of a wrong type may have the right share in the digest, and is damage all the same.
        guard current.hasTypes || replaced.count == type.fields.count else { return false }
        let change = values.reduce(UInt64(0)) { sum, it in
            sum &+ type.digest.part(of: it.1, field: it.0) &- current.parts[it.0]
        }
        return change == current.missing && !values.isEmpty
    }

    private func digest(of values: [FieldValue?]) throws -> Int64 {
        let key = try DatabaseValue.fetchOne(db, sql: "SELECT _key FROM \"\(type.table)\" WHERE _id = ?", arguments: [row])
        var digest: UInt64
        switch key?.storage {
        case .blob(let data): digest = data.withUnsafeBytes { tide_key_digest(seed, $0.baseAddress, $0.count, true) }
        case .string(let text):
            digest = Array(text.utf8).withUnsafeBytes { tide_key_digest(seed, $0.baseAddress, $0.count, false) }
        default: throw StoreError(.corrupt, "the row \(row) of the table \(type.table) has no key that can be one")
        }
        for (index, value) in values.enumerated() { digest &+= type.digest.part(of: value, field: index) }
        return Int64(bitPattern: digest)
    }

    private func write(_ values: [(Int, FieldValue?)], digest: Int64?) throws {
        var changes = values.map { "\"\(type.fields[$0.0].column)\" = ?" }
        var arguments: StatementArguments = StatementArguments(values.map { $0.1?.stored ?? .null })
        if let digest {
            changes.append("_digest = ?")
            arguments += [digest]
        }
        guard !changes.isEmpty else { return }
        try type.rebuildingIndexes(db) {
            try db.execute(
                sql: "UPDATE \"\(type.table)\" SET \(changes.joined(separator: ", ")) WHERE _id = ?", arguments: arguments + [row]
            )
        }
    }
}
