import Foundation
package import GRDB
package import TidemarkModel
import TidemarkSQLite

extension RecordStore {
    /// Saves edits in one transaction, all or none: merges each with what the store has by then.
    ///
    /// - Parameters:
    ///   - schemas: Types that the edits need.
    ///   - policy: The merge policy of a type.
    ///   - tellingStates: Whether the outcome tells what each record is now.
    ///   - check: Runs first, in the transaction; what it throws keeps everything back.
    /// - Throws: ``UnresolvedConflicts`` under ``MergePolicy/error``; what a rule of one's own or `check` throws; ``StoreError``.
    package func save(
        _ edits: [RecordEdit], schemas: [RecordTypeSchema], blobs: [BlobStore.Blob], author: TransactionAuthor,
        policy: @Sendable (String) -> MergePolicy, tellingStates: Bool = false, check: @Sendable (Database) throws -> Void
    ) throws -> SaveOutcome {
        try transactOrRefuse("save", author: author) { transaction in
            try check(transaction.db)
            for schema in schemas {
                try transaction.declare(schema, environment: container.description.environment, fitsNumbers: true)
            }
            return try transaction.save(edits, blobs: blobs, policy: policy, tellingStates: tellingStates)
        }
    }
}

extension StoredType {
    /// A value as the store has it: a whole number where a field of int64 is given a double.
    ///
    /// - Throws: ``StoreError`` `invalid` for any other double.
    func fitting(_ field: String, _ value: FieldValue) throws(StoreError) -> FieldValue {
        guard case .double(let number) = value, schema.field(named: field)?.type == .int64 else { return value }
        guard let whole = Int64(exactly: number) else {
            throw StoreError(
                .invalid,
                "field '\(field)' of \(name) is int64 in the store, and \(number) is no whole number. Round it, or give the property another "
                    + "name, with '\(field)' as its former name in `formerFieldNames`: then it has a field of its own, of doubles"
            )
        }
        return .int64(whole)
    }
}

extension RecordEdit {
    /// The edit with values that fit the type's fields.
    fileprivate func fitting(_ type: StoredType) throws(StoreError) -> RecordEdit {
        guard let values else { return self }
        var edit = self
        for (field, value) in values {
            if case .double = value { edit.values?[field] = try type.fitting(field, value) }
        }
        return edit
    }
}

/// A record as a merge has decided it, and as it is in the store.
struct MergedRecord {
    let type: StoredType
    let name: String
    /// Where it is, or is to be.
    let zone: Int64
    /// Its row; `nil` where it is not there.
    let row: Int64?
    let current: [String: FieldValue]
    /// `nil` for its deletion.
    let values: [String: FieldValue]?
}

extension StoreTransaction {
    /// - Parameter refuse: Is told the place of an edit that is not permitted, which is left out; without it, all are refused then.
    func save(
        _ edits: [RecordEdit], blobs: [BlobStore.Blob], policy: (String) -> MergePolicy, tellingStates: Bool = false,
        refuse: ((Int, PermissionDenied) throws -> Void)? = nil
    ) throws -> SaveOutcome {
        var merged: [MergedRecord] = []
        var unresolved: [RecordMerge.Unresolved] = []
        for (index, edit) in edits.enumerated() {
            let known = conflicts.count
            do {
                guard let record = try merge(edit, policy: policy(edit.record.type)) else { continue }
                if refuse != nil { try permissions.get()?.check([record]) }
                merged.append(record)
            } catch let denied as PermissionDenied {
                forgetConflicts(behind: known)
                try refuse?(index, denied)
            } catch let error as RecordMerge.Unresolved {
                unresolved.append(error)
            }
        }
        guard unresolved.isEmpty else { throw UnresolvedConflicts(records: unresolved) }
        try permissions.get()?.check(merged)
        try register(blobs)
        try applyOrRefuse(merged, policy: policy)
        var outcome = SaveOutcome(counts: counts, conflicts: conflicts, replaced: replaced)
        for edit in edits where tellingStates {
            guard let type = type(named: edit.record.type) else { continue }
            let name = replaced[edit.record] ?? edit.record.name
            outcome.saved[edit.record] = .some(try find(name, type: type, zone: edit.zone)?.state)
        }
        outcome.transaction = counts.isUnchanged ? nil : id
        return outcome
    }

    func register(_ blobs: [BlobStore.Blob]) throws {
        for blob in blobs {
            try db.cachedStatement(sql: "INSERT OR IGNORE INTO tide_assets (id, size, media) VALUES (?, ?, ?)")
                .execute(arguments: [blob.id, blob.size, blob.media])
        }
    }

    // Merging

    private func merge(_ edit: RecordEdit, policy: MergePolicy) throws -> MergedRecord? {
        guard let type = type(named: edit.record.type) else {
            // What is to be deleted from a type that there is not is gone already.
            guard edit.values != nil else { return nil }
            throw unknownType(edit.record.type)
        }
        if let zone = edit.zone, try !zones.get().contains(where: { $0.id == zone }) {
            guard edit.values != nil else { return nil }
            throw StoreError(
                .invalid,
                "\(edit.record.type) \(edit.record.name) is for a zone that is gone: what was shared was left, or is shared no more"
            )
        }
        let edit = try edit.fitting(type)
        let found = try find(edit.record.name, type: type, zone: edit.zone)
        // Deleting a damaged record is what may be left to do with it.
        if edit.values != nil { try found?.checkIntact(type) }
        let current = found?.state.values
        func merged(_ values: [String: FieldValue]?) throws -> MergedRecord {
            MergedRecord(
                type: type, name: found?.name ?? edit.record.name.composed, zone: try found?.zone ?? home(edit), row: found?.row,
                current: current ?? [:], values: values)
        }
        /// The values given, and the store's for fields that they do not speak of.
        func completed(_ values: [String: FieldValue], with others: [String: FieldValue]?) -> [String: FieldValue] {
            values.merging((others ?? [:]).filter { !edit.fields.contains($0.key) }) { mine, _ in mine }
        }
        switch edit.base {
        case .any:
            return try merged(edit.values.map { completed($0, with: current) })
        case .loaded(let version, let values) where version == found?.state.version:
            return try merged(edit.values.map { completed($0, with: values) })
        case .none, .loaded:
            var ancestor: RecordVersion?
            var since: Int64 = 0
            if case .loaded(let version, let values) = edit.base { (ancestor, since) = (RecordVersion(values), version) }
            let local = edit.values.map { given in
                let values = completed(given, with: ancestor?.values ?? current)
                let now = EditTime(microseconds: time, device: connection.identity.device.uuidString)
                let times = edit.fields.map { ($0, edit.times[$0]?.clamped(to: time) ?? now) }
                return RecordVersion(values, times: Dictionary(times, uniquingKeysWith: { $1 }))
            }
            let store = try found.map { found in
                RecordVersion(found.state.values, times: try editTimes(type: type, row: found.row, since: since))
            }
            let merge = RecordMerge(type: type.name, record: edit.record.name, ancestor: ancestor, local: local, store: store)
            let (values, conflicts) = try merge.run(policy)
            log(conflicts)
            if values == nil, found == nil { return nil }
            return try merged(values)
        }
    }

    /// The zone that a new record goes to.
    private func home(_ edit: RecordEdit) throws -> Int64 {
        guard connection.scope == .shared else { return edit.zone ?? StoreFormat.defaultZone }
        guard let zone = edit.zone, zone != StoreFormat.defaultZone else {
            // A deletion of a record that is not there goes nowhere.
            if edit.values == nil { return StoreFormat.defaultZone }
            throw StoreError(
                .invalid,
                """
                \(edit.record.type) \(edit.record.name) is new, and the shared store has only records of shares: without a share it would never \
                be sent. Save it into a share, or into the private store
                """)
        }
        return zone
    }

    /// When the fields of a record were edited after a version of it: here by the time of the transaction, elsewhere as the cloud says.
    ///
    /// - Complexity: A look-up for each change of the record since.
    func editTimes(type: StoredType, row: Int64, since version: Int64) throws -> [String: EditTime] {
        let statement = try db.cachedStatement(sql: "SELECT _version, _edited FROM \"\(type.table)\" WHERE _id = ?")
        guard let found = try Row.fetchOne(statement, arguments: [row]) else { return [:] }
        let known = (found[1] as String?).map { EditTimes($0) }
        let device = connection.identity.device.uuidString
        var times: [String: EditTime] = [:]
        try RecordChain(db, row: found[0], cloudBegins: isFromCloud ? firstChange : .max).forEach(after: max(version, 0)) {
            link in
            let at = EditTime(microseconds: link.time ?? time, device: device)
            let fields = link.kind == .insert ? type.fields.map(\.name) : link.before.map(\.0)
            for field in fields where times[field] == nil {
                times[field] = (link.isFromCloud ? known?[field] ?? at : at).clamped(to: time)
            }
            return true
        }
        return times
    }

    // Records

    struct FoundRecord {
        let row: Int64
        let name: String
        let zone: Int64

        let state: StoredVersion
        /// Whether its values are what its digest says.
        let isIntact: Bool

        static func columns(_ type: StoredType) -> String {
            (["_id", "_key", "_version"] + type.fields.map { "\"\($0.column)\"" } + ["_zone", "_digest"]).joined(separator: ", ")
        }

        /// - Throws: ``StoreError`` `damaged`.
        func checkIntact(_ type: StoredType) throws(StoreError) {
            guard isIntact else { throw StoreError.damaged(RecordName(type: type.name, name: name)) }
        }
    }

    /// The record of a name; of a UUID also where it is written in the other case.
    ///
    /// - Parameter zone: In a shared store, where it is to be looked for: names are there once in each zone. `nil` for any zone.
    func find(_ name: String, type: StoredType, zone: Int64? = nil) throws -> FoundRecord? {
        let zone = connection.scope == .shared ? zone : nil
        let statement = try db.cachedStatement(
            sql: """
                SELECT \(FoundRecord.columns(type)) FROM "\(type.table)" WHERE _key IN (?1, ?2)\(zone == nil ? "" : " AND _zone = ?3")
                ORDER BY _key <> ?1, _zone LIMIT 1
                """)
        let keys = RecordKey.all(name: name)
        var arguments: StatementArguments = [keys[0], keys[keys.count - 1]]
        if let zone { arguments += [zone] }
        return try FoundRecord.fetchOne(statement, arguments: arguments, type: type)
    }

    func find(row id: Int64, type: StoredType) throws -> FoundRecord? {
        let columns = FoundRecord.columns(type)
        let statement = try db.cachedStatement(sql: "SELECT \(columns) FROM \"\(type.table)\" WHERE _id = ?")
        return try FoundRecord.fetchOne(statement, arguments: [id], type: type)
    }

    /// As ``apply(_:policy:)``; what a unique key leaves unresolved is told like every other conflict.
    func applyOrRefuse(_ records: [MergedRecord], policy: (String) -> MergePolicy) throws {
        do {
            try apply(records, policy: policy)
        } catch let error as RecordMerge.Unresolved {
            throw UnresolvedConflicts(records: [error])
        }
    }

    /// Writes records as they were merged: what differs of those that stay, and deletes the others.
    func apply(_ records: [MergedRecord], policy: (String) -> MergePolicy) throws {
        var places: [(type: StoredType, zone: Int64)] = []
        for record in records where !places.contains(where: { $0.type.id == record.type.id && $0.zone == record.zone }) {
            places.append((record.type, record.zone))
        }
        for (type, zone) in places {
            let mine = records.filter { $0.type.id == type.id && $0.zone == zone }
            let gone = mine.compactMap { $0.values == nil ? $0.row : nil }.sorted()
            if !gone.isEmpty { try delete(gone, type: type) }
            let batch = try RecordBatch(rowLimit: .max, byteLimit: .max)
            for record in mine {
                guard let values = record.values else { continue }
                let fields = type.schema.fields.filter { field in
                    record.row == nil ? values[field.name] != nil : values[field.name] != record.current[field.name]
                }
                // A record without values is still one.
                if record.row != nil, fields.isEmpty {
                    noteUnchanged()
                    continue
                }
                try batch.add(name: record.name, values: fields.map { ($0, values[$0.name]) })
            }
            guard batch.rowCount > 0 else { continue }
            batch.digest(seed: connection.identity.digestSeed)
            try write(batch, type: type, zone: zone, uniquePolicy: policy(type.name))
            if let refused = batch.rejections.first {
                throw StoreError(refused.isOfDamage ? .damaged : .invalid, "\(type.name) can't be saved: \(refused.message)")
            }
        }
    }

    // The log of conflicts

    /// Where nothing was changed there is no transaction to name: 0 stands for none.
    func logConflicts() throws {
        let id = counts.isUnchanged ? 0 : id
        for conflict in conflicts {
            try db.cachedStatement(
                sql: """
                    INSERT INTO tide_conflicts (transaction_id, type, record, field, ancestor, local, store, winner, policy)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                    """
            ).execute(arguments: [
                id, conflict.type, conflict.record, conflict.field, conflict.ancestor?.logText, conflict.local?.logText,
                conflict.store?.logText, conflict.winner.rawValue, conflict.policy,
            ])
        }
    }
}

extension StoreTransaction.FoundRecord {
    fileprivate static func fetchOne(_ statement: Statement, arguments: StatementArguments, type: StoredType) throws -> Self? {
        try statement.withRow(arguments) { row in
            let (record, count) = (try StoredRecord(row, type: type), type.fields.count)
            return Self(
                row: row[0], name: record.name, zone: row[count + 3], state: StoredVersion(record, type: type),
                isIntact: type.digest.isIntact(statement, key: 1, digest: count + 4, fields: 3))
        }
    }
}

extension StoredVersion {
    init(_ record: StoredRecord, type: StoredType) {
        var values: [String: FieldValue] = [:]
        for (field, value) in zip(type.fields, record.values) { values[field.name] = value }
        self.init(version: record.version, values: values)
    }
}
