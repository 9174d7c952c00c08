import Foundation
import GRDB
import TidemarkModel
package import TidemarkSQLite

extension RecordStore {
    /// Returns the changes to send next: edits of persons before bulk changes.
    ///
    /// - Parameters:
    ///   - edits: The limits of a batch of persons' edits.
    ///   - bulk: The limits of a batch of the rest.
    ///   - deletesOnly: Whether only deletions of the bulk changes are returned: they need no room, and may make some.
    ///   - zone: The zone whose changes are sent.
    package func nextExport(
        edits: ExportLimits, bulk: ExportLimits, deletesOnly: Bool = false, zone: Int64 = StoreFormat.defaultZone
    ) throws(StoreError) -> ExportBatch {
        try connection.locked("look for what is to be sent") { db in
            try connection.refreshSchema(db)
            try Outbox(db).ingestHistory()
            var obsolete: [Int64] = []
            var batch = ExportBatch()
            var damaged: [ExportBatch.Damaged] = []
            for lane in Outbox.Lane.allCases {
                var reading = try ExportReading(
                    db, connection: connection, zone: zone, lane: lane, limits: lane == .edits ? edits : bulk, now: now(),
                    deletesOnly: lane == .bulk && deletesOnly)
                batch = try reading.run()
                obsolete += batch.obsolete
                try note(batch, zone: zone, db)
                damaged += batch.damaged
                if !batch.isEmpty { break }
            }
            // Damaged records count even if their lane has nothing else to send: they can be repaired.
            batch.damaged = damaged
            for id in obsolete { try db.cachedStatement(sql: "DELETE FROM tide_outbox WHERE id = ?").execute(arguments: [id]) }
            return (batch, .commit)
        }
    }

    /// Notes which records wait for others, and moves them out of their ranges, which are read once.
    private func note(_ batch: ExportBatch, zone: Int64, _ db: Database) throws {
        for parked in batch.parked {
            try Outbox(db, zone: zone).add(
                .save, type: parked.key.typeID, row: parked.key.row, change: parked.version, lane: .bulk)
            try SyncIssue.note(
                db, parked.key, version: parked.version, code: "referenceViolation",
                reason: "waits for the record '\(parked.waitsFor)', which the cloud does not have yet", at: now(), nextTry: nil,
                waitsFor: parked.waitsFor)
        }
        for damaged in batch.damaged {
            try Outbox(db, zone: zone).add(
                .save, type: damaged.key.typeID, row: damaged.key.row, change: damaged.version, lane: .bulk)
            try SyncIssue.note(
                db, damaged.key, version: damaged.version, code: StoreError.damagedCode, reason: SyncIssue.damageReason,
                at: now(),
                nextTry: nil, waitsFor: nil)
        }
        // A range with only blocked records is complete.
        if batch.isEmpty { try advance(batch, zone: zone, db) }
    }

    private func advance(_ batch: ExportBatch, zone: Int64, _ db: Database) throws {
        for (key, version) in batch.skipped {
            try Outbox(db, zone: zone).add(.save, type: key.typeID, row: key.row, change: version, lane: .bulk)
        }
        for range in batch.ranges {
            let statement = try db.cachedStatement(sql: "SELECT first_row, last_row FROM tide_outbox WHERE id = ?")
            guard let row = try Row.fetchOne(statement, arguments: [range.outbox]) else { continue }
            let (first, last): (Int64, Int64) = (try row.decode(atIndex: 0), try row.decode(atIndex: 1))
            if range.next > last {
                try db.cachedStatement(sql: "DELETE FROM tide_outbox WHERE id = ?").execute(arguments: [range.outbox])
            } else if range.next > first {
                // A single row that is left may have an entry of its own already.
                try db.cachedStatement(sql: "UPDATE OR REPLACE tide_outbox SET first_row = ? WHERE id = ?")
                    .execute(arguments: [range.next, range.outbox])
            }
        }
    }

    /// Returns the changes to send after a batch, read while that batch is being sent; `nil` if they depend on its reply.
    ///
    /// - Parameter batch: A batch whose request has begun.
    package func nextExport(
        behind batch: ExportBatch, bulk: ExportLimits, zone: Int64 = StoreFormat.defaultZone
    ) throws(StoreError) -> ExportBatch? {
        // Edits of persons may come at any time, so they are looked for each time.
        guard batch.lane == .bulk, batch.parked.isEmpty, batch.damaged.isEmpty else { return nil }
        return try connection.read("look for what is to be sent next") { db in
            var next: ExportBatch?
            try db.inTransaction(.deferred) {
                try connection.refreshSchema(db)
                var reading = try ExportReading(
                    db, connection: connection, zone: zone, lane: .bulk, limits: bulk, now: now(), behind: batch)
                next = try reading.run()
                return .commit
            }
            guard let next, !next.isEmpty, next.parked.isEmpty, next.damaged.isEmpty, next.obsolete.isEmpty else { return nil }
            return next
        }
    }

    /// Notes a request before it is sent: if this process dies, the next one can still assign the reply.
    ///
    /// - Returns: Whether the request is to be sent: not if its zone was removed meanwhile.
    @discardableResult
    package func begin(_ request: SentRequest, zone: Int64 = StoreFormat.defaultZone) throws(StoreError) -> Bool {
        try connection.locked("note a request") { db in
            guard try StoreZone.isThere(db, id: zone) else { return (false, .commit) }
            try request.store(db, zone: zone)
            return (true, .commit)
        }
    }

    /// The requests that have no reply yet, as they were sent. A request that can't be made again is forgotten.
    package func sentRequests(zone: Int64 = StoreFormat.defaultZone) throws(StoreError) -> [SentRequest] {
        try connection.locked("look for requests without an answer") { db in
            try connection.refreshSchema(db)
            var requests: [SentRequest] = []
            let sql = "SELECT token, items FROM tide_requests WHERE zone = ? ORDER BY token"
            for row in try Row.fetchAll(db, sql: sql, arguments: [zone]) {
                let (token, text): (String, String) = (try row.decode(atIndex: 0), try row.decode(atIndex: 1))
                let stored = StoredRequest.items(of: text)
                let items = try stored.compactMap { try self.item($0, db) }
                if !items.isEmpty, items.count == stored.count {
                    requests.append(SentRequest(token: token, items: items))
                } else {
                    try db.execute(sql: "DELETE FROM tide_requests WHERE token = ?", arguments: [token])
                }
            }
            return (requests, .commit)
        }
    }

    /// Returns a change as it was sent, with the record's values of that time.
    private func item(_ stored: StoredRequest.Item, _ db: Database) throws -> ExportItem? {
        let shape = stored.shape
        guard let type = connection.types.first(where: { $0.id == shape.type }),
            let kind = ExportKind(rawValue: shape.kind)
        else { return nil }
        // The row of a record that was damaged since does not show what was sent.
        if kind == .save, let row = try PendingRow.fetchOne(db, type: type, "_id = ?", arguments: [stored.row]), !row.isIntact {
            return nil
        }
        return ExportItem(
            key: .init(typeID: shape.type, row: stored.row, kind: kind), type: type.name, name: stored.name,
            version: stored.version, tag: stored.tag, values: try values(stored, type, db) ?? [:], cleared: Set(shape.cleared),
            edited: EditTimes(shape.edited))
    }

    private func values(_ stored: StoredRequest.Item, _ type: StoredType, _ db: Database) throws -> [String: FieldValue]? {
        guard stored.shape.kind == ExportKind.save.rawValue else { return [:] }
        var state: [String: FieldValue]
        var version: Int64
        if let pending = try PendingRow.fetchOne(db, type: type, "_id = ?", arguments: [stored.row]) {
            (state, version) = (pending.state(type), pending.version)
        } else {
            let sql = "SELECT id FROM tide_changes WHERE type_id = ? AND first_row = ? AND kind = \(ChangeKind.delete.rawValue)"
            guard let change = try Int64.fetchOne(db.cachedStatement(sql: sql), arguments: [type.id, stored.row]) else {
                return nil
            }
            (state, version) = ([:], change)
        }
        if version != stored.version {
            guard let then = try RecordChain(db, row: version).values(at: stored.version, from: state, type: type) else {
                return nil
            }
            state = then
        }
        return state.filter { stored.shape.fields.contains($0.key) }
    }

    /// Applies the cloud's reply to a request: accepted changes leave the outbox, refused changes get an entry in the sync issues.
    ///
    /// - Parameters:
    ///   - batch: The batch of the request; `nil` for a request of an earlier process.
    ///   - results: The result of each item.
    ///   - next: A request that was gathered meanwhile by ``nextExport(behind:bulk:zone:)``: it begins in the same transaction.
    ///   - author: The author that history gives to reverted changes.
    ///   - planner: Decides about records whose changes the cloud has rejected permanently.
    /// - Returns: Whether `next` has begun. It does not begin if changes have come since that may go first.
    @discardableResult
    package func applyReply(
        to request: SentRequest, of batch: ExportBatch?, results: [ExportResult], next: SentRequest? = nil,
        zone: Int64 = StoreFormat.defaultZone, author: String = "cloud", rejecting planner: any RemoteChangePlanning
    ) throws(StoreError) -> Bool {
        let reply = Reply(request: request, batch: batch, results: results, next: next, zone: zone)
        guard reply.rejects else {
            return try connection.locked("apply the cloud's reply") { db in
                // A zone that was removed has no requests any more.
                guard try StoreZone.isThere(db, id: zone) else { return (false, .commit) }
                try connection.refreshSchema(db)
                return (try apply(reply, db), .commit)
            }
        }
        return try transact(
            "revert what the cloud has refused", author: TransactionAuthor(author, origin: .cloud, role: .sync)
        ) { transaction in
            guard try StoreZone.isThere(transaction.db, id: zone) else { return false }
            try Outbox(transaction.db).ingestHistory()
            let begins = try apply(reply, transaction.db)
            var applier = try RemoteChangeApplier(transaction: transaction, zone: zone, planner: planner, occasion: .resolved)
            for (item, result) in zip(request.items, results) {
                if case .rejected(let code, let reason) = result { try applier.revertRejected(item, code: code, reason: reason) }
            }
            try applier.finish()
            return begins
        }
    }

    /// The cloud's reply to a request.
    private struct Reply {
        let request: SentRequest
        let batch: ExportBatch?
        let results: [ExportResult]
        let next: SentRequest?
        let zone: Int64

        /// Whether a change is rejected permanently.
        var rejects: Bool { results.contains { if case .rejected = $0 { true } else { false } } }
    }

    /// - Returns: Whether the next request has begun.
    private func apply(_ reply: Reply, _ db: Database) throws -> Bool {
        let time = now()
        let (request, zone) = (reply.request, reply.zone)
        let isDone = !reply.results.contains(.undone)
        let outbox = Outbox(db, zone: zone)
        let confirmation = try ExportConfirmation(db, connection: connection)
        let deferredRows = try DeferredRows(db, zone: zone, endsDeferral: false)
        try confirmation.note(zip(request.items, reply.results)) { item, tag in try noteSaved(item, tag: tag, zone: zone, db) }
        for (item, result) in zip(request.items, reply.results) {
            switch (result, item.key.kind) {
            case (.saved, _): try deferredRows.endSuperseded(item.name)
            case (.deleted, .delete):
                try outbox.remove(.delete, type: item.key.typeID, row: item.key.row)
                // A deferred version of the record is one that the cloud no longer has.
                try DeferredRows.end(item.name, zone: zone, db)
            case (.deleted, .save): break
            // A record that was deleted here meanwhile is not tried again.
            case (.refused, .save) where try !isThere(item, db): break
            case (.refused(let code, let reason, let nextTry), _):
                if isDone { try keep(item, zone: zone, db) }
                try SyncIssue.note(
                    db, item.key, version: item.version, code: code, reason: reason, at: time, nextTry: nextTry,
                    waitsFor: nil)
            case (.rejected, _), (.undone, _): break
            }
        }
        // Changes without an outcome are gathered again where they were.
        if let batch = reply.batch, isDone { try advance(batch, zone: zone, db) }
        try db.cachedStatement(sql: "DELETE FROM tide_requests WHERE token = ?").execute(arguments: [request.token])
        guard let next = reply.next, isDone, try !outbox.hasNewChanges else { return false }
        try next.store(db, zone: zone)
        return true
    }

    private func isThere(_ item: ExportItem, _ db: Database) throws -> Bool {
        guard let type = connection.types.first(where: { $0.id == item.key.typeID }) else { return false }
        let statement = try db.cachedStatement(sql: "SELECT 1 FROM \"\(type.table)\" WHERE _id = ?")
        return try Bool.fetchOne(statement, arguments: [item.key.row]) ?? false
    }

    /// Gives a change that is still to be sent a row of its own in the outbox, because ranges are read once.
    private func keep(_ item: ExportItem, zone: Int64, _ db: Database) throws {
        try Outbox(db, zone: zone).add(
            item.key.kind, type: item.key.typeID, row: item.key.row, change: item.version, lane: .bulk)
    }

    /// Notes the cloud's version of a record that has changed since it was sent.
    private func noteSaved(_ item: ExportItem, tag: String, zone: Int64, _ db: Database) throws {
        guard let type = connection.types.first(where: { $0.id == item.key.typeID }) else { return }
        let outbox = Outbox(db, zone: zone)
        guard let pending = try PendingRow.fetchOne(db, type: type, "_id = ?", arguments: [item.key.row]) else {
            // The record was deleted here while it was on its way: the deletion has to be sent, too.
            try outbox.remove(.save, type: type.id, row: item.key.row)
            try db.cachedStatement(
                sql:
                    "UPDATE tide_changes SET tag = ?, base = ? WHERE type_id = ? AND first_row = ? AND kind = \(ChangeKind.delete.rawValue) AND tag IS ?"
            ).execute(arguments: [tag, item.version, type.id, item.key.row, item.tag])
            if db.changesCount > 0 { try outbox.add(.delete, type: type.id, row: item.key.row, change: item.version) }
            return
        }
        guard pending.tag == item.tag else { return }
        // The record was edited here while it was on its way.
        let later = try RecordChain(db, row: pending.version).fields(after: item.version)
        try db.cachedStatement(
            sql: "UPDATE \"\(type.table)\" SET _tag = ?, _base = ?, _edited = ?, _pending = ? WHERE _id = ?"
        ).execute(arguments: [
            tag, item.version, item.edited.description, type.pendingMask(of: later), item.key.row,
        ])
        try outbox.add(.save, type: type.id, row: item.key.row, change: pending.version)
        try db.cachedStatement(
            sql: "DELETE FROM tide_sync_issues WHERE type_id = ? AND row = ? AND kind = \(ExportKind.save.rawValue)"
        )
        .execute(arguments: [type.id, item.key.row])
    }
}

extension StoredType {
    /// Returns the fields that a row's `_pending` names.
    func fields(ofPending pending: DatabaseValue) -> [String] {
        guard case .blob(let mask) = pending.storage else { return pending.isNull ? [] : fields.map(\.name) }
        return fields.filter { field in
            field.ordinal / 8 < mask.count && mask[mask.startIndex + field.ordinal / 8] & (1 << (field.ordinal % 8)) != 0
        }.map(\.name)
    }

    /// Returns the mask of fields, as rows have it; for `nil`, the mask of all fields.
    func pendingMask(of names: Set<String>?) -> DatabaseValue {
        guard let names else { return Int64(-1).databaseValue }
        var mask = Data()
        for field in fields where names.contains(field.name) {
            while mask.count <= field.ordinal / 8 { mask.append(0) }
            mask[field.ordinal / 8] |= 1 << (field.ordinal % 8)
        }
        return mask.isEmpty ? .null : mask.databaseValue
    }
}
