import Foundation
import GRDB
import TidemarkModel
import TidemarkStore

/// A workplace for edits: it remembers the records that it has loaded, and when they are saved, merges them with what others have saved
/// since. As `NSManagedObjectContext`.
///
/// ```swift
/// let context = journal.newContext()
/// var senja = try await context.fetch(Destination.self, named: "senja")!
/// senja.caption = "Senja in winter"
/// try await context.update(senja)
/// let result = try await context.save()            // result.conflicts tells what others had changed
/// ```
///
/// A context sees its own edits; others see them when they are saved.
public actor EditingContext {
    public nonisolated let container: PersistentContainer
    /// The policy of this context's saves; `nil` for the types' and the container's.
    public private(set) var mergePolicy: MergePolicy?
    /// Whether records that others save are refreshed here at once.
    public private(set) var automaticallyMergesChangesFromParent = false
    /// What the last automatic refresh failed with; the next change tries again. `nil` when it went well.
    public private(set) var refreshError: (any Error)?

    private var registered: [RecordName: RegisteredRecord] = [:]
    /// The records with edits, in the order of these.
    private var edited: [RecordName] = []
    private var following: Task<Void, Never>?

    init(container: PersistentContainer, mergePolicy: MergePolicy?) {
        self.container = container
        self.mergePolicy = mergePolicy
    }

    deinit { following?.cancel() }

    /// Sets the policy of this context's saves.
    public func setMergePolicy(_ policy: MergePolicy?) { mergePolicy = policy }

    // Loading

    /// The record of a name, with this context's edits; `nil` when there is none, or it is deleted here.
    ///
    /// - Throws: ``StoreError``, `DecodingError`.
    public func fetch<R: Record>(_ type: R.Type, named name: String) async throws -> R? {
        let record = RecordName(type: R.recordType, name: name)
        if let known = registered[record] { return try known.current(type) }
        for source in container.recordSources.all {
            let loaded = try await source.read { db in try source.fetch(db, type, named: name) }
            guard let loaded else { continue }
            // Another call may have edited it meanwhile.
            return try register(loaded.record, loaded.state, scope: source.scope).current(type)
        }
        return nil
    }

    /// The records that match in the stores, with this context's edits; those that are deleted here are left out.
    public func fetchAll<R: Record>(
        _ type: R.Type, where predicate: RecordPredicate? = nil, sortedBy sorts: [RecordSort] = [], limit: Int? = nil
    ) async throws -> [R] {
        let found = try await container.recordSources.fetchAll(type, where: predicate, sortedBy: sorts, limit: limit) {
            record, row, type, source in
            (record: record, state: try StoredVersion(row, type: type), scope: source.scope)
        }
        return try found.compactMap { try register($0.record, $0.state, scope: $0.scope).current(type) }
    }

    // Editing

    /// Adds a record that is believed to be new.
    public func insert<R: Record>(_ record: R, in scope: DatabaseScope = .private) {
        let name = record.name
        edit(name, scope: scope) { $0.insert(record) }
    }

    /// Gives a loaded, or inserted, record new values.
    ///
    /// - Throws: ``StoreError`` `notFound` when the context has not loaded it, or has deleted it.
    public func update<R: Record>(_ record: R) throws {
        let name = record.name
        guard let known = registered[name], !known.isDeleted else {
            throw StoreError(
                .notFound,
                "\(name.type) \(name.name) is not loaded in this context, or is deleted in it. Fetch or insert it first")
        }
        edit(name, scope: known.scope) { $0.update(record) }
    }

    /// Deletes a record.
    ///
    /// - Throws: ``StoreError`` `notFound` when the context has not loaded it.
    public func delete<R: Record>(_ record: R) throws {
        let name = record.name
        guard let known = registered[name] else {
            throw StoreError(.notFound, "\(name.type) \(name.name) is not loaded in this context. Fetch it first")
        }
        edit(name, scope: known.scope) { $0.delete(R.self) }
    }

    /// Whether there is anything to save.
    public var hasChanges: Bool { !edited.isEmpty }

    /// Forgets all edits; loaded records stay as they were loaded.
    public func rollback() {
        for name in edited {
            if registered[name]?.loaded == nil { registered[name] = nil } else { registered[name]?.edit = nil }
        }
        edited = []
    }

    /// Forgets edits and loaded records.
    public func reset() {
        registered = [:]
        edited = []
    }

    private func edit(_ name: RecordName, scope: DatabaseScope, _ body: (inout RegisteredRecord) -> Void) {
        var record = registered[name] ?? RegisteredRecord(scope: scope)
        body(&record)
        if record.edit != nil {
            if !edited.contains(name) { edited.append(name) }
        } else {
            edited.removeAll { $0 == name }
        }
        registered[name] = record.loaded == nil && record.edit == nil ? nil : record
    }

    private func register<R: Record>(_ record: R, _ state: StoredVersion, scope: DatabaseScope) -> RegisteredRecord {
        if let known = registered[record.name] { return known }
        let new = RegisteredRecord(scope: scope, loaded: .init(record: record, state: state))
        registered[record.name] = new
        return new
    }

    // Saving

    /// Saves all edits: in each store, all or none.
    ///
    /// What others have saved since a record was loaded is merged under the policy given here, or the context's, the type's, or the
    /// container's.
    ///
    /// - Throws: ``UnresolvedConflicts`` under ``MergePolicy/error``; what hooks and a rule of one's own throw; those of
    ///   ``PersistentContainer/save(_:in:)-(R,_)``. Then the edits are still there.
    @discardableResult
    public func save(mergePolicy own: MergePolicy? = nil) async throws -> SaveResult {
        let edits = edited.compactMap { name in registered[name].map { (name: name, record: $0) } }
        guard !edits.isEmpty else { return SaveResult() }
        let types = Dictionary(
            edits.compactMap { it in it.record.edit.map { (it.name.type, $0.policy) } }, uniquingKeysWith: { $1 })
        let policy = await container.policies(own ?? mergePolicy, types: types)
        let (result, saved) = try await container.commit { assets in
            let prepared = try edits.map { try $0.record.prepare($0.name, assets: assets) }
            var parts: [DatabaseScope: [Int]] = [:]
            for (index, it) in edits.enumerated() { parts[it.record.scope, default: []].append(index) }
            return parts.map { scope, indices in
                StoreSave(
                    scope: scope, edits: indices.map { prepared[$0].edit },
                    schemas: PersistentContainer.union(indices.compactMap { prepared[$0].schema }), policy: policy,
                    check: { db, source in
                        for index in indices { try edits[index].record.edit?.check(db, source) }
                    })
            }
        }
        for (name, record) in edits {
            guard let edit = record.edit else { continue }
            try settle(name, edit, as: result.replaced[name] == nil ? saved[name] ?? nil : nil)
        }
        return result
    }

    /// Notes that an edit is saved. Another may have come meanwhile.
    private func settle(_ name: RecordName, _ saved: RegisteredRecord.Edit, as state: StoredVersion?) throws {
        guard let now = registered[name], let source = container.recordSources.source(now.scope) else { return }
        let isLast = now.edit?.number == saved.number
        if isLast { edited.removeAll { $0 == name } }
        if let state {
            try registered[name]?.settle(saved, as: state, assets: AssetPlace(folder: source.assets))
        } else if isLast {
            registered[name] = nil
        }
    }

    // Following others

    /// Whether records that others save, here or in other processes, are refreshed in this context at once; edits of the context stay on
    /// top of them.
    public func setAutomaticallyMergesChangesFromParent(_ isOn: Bool) {
        automaticallyMergesChangesFromParent = isOn
        following?.cancel()
        following = nil
        guard isOn else { return }
        let rings = container.changeBell.rings(withOwn: true)
        following = Task { [weak self] in
            for await _ in rings {
                await self?.refreshAutomatically()
            }
        }
    }

    private func refreshAutomatically() async {
        do {
            try await refreshAll()
            refreshError = nil
        } catch {
            refreshError = error
        }
    }

    /// Brings all loaded records up to what the stores have. Edits that are not saved stay on top: a field that was edited here keeps the
    /// edit.
    ///
    /// - Returns: The records that others had changed or deleted.
    @discardableResult
    public func refreshAll() async throws -> Set<RecordName> {
        var stale: Set<RecordName> = []
        for (name, known) in registered {
            guard let loaded = known.loaded, let source = container.recordSources.source(known.scope) else { continue }
            let fresh = try await source.read { db in try loaded.refetch(db, source, name) }
            guard fresh?.state.version != loaded.state.version else { continue }
            stale.insert(name)
            guard registered[name]?.loaded?.state == loaded.state else { continue }
            if let fresh {
                try registered[name]?.refresh(fresh, assets: AssetPlace(folder: source.assets))
            } else if registered[name]?.edit == nil {
                registered[name] = nil
            }
        }
        return stale
    }
}

extension Record {
    fileprivate var name: RecordName { RecordName(type: Self.recordType, name: recordName) }
}
