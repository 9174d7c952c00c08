import Foundation
import GRDB
import TidemarkModel

/// Gathers what is to be sent next.
struct ExportReading {
    let db: Database
    let types: [StoredType]
    let device: String
    let lane: Outbox.Lane
    let limits: ExportLimits
    let now: Int64

    private var batch = ExportBatch()
    private var bytes = 0
    private var assetBytes: Int64 = 0
    private var chosen: Set<ExportItem.Key> = []
    /// Those on the way to their parents.
    private var visiting: Set<ExportItem.Key> = []
    private var insertions: [Int64: Int64] = [:]
    private var names: Set<String> = []
    /// How far rows of the outbox have been gone through by the batch before.
    private var resume: [Int64: Int64] = [:]
    private let hasDeletions: Bool
    private let hasLedger: Bool
    private let deletesOnly: Bool

    /// - Parameter before: A batch that is on its way: what it has is passed over.
    init(
        _ db: Database, types: [StoredType], device: String, lane: Outbox.Lane, limits: ExportLimits, now: Int64,
        deletesOnly: Bool = false, behind before: ExportBatch? = nil
    ) throws {
        (self.db, self.types, self.device, self.lane, self.limits, self.now) = (db, types, device, lane, limits, now)
        self.deletesOnly = deletesOnly
        batch.lane = lane
        if let before {
            chosen = Set(before.items.map(\.key))
            names = Set(before.items.map(\.name))
            resume = Dictionary(before.ranges.map { ($0.outbox, $0.next) }, uniquingKeysWith: max)
        }
        hasDeletions = try Outbox(db).hasDeletions
        hasLedger = try Bool.fetchOne(db.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM tide_ledger)")) ?? false
    }

    private enum Step { case goOn, full }

    mutating func run() throws -> ExportBatch {
        let sql = "SELECT id, type_id, kind, first_row, last_row FROM tide_outbox WHERE lane = ? ORDER BY id"
        let entries = try Row.fetchCursor(db.cachedStatement(sql: sql), arguments: [lane.rawValue])
        while let entry = try entries.next() {
            let (id, typeID, kind, last): (Int64, Int64, Int, Int64) = (entry[0], entry[1], entry[2], entry[4])
            if deletesOnly, kind != Outbox.Kind.delete.rawValue { continue }
            let begin: Int64 = entry[3]
            var first = begin
            if let next = resume[id] {
                guard next <= last else { continue }
                first = next
            }
            guard let type = types.first(where: { $0.id == typeID }) else {
                batch.obsolete.append(id)
                continue
            }
            let step =
                kind == Outbox.Kind.delete.rawValue
                ? try take(deletionOf: first, type: type, outbox: id)
                : try take(first...max(first, last), isRange: begin < last, type: type, outbox: id)
            if step == .full { break }
        }
        return batch
    }

    // Deletions

    private mutating func take(deletionOf row: Int64, type: StoredType, outbox: Int64) throws -> Step {
        guard batch.items.count < limits.items else { return .full }
        let key = ExportItem.Key(typeID: type.id, row: row, kind: .delete)
        let sql = "SELECT id, key, tag FROM tide_changes WHERE type_id = ? AND first_row = ? AND kind = 3"
        // What the cloud never had need not be deleted there.
        guard let change = try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [type.id, row]),
            let tag: String = change[2], let name = RecordKey.fromDatabaseValue(change[1])?.name
        else {
            batch.obsolete.append(outbox)
            return .goOn
        }
        guard try !isBlocked(key) else { return .goOn }
        // One operation for a record in a request: what comes again under its name goes with a later one.
        guard names.insert(name).inserted else { return .goOn }
        chosen.insert(key)
        bytes += name.utf8.count
        batch.items.append(
            ExportItem(
                key: key, type: type.name, name: name, version: change[0], tag: tag, values: [:], cleared: [], edited: EditTimes()
            ))
        return .goOn
    }

    // Saves

    private mutating func take(_ rows: ClosedRange<Int64>, isRange: Bool, type: StoredType, outbox: Int64) throws -> Step {
        var found = false
        let cursor = try Row.fetchCursor(
            PendingRow.statement(db, type: type, "_id BETWEEN ? AND ? AND _pending IS NOT NULL ORDER BY _id"),
            arguments: [rows.lowerBound, rows.upperBound])
        while let row = try cursor.next() {
            found = true
            let pending = try PendingRow(row, type: type)
            if try take(pending, type: type, depth: 0) == .full {
                // The next batch begins with it.
                if isRange { batch.ranges.append(.init(outbox: outbox, next: pending.id)) }
                return .full
            }
            let key = ExportItem.Key(typeID: type.id, row: pending.id, kind: .save)
            if isRange, !chosen.contains(key) { batch.skipped[key] = pending.version }
        }
        if !found {
            batch.obsolete.append(outbox)
        } else if isRange {
            batch.ranges.append(.init(outbox: outbox, next: rows.upperBound + 1))
        }
        return .goOn
    }

    private mutating func take(_ pending: PendingRow, type: StoredType, depth: Int) throws -> Step {
        let key = ExportItem.Key(typeID: type.id, row: pending.id, kind: .save)
        guard !chosen.contains(key), !visiting.contains(key), try !isBlocked(key) else { return .goOn }
        // It comes again under a name whose deletion goes first.
        if hasDeletions, try Outbox(db).deletion(of: pending.key) != nil { return .goOn }
        guard !names.contains(pending.name) else { return .goOn }
        guard batch.items.count < limits.items else { return .full }

        let item = try pending.item(type: type, key: key, edited: editTimes(pending, type: type))
        visiting.insert(key)
        defer { visiting.remove(key) }
        for target in type.hasReferences ? item.references : [] where depth < Self.depthLimit {
            guard let (parent, parentType) = try unsent(target) else { continue }
            let parentKey = ExportItem.Key(typeID: parentType.id, row: parent.id, kind: .save)
            if try isBlocked(parentKey) {
                batch.parked.append(.init(key: key, version: item.version, waitsFor: target))
                return .goOn
            }
            if try take(parent, type: parentType, depth: depth + 1) == .full { return .full }
            if batch.parked.contains(where: { $0.key == parentKey }) {
                batch.parked.append(.init(key: key, version: item.version, waitsFor: target))
                return .goOn
            }
        }
        let (size, assets) = item.size
        let isFull =
            batch.items.count >= limits.items
            || !batch.items.isEmpty && (bytes + size > limits.bytes || assetBytes + assets > limits.assetBytes)
        if isFull { return .full }
        bytes += size
        assetBytes += assets
        names.insert(item.name)
        chosen.insert(key)
        batch.items.append(item)
        return .goOn
    }

    private static let depthLimit = 100

    /// The record of a name if the cloud does not have it and it is to be sent.
    private func unsent(_ name: String) throws -> (PendingRow, StoredType)? {
        for type in types {
            let statement = try PendingRow.statement(
                db, type: type, "_key = ? AND _zone = \(StoreFormat.defaultZone) AND _tag IS NULL AND _pending IS NOT NULL")
            if let row = try Row.fetchOne(statement, arguments: [RecordKey(name: name)]) {
                return (try PendingRow(row, type: type), type)
            }
        }
        return nil
    }

    /// Whether it was refused, and its time has not come.
    private func isBlocked(_ key: ExportItem.Key) throws -> Bool {
        guard hasLedger else { return false }
        let sql = "SELECT next_try FROM tide_ledger WHERE type_id = ? AND row = ? AND kind = ?"
        guard let row = try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [key.typeID, key.row, key.kind.rawValue])
        else { return false }
        return (row[0] as Int64?).map { $0 > now } ?? true
    }

    /// When the fields of a record were edited, those that the cloud knows among them.
    private mutating func editTimes(_ pending: PendingRow, type: StoredType) throws -> EditTimes {
        if pending.base == nil, let time = try insertion(pending.version) {
            return EditTimes(otherwise: EditTime(microseconds: time, device: device))
        }
        return try RecordChain(db, row: pending.version).editTimes(
            since: pending.base ?? 0, known: pending.edited.map { EditTimes($0) }, device: device, until: now)
    }

    /// The time of a change if it inserted records; there are many of one.
    private mutating func insertion(_ change: Int64) throws -> Int64? {
        if let time = insertions[change] { return time }
        let sql = """
            SELECT t.time FROM tide_changes c JOIN tide_transactions t ON t.id = c.transaction_id
            WHERE c.id = ? AND c.kind = 1 AND t.origin <> 'cloud'
            """
        let time = try Int64.fetchOne(db.cachedStatement(sql: sql), arguments: [change])
        insertions[change] = time
        return time
    }
}

/// A record's row with what is known of it in the cloud.
struct PendingRow {
    let id: Int64
    let key: RecordKey
    let version: Int64
    let tag: String?
    let base: Int64?
    let edited: String?
    /// The fields that the cloud does not have; `nil` for all.
    let pending: Data?
    let isPending: Bool
    let values: [FieldValue?]
    let name: String

    static func statement(_ db: Database, type: StoredType, _ condition: String) throws -> Statement {
        let columns = type.fields.map { ", \"\($0.column)\"" }.joined()
        return try db.cachedStatement(
            sql: "SELECT _id, _key, _version, _tag, _base, _edited, _pending\(columns) FROM \"\(type.table)\" WHERE \(condition)")
    }

    init(_ row: Row, type: StoredType) throws {
        guard let key = RecordKey.fromDatabaseValue(row[1]), let version = Int64.fromDatabaseValue(row[2]) else {
            throw StoreError(
                .corrupt, "the row \(row[0] as DatabaseValue) of the table \(type.table) has no key or version that can be one")
        }
        id = row[0]
        self.key = key
        name = key.name
        self.version = version
        tag = row[3]
        base = row[4]
        edited = row[5]
        let pending: DatabaseValue = row[6]
        isPending = !pending.isNull
        if case .blob(let data) = pending.storage { self.pending = data } else { self.pending = nil }
        values = type.fields.indices.map { FieldValue(row[$0 + 7] as DatabaseValue, type: type.fields[$0].type) }
    }

    func state(_ type: StoredType) -> [String: FieldValue] {
        var state: [String: FieldValue] = [:]
        for (field, value) in zip(type.fields, values) { state[field.name] = value }
        return state
    }

    func isPending(_ ordinal: Int) -> Bool {
        guard let pending else { return isPending }
        return ordinal / 8 < pending.count && pending[pending.startIndex + ordinal / 8] & (1 << (ordinal % 8)) != 0
    }

    func item(type: StoredType, key: ExportItem.Key, edited: EditTimes) throws -> ExportItem {
        var (values, cleared): ([String: FieldValue], Set<String>) = ([:], [])
        for (field, value) in zip(type.fields, self.values) where tag == nil || isPending(field.ordinal) {
            if let value { values[field.name] = value } else if tag != nil { cleared.insert(field.name) }
        }
        return ExportItem(
            key: key, type: type.name, name: name, version: version, tag: tag, values: values, cleared: cleared, edited: edited)
    }
}

extension ExportItem {
    /// Names of records that it refers to, always in the same order.
    var references: [String] {
        values.sorted { $0.key < $1.key }.flatMap { _, value -> [String] in
            switch value {
            case .reference(let name): [name]
            case .list(let text, of: .reference): (try? JSONDecoder().decode([String].self, from: Data(text.utf8))) ?? []
            default: []
            }
        }
    }

    /// Bytes of its names and values, and of assets.
    var size: (bytes: Int, assets: Int64) {
        var (bytes, assets) = (name.utf8.count + 64, 0 as Int64)
        for (field, value) in values {
            bytes += field.utf8.count
            switch value {
            case .string(let text), .location(let text), .reference(let text): bytes += text.utf8.count
            case .bytes(let data): bytes += data.count
            case .asset: bytes += 64
            case .list(let text, _): bytes += text.utf8.count
            case .int64, .double, .timestamp: bytes += 8
            }
            if value.type.scalar == .asset { assets += value.assetIDs.reduce(0) { $0 + Self.assetSize($1) } }
        }
        return (bytes, assets)
    }

    /// The size that an asset's identifier tells.
    private static func assetSize(_ id: String) -> Int64 {
        let parts = id.split(separator: "-")
        return parts.count > 1 ? Int64(parts[1]) ?? 0 : 0
    }
}
