import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Settles what both sides have changed, and has the store take in what the cloud has.
actor ConflictResolver {
    private let store: RecordStore
    private let assets: AssetTransfer
    private let author: String
    private let policy: @Sendable (String) -> MergePolicy
    private let mapping: RecordMapping
    private let isProduction: Bool

    init(
        store: RecordStore, assets: AssetTransfer, mapping: RecordMapping, author: String,
        policy: @escaping @Sendable (String) -> MergePolicy
    ) {
        self.store = store
        self.assets = assets
        self.mapping = mapping
        self.author = author
        self.policy = policy
        // What others share comes with its types: their cloud's schema is fixed.
        isProduction = store.container.description.environment == .production && mapping.scope == .private
    }

    /// Takes in changes from the cloud; see `RecordStore.take`.
    ///
    /// - Parameters:
    ///   - occasion: How they have come.
    ///   - other: Another policy than the one that was given.
    ///   - progress: Called with bytes of assets that have come.
    func take(
        _ changes: [ZoneChanges.Change], limits: CloudLimits, occasion: ImportOccasion = .answer,
        policy other: MergePolicy? = nil,
        progress: @Sendable (Int64) async -> Void = { _ in }, state change: @Sendable (inout SyncState) -> Void = { _ in }
    ) async throws -> ImportOutcome {
        let records = changes.compactMap { change -> CloudRecord? in
            if case .saved(let record) = change, record.type != CloudShare.recordType { record } else { nil }
        }
        let names = try await assets.download(
            RecordMapping.assets(records), zone: mapping.zone, limits: limits, progress: progress)
        var edited: (text: String, times: EditTimes)?
        let remote = changes.compactMap { change -> RemoteChange? in
            switch change {
            case .saved(let record) where record.type == CloudShare.recordType:
                record.share.map { .share(Share($0, scope: mapping.scope)) }
            case .saved(let record): .saved(mapping.remote(record, assets: names, known: &edited))
            case .deleted(let deletion): .deleted(name: deletion.id.recordName)
            }
        }
        var policy = policy
        if let other { policy = { _ in other } }
        let canGrow: Bool
        if isProduction { canGrow = try await store.syncState(zone: mapping.number).isDeploying } else { canGrow = true }
        return try await store.take(
            remote, schemas: RecordMapping.schemas(records), canGrow: canGrow, occasion: occasion,
            author: author, policy: policy, state: change, zone: mapping.number)
    }

    /// Looks again at what was kept: what lacks an asset each time, the rest after the schema has changed.
    func applyDeferred(limits: CloudLimits) async throws -> ImportOutcome? {
        let generation = try await store.schemaGeneration()
        let isNew = try await store.syncState(zone: mapping.number).keptGeneration != generation
        let kept = try await store.kept(
            isNew ? [.schema, .name, .asset, .damaged] : [.name, .asset, .damaged], zone: mapping.number)
        guard !kept.isEmpty else {
            if isNew { try await store.updateSyncState(zone: mapping.number) { $0.keptGeneration = generation } }
            return nil
        }
        let changes = try kept.map { ZoneChanges.Change.saved(try mapping.record($0)) }
        return try await take(changes, limits: limits, occasion: .kept, state: { $0.keptGeneration = generation })
    }

    /// Takes in records as they are now.
    ///
    /// - Parameter found: What looking up each of the names has come to.
    func take(
        _ names: some Sequence<String>, lookedUp found: [Result<CloudRecord, CloudError>], limits: CloudLimits
    ) async throws -> ImportOutcome {
        let damaged = zip(names, found).compactMap { name, result -> (name: String, tag: String?)? in
            if case .failure(let error) = result, error.code == .recordDamaged { (name: name, tag: nil) } else { nil }
        }
        try await store.noteDamaged(damaged, zone: mapping.number)
        let changes = try zip(names, found).compactMap { name, result -> ZoneChanges.Change? in
            switch result {
            case .success(let record): return .saved(record)
            case .failure(let error) where error.code == .recordDamaged: return nil
            case .failure(let error) where error.code == .unknownItem:
                return .deleted(.init(id: CloudRecordID(name, in: mapping.zone), type: ""))
            case .failure(let error): throw error
            }
        }
        return try await take(changes, limits: limits, occasion: .lookUp)
    }

    /// Repairs damaged records from what the cloud has of them.
    ///
    /// A record without edits of its own becomes what it is in the cloud. One with edits is repaired where the digest proves that these,
    /// with the cloud's values of the other fields, are what it was.
    ///
    /// - Parameter found: What looking up each of them has come to.
    func repair(
        _ rows: [DamagedRow], lookedUp found: [Result<CloudRecord, CloudError>], limits: CloudLimits
    ) async throws -> [RepairReport.Repaired] {
        let records = found.compactMap { try? $0.get() }
        let names = try await assets.download(
            RecordMapping.assets(records), zone: mapping.zone, limits: limits, progress: { _ in })
        var edited: (text: String, times: EditTimes)?
        var remote: [String: RemoteRecord] = [:]
        for record in records { remote[record.id.recordName] = mapping.remote(record, assets: names, known: &edited) }
        var repaired = try await store.repair(rows, from: remote)
        // What has changed in the cloud since is taken in as it is now.
        let left = Set(try await store.stillDamaged(rows))
        let changed = zip(rows, found).filter { left.contains($0.0) && !$0.0.isPending }
        guard !changed.isEmpty else { return repaired }
        // Of one that the cloud does not have, nothing is deleted: its name may be what is damaged. That it was deleted there comes with the
        // changes.
        let answers = changed.filter { pair in
            if case .success = pair.1 { true } else { false }
        }
        _ = try await take(answers.map(\.0.name), lookedUp: answers.map(\.1), limits: limits)
        let still = Set(try await store.stillDamaged(answers.map(\.0)))
        repaired += answers.map(\.0).filter { !still.contains($0) }.map { row in
            RepairReport.Repaired(record: row.record, scope: store.scope, source: .cloud)
        }
        return repaired
    }

    /// Settles conflicts that were left to a person.
    ///
    /// - Parameter record: One of them; `nil` for all.
    /// - Returns: What was settled.
    func settle(record: String?, policy: MergePolicy, limits: CloudLimits) async throws -> [DeferredRecord] {
        let kept = try await store.kept([.conflict, .deletion], zone: mapping.number).filter {
            record == nil || $0.name == record
        }
        let changes = try kept.map { kept -> ZoneChanges.Change in
            guard kept.reason == .conflict else {
                return .deleted(.init(id: CloudRecordID(kept.name, in: mapping.zone), type: kept.type))
            }
            return .saved(try mapping.record(kept))
        }
        if !changes.isEmpty { _ = try await take(changes, limits: limits, occasion: .settled, policy: policy) }
        return kept
    }
}
