import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite

/// Applies changes from the cloud within a transaction, as a ``RemoteChangePlanning`` decides.
///
/// It reads only what a decision depends on: for most records, the change tag. A decision may depend on records that were written before,
/// so each record is read, decided and written before the next.
struct RemoteChangeApplier {
    let transaction: StoreTransaction
    /// The zone that the changes are of.
    let zone: Int64
    let planner: any RemoteChangePlanning
    let occasion: ImportOccasion
    /// Records in requests that have no reply yet. A fetched version may already contain this device's own change, so it is
    /// deferred until the reply is known.
    let sent: Set<String>
    /// Whether deletions wait to be sent. This transaction makes no deletion before all records are handled.
    private let hasDeletions: Bool
    private let hasShares: Bool
    /// Whether each record is compared with the local one, whatever its tag.
    let compares: Bool
    /// The last deletion here that the cloud may have lost.
    private let lastLostDeletion: Int64?
    /// Whether a name that is not in the zone may be in another: in a private store it is in one at the most.
    let mayMove: Bool
    var deferredRows: DeferredRows
    let seen: SeenRows
    private var places: [String: Place] = [:]
    /// Whether there may be new changes to send.
    var hasNewExports = false
    /// Records whose deletion waits for another round of imports.
    var awaited: Set<String> = []
    /// Records that are new or have no local edits, by type; written together.
    var plain: [Int64: [RemoteRecord]] = [:]
    /// Rows without local edits that the cloud has deleted, by type.
    var gone: [Int64: [Int64]] = [:]

    var db: Database { transaction.db }
    var outbox: Outbox { Outbox(db, zone: zone) }

    /// Whether there may be new changes to send, or records to look up.
    var leavesExports: Bool { hasNewExports || deferredRows.hasDeferred }

    init(
        transaction: StoreTransaction, zone: Int64, planner: any RemoteChangePlanning, occasion: ImportOccasion
    ) throws {
        self.transaction = transaction
        self.zone = zone
        self.planner = planner
        self.occasion = occasion
        let db = transaction.db
        // A record that does not come in a page may be deleted before its page comes, so it does not count as seen.
        let state = try SyncState(db, zone: zone)
        compares = state.isComparing && occasion != .resolved
        lastLostDeletion = occasion == .resolved ? nil : compares ? .max : state.comparedChange
        seen = try SeenRows(db, zone: zone, isRefetching: (occasion == .page || state.isComparing) && state.isRefetching)
        sent = occasion == .resolved ? [] : try SentRequest.names(db, zone: zone)
        hasDeletions = try Outbox(db, zone: zone).hasDeletions
        let shares = "SELECT EXISTS (SELECT 1 FROM tide_shares WHERE zone = ?)"
        hasShares = try Bool.fetchOne(db.cachedStatement(sql: shares), arguments: [zone]) ?? true
        mayMove = try transaction.connection.scope != .shared && transaction.hasSeveralZones
        deferredRows = try DeferredRows(db, zone: zone, endsDeferral: occasion == .lookUp)
    }

    /// The type and the look-ups that are needed to apply its records.
    private struct Place {
        let type: StoredType
        let fields: [String: FieldType]
        /// Finds the row of a name: its number, its tag, and whether it has changes to send.
        let find: Statement
        let others: [StoredType]
        /// The fields that were made again under a former field's name. The cloud's values of them were ignored meanwhile.
        let remade: [StoredType.Field]

        /// Whether the type can hold all values.
        func holds(_ record: RemoteRecord) -> Bool {
            record.values.allSatisfy { fields[$0] == $1.type || fields[$0] == nil && type.ignores($0, $1) }
        }
    }

    /// `nil` when the store has no such type.
    private mutating func place(of typeName: String) throws -> Place? {
        if let known = places[typeName] { return known }
        guard let type = transaction.type(named: typeName) else { return nil }
        let sql = """
            SELECT _id, _tag, _pending IS NOT NULL FROM "\(type.table)" WHERE _key = ? AND _zone = ?
            """
        let place = Place(
            type: type, fields: Dictionary(type.fields.map { ($0.name, $0.type) }, uniquingKeysWith: { one, _ in one }),
            find: try db.cachedStatement(sql: sql),
            others: transaction.connection.types.filter { $0.id != type.id }, remade: type.remadeFields)
        places[typeName] = place
        return place
    }

    mutating func run(_ changes: [RemoteChange]) throws {
        for change in changes {
            switch change {
            case .saved(let record) where sent.contains(record.name):
                try seen.add(record.name, transaction.connection.types)
                try deferredRows.deferUntilReply(record.name)
            case .deleted(let name) where sent.contains(name): try deferredRows.deferUntilReply(name)
            case .saved(let record): try apply(record)
            case .deleted(let name):
                if hasShares, try StoredShares(db).remove(name, zone: zone) { transaction.changesShares = true }
                try apply(deletionOf: name)
            case .share(let share):
                try StoredShares(db).store(share, zone: zone)
                transaction.changesShares = true
            }
        }
        // Changes that wait for another record may have waited for one of these.
        if !changes.isEmpty, try outbox.endWaiting() { hasNewExports = true }
        try finish()
    }

    /// Writes the rows that were gathered.
    mutating func finish() throws {
        try writePlain()
        for (typeID, rows) in gone.sorted(by: { $0.key < $1.key }) { try delete(rows, typeID: typeID) }
        gone = [:]
        let first = transaction.nextChange
        for type in transaction.connection.types where !type.uniqueKeys.isEmpty {
            try transaction.mergeUniqueKeys(
                of: type, changes: transaction.firstChange..<first, planner.uniqueKeyPolicy(type.name))
        }
        // References to merged records are redirected, and sent with them.
        try transaction.redirectReferences()
        try send(from: first)
    }

    // Records that exist here

    mutating func apply(_ record: RemoteRecord) throws {
        guard record.isStorable, let place = try place(of: record.type) else {
            return try block(record, .schema, "the cloud has it as a \(record.type), which this store can't hold")
        }
        let (type, key) = (place.type, RecordKey(name: record.name))
        if record.isPartial || !place.holds(record) {
            try deferredRows.add(record, .schema)
        } else if record.lacksAssets {
            try deferredRows.add(record, .asset)
        } else {
            try deferredRows.end(record.name)
        }
        guard let row = try Row.fetchOne(place.find, arguments: [key, zone]) else {
            if let lastLostDeletion, try deletesAgain(record, key, until: lastLostDeletion) { return }
            if let deletion = try deletion(of: key), planner.isDeleted(deletion.tag, tag: record.tag, occasion: occasion) {
                return
            }
            if mayMove, let there = try elsewhere(key) { return try reconcileZoneMove(record, type, with: there) }
            for other in place.others {
                guard let mine = try PendingRow.fetchOne(db, type: other, "_key = ? AND _zone = ?", arguments: [key, zone]) else {
                    continue
                }
                guard !planner.blocksName(mine.isPending) else {
                    return try block(record, .name, "the cloud has a \(record.type) of that name")
                }
                // The cloud has deleted the record of that name before this one was made there.
                try delete([mine.id], typeID: other.id)
            }
            if let deletion = try deletion(of: key) {
                guard try isRestored(record, deletedBy: deletion, type: type) else { return }
            }
            plain[type.id, default: []].append(record)
            return
        }
        let (id, tag, isPending): (Int64, String?, Bool) = (
            try row.decode(atIndex: 0), try row.decode(atIndex: 1), try row.decode(atIndex: 2)
        )
        try seen.add(id, type)
        // The record was deleted here and made again: the version that comes belongs to the deleted one.
        if tag == nil, let deletion = try deletion(of: key) {
            guard try isRestored(record, deletedBy: deletion, type: type) else { return }
        }
        let lacksValues = try lacksValues(record, row: id, place)
        let known = RemoteChangePlan.KnownRow(
            tag: tag, isPending: isPending, comparesAll: compares, lacksValues: lacksValues)
        switch planner.plan(for: known, tag: record.tag, occasion: occasion) {
        case .skip: return
        case .lookUp: try deferredRows.deferUntilReply(record.name)
        case .write: plain[type.id, default: []].append(record)
        case .compare: try compare(id, with: record, type)
        case .merge:
            guard let mine = try PendingRow.fetchOne(db, type: type, "_id = ?", arguments: [id]) else { return }
            guard mine.isIntact else { return try leave(damaged: mine, record, type) }
            // Without a tag, but with a version that the cloud had, both sides have made the record again after the cloud had lost it.
            let isNew = mine.tag == nil && mine.base != nil
            let isCopy = isNew && (occasion == .resolved || mine.isLost(type))
            try rebase(mine, onto: record, type: type, as: isCopy ? .copy(isEdited: true) : .edit)
        }
    }

    /// Whether a row has no value in a field that is there again, and the cloud has one: the row's tag does not say that it has come.
    private func lacksValues(_ record: RemoteRecord, row: Int64, _ place: Place) throws -> Bool {
        try place.remade.contains { field in
            guard record.values[field.name]?.type == field.type else { return false }
            let sql = "SELECT \"\(field.column)\" IS NULL FROM \"\(place.type.table)\" WHERE _id = ?"
            return try Bool.fetchOne(db.cachedStatement(sql: sql), arguments: [row]) ?? false
        }
    }

    /// The unsent deletion of a name from the zone.
    func deletion(of key: RecordKey) throws -> Outbox.WaitingDeletion? {
        hasDeletions ? try outbox.deletion(of: key) : nil
    }

    private mutating func writePlain() throws {
        for (typeID, records) in plain.sorted(by: { $0.key < $1.key }) {
            guard let type = transaction.connection.types.first(where: { $0.id == typeID }) else { continue }
            try write(records, type: type)
        }
        plain = [:]
    }

    /// Writes the cloud's versions of records.
    mutating func write(_ records: [RemoteRecord], type: StoredType) throws {
        let batch = try RecordBatch(rowLimit: .max, byteLimit: .max)
        let columns = try batch.columns(of: type.fields)
        // Records that came together were mostly edited at the same time.
        var last: (times: EditTimes, text: String)?
        for record in records {
            if let edited = record.edited, last?.times != edited { last = (edited, edited.description) }
            try batch.add(record, edited: record.edited == nil ? nil : last?.text, fields: type.fields, columns: columns)
        }
        batch.digest(seed: transaction.connection.identity.digestSeed)
        try transaction.write(batch, type: type, zone: zone, uniquePolicy: nil)
        for record in records { try seen.add(record.name, [type]) }
    }

    /// Adds the changes of this transaction from a number on to the outbox.
    private mutating func send(from first: Int64) throws {
        guard transaction.nextChange > first else { return }
        hasNewExports = true
        for change in try StoredChange.fetchAll(db, in: first..<transaction.nextChange) {
            let kind: ExportKind = change.kind == .delete ? .delete : .save
            for row in change.rows {
                let place = try zone(of: row, change)
                try Outbox(db, zone: place).add(kind, type: change.typeID, row: row, change: change.id)
            }
        }
    }

    /// The zone of a changed row. Where records were merged, it may differ from the zone of the changes.
    private func zone(of row: Int64, _ change: StoredChange) throws -> Int64 {
        guard mayMove, let type = transaction.connection.types.first(where: { $0.id == change.typeID }) else { return zone }
        let deleted = "SELECT coalesce(zone, \(StoreFormat.defaultZone)) FROM tide_changes WHERE id = ?"
        if change.kind == .delete { return try Int64.fetchOne(db.cachedStatement(sql: deleted), arguments: [change.id]) ?? zone }
        let sql = "SELECT _zone FROM \"\(type.table)\" WHERE _id = ?"
        return try Int64.fetchOne(db.cachedStatement(sql: sql), arguments: [row]) ?? zone
    }

    // What the store can't hold

    /// Defers a record that can't be applied. Changes under its name can't be sent meanwhile, and no other change waits for them.
    mutating func block(_ record: RemoteRecord, _ reason: DeferredRecord.Reason, _ what: String) throws {
        try deferredRows.add(record, reason)
        let key = RecordKey(name: record.name)
        func note(_ item: ExportItem.Key, version: Int64) throws {
            try SyncIssue.note(
                db, item, version: version, code: "conflict", reason: "\(what). Delete or rename the one that is here",
                at: transaction.time, nextTry: nil, waitsFor: nil)
        }
        for type in transaction.connection.types {
            let condition = "_key = ? AND _zone = ? AND _pending IS NOT NULL"
            guard let mine = try PendingRow.fetchOne(db, type: type, condition, arguments: [key, zone]) else { continue }
            try outbox.add(.save, type: type.id, row: mine.id, change: mine.version)
            try note(.init(typeID: type.id, row: mine.id, kind: .save), version: mine.version)
        }
        if let deletion = try deletion(of: key) {
            // The record that was deleted here is not the record that is there now.
            try outbox.remove(.delete, type: deletion.typeID, row: deletion.row)
        }
    }
}
