import Foundation
package import GRDB
package import TidemarkModel
import TidemarkSQLite

extension RecordStore {
    /// Saves edits in one transaction, all or none. Each is merged with the store's present record.
    ///
    /// - Parameters:
    ///   - schemas: Types that the edits need.
    ///   - policy: The merge policy of a type.
    ///   - tellingStates: Whether the outcome includes the new state of each record.
    ///   - validate: Called first, in the transaction, with the match in the store for each edit. If it throws, nothing is saved.
    /// - Throws: ``UnresolvedConflicts`` under ``MergePolicy/error``; the errors of a custom rule and of `validate`;
    ///   ``StoreError``.
    /// - Complexity: One look-up for each edit. Records that do not change are compared and not written.
    package func save(
        _ edits: [RecordEdit], schemas: [RecordTypeSchema], blobs: [BlobStore.Blob], author: TransactionAuthor,
        policy: @Sendable (String) -> MergePolicy, tellingStates: Bool = false,
        validate: @Sendable (Database, [StoredMatch]) throws -> Void
    ) throws -> SaveOutcome {
        try transactOrRefuse("save", author: author) { transaction in
            let known = try edits.map { try transaction.lookUp($0) }
            try validate(transaction.db, known.map(\.match))
            for schema in schemas {
                try transaction.declare(schema, environment: container.description.environment, fitsNumbers: true)
            }
            return try transaction.save(edits, known: known, blobs: blobs, policy: policy, tellingStates: tellingStates)
        }
    }

    /// Deletes records in one transaction, whatever has changed in them. Returns the records that were deleted because of delete
    /// rules.
    ///
    /// - Parameter isDryRun: Whether only to check that they can be deleted.
    package func deletion(
        of records: [RecordName], author: TransactionAuthor, isDryRun: Bool = false
    ) throws -> [RecordName] {
        try transactOrRefuse("delete records", author: author) { transaction in
            let edits = records.map { RecordEdit(record: $0, base: .any, values: nil, fields: []) }
            let outcome = try transaction.save(edits, blobs: [], policy: { _ in .overwrite })
            transaction.isAbandoned = isDryRun
            return outcome.cascaded
        }
    }

    /// Saves edits with a check that does not need the records in the store.
    package func save(
        _ edits: [RecordEdit], schemas: [RecordTypeSchema], blobs: [BlobStore.Blob], author: TransactionAuthor,
        policy: @Sendable (String) -> MergePolicy, tellingStates: Bool = false, check: @Sendable (Database) throws -> Void
    ) throws -> SaveOutcome {
        try save(
            edits, schemas: schemas, blobs: blobs, author: author, policy: policy, tellingStates: tellingStates,
            validate: { db, _ in try check(db) })
    }
}

extension FieldValue {
    /// Returns the value to write in place of a field's stored one. A property that reads whole numbers as doubles is less
    /// precise, so a number that was not edited stays as it is.
    package func fitting(_ stored: FieldValue?) -> FieldValue {
        switch (self, stored) {
        case (.double(let number), .int64(let whole)?) where Double(whole) == number: .int64(whole)
        case (.double(let number), .int64?): Int64(exactly: number).map { .int64($0) } ?? self
        case (.list(let elements, .double), .list(let others, .int64)?) where elements.count == others.count:
            .list(zip(elements, others).map { $0.fitting($1) }, of: .int64)
        default: self
        }
    }
}

extension StoredType {
    /// Returns a value of the field's type: a double in an int64 field, or in a list of them, becomes a whole number.
    ///
    /// - Parameter stored: The record's present value of the field.
    /// - Throws: ``StoreError`` `invalid` for any other double.
    func fitting(_ field: String, _ value: FieldValue, _ stored: FieldValue? = nil) throws(StoreError) -> FieldValue {
        let known = schema.field(named: field)?.type
        switch value {
        case .double(let number) where known == .int64: return try whole(field, number, stored)
        case .list(let elements, .double) where known == .list(of: .int64):
            var others: [FieldValue] = []
            if case .list(let list, .int64)? = stored, list.count == elements.count { others = list }
            var numbers: [FieldValue] = []
            for (index, element) in elements.enumerated() {
                guard case .double(let number) = element else { return value }
                numbers.append(try whole(field, number, others.isEmpty ? nil : others[index]))
            }
            return .list(numbers, of: .int64)
        default: return value
        }
    }

    private func whole(_ field: String, _ number: Double, _ stored: FieldValue?) throws(StoreError) -> FieldValue {
        if case .int64? = stored, case .int64(let same) = FieldValue.double(number).fitting(stored) { return .int64(same) }
        guard let whole = Int64(exactly: number) else {
            throw StoreError(
                .invalid,
                "field '\(field)' of \(name) is int64 in the store, and \(number) is not a whole number. Round it, or rename the "
                    + "property and declare '\(field)' as its former name in `formerFieldNames`: then it gets a field of doubles"
            )
        }
        return .int64(whole)
    }
}

extension RecordEdit {
    /// Returns the edit with values of the fields' types. A number that was not edited stays as it was loaded, or as the store
    /// has it.
    fileprivate func fitting(
        _ type: StoredType, _ found: StoreTransaction.FoundRecord?, _ places: StoreTransaction.FieldPlaces?
    ) throws(StoreError) -> RecordEdit {
        if let listed, let places, !places.hasDoublesForWholeNumbers(listed.values) { return self }
        guard let values else { return self }
        var edit = self
        for (field, value) in values {
            switch value {
            case .double, .list(_, of: .double):
                var before = found?.value(of: field)
                if case .loaded(_, let loaded) = base { before = loaded[field] }
                edit.values?[field] = try type.fitting(field, value, before)
            default: break
            }
        }
        return edit
    }
}

/// The outcome of a merge for a record, beside the record in the store.
struct MergedRecord {
    let type: StoredType
    let name: String
    /// The zone of the record, or of the record to be made.
    let zone: Int64
    /// The record's row; `nil` for a new record.
    let row: Int64?
    /// The values to write, by the places of the fields in the type; `nil` for a deletion.
    let changes: [(field: Int, value: FieldValue?)]?

    /// Whether the record exists and does not change.
    var isUnchanged: Bool { row != nil && changes?.isEmpty == true }

    init(type: StoredType, name: String, zone: Int64, row: Int64?, changes: [(field: Int, value: FieldValue?)]?) {
        self.type = type
        self.name = name
        self.zone = zone
        self.row = row
        self.changes = changes
    }

    /// - Parameters:
    ///   - current: The values that the store has.
    ///   - values: All values that the record gets; `nil` for a deletion.
    init(
        type: StoredType, name: String, zone: Int64, row: Int64?, current: [String: FieldValue], values: [String: FieldValue]?
    ) {
        let changes = values.map { values in
            type.fields.enumerated().compactMap { index, field -> (field: Int, value: FieldValue?)? in
                let value = values[field.name]
                return value.isSame(as: current[field.name]) ? nil : (index, value)
            }
        }
        self.init(type: type, name: name, zone: zone, row: row, changes: changes)
    }
}

extension StoreTransaction {
    /// - Parameters:
    ///   - known: The results of the look-ups of the edits, if these were done in this transaction.
    ///   - refuse: Called with the index of an edit that is not permitted; the edit is left out. Without this parameter, such an
    ///     edit refuses all edits.
    func save(
        _ edits: [RecordEdit], known lookUps: [LookedUpRecord]? = nil, blobs: [BlobStore.Blob], policy: (String) -> MergePolicy,
        tellingStates: Bool = false,
        refuse: ((Int, PermissionDenied) throws -> Void)? = nil
    ) throws -> SaveOutcome {
        var merged: [MergedRecord] = []
        merged.reserveCapacity(edits.count)
        let edits = try placedWithOwners(edits)
        var unresolved: [RecordMerge.Unresolved] = []
        for (index, edit) in edits.enumerated() {
            if edit.zone == nil, case .any = edit.base, let found = lookUps?[index], found.match == .equal {
                // There is nothing to merge, check or write.
                try found.found?.checkIntact()
                noteUnchanged()
                continue
            }
            let known = conflicts.count
            do {
                let found = try lookUps?[index] ?? lookUp(edit)
                guard let record = try merge(edit, found, policy: policy(edit.record.type)) else { continue }
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
        let cascaded = try enforceRelationships()
        let replaced = replacements.names
        var outcome = SaveOutcome(counts: counts, conflicts: conflicts, replaced: replaced, cascaded: cascaded)
        if tellingStates { try tellStates(after: edits, &outcome) }
        outcome.transaction = counts.isUnchanged ? nil : id
        return outcome
    }

    /// Adds the records' states after the edits, and their names, to an outcome.
    private func tellStates(after edits: [RecordEdit], _ outcome: inout SaveOutcome) throws {
        outcome.saved.reserveCapacity(edits.count)
        for edit in edits {
            guard let type = type(named: edit.record.type) else { continue }
            let name = outcome.replaced[edit.record] ?? edit.record.name
            let found = try state(of: name, type: type, after: edit)
            outcome.saved[edit.record] = .some(found?.state)
            if let found, found.name != edit.record.name { outcome.names[edit.record] = found.name }
        }
    }

    func register(_ blobs: [BlobStore.Blob]) throws {
        for blob in blobs { try blob.register(db) }
    }

    // Merging

    private func merge(_ edit: RecordEdit, _ lookUp: LookedUpRecord, policy: MergePolicy) throws -> MergedRecord? {
        guard let type = type(named: edit.record.type) else {
            // A record to be deleted from a missing type does not exist.
            guard !edit.isDeletion else { return nil }
            throw unknownType(edit.record.type)
        }
        if let zone = edit.zone, try !zones.get().contains(where: { $0.id == zone }) {
            guard !edit.isDeletion else { return nil }
            throw StoreError(
                .invalid,
                "\(edit.record.type) \(edit.record.name) is for a zone that is gone: what was shared was left, or is shared no more"
            )
        }
        let found = lookUp.found
        let places = edit.listed.map { self.places(of: $0.names, in: type) }
        let edit = try edit.fitting(type, found, places)
        // A damaged record can still be deleted.
        if !edit.isDeletion { try found?.checkIntact() }
        func merged(_ changes: [(field: Int, value: FieldValue?)]?) throws -> MergedRecord {
            MergedRecord(
                type: type, name: found?.name ?? edit.record.name.composed, zone: try found?.zone ?? home(edit), row: found?.row,
                changes: changes)
        }
        /// Returns the values of the edit, with the store's values of the other fields.
        func completed(_ values: [String: FieldValue], with others: [String: FieldValue]?) -> [String: FieldValue] {
            values.merging((others ?? [:]).filter { !edit.fields.contains($0.key) }) { mine, _ in mine }
        }
        switch edit.base {
        case .none where found == nil:
            // There is nothing to merge with.
            return edit.isDeletion ? nil : try merged(edit.changes(of: nil, type: type, places))
        case .any:
            if lookUp.match == .equal { return try merged([]) }
            return try merged(edit.changes(of: found, type: type, places))
        case .loaded(let version, _) where version == found?.version:
            // The store has not changed since the record was loaded.
            if lookUp.match == .equal { return try merged([]) }
            return try merged(edit.changes(of: found, type: type, places))
        case .none, .loaded:
            var ancestor: RecordVersion?
            var since: Int64 = 0
            if case .loaded(let version, let values) = edit.base { (ancestor, since) = (RecordVersion(values), version) }
            let current = found?.state.values
            let local = edit.values.map { given in
                let values = completed(given, with: ancestor?.values ?? current)
                let now = EditTime(microseconds: time, device: connection.identity.device.uuidString)
                let times = edit.fields.map { ($0, edit.times[$0]?.clamped(to: time) ?? now) }
                return RecordVersion(values, times: Dictionary(times, uniquingKeysWith: { $1 }))
            }
            let store = try found.map { found in
                RecordVersion(current ?? [:], times: try editTimes(type: type, row: found.row, since: since))
            }
            let merge = RecordMerge(type: type.name, record: edit.record.name, ancestor: ancestor, local: local, store: store)
            let (values, conflicts) = try merge.run(policy)
            log(conflicts)
            if values == nil, found == nil { return nil }
            return MergedRecord(
                type: type, name: found?.name ?? edit.record.name.composed, zone: try found?.zone ?? home(edit), row: found?.row,
                current: current ?? [:], values: values)
        }
    }

    /// Returns the zone of a new record.
    private func home(_ edit: RecordEdit) throws -> Int64 {
        guard connection.scope == .shared else { return edit.zone ?? StoreFormat.defaultZone }
        guard let zone = edit.zone, zone != StoreFormat.defaultZone else {
            // The deletion of a missing record needs no zone.
            if edit.isDeletion { return StoreFormat.defaultZone }
            throw StoreError(
                .invalid,
                """
                \(edit.record.type) \(edit.record.name) is new, and the shared store has only records of shares: without a share it would never \
                be sent. Save it into a share, or into the private store
                """)
        }
        return zone
    }

    /// Returns when the fields of a record were edited after a version: local edits by their transaction's time, others by the
    /// cloud's times.
    ///
    /// - Complexity: A look-up for each change of the record since.
    func editTimes(type: StoredType, row: Int64, since version: Int64) throws -> [String: EditTime] {
        let statement = try db.cachedStatement(sql: "SELECT _version, _edited FROM \"\(type.table)\" WHERE _id = ?")
        guard let found = try Row.fetchOne(statement, arguments: [row]) else { return [:] }
        let edited: String? = try found.stored("_edited", of: type.table)
        let known = edited.map { EditTimes($0) }
        let device = connection.identity.device.uuidString
        var times: [String: EditTime] = [:]
        let last: Int64 = try found.stored("_version", of: type.table)
        try RecordChain(db, row: last, cloudBegins: isFromCloud ? firstChange : .max).forEach(after: max(version, 0)) { link in
            let at = EditTime(microseconds: link.time ?? time, device: device)
            let fields = link.kind == .insert ? type.fields.map(\.name) : link.before.map(\.0)
            for field in fields where times[field] == nil {
                times[field] = (link.isFromCloud ? known?[field] ?? at : at).clamped(to: time)
            }
            return true
        }
        return times
    }

    // Writing

    /// Works like ``apply(_:policy:)``. Conflicts that a unique key leaves unresolved are reported like all others.
    func applyOrRefuse(_ records: [MergedRecord], policy: (String) -> MergePolicy) throws {
        do {
            try apply(records, policy: policy)
        } catch let error as RecordMerge.Unresolved {
            throw UnresolvedConflicts(records: [error])
        }
    }

    /// Writes merged records: the changed values of those that stay. Deletes the others.
    func apply(_ records: [MergedRecord], policy: (String) -> MergePolicy) throws {
        var places: [(type: StoredType, zone: Int64)] = []
        for record in records where !places.contains(where: { $0.type.id == record.type.id && $0.zone == record.zone }) {
            places.append((record.type, record.zone))
        }
        for (type, zone) in places {
            let mine = places.count == 1 ? records : records.filter { $0.type.id == type.id && $0.zone == zone }
            let gone = mine.compactMap { $0.changes == nil ? $0.row : nil }.sorted()
            if !gone.isEmpty { try delete(gone, type: type) }
            let batch = try RecordBatch(rowLimit: .max, byteLimit: .max)
            let columns = try batch.columns(of: type.fields)
            for record in mine {
                guard let changes = record.changes else { continue }
                // A new record is written even without values.
                if record.isUnchanged {
                    noteUnchanged()
                } else {
                    try batch.add(name: record.name, changes: changes, fields: type.fields, columns: columns)
                }
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

    /// Logs the resolved conflicts. The number 0 stands for no transaction, where nothing was changed.
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
