import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Resolves conflicts: it plans the outcome of the cloud's changes, and has the store apply them.
///
/// The store writes each change as the ``RemoteChangePlanner`` decides, within its transaction.
actor ConflictResolver {
    private let store: RecordStore
    private let assets: AssetTransfer
    private let author: String
    private let planner: RemoteChangePlanner
    private let mapping: RecordMapping
    /// The sign of the schema's number that deferred records are tried with once. In production it is negative: earlier versions
    /// did not add the cloud's types and fields there, and have noted the positive number.
    private let generationSign: Int64

    init(
        store: RecordStore, assets: AssetTransfer, mapping: RecordMapping, author: String,
        policy: @escaping @Sendable (String) -> MergePolicy
    ) {
        self.store = store
        self.assets = assets
        self.mapping = mapping
        self.author = author
        planner = RemoteChangePlanner(policy: policy)
        generationSign = store.container.description.environment == .production ? -1 : 1
    }

    /// Applies changes from the cloud; see `RecordStore.apply`.
    ///
    /// - Parameters:
    ///   - occasion: How the changes have come.
    ///   - policy: A policy other than the configured one.
    ///   - progress: Called with the number of bytes of assets that were downloaded.
    func apply(
        _ changes: [ZoneChanges.Change], limits: CloudLimits, occasion: ImportOccasion = .answer,
        policy: MergePolicy? = nil,
        progress: @Sendable (Int64) async -> Void = { _ in }, state change: @Sendable (inout SyncState) -> Void = { _ in }
    ) async throws -> ImportOutcome {
        let records = changes.compactMap { change -> CloudRecord? in
            if case .saved(let record) = change, record.type != CloudShare.recordType { record } else { nil }
        }
        let downloaded = try await assets.download(
            RecordMapping.assets(records), zone: mapping.zone, limits: limits, progress: progress)
        var edited: (text: String, times: EditTimes)?
        let remote = changes.compactMap { change -> RemoteChange? in
            switch change {
            case .saved(let record) where record.type == CloudShare.recordType:
                record.share.map { .share(Share($0, scope: mapping.scope)) }
            case .saved(let record): .saved(mapping.remote(record, assets: downloaded, known: &edited))
            case .deleted(let deletion): .deleted(name: deletion.id.recordName)
            }
        }
        let planner = policy.map { policy in RemoteChangePlanner { _ in policy } } ?? planner
        // New types and fields are added in production, too: the cloud has only those that were deployed.
        return try await store.apply(
            remote, schemas: RecordMapping.schemas(records), occasion: occasion, author: author, planner: planner, state: change,
            zone: mapping.number)
    }

    /// Applies deferred records again: records that lack an asset each time, the others after the schema has changed.
    func applyDeferred(limits: CloudLimits) async throws -> ImportOutcome? {
        let generation = try await store.schemaGeneration() * generationSign
        let isNew = try await store.syncState(zone: mapping.number).deferredGeneration != generation
        let deferred = try await store.deferredRecords(
            isNew ? [.schema, .name, .asset, .damaged] : [.name, .asset, .damaged], zone: mapping.number)
        guard !deferred.isEmpty else {
            if isNew { try await store.updateSyncState(zone: mapping.number) { $0.deferredGeneration = generation } }
            return nil
        }
        let changes = try deferred.map { ZoneChanges.Change.saved(try mapping.record($0)) }
        return try await apply(changes, limits: limits, occasion: .deferred, state: { $0.deferredGeneration = generation })
    }

    /// Applies the deletions that have waited until all zones were fetched.
    func endAwaitedMoves() async throws -> [ImportOutcome] {
        try await store.endAwaitedMoves(zone: mapping.number, author: author, planner: planner)
    }

    /// Whether records wait that the store lacked a field or a type for, and the schema has changed since they were tried.
    func hasRecordsToRetry() async throws -> Bool {
        let generation = try await store.schemaGeneration() * generationSign
        guard try await store.syncState(zone: mapping.number).deferredGeneration != generation else { return false }
        return try await !store.deferredRecords([.schema], zone: mapping.number).isEmpty
    }

    /// Applies records as they are now.
    ///
    /// - Parameter found: The result of looking up each name.
    func apply(
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
        return try await apply(changes, limits: limits, occasion: .lookUp)
    }

    /// Repairs damaged records from the cloud's versions.
    ///
    /// A record without local edits becomes the cloud's version. A record with edits is repaired if the digest proves that its edits, with
    /// the cloud's values of the other fields, are its original values.
    ///
    /// - Parameter found: The result of looking up each record.
    func repair(
        _ rows: [DamagedRow], lookedUp found: [Result<CloudRecord, CloudError>], limits: CloudLimits
    ) async throws -> [RepairReport.Repaired] {
        // A record that the cloud does not return stays damaged, and is reported so.
        let records = found.compactMap { try? $0.get() }
        let downloaded = try await assets.download(
            RecordMapping.assets(records), zone: mapping.zone, limits: limits, progress: { _ in })
        var edited: (text: String, times: EditTimes)?
        var remote: [String: RemoteRecord] = [:]
        for record in records { remote[record.id.recordName] = mapping.remote(record, assets: downloaded, known: &edited) }
        var repaired = try await store.repair(rows, from: remote)
        // Records that have changed in the cloud since are applied as they are now.
        let left = Set(try await store.stillDamaged(rows))
        let changed = zip(rows, found).filter { left.contains($0.0) && !$0.0.isPending }
        guard !changed.isEmpty else { return repaired }
        // A record that the cloud does not have is not deleted: its name may be damaged. A real deletion comes with the changes.
        let answers = changed.filter { pair in
            if case .success = pair.1 { true } else { false }
        }
        _ = try await apply(answers.map(\.0.name), lookedUp: answers.map(\.1), limits: limits)
        let still = Set(try await store.stillDamaged(answers.map(\.0)))
        repaired += answers.map(\.0).filter { !still.contains($0) }.map { row in
            RepairReport.Repaired(record: row.record, scope: store.scope, source: .cloud)
        }
        return repaired
    }

    /// Resolves conflicts that were left to a person.
    ///
    /// - Parameter record: The name of a record with a conflict; `nil` for all.
    /// - Returns: The resolved conflicts.
    func resolve(record: String?, policy: MergePolicy, limits: CloudLimits) async throws -> [DeferredRecord] {
        let deferred = try await store.deferredRecords([.conflict, .deletion], zone: mapping.number).filter {
            record == nil || $0.name == record
        }
        let changes = try deferred.map { record -> ZoneChanges.Change in
            guard record.reason == .conflict else {
                return .deleted(.init(id: CloudRecordID(record.name, in: mapping.zone), type: record.type))
            }
            return .saved(try mapping.record(record))
        }
        if !changes.isEmpty { _ = try await apply(changes, limits: limits, occasion: .resolved, policy: policy) }
        return deferred
    }
}
