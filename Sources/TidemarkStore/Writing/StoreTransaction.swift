import CTideCore
import Foundation
import GRDB
package import TidemarkModel
import TidemarkSQLite

/// The program or synchronisation that writes, and the origin of its changes.
package struct TransactionAuthor: Hashable, Sendable {
    /// The name that the program gives itself.
    package var name: String
    package var origin: HistoryOrigin
    /// The part of the process that writes.
    package var role: WriterRole

    package init(_ name: String, origin: HistoryOrigin, role: WriterRole = .program) {
        self.name = name
        self.origin = origin
        self.role = role
    }
}

/// A running transaction. Its writes become durable together, and are one transaction of history.
///
/// It is valid only within the call that it is passed to.
package final class StoreTransaction {
    let db: Database
    let connection: StoreConnection
    let id: Int64
    /// Microseconds since 1970 UTC; later than that of every transaction before.
    package let time: Int64
    private let author: TransactionAuthor
    var isFromCloud: Bool { author.origin == .cloud }
    private let writer: UUID
    let firstChange: Int64
    private(set) var nextChange: Int64
    private(set) var counts = ChangeCounts()
    /// The conflicts that were resolved, in order.
    private(set) var conflicts: [MergeConflict] = []
    /// Records that were merged with another of their unique key.
    var replacements = RecordReplacements()
    private var changedTables: Set<String> = []
    /// The zones of the store. No other process can make one meanwhile.
    private(set) lazy var zones = Result { try StoreZone.fetchAll(db) }
    /// Whether the store has more than the default zone.
    private(set) lazy var severalZones = Result { try StoreZone.areSeveral(db) }
    /// The permissions in a shared store; `nil` where none are needed.
    private(set) lazy var permissions = Result { try isFromCloud ? nil : SharedPermissions(db, scope: connection.scope) }
    /// The statement of the last look-up, which the next look-up uses again.
    var lookUpStatement: LookUpStatement?
    /// The places of the last list of fields, which the next edit uses again.
    var fieldPlaces: FieldPlaces?
    /// Whether nothing of it is to be written, because a computed result rules that out.
    var isAbandoned = false
    /// Whether the delete rules are not applied, because deleted records exist again at the end, or were deleted before.
    var leavesRelationships = false
    /// Whether the known shares have changed.
    var changesShares = false

    /// - Parameters:
    ///   - now: The clock, microseconds since 1970 UTC.
    ///   - notBefore: The latest time of others' edits that this transaction knows.
    init(
        _ db: Database, connection: StoreConnection, author: TransactionAuthor, writer: UUID, now: Int64, notBefore: Int64? = nil
    ) throws {
        self.db = db
        self.connection = connection
        self.author = author
        self.writer = writer
        let next = try StoreCounters(db, base: connection.base)
        (id, firstChange, nextChange) = (next.transaction, next.change, next.change)
        // History does not go backwards, even if the clock was set back or stands still.
        let known = notBefore.map { min($0, now + EditTime.greatestLead) + 1 } ?? now
        time = next.lastTime == .max ? now : max(now, known, next.lastTime + 1)
    }

    // The schema

    /// The type of that name; `nil` when the store has none.
    func type(named name: String) -> StoredType? { connection.types.first { $0.name == name } }

    func knownType(named name: String) throws -> StoredType {
        guard let type = type(named: name) else { throw unknownType(name) }
        return type
    }

    func unknownType(_ name: String) -> StoreError {
        let known = connection.types.map(\.name).joined(separator: ", ")
        return StoreError(
            .schema,
            "the store has no record type '\(name)'" + (known.isEmpty ? "; it has none yet" : "; it has \(known)")
                + (connection.container.description.environment == .production ? ". In production the schema is fixed" : ""))
    }

    /// Makes a type and its fields, unless they exist.
    ///
    /// - Throws: ``StoreError`` `schema` when the environment is production and something is missing, or when a field is there with
    ///   another type.
    ///
    /// - Parameter fitsNumbers: Whether a double may be declared for an int64 field, and a list of doubles for a list of them.
    ///   ``StoredType/fitting(_:_:_:)`` then converts their values.
    /// - Parameter indexOrigin: The origin of the schema's indexes.
    package func declare(
        _ schema: RecordTypeSchema, environment: StoreEnvironment, fitsNumbers: Bool = false,
        indexOrigin: StoredIndex.Origin = .program
    ) throws {
        try declareFields(schema, environment: environment, fitsNumbers: fitsNumbers)
        try declareUniqueKeys(schema, environment: environment)
        try declareRelationships(schema)
        try declareIndexes(schema, origin: indexOrigin)
        // A type or field from a cloud has no indexes.
        if schema.indexes == nil { try declareProgramIndexes(of: schema.name) }
    }

    private func declareFields(_ schema: RecordTypeSchema, environment: StoreEnvironment, fitsNumbers: Bool) throws {
        // The field of the record names is no field of the store. The type's view has one column of that name.
        if schema.nameField != nil, let collision = schema.nameCollision() { throw StoreError(.schema, collision.description) }
        guard let stored = type(named: schema.name) else {
            guard environment == .development else { throw unknownType(schema.name) }
            try StoredType.create(db, name: schema.name, nameField: schema.nameField, fields: schema.fields)
            return try connection.refreshSchema(db)
        }
        var missing: [RecordTypeSchema.Field] = []
        for field in schema.fields {
            if let known = stored.fields.first(where: { $0.name == field.name }) {
                let fits = fitsNumbers && known.type.scalar == .int64 && field.type.scalar == .double
                guard known.type == field.type || fits && known.type.isList == field.type.isList else {
                    throw StoreError(
                        .schema, "field '\(field.name)' of \(schema.name) is \(known.type) in the store, not \(field.type)")
                }
            } else {
                missing.append(field)
            }
        }
        guard missing.isEmpty || environment == .development else {
            throw StoreError(
                .schema, "\(schema.name) has no field '\(missing[0].name)', and in production the schema is fixed")
        }
        if environment == .development {
            let booleans = stored.fields.filter { known in
                !known.isBoolean && known.type == .int64 && schema.fields.contains { $0.name == known.name && $0.isBoolean }
            }
            for field in booleans { try stored.setBoolean(db, field) }
            if !booleans.isEmpty { try connection.refreshSchema(db) }
        }
        if !missing.isEmpty {
            try stored.addFields(db, missing)
            try connection.refreshSchema(db)
        }
        if let nameField = schema.nameField, let stored = type(named: schema.name), stored.canHaveNameField(nameField) {
            try stored.setNameField(db, to: nameField)
            try connection.refreshSchema(db)
        }
    }

    private func declareRelationships(_ schema: RecordTypeSchema) throws {
        guard !schema.relationships.isEmpty, let stored = type(named: schema.name) else { return }
        if try stored.declare(db, relationships: schema.relationships) { try connection.refreshSchema(db) }
    }

    private func declareUniqueKeys(_ schema: RecordTypeSchema, environment: StoreEnvironment) throws {
        for key in schema.uniqueKeys {
            guard let stored = type(named: schema.name), !stored.uniqueKeys.contains(key) else { continue }
            guard environment == .development else {
                throw StoreError(
                    .schema,
                    "\(schema.name) has no unique key of \(key.joined(separator: ", ")), and in production the schema is fixed")
            }
            try stored.addUniqueKey(db, key)
            try connection.refreshSchema(db)
        }
    }

    /// Makes the type and the fields of a batch, in the development environment.
    func growSchema(for batch: RecordBatch, type name: String, nameField: String?) throws {
        let type = type(named: name)
        guard type != nil || batch.liveCount > 0 else { return }
        let known = Set(type?.fields.map(\.name) ?? [])
        let new = batch.columns.compactMap { column -> RecordTypeSchema.Field? in
            guard !known.contains(column.name), column.isUsed else { return nil }
            return .init(name: column.name, code: column.typeCode)
        }
        let needsNameField = nameField.map { type?.canHaveNameField($0) ?? true } ?? false
        guard type == nil || !new.isEmpty || needsNameField else { return }
        try declare(RecordTypeSchema(name: name, nameField: nameField, fields: new), environment: .development)
    }

    // Writing

    /// Writes a batch. Refused rows are noted in it.
    ///
    /// - Parameters:
    ///   - zone: The zone of new records. In a shared store, and for changes from the cloud, also the zone of existing ones;
    ///     otherwise these are found in any zone.
    ///   - isLoad: Whether a type that is empty is loaded without its index until loads end.
    ///   - blobs: The durable blobs that the batch's rows name.
    ///   - uniquePolicy: The policy by which records with equal unique keys are merged; `nil` to leave them.
    /// - Complexity: O(n log n) in the batch's rows.
    @discardableResult
    func write(
        _ batch: RecordBatch, type: StoredType, zone: Int64 = StoreFormat.defaultZone, isLoad: Bool = false,
        blobs: [BlobStore.Blob] = [],
        uniquePolicy: MergePolicy? = .mergeByPropertyObjectTrump
    ) throws -> ChangeCounts {
        let writer = try connection.writer(db, for: type)
        if let base = connection.base { try base.bring(batch.keys, to: db, types: connection.types) }
        if isLoad { try checked { tide_writer_load_begin(writer.pointer, &$0) } }
        var written = tide_counts()
        let first = nextChange
        let pointer = batch.pointer
        let isAnywhere = try connection.scope != .shared && !isFromCloud && hasSeveralZones
        try counting(type) { counters in
            try checked {
                tide_writer_apply(writer.pointer, pointer, zone, isAnywhere, id, &counters, &written, &$0)
            }
        }
        // A row that was refused after its files were ingested names no blob.
        let named = batch.rejectionCount > 0 && !blobs.isEmpty ? Set(batch.assets) : nil
        for blob in blobs where named?.contains(blob.id) ?? true { try blob.register(db) }
        let counts = note(written, type)
        if !type.uniqueKeys.isEmpty, let policy = uniquePolicy {
            try mergeUniqueKeys(of: type, changes: first..<nextChange, policy)
        }
        return counts
    }

    /// Deletes records by their row ids; history keeps their values.
    ///
    /// - Complexity: O(n) look-ups.
    @discardableResult
    func delete(_ rows: [Int64], type: StoredType) throws -> ChangeCounts {
        let writer = try connection.writer(db, for: type)
        var written = tide_counts()
        try counting(type) { counters in
            try checked { tide_writer_delete(writer.pointer, rows, rows.count, id, &counters, &written, &$0) }
        }
        return note(written, type)
    }

    /// Moves a record to another zone, into a new row. Its unsent changes move with it, and the cloud does not have it there yet.
    ///
    /// - Parameter edited: The times of its edits and of its last move, as far as history does not have them.
    /// - Returns: Its new row, and the change that deleted the old one.
    func move(_ row: Int64, type: StoredType, to zone: Int64, edited: String?) throws -> (row: Int64, deletion: Int64) {
        let next = try StoreCounters.row(db, type: type, base: connection.base)
        let (deletion, insertion) = (nextChange, nextChange + 1)
        let fields = type.fields.map { ", \"\($0.column)\"" }.joined()
        try db.cachedStatement(
            sql: """
                INSERT INTO "\(type.table)" (_id, _key, _zone, _version, _base, _edited, _pending, _digest\(fields))
                SELECT ?, _key, ?, ?, _base, ?, -1, _digest\(fields) FROM "\(type.table)" WHERE _id = ?
                """
        ).execute(arguments: [next, zone, insertion, edited, row])
        let writer = try connection.writer(db, for: type)
        var written = tide_counts()
        try counting(type) { counters in
            try checked { tide_writer_delete(writer.pointer, [row], 1, id, &counters, &written, &$0) }
        }
        guard written.deleted == 1, nextChange == insertion else {
            throw StoreError(.corrupt, "the row \(row) of \(type.name) can't be moved: it is not there")
        }
        // The insertion names the deletion as its predecessor, which marks the same record.
        try db.cachedStatement(
            sql: """
                INSERT INTO tide_changes (id, transaction_id, type_id, kind, first_row, last_row, previous) VALUES (?, ?, ?, 1, ?, ?, ?)
                """
        ).execute(arguments: [insertion, id, type.id, next, next, deletion])
        nextChange += 1
        counts.updated += 1
        changedTables.insert(type.table)
        return (next, deletion)
    }

    /// Whether the store has more than the default zone.
    var hasSeveralZones: Bool { get throws { try severalZones.get() } }

    private func counting(_ type: StoredType, _ body: (inout tide_counters) throws -> Void) throws {
        let row = try StoreCounters.row(db, type: type, base: connection.base)
        var counters = tide_counters(next_row: row, next_change: nextChange)
        try body(&counters)
        nextChange = counters.next_change

    }

    private func note(_ written: tide_counts, _ type: StoredType) -> ChangeCounts {
        let counts = ChangeCounts(
            inserted: Int(written.inserted), updated: Int(written.updated), unchanged: Int(written.unchanged),
            deleted: Int(written.deleted), repaired: Int(written.repaired))
        if !counts.isUnchanged || counts.repaired > 0 { changedTables.insert(type.table) }
        self.counts += counts
        return counts
    }

    /// Counts a record that does not change.
    func noteUnchanged() { counts.unchanged += 1 }

    /// Logs conflicts that were resolved.
    func log(_ resolved: [MergeConflict]) { conflicts += resolved }

    /// Forgets all conflicts but the first ones, because the merge that resolved the others is not written.
    func forgetConflicts(behind count: Int) { conflicts.removeLast(conflicts.count - count) }

    /// Notes the transaction in history, if it changed anything, and its conflicts.
    func end() throws {
        try redirectReferences()
        try logConflicts()
        guard !counts.isUnchanged else {
            for table in changedTables { try db.notifyChanges(in: Table(table)) }
            return
        }
        try db.cachedStatement(
            sql: """
                INSERT INTO tide_transactions
                    (id, time, author, origin, writer, inserted, updated, deleted, first_change, last_change)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """
        ).execute(arguments: [
            id, time, author.name, author.origin.rawValue, writer.uuidString, counts.inserted, counts.updated, counts.deleted,
            firstChange, nextChange - 1,
        ])
        // GRDB does not see the core's writes, so observers of the tables are notified here.
        for table in changedTables { try db.notifyChanges(in: Table(table)) }
    }
}
