public import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
public import TidemarkStore
public import TidemarkSync

extension PersistentContainer {
    /// What synchronises the private store with a cloud. Conflicts are resolved by the container's merge policy unless the configuration says
    /// otherwise.
    ///
    /// ```swift
    /// let engine = try await journal.syncEngine(with: database)
    /// Task { try await engine.run() }
    /// for await event in engine.events { show(event) }
    /// ```
    ///
    /// What it fetches is a change like any other process's: observations and ``changes(since:withOwn:)`` tell of it, with the origin
    /// `cloud`.
    ///
    /// - Throws: `ContainerEvent.Failure` 134410 when another process synchronises the container; ``StoreError``.
    public func syncEngine(
        with database: any CloudDatabase, configuration: SyncConfiguration? = nil
    ) throws -> SyncEngine {
        var chosen = configuration ?? SyncConfiguration()
        if configuration == nil {
            let policy = mergePolicy
            chosen.mergePolicy = { _ in policy }
        }
        // So that those who look at the store see what comes.
        try followOthers()
        try spreadRelationships()
        return try SyncEngine(
            store: stores.private, database: database, configuration: chosen, lock: SyncLock(directory))
    }

    /// What synchronises both stores with an account's cloud: one's own records, and what others share.
    ///
    /// ```swift
    /// let both = try await journal.sync(with: databases)
    /// Task { try await both.run() }
    /// ```
    ///
    /// - Throws: `ContainerEvent.Failure` 134410 when another process synchronises the container; ``StoreError``.
    public func sync(with databases: CloudDatabases, configuration: SyncConfiguration? = nil) throws -> ContainerSync {
        var chosen = configuration ?? SyncConfiguration()
        if configuration == nil {
            let policy = mergePolicy
            chosen.mergePolicy = { _ in policy }
        }
        try followOthers()
        try spreadRelationships()
        return try ContainerSync(
            privateStore: stores.private, sharedStore: stores.shared, databases: databases, configuration: chosen)
    }

    /// Why records have not reached the cloud; empty for what has.
    ///
    /// - Parameter record: One record's name; `nil` for all.
    public nonisolated func syncIssues(record: String? = nil, limit: Int = 1000) throws -> [SyncIssue] {
        try history().syncIssues(record: record, limit: limit)
    }
}
