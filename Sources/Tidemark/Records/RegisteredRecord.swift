import GRDB
import Synchronization
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// A record of an editing context: the loaded version, and the edit.
struct RegisteredRecord: Sendable {
    /// The loaded version of a record, with the Swift type as which it was loaded.
    struct Loaded: Sendable {
        let type: any Record.Type
        let state: StoredVersion
        private let content: Content

        private enum Content {
            case record(any Record)
            /// The values of a record that was saved. It is decoded on demand.
            case values(name: String, AssetPlace)
        }

        init(record: any Record, state: StoredVersion) {
            type = Swift.type(of: record)
            self.state = state
            content = .record(record)
        }

        /// Creates a record from a stored state. The record is decoded on demand.
        init(_ type: any Record.Type, named name: String, state: StoredVersion, assets: AssetPlace) {
            self.type = type
            self.state = state
            content = .values(name: name, assets)
        }

        /// - Throws: `DecodingError`.
        func record() throws -> any Record {
            switch content {
            case .record(let record): return record
            case .values(let name, let assets): return try type.read(name, state, assets)
            }
        }

        func refetch(_ db: Database, _ source: RecordSource, _ name: RecordName) throws -> Loaded? {
            try type.fetch(db, source, name)
        }
    }

    /// The edit of a record: a save or a deletion.
    struct Edit: Sendable {
        let type: any Record.Type
        /// The edited record; `nil` for a deletion.
        let record: (any Record)?
        /// The number of the edit. It identifies the edit, also after it was rebased.
        private(set) var number: Int

        var policy: MergePolicy? { type.mergePolicy }

        init(saving record: any Record) {
            type = Swift.type(of: record)
            self.record = record
            number = Self.nextNumber()
        }

        init(deleting type: any Record.Type) {
            self.type = type
            record = nil
            number = Self.nextNumber()
        }

        /// Calls the record's hooks.
        func validate(_ name: RecordName, _ match: StoredMatch, _ stored: StoredRecords) throws {
            if let record { return try stored.validate(record, match) }
            if match != .missing { try type.validateForDelete(name, stored) }
        }

        /// Returns the edit's values on top of others. An asset that is not stored yet has an empty identifier.
        func values(over others: [String: FieldValue]) throws -> [String: FieldValue] {
            var values = others
            guard let record else { return values }
            for field in try RecordEncoder().encode(record).fields { values[field.name] = try field.content?.value { _ in "" } }
            return values
        }

        /// Returns the edit on top of a newer state of the record.
        func rebased(from old: StoredVersion, on new: StoredVersion, assets: AssetPlace) throws -> Edit {
            guard let record else { return self }
            var edit = Edit(saving: try record.rebased(from: old, on: new, assets: assets))
            edit.number = number
            return edit
        }

        /// Returns the record as it was saved; `nil` when it was deleted.
        func loaded(_ state: StoredVersion, assets: AssetPlace) -> Loaded? {
            record.map { Loaded(type, named: $0.recordName, state: state, assets: assets) }
        }

        private static let numbers = Atomic<Int>(0)
        private static func nextNumber() -> Int { numbers.add(1, ordering: .relaxed).newValue }
    }

    private(set) var scope: StoreScope
    /// The loaded version; `nil` for a record that was inserted.
    private(set) var loaded: Loaded?
    var edit: Edit?
    /// The place of the edit in the order of the context's edits; `nil` without an edit. ``RegisteredRecords`` maintains it.
    var place: Int?
    /// The place into which an inserted record goes; `nil` for a record that was loaded.
    var target: InsertionTarget?

    init(scope: StoreScope, loaded: Loaded? = nil) {
        self.scope = scope
        self.loaded = loaded
    }

    var isDeleted: Bool { edit.map { $0.record == nil } ?? false }

    /// Returns the record with its edit; `nil` when the context has deleted it.
    func current<R: Record>(_ type: R.Type) throws -> R? {
        if isDeleted { return nil }
        guard let record = try edit?.record ?? loaded?.record() else { return nil }
        guard let record = record as? R else {
            throw StoreError(
                .invalid, "\(R.recordType) \(record.recordName) is in this context as \(Swift.type(of: record)), not as \(R.self)"
            )
        }
        return record
    }

    mutating func insert(_ record: some Record) { edit = Edit(saving: record) }
    mutating func update(_ record: some Record) { edit = Edit(saving: record) }

    mutating func delete<R: Record>(_ type: R.Type) {
        // A record that was never saved needs no deletion.
        edit = loaded.map { _ in Edit(deleting: type) }
    }

    /// Returns the store's edits for edits of the context, each with its zone.
    static func prepare(
        _ edits: [(name: RecordName, record: RegisteredRecord)], zones: [Int64?], _ preparation: RecordPreparation
    ) throws -> [(edit: RecordEdit, shape: RecordShape?)] {
        var saved = try preparation.prepare(edits.compactMap(\.record.edit?.record)).makeIterator()
        return try zip(edits, zones).map { edit, zone in
            try edit.record.prepare(edit.name, in: zone, edit.record.edit?.record == nil ? nil : saved.next(), preparation)
        }
    }

    /// Returns the store's edit for this record.
    ///
    /// - Parameter prepared: The edited record; `nil` for its deletion.
    private func prepare(
        _ name: RecordName, in zone: Int64?, _ prepared: PreparedRecord?, _ preparation: RecordPreparation
    ) throws -> (edit: RecordEdit, shape: RecordShape?) {
        let base: RecordEdit.Base = loaded.map { .loaded(version: $0.state.version, values: $0.state.values) } ?? .none
        guard let record = edit?.record, let prepared else {
            return (RecordEdit(record: name, base: base, values: nil, fields: []), nil)
        }
        // A default value that stands for a missing value is not an edit.
        if let loaded, let original = try record.asLoaded(loaded, preparation) {
            return (prepared.edit(since: original, base, in: zone), prepared.shape)
        }
        return (prepared.edit(base, in: zone), prepared.shape)
    }

    /// The owner of the edited record. It is `nil` if the record has no owner, or is saved into a share or a zone that the caller
    /// named.
    var owner: RecordName? {
        get throws {
            guard let record = edit?.record else { return nil }
            switch target {
            case .share, .zone: return nil
            case .store, nil: break
            }
            return try DeclaredRelationships.owner(of: record)
        }
    }

    /// Replaces the loaded state by a newer one, and applies the edit to it.
    mutating func refresh(_ fresh: Loaded, assets: AssetPlace) throws {
        if let old = loaded?.state { edit = try edit?.rebased(from: old, on: fresh.state, assets: assets) }
        loaded = fresh
    }

    /// Records that an edit was saved, and that the stored record now has this state. An edit made since then stays.
    mutating func markSaved(_ saved: Edit, as state: StoredVersion, in scope: StoreScope, assets: AssetPlace) throws {
        if edit?.number == saved.number {
            edit = nil
        } else {
            // The later edit is based on the saved edit. It does not have the changes of others that the save merged in.
            let before = try saved.values(over: loaded?.state.values ?? [:])
            edit = try edit?.rebased(from: StoredVersion(version: 0, values: before), on: state, assets: assets)
        }
        self.scope = scope
        target = nil
        loaded = saved.loaded(state, assets: assets)
    }

    /// Discards the loaded state, because the stored record is gone. The edit then inserts a new record.
    mutating func forgetLoaded() { loaded = nil }
}

extension Record {
    fileprivate static func read(_ name: String, _ state: StoredVersion, _ assets: AssetPlace) throws -> any Record {
        try RecordDecoder<Self>.record(name, values: state.values, assets: assets)
    }

    fileprivate static func fetch(
        _ db: Database, _ source: RecordSource, _ name: RecordName
    ) throws -> RegisteredRecord.Loaded? {
        try source.fetch(db, Self.self, named: name.name).map { .init(record: $0.record, state: $0.state) }
    }

    fileprivate static func validateForDelete(_ name: RecordName, _ stored: StoredRecords) throws {
        try stored.record(Self.self, named: name.name)?.validateForDelete()
    }

    /// Returns the prepared record as it was loaded. `nil` if its fields are those of the store anyway, and if it was loaded as
    /// another type.
    fileprivate func asLoaded(_ loaded: RegisteredRecord.Loaded, _ preparation: RecordPreparation) throws -> PreparedRecord? {
        // A record that can't be read as this type is compared with the stored values.
        guard loaded.type is Self.Type, !RecordNaming.of(Self.self).isEmpty, let original = try? loaded.record() as? Self else {
            return nil
        }
        return try preparation.prepare(original)
    }

    /// Returns the values of a record's fields in a state, including the default values that stand for missing ones.
    private func values(of state: StoredVersion, _ assets: AssetPlace) -> [String: FieldValue] {
        // A state that can't be read as this type counts as it is stored.
        guard !RecordNaming.of(Self.self).isEmpty,
            let record = try? RecordDecoder<Self>.record(recordName, values: state.values, assets: assets),
            let fields = try? RecordEncoder().encode(record).fields
        else { return state.values }
        var values = state.values
        for field in fields { values[field.name] = (try? field.content?.value { $0.identifier ?? "" }) ?? nil }
        return values
    }

    /// Returns the record with the new state's values in the fields that were not edited since the old state.
    fileprivate func rebased(from old: StoredVersion, on new: StoredVersion, assets: AssetPlace) throws -> Self {
        var (values, pending) = (new.values, assets.pending)
        let before = self.values(of: old, assets)
        let formerNames = RecordNaming.of(Self.self).formerNames
        for field in try RecordEncoder().encode(self).fields {
            var mine = try field.content?.value { asset in
                let placeholder = "pending-\(pending.count)"
                pending[placeholder] = asset
                return placeholder
            }
            mine = mine?.fitting(before[field.name])
            guard !mine.isSame(as: before[field.name]) else { continue }
            values[field.name] = mine
            // A property without a value would be read under its former names.
            if mine == nil { for former in formerNames[field.name] ?? [] { values[former] = nil } }
        }
        return try RecordDecoder<Self>.record(
            recordName, values: values, assets: AssetPlace(folder: assets.folder, pending: pending))
    }
}
