public import Foundation
import GRDB
public import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// A context for edits. It keeps the versions of records that it has loaded, and merges them at a save with the changes that
/// others have saved since. As `NSManagedObjectContext`.
///
/// ```swift
/// let context = journal.newContext()
/// var senja = try await context.fetch(Destination.self, named: "senja")!
/// senja.caption = "Senja in winter"
/// try await context.update(senja)
/// let result = try await context.save()            // result.conflicts tells what others had changed
/// ```
///
/// Fetches of a context include its own edits. Others see them after a save. A context reads the newest state of the stores, or a
/// state that was pinned with ``setQueryGeneration(_:)``.
public actor EditingContext {
    /// The container from which the context loads records, and into which it saves them.
    public nonisolated let container: PersistentContainer
    /// The policy of this context's saves; `nil` for the policies of the types and the container.
    public private(set) var mergePolicy: MergePolicy?
    /// Whether the context refreshes records at once when others have saved them.
    public private(set) var automaticallyMergesChangesFromParent = false
    /// The error of the last automatic refresh, or of listening to changes; `nil` after a success. The next change leads to
    /// another refresh.
    public private(set) var refreshError: (any Error)?

    /// The place of new records that are inserted without one.
    public private(set) var insertionTarget = InsertionTarget.store(.private)

    /// The state that the context reads.
    private enum Pin {
        case none
        /// The newest state at the next fetch.
        case next
        case state(ContainerSnapshot)
    }

    private var pin = Pin.none
    private var registered = RegisteredRecords()
    private var following: Task<Void, Never>?
    /// Serialises saves and refreshes: each needs the result of the one before.
    private let turns = Turns()

    init(container: PersistentContainer, mergePolicy: MergePolicy?) {
        self.container = container
        self.mergePolicy = mergePolicy
    }

    deinit { following?.cancel() }

    /// Sets the policy of this context's saves.
    public func setMergePolicy(_ policy: MergePolicy?) { mergePolicy = policy }

    /// Sets the place of new records that are inserted without one, such as a share.
    public func setInsertionTarget(_ target: InsertionTarget) { insertionTarget = target }

    // The state that is read

    /// Pins the state of both stores that the context reads, or unpins it. The states of the two stores are of one moment. As
    /// `NSManagedObjectContext.setQueryGenerationFrom(_:)`.
    ///
    /// ```swift
    /// try await context.setQueryGeneration(.current)
    /// let trips = try await context.fetchAll(Trip.self)
    /// let stops = try await context.fetchAll(Stop.self)     // as they were beside these trips
    /// ```
    ///
    /// Fetches read the pinned state, whatever others save. A save merges with the newest state all the same.
    /// ``save(mergePolicy:)``, ``refreshAll()`` and ``reset()`` advance a pinned context to the newest state. Loaded records keep
    /// their values until they are refreshed. A pinned state keeps the stores' logs from being emptied: see
    /// ``ContainerSnapshot``.
    ///
    /// - Throws: ``StoreError`` `invalid` for a snapshot of another container; the errors of `PersistentContainer.snapshot()`.
    public func setQueryGeneration(_ generation: QueryGeneration) throws(StoreError) {
        switch generation {
        case .unpinned: pin = .none
        case .current: pin = .state(try container.snapshot())
        case .snapshot(let snapshot):
            guard snapshot.recordSources.all.first?.container.url == container.directory.url else {
                throw StoreError(.invalid, "the snapshot is of another container than \(container.directory.url.path)")
            }
            pin = .state(snapshot)
        }
    }

    /// Whether the context reads a pinned state.
    public var isPinned: Bool {
        if case .none = pin { false } else { true }
    }

    /// Makes a pinned context read the newest state from its next fetch on.
    private func advance() { if isPinned { pin = .next } }

    /// The stores in the state that the context reads.
    private func recordSources() throws -> RecordSources {
        switch pin {
        case .none: return container.recordSources
        case .state(let snapshot): return snapshot.recordSources
        case .next:
            let snapshot = try container.snapshot()
            pin = .state(snapshot)
            return snapshot.recordSources
        }
    }

    // Loading

    /// Returns the record of a name, with this context's edits; `nil` when there is none, or when this context has deleted it.
    ///
    /// - Throws: ``StoreError``, `DecodingError`.
    public func fetch<R: Record>(_ type: R.Type, named name: String) async throws -> R? {
        try container.recordSources.claims.check(type)
        let record = RecordName(type: R.recordType, name: name)
        if let known = registered[record] { return try known.current(type) }
        for source in try recordSources().all {
            let loaded = try await source.read { db in try source.fetch(db, type, named: name) }
            guard let loaded else { continue }
            // Another call may have edited the record meanwhile.
            return try register(loaded.record, loaded.state, scope: source.scope).current(type)
        }
        return nil
    }

    /// Returns the record of a UUID, with this context's edits; see `fetch(_:named:)`.
    public func fetch<R: Record & Identifiable>(_ type: R.Type, id: UUID) async throws -> R? where R.ID == UUID {
        try await fetch(type, named: id.uuidString.lowercased())
    }

    /// Returns the records that match in the stores, with this context's edits.
    ///
    /// The predicate is applied to the stored values. Records that this context has deleted are left out. Records that it has
    /// inserted and not saved yet are not found.
    public func fetchAll<R: Record>(
        _ type: R.Type, where predicate: RecordPredicate<R>? = nil, sortedBy sorts: [RecordSort<R>] = [], limit: Int? = nil
    ) async throws -> [R] {
        let found = try await recordSources().fetchAll(type, where: predicate, sortedBy: sorts, limit: limit) {
            record, row, type, source in
            (record: record, state: try StoredVersion(row, type: type), scope: source.scope)
        }
        var seen: Set<RecordName> = []
        return try found.compactMap { it in
            // If both stores have the name, the context has one record for it.
            guard seen.insert(it.record.name).inserted else { return nil }
            return try register(it.record, it.state, scope: it.scope).current(type)
        }
    }

    // Editing

    /// Adds a new record, at the context's ``insertionTarget``. If the store has the record, the save merges the two.
    public func insert<R: Record>(_ record: R) { insert(record, into: insertionTarget) }

    /// Adds a new record to a store. If the container has the record, the save merges the two.
    ///
    /// - Parameter scope: The store of a new record; a record that exists stays where it is. A new record of the shared store
    ///   needs a share: use ``insert(_:in:)-(_,Share)``. Otherwise ``save(mergePolicy:)`` throws.
    public func insert<R: Record>(_ record: R, in scope: StoreScope) { insert(record, into: .store(scope)) }

    /// Adds a new record to a share. If the container has the record, the save merges the two.
    ///
    /// If the container does not have the share when the context is saved, ``save(mergePolicy:)`` throws ``StoreError``
    /// `notFound`.
    public func insert<R: Record>(_ record: R, in share: Share) { insert(record, into: .share(share)) }

    /// Adds a new record to a store, a share or a zone. If the container has the record, the save merges the two.
    ///
    /// If the container does not have the share or the zone when the context is saved, ``save(mergePolicy:)`` throws
    /// ``StoreError`` `notFound`.
    public func insert<R: Record>(_ record: R, into target: InsertionTarget) {
        let name = record.name
        registered.edit(name, scope: target.scope) {
            $0.insert(record)
            $0.target = target
        }
    }

    /// Gives new values to a record that the context has loaded or inserted.
    ///
    /// - Throws: ``StoreError`` `notFound` when the context has not loaded it, or has deleted it.
    public func update<R: Record>(_ record: R) throws {
        let name = record.name
        guard let known = registered[name], !known.isDeleted else {
            throw StoreError(
                .notFound,
                "\(name.type) \(name.name) is not loaded in this context, or is deleted in it. Fetch or insert it first")
        }
        registered.edit(name, scope: known.scope) { $0.update(record) }
    }

    /// Deletes a record.
    ///
    /// - Throws: ``StoreError`` `notFound` when the context has not loaded it.
    public func delete<R: Record>(_ record: R) throws {
        let name = record.name
        guard let known = registered[name] else {
            throw StoreError(.notFound, "\(name.type) \(name.name) is not loaded in this context. Fetch it first")
        }
        registered.edit(name, scope: known.scope) { $0.delete(R.self) }
    }

    /// Whether the context has edits to save.
    public var hasChanges: Bool { registered.hasEdits }

    /// Discards all edits. Loaded records keep the values with which they were loaded.
    public func rollback() { registered.rollback() }

    /// Discards all edits and loaded records.
    public func reset() {
        registered = RegisteredRecords()
        advance()
    }

    private func register<R: Record>(_ record: R, _ state: StoredVersion, scope: StoreScope) -> RegisteredRecord {
        registered.register(record.name, RegisteredRecord(scope: scope, loaded: .init(record: record, state: state)))
    }

    // Saving

    /// Saves all edits. Each store saves all of its edits or none.
    ///
    /// Changes that others have saved since a record was loaded are merged. Edits that are made during a save belong to the next
    /// one.
    ///
    /// - Parameter own: The merge policy. By default it is the context's; if that is `nil`, the type's; if that is `nil`, the
    ///   container's.
    /// - Returns: The counts and conflicts of the save.
    /// - Throws: ``UnresolvedConflicts`` under ``MergePolicy/error``; the errors of hooks and of a custom rule; the errors of
    ///   ``PersistentContainer/save(_:in:)-(R,_)``. Then the context keeps its edits, except those of a store that was saved
    ///   before the other one failed.
    /// - Complexity: O(n log n) in the number of edits.
    @discardableResult
    public func save(mergePolicy own: MergePolicy? = nil) async throws -> SaveResult {
        await turns.take()
        defer { turns.pass() }
        let edits = registered.edits
        guard !edits.isEmpty else { return SaveResult() }
        var types: [String: MergePolicy?] = [:]
        var last: (any Record.Type)?
        for (name, record) in edits {
            guard let edit = record.edit, last != edit.type else { continue }
            types[name.type] = .some(edit.policy)
            last = edit.type
        }
        let policy = await container.policies(own ?? mergePolicy, types: types)
        // An inserted record may exist already, in the other store.
        let homes = try await homes(of: edits)
        let places = try await places(of: edits, homes)
        let committed = try await container.commit { assets in
            let preparation = RecordPreparation(assets)
            let prepared = try RegisteredRecord.prepare(edits, zones: places.map { $0?.zone }, preparation)
            var parts: [StoreScope: [Int]] = [:]
            for (index, scope) in homes.enumerated() { parts[scope, default: []].append(index) }
            return parts.map { scope, indices in
                StoreSave(
                    scope: scope, edits: indices.map { prepared[$0].edit },
                    schemas: PersistentContainer.union(of: indices.lazy.compactMap { prepared[$0].shape }), policy: policy,
                    validate: { db, source, matches in
                        for place in Set(indices.compactMap { places[$0] }) { try place.check(db, source) }
                        let stored = StoredRecords(db, source)
                        for (index, match) in zip(indices, matches) {
                            try edits[index].record.edit?.validate(edits[index].name, match, stored)
                        }
                    })
            }
        }
        // The assets of both stores are in the container's folder.
        let assets = AssetPlace(folder: container.sources[.private].assets)
        for ((name, record), scope) in zip(edits, homes) where committed.scopes.contains(scope) {
            guard let edit = record.edit else { continue }
            let isReplaced = committed.result.replaced[name] != nil
            try registered.markSaved(name, edit, in: scope, as: isReplaced ? nil : committed.saved[name] ?? nil, assets)
        }
        for name in committed.result.cascaded { registered.forget(name, in: committed.scopes) }
        advance()
        if let error = committed.error { throw error }
        return committed.result
    }

    private func homes(of edits: [(name: RecordName, record: RegisteredRecord)]) async throws -> [StoreScope] {
        var homes = edits.map(\.record.scope)
        // If the shared store is empty, it has neither the records nor their owners.
        let isAlone = try await !container.hasRecordsOfOthers
        if isAlone, homes.allSatisfy({ $0 == .private }) { return homes }
        for scope in ContainerDirectory.scopes {
            // A loaded record stays in its store. The record that owns it now has to be there, too.
            let loaded = edits.filter { $0.record.loaded != nil && $0.record.scope == scope }
            try await container.checkOwners(of: loaded.map { (record: $0.name, owner: try $0.record.owner) }, in: scope)
            let new = edits.indices.filter { edits[$0].record.loaded == nil && edits[$0].record.scope == scope }
            guard !new.isEmpty else { continue }
            let records = try new.map { (record: edits[$0].name, owner: try edits[$0].record.owner) }
            for (index, home) in zip(new, try await container.homes(of: records, default: scope)) { homes[index] = home }
        }
        return homes
    }

    /// The shares and zones of new records; `nil` for other records.
    private func places(
        of edits: [(name: RecordName, record: RegisteredRecord)], _ homes: [StoreScope]
    ) async throws -> [SharePlace?] {
        var known: [InsertionTarget: SharePlace?] = [:]
        var places: [SharePlace?] = []
        for ((_, record), home) in zip(edits, homes) {
            // A target that names only the store has no share or zone.
            guard record.loaded == nil, let target = record.target, target.scope == home, target != .store(home) else {
                places.append(nil)
                continue
            }
            if known[target] == nil { known[target] = .some(try await container.place(of: target)) }
            places.append(known[target] ?? nil)
        }
        return places
    }

    // Following others

    /// Sets whether the context refreshes records at once when other contexts or processes have saved them. The context's edits
    /// are kept.
    public func setAutomaticallyMergesChangesFromParent(_ isOn: Bool) {
        automaticallyMergesChangesFromParent = isOn
        following?.cancel()
        following = nil
        guard isOn else { return }
        do {
            let notifications = try container.notifications(withOwn: true)
            following = Task { [weak self] in
                for await _ in notifications { await self?.refreshAutomatically() }
            }
        } catch {
            refreshError = error
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

    /// Refreshes all loaded records from the stores. The records of one store are read in one state. A field that was edited in
    /// this context keeps the edit.
    ///
    /// - Returns: The records that others had changed or deleted.
    /// - Throws: ``StoreError``, `DecodingError`. Records that could be read are refreshed all the same.
    @discardableResult
    public func refreshAll() async throws -> Set<RecordName> {
        await turns.take()
        defer { turns.pass() }
        var stale: Set<RecordName> = []
        var failure: (any Error)?
        advance()
        for source in try recordSources().all {
            let known = registered.loaded(in: source.scope)
            guard !known.isEmpty else { continue }
            let fresh = try await source.read { db in
                try known.map { name, loaded in
                    do {
                        return Result<RegisteredRecord.Loaded?, any Error>.success(try loaded.refetch(db, source, name))
                    } catch let error as StoreError {
                        throw error
                    } catch {
                        return .failure(error)
                    }
                }
            }
            for ((name, loaded), result) in zip(known, fresh) {
                do {
                    let fresh = try result.get()
                    guard fresh?.state.version != loaded.state.version else { continue }
                    stale.insert(name)
                    try registered.refresh(name, from: loaded, to: fresh, assets: AssetPlace(folder: source.assets))
                } catch {
                    failure = failure ?? error
                }
            }
        }
        if let failure { throw failure }
        return stale
    }
}

extension Record {
    fileprivate var name: RecordName { RecordName(self) }
}

/// Serialises calls of an actor that suspend, so that no other call runs between their parts.
private final class Turns: Sendable {
    private struct State {
        var isTaken = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = LockedValue(State())

    func take() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                if !state.isTaken {
                    state.isTaken = true
                    return true
                }
                state.waiting.append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    func pass() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard !state.waiting.isEmpty else {
                state.isTaken = false
                return nil
            }
            return state.waiting.removeFirst()
        }
        next?.resume()
    }
}
