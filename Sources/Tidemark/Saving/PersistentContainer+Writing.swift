import Foundation
import GRDB
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Writes to the container's stores.
extension PersistentContainer {
    /// Returns the store in which a fetch finds a record; `scope` when no store has it.
    func home(of record: RecordName, default scope: StoreScope) throws -> StoreScope {
        try homes(of: [record], default: scope)[0]
    }

    /// Returns, for each record, the store in which a fetch finds it; `scope` when no store has it.
    func homes(of records: [RecordName], default scope: StoreScope) throws -> [StoreScope] {
        var homes = records.map { _ in scope }
        // A look into `scope` is needed only for records that another store has.
        for other in ContainerDirectory.scopes where other != scope {
            let elsewhere = try contained(records, other).enumerated().filter(\.element).map(\.offset)
            guard !elsewhere.isEmpty else { continue }
            let here = try contained(elsewhere.map { records[$0] }, scope)
            for (index, isHere) in zip(elsewhere, here) {
                // If both stores have a record, a fetch finds it in the first one.
                homes[index] = isHere ? ContainerDirectory.scopes.first { [scope, other].contains($0) } ?? scope : other
            }
        }
        return homes
    }

    func contained(_ records: [RecordName], _ scope: StoreScope) throws -> [Bool] {
        // This runs on the same queue, without a separate transaction, which would cost more than the look-up.
        try stores[scope].assumeIsolated { store in try store.contains(records) }
    }

    /// Returns the policy of a save for each type: the save's own, otherwise the type's, otherwise the container's.
    func policies(_ own: MergePolicy?, types: [String: MergePolicy?]) -> @Sendable (String) -> MergePolicy {
        let fallback = mergePolicy
        return { type in own ?? types[type].flatMap { $0 } ?? fallback }
    }

    /// Writes to the stores, one transaction each.
    func write(_ prepare: (AssetIngest) throws -> [StoreSave]) throws -> SaveResult {
        try write(tellingStates: false, prepare).result
    }

    /// Works like ``write(_:)``, and also returns the new state of each edited record if `tellingStates` is set.
    func write(tellingStates: Bool, _ prepare: (AssetIngest) throws -> [StoreSave]) throws -> Committed {
        let committed = try save(tellingStates: tellingStates, prepare)
        switch committed.error {
        case nil: return committed
        case let error as StoreError:
            throw StoreError(error.code, "\(error.message). What is in the shared store is saved already")
        case let error?: throw error
        }
    }

    /// The results of the stores that have committed.
    struct Committed {
        var result = SaveResult()
        /// The new state of each edited record, if it was requested.
        var saved: [RecordName: StoredVersion?] = [:]
        /// The names in the store of edited records, if they differ from the names of the edits.
        var names: [RecordName: String] = [:]
        var scopes: Set<StoreScope> = []
        /// The error of a store that failed after another one had committed.
        var error: (any Error)?
    }

    /// Works like ``write(_:)``, and also returns the new state of each edited record if `tellingStates` is set.
    ///
    /// - Throws: The errors that occur before anything is committed.
    private func save(tellingStates: Bool, _ prepare: (AssetIngest) throws -> [StoreSave]) throws -> Committed {
        let assets = AssetIngest(directory, claims: recordSources.claims)
        assets.known = { [unowned self] blob in try self.assumeIsolated { try $0.knownContent(of: blob) } }
        let parts = try prepare(assets)
        try spreadRelationships(parts.lazy.flatMap(\.schemas))
        if parts.contains(where: \.namesAssets) { try assets.open() }
        try assets.sync()
        let blobs = assets.blobs
        var committed = Committed()
        // The shared store is first, since a permission may forbid its part.
        for part in parts.sorted(by: { $0.scope.rawValue > $1.scope.rawValue }) {
            let store = stores[part.scope]
            let source = sources[part.scope]
            let author = TransactionAuthor(author, origin: .save)
            do {
                let blobs = try blobs + unlistedAssets(of: part, beside: blobs)
                let outcome = try store.assumeIsolated { store in
                    try store.save(
                        part.edits, schemas: part.schemas, blobs: blobs, author: author, policy: part.policy,
                        tellingStates: tellingStates,
                        validate: { db, matches in try part.validate(db, source, matches) })
                }
                committed.result.add(outcome, scope: part.scope)
                // Most saves have only one part.
                if committed.saved.isEmpty {
                    committed.saved = outcome.saved
                } else {
                    committed.saved.merge(outcome.saved) { $1 }
                }
                committed.names.merge(outcome.names) { $1 }
                committed.scopes.insert(part.scope)
            } catch {
                guard !committed.scopes.isEmpty else { throw error }
                committed.error = error
                break
            }
        }
        // If a store has failed, its assets are removed when the container's assets are opened the next time.
        if committed.error == nil { assets.close() }
        if !committed.result.counts.isUnchanged { changeBroadcaster.post(isOwn: true) }
        return committed
    }

    /// Writes the edits of a context.
    func commit(_ prepare: @Sendable (AssetIngest) throws -> [StoreSave]) throws -> Committed {
        try save(tellingStates: true, prepare)
    }

    /// Notifies the listeners of this container that something has changed.
    nonisolated func broadcastChanges() { changeBroadcaster.post(isOwn: true) }

    /// Returns one schema for each type of the shapes; see ``union(_:)``.
    static func union(of shapes: some Sequence<RecordShape>) -> [RecordTypeSchema] {
        var distinct: [RecordShape] = []
        for shape in shapes where distinct.last !== shape { distinct.append(shape) }
        return union(distinct.lazy.map(\.schema))
    }

    /// Returns one schema for each type, with the fields of all its schemas.
    ///
    /// - Complexity: O(n), and more only when records of one type have different fields.
    static func union(_ schemas: some Sequence<RecordTypeSchema>) -> [RecordTypeSchema] {
        var union: [RecordTypeSchema] = []
        var last: [String: RecordTypeSchema] = [:]
        for schema in schemas {
            // Most schemas of a type are equal.
            guard last[schema.name] != schema else { continue }
            last[schema.name] = schema
            if let index = union.firstIndex(where: { $0.name == schema.name }) {
                union[index].fields += schema.fields.filter { !union[index].fields.contains($0) }
                union[index].relationships.merge(schema.relationships) { one, other in one ?? other }
            } else {
                union.append(schema)
            }
        }
        return union
    }
}

/// The part of a save that one store writes.
struct StoreSave: Sendable {
    let scope: StoreScope
    let edits: [RecordEdit]
    let schemas: [RecordTypeSchema]
    let policy: @Sendable (String) -> MergePolicy
    /// Calls the hooks of the records, with the match in the store for each edit.
    let validate: @Sendable (Database, RecordSource, [StoredMatch]) throws -> Void

    /// Whether an edit gives a field an asset.
    var namesAssets: Bool {
        edits.contains { edit in
            var namesAssets = false
            edit.forEachAsset { _ in namesAssets = true }
            return namesAssets
        }
    }
}
