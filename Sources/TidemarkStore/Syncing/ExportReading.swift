import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite

/// Gathers the changes that are to be sent next.
struct ExportReading {
    let db: Database
    let types: [StoredType]
    let zone: Int64
    let device: String
    let lane: Outbox.Lane
    let limits: ExportLimits
    let now: Int64

    private var batch = ExportBatch()
    private var bytes = 0
    private var assetBytes: Int64 = 0
    private var chosen: Set<ExportItem.Key> = []
    /// The records whose parents are being looked for.
    private var visiting: Set<ExportItem.Key> = []
    private var insertions: [Int64: Int64] = [:]
    private var names: Set<String> = []
    /// How far the previous batch has read the rows of the outbox.
    private var resume: [Int64: Int64] = [:]
    private let hasDeletions: Bool
    private let hasSyncIssues: Bool
    private let deletesOnly: Bool
    /// Whether records may have been moved between zones.
    private let mayMove: Bool

    /// - Parameter before: A batch that is being sent. Its records are left out.
    init(
        _ db: Database, connection: StoreConnection, zone: Int64, lane: Outbox.Lane, limits: ExportLimits, now: Int64,
        deletesOnly: Bool = false, behind before: ExportBatch? = nil
    ) throws {
        (self.db, self.zone, self.lane, self.limits, self.now) = (db, zone, lane, limits, now)
        (types, device) = (connection.types, connection.identity.device.uuidString)
        mayMove = try connection.scope != .shared && StoreZone.areSeveral(db)
        self.deletesOnly = deletesOnly
        batch.lane = lane
        if let before {
            chosen = Set(before.items.map(\.key))
            names = Set(before.items.map(\.name))
            resume = Dictionary(before.ranges.map { ($0.outbox, $0.next) }, uniquingKeysWith: max)
        }
        hasDeletions = try Outbox(db, zone: zone).hasDeletions
        hasSyncIssues = try Bool.fetchOne(db.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM tide_sync_issues)")) ?? false
    }

    private enum Step { case goOn, full }

    mutating func run() throws -> ExportBatch {
        let sql = "SELECT id, type_id, kind, first_row, last_row FROM tide_outbox WHERE zone = ? AND lane = ? ORDER BY id"
        let entries = try Row.fetchCursor(db.cachedStatement(sql: sql), arguments: [zone, lane.rawValue])
        while let entry = try entries.next() {
            let (id, typeID, kind): (Int64, Int64, Int) = (
                try entry.decode(atIndex: 0), try entry.decode(atIndex: 1), try entry.decode(atIndex: 2)
            )
            if deletesOnly, kind != ExportKind.delete.rawValue { continue }
            let (begin, last): (Int64, Int64) = (try entry.decode(atIndex: 3), try entry.decode(atIndex: 4))
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
                kind == ExportKind.delete.rawValue
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
        let sql =
            "SELECT id, key, tag FROM tide_changes WHERE type_id = ? AND first_row = ? AND kind = \(ChangeKind.delete.rawValue)"
        // A record that the cloud never had need not be deleted there.
        guard let change = try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [type.id, row]),
            let tag = try change.decode(String?.self, atIndex: 2), let nameKey = RecordKey.fromDatabaseValue(change[1])
        else {
            batch.obsolete.append(outbox)
            return .goOn
        }
        let name = nameKey.name
        guard try !isBlocked(key), try !isOnTheWay(nameKey) else { return .goOn }
        // A request has one operation for a record: further changes under its name go with a later request.
        guard names.insert(name).inserted else { return .goOn }
        chosen.insert(key)
        bytes += name.utf8.count
        batch.items.append(
            ExportItem(
                key: key, type: type.name, name: name, version: try change.decode(atIndex: 0), tag: tag, values: [:], cleared: [],
                edited: EditTimes()))
        return .goOn
    }

    /// Returns whether a record of the name has moved to another zone where the cloud does not have it yet. Its deletion here
    /// waits, so that other devices don't see it disappear in between.
    private func isOnTheWay(_ key: RecordKey) throws -> Bool {
        guard mayMove else { return false }
        return try types.contains { type in
            let sql = "SELECT 1 FROM \"\(type.table)\" WHERE _key = ? AND _zone <> ? AND _tag IS NULL"
            return try Bool.fetchOne(db.cachedStatement(sql: sql), arguments: [key, zone]) ?? false
        }
    }

    // Saves

    private mutating func take(_ rows: ClosedRange<Int64>, isRange: Bool, type: StoredType, outbox: Int64) throws -> Step {
        var found = false
        let cursor = try PendingRow.Cursor(
            db, type: type, "_id BETWEEN ? AND ? AND _pending IS NOT NULL AND _zone = ? ORDER BY _id",
            arguments: [rows.lowerBound, rows.upperBound, zone])
        while let pending = try cursor.next() {
            found = true
            if try take(pending, type: type, depth: 0) == .full {
                // The next batch begins with this record.
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
        // The record has the name of a deleted record, whose deletion is sent first.
        if hasDeletions, try Outbox(db, zone: zone).deletion(of: pending.key) != nil { return .goOn }
        guard !names.contains(pending.name) else { return .goOn }
        guard pending.isIntact else {
            if !batch.damaged.contains(where: { $0.key == key }) {
                batch.damaged.append(.init(key: key, version: pending.version, name: pending.name, type: type.name))
            }
            return .goOn
        }
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
            if batch.parked.contains(where: { $0.key == parentKey }) || batch.damaged.contains(where: { $0.key == parentKey }) {
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

    /// Returns the record of a name in the zone, if it is to be sent and the cloud does not have it.
    private func unsent(_ name: String) throws -> (PendingRow, StoredType)? {
        for type in types {
            let condition = "_key = ? AND _zone = ? AND _tag IS NULL AND _pending IS NOT NULL"
            if let row = try PendingRow.fetchOne(db, type: type, condition, arguments: [RecordKey(name: name), zone]) {
                return (row, type)
            }
        }
        return nil
    }

    /// Returns whether the change was refused, and may not be tried again yet.
    private func isBlocked(_ key: ExportItem.Key) throws -> Bool {
        guard hasSyncIssues else { return false }
        let sql = "SELECT next_try, time FROM tide_sync_issues WHERE type_id = ? AND row = ? AND kind = ?"
        guard let row = try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [key.typeID, key.row, key.kind.rawValue])
        else { return false }
        guard let nextTry = try row.decode(Int64?.self, atIndex: 0) else { return true }
        // If the clock was set back since, it is not known how long ago the change was refused.
        let isSetBack = try row.decode(Int64?.self, atIndex: 1).map { $0 > now } ?? false
        return nextTry > now && !isSetBack
    }

    /// Returns when the fields of a record were edited, with the times that the cloud knows.
    private mutating func editTimes(_ pending: PendingRow, type: StoredType) throws -> EditTimes {
        if pending.base == nil, let time = try insertion(pending.version) {
            return EditTimes(otherwise: EditTime(microseconds: time, device: device))
        }
        return try RecordChain(db, row: pending.version).editTimes(
            since: pending.base ?? 0, known: pending.edited.map { EditTimes($0) }, device: device, until: now)
    }

    /// The time of a change if it inserted records. Many records have the same insertion.
    private mutating func insertion(_ change: Int64) throws -> Int64? {
        if let time = insertions[change] { return time }
        let sql = """
            SELECT t.time FROM tide_changes c JOIN tide_transactions t ON t.id = c.transaction_id
            WHERE c.id = ? AND c.kind = \(ChangeKind.insert.rawValue) AND c.previous IS NULL AND t.origin <> 'cloud'
            """
        let time = try Int64.fetchOne(db.cachedStatement(sql: sql), arguments: [change])
        insertions[change] = time
        return time
    }
}

extension ExportItem {
    /// The names of the records that the record refers to, always in the same order.
    var references: [String] {
        values.sorted { $0.key < $1.key }.flatMap { $0.value.referenceNames }
    }

    /// The bytes of the record's names and values, and of its assets.
    var size: (bytes: Int, assets: Int64) {
        var (bytes, assets) = (name.utf8.count + 64, 0 as Int64)
        for (field, value) in values {
            bytes += field.utf8.count
            bytes += value.byteCount
            if value.type.scalar == .asset { assets += value.assetIDs.reduce(0) { $0 + Self.assetSize($1) } }
        }
        return (bytes, assets)
    }

    /// Returns the size in an asset's identifier.
    package static func assetSize(_ id: String) -> Int64 { AssetIdentifier.size(of: id) }
}

extension FieldValue {
    /// The approximate number of bytes that the value takes in a request.
    fileprivate var byteCount: Int {
        switch self {
        case .string(let text), .reference(let text): text.utf8.count
        case .bytes(let data): data.count
        case .asset, .location: 64
        case .int64, .double, .timestamp: 8
        case .list(let elements, _): elements.reduce(2) { $0 + $1.byteCount + 3 }
        }
    }
}
