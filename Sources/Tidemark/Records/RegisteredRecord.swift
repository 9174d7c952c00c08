import GRDB
import Synchronization
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// A record as an editing context has it: as it was loaded, and its edit.
struct RegisteredRecord: Sendable {
    /// As it was loaded, with the type that it was loaded as.
    struct Loaded: Sendable {
        let record: any Record
        let state: StoredVersion
        private let fetch: @Sendable (Database, RecordSource, RecordName) throws -> Loaded?

        init<R: Record>(record: R, state: StoredVersion) {
            self.record = record
            self.state = state
            fetch = { db, source, name in
                try source.fetch(db, R.self, named: name.name).map { Loaded(record: $0.record, state: $0.state) }
            }
        }

        func refetch(_ db: Database, _ source: RecordSource, _ name: RecordName) throws -> Loaded? { try fetch(db, source, name) }
    }

    /// What is to become of it.
    struct Edit: Sendable {
        /// `nil` for its deletion.
        let record: (any Record)?
        let policy: MergePolicy?
        /// Asks the record's hooks.
        let check: @Sendable (Database, RecordSource) throws -> Void
        let prepare: @Sendable (AssetIngest) throws -> PreparedRecord?
        private let rebase: @Sendable (_ old: StoredVersion, _ new: StoredVersion, _ assets: AssetPlace) throws -> Edit
        /// The values that it gives a record. An asset that is not stored yet is none that is known.
        private let content: @Sendable () throws -> [String: FieldValue?]
        /// The record as it was saved.
        let loaded: @Sendable (StoredVersion, AssetPlace) throws -> Loaded?
        /// Tells edits apart; one that is rebased is still the same.
        private(set) var number: Int

        init<R: Record>(saving record: R) {
            self.record = record
            policy = R.mergePolicy
            check = { db, source in
                try record.validate(replacing: source.fetch(db, R.self, named: record.recordName)?.record)
            }
            prepare = { assets in try PreparedRecord(record, assets: assets) }
            rebase = { old, new, assets in Edit(saving: try record.rebased(from: old, on: new, assets: assets)) }
            content = {
                let fields = try RecordEncoder().encode(record).fields
                return try Dictionary(
                    fields.map { ($0.name, try $0.content?.value { _ in "" }) }, uniquingKeysWith: { $1 })
            }
            loaded = { state, assets in
                Loaded(
                    record: try RecordDecoder<R>.record(record.recordName, values: state.values, assets: assets), state: state)
            }
            number = Self.nextNumber()
        }

        init<R: Record>(deleting record: R, named name: String) {
            self.record = nil
            policy = R.mergePolicy
            check = { db, source in try source.fetch(db, R.self, named: name)?.record.validateForDelete() }
            prepare = { _ in nil }
            rebase = { _, _, _ in Edit(deleting: record, named: name) }
            content = { [:] }
            loaded = { _, _ in nil }
            number = Self.nextNumber()
        }

        /// Its values on top of others.
        func values(over others: [String: FieldValue]) throws -> [String: FieldValue] {
            var values = others
            for (field, value) in try content() { values[field] = value }
            return values
        }

        /// The edit on top of a newer state of the record.
        func rebased(from old: StoredVersion, on new: StoredVersion, assets: AssetPlace) throws -> Edit {
            var edit = try rebase(old, new, assets)
            edit.number = number
            return edit
        }

        private static let numbers = Atomic<Int>(0)
        private static func nextNumber() -> Int { numbers.add(1, ordering: .relaxed).newValue }
    }

    private(set) var scope: StoreScope
    /// `nil` for one that was inserted.
    private(set) var loaded: Loaded?
    var edit: Edit?
    /// The share into which an inserted record goes; `nil` for none.
    var share: Share?

    init(scope: StoreScope, loaded: Loaded? = nil) {
        self.scope = scope
        self.loaded = loaded
    }

    var isDeleted: Bool { edit.map { $0.record == nil } ?? false }

    /// With its edit; `nil` when it is deleted.
    func current<R: Record>(_ type: R.Type) throws -> R? {
        if isDeleted { return nil }
        guard let record = edit?.record ?? loaded?.record else { return nil }
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
        // What was never saved is just not saved.
        edit = (loaded?.record as? R).map { Edit(deleting: $0, named: $0.recordName) }
    }

    /// What the store is to do.
    func prepare(_ name: RecordName, in zone: Int64?, assets: AssetIngest) throws -> (edit: RecordEdit, schema: RecordTypeSchema?)
    {
        let base: RecordEdit.Base = loaded.map { .loaded(version: $0.state.version, values: $0.state.values) } ?? .none
        guard let prepared = try edit?.prepare(assets) else {
            return (RecordEdit(record: name, base: base, values: nil, fields: []), nil)
        }
        return (prepared.edit(base, in: zone), prepared.schema)
    }

    /// Takes a newer state of the record; what was edited here stays on top.
    mutating func refresh(_ fresh: Loaded, assets: AssetPlace) throws {
        if let old = loaded?.state { edit = try edit?.rebased(from: old, on: fresh.state, assets: assets) }
        loaded = fresh
    }

    /// Marks the edit, or an earlier one, as saved; the record is now in this state.
    mutating func markSaved(_ saved: Edit, as state: StoredVersion, in scope: StoreScope, assets: AssetPlace) throws {
        if edit?.number == saved.number {
            edit = nil
        } else {
            // It was made on top of what was saved, and knows nothing of what that was merged with.
            let before = try saved.values(over: loaded?.state.values ?? [:])
            edit = try edit?.rebased(from: StoredVersion(version: 0, values: before), on: state, assets: assets)
        }
        self.scope = scope
        share = nil
        loaded = try saved.loaded(state, assets)
    }

    /// What was loaded is gone; the edit makes a new record.
    mutating func forgetLoaded() { loaded = nil }
}

extension Record {
    /// The record with a newer state's values where it is as in the old one.
    fileprivate func rebased(from old: StoredVersion, on new: StoredVersion, assets: AssetPlace) throws -> Self {
        var (values, pending) = (new.values, assets.pending)
        for field in try RecordEncoder().encode(self).fields {
            var mine = try field.content?.value { asset in
                let placeholder = "pending-\(pending.count)"
                pending[placeholder] = asset
                return placeholder
            }
            // A double property may have a field of int64.
            if case .int64? = old.values[field.name], case .double(let number)? = mine, let whole = Int64(exactly: number) {
                mine = .int64(whole)
            }
            if !mine.isSame(as: old.values[field.name]) { values[field.name] = mine }
        }
        return try RecordDecoder<Self>.record(
            recordName, values: values, assets: AssetPlace(folder: assets.folder, pending: pending))
    }
}
