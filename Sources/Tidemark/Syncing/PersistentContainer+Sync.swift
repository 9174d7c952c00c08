public import Foundation
public import TidemarkCloud
public import TidemarkContainers
public import TidemarkModel
public import TidemarkSQLite
public import TidemarkStore
public import TidemarkSync

extension PersistentContainer {
    // Automatic synchronisation

    /// Opens a container, creates it if it is missing, and synchronises it from then on. As `NSPersistentCloudKitContainer`.
    ///
    /// ```swift
    /// let journal = try PersistentContainer(named: "Journal", cloud: databases)
    /// ```
    ///
    /// - Parameters:
    ///   - name: The container's name. Its directory is `NAME.tidemark`.
    ///   - location: The place of the directory.
    ///   - cloud: The databases of the account; see ``startSyncing(with:configuration:environment:)``.
    ///   - configuration: The settings of the synchronisation.
    ///   - environment: The environment of a container that is created.
    ///   - author: The author of the container's transactions in history.
    ///   - mergePolicy: The merge policy for saves and types that have none of their own.
    /// - Throws: As ``init(named:at:environment:author:role:mergePolicy:)``. Errors of the synchronisation are not thrown; they
    ///   are events.
    public init(
        named name: String, at location: StoreLocation = .default, cloud: CloudDatabases,
        configuration: SyncConfiguration? = nil, environment: StoreEnvironment = .development,
        author: String = ProcessInfo.processInfo.processName, mergePolicy: MergePolicy = .mergeByPropertyObjectTrump
    ) throws(StoreError) {
        try self.init(named: name, at: location, environment: environment, author: author, mergePolicy: mergePolicy)
        startSyncing(with: cloud, configuration: configuration)
    }

    /// Starts to synchronise the container automatically: after saves, when the cloud has changes, and when the network is back.
    /// As `NSPersistentCloudKitContainer` does.
    ///
    /// ```swift
    /// journal.startSyncing(with: databases)
    /// for await event in journal.events() { show(event) }
    /// ```
    ///
    /// The saves of half a second are sent together. After a failure the engine tries again, with pauses that become longer.
    /// While another process synchronises the container, this one waits. The synchronisation ends with ``stopSyncing()``, with
    /// ``close()``, or when the container is deallocated. Another call restarts it with the given databases.
    ///
    /// This function throws nothing: errors are events (``events()``), and ``syncStatus()`` reports the changes that are missing.
    ///
    /// - Parameters:
    ///   - databases: The databases of the account.
    ///   - configuration: The settings. By default, the merge policies are those of the types, otherwise the container's, and the
    ///     `exportDelay` is half a second.
    ///   - environment: The clock and the waiting, which tests replace.
    public nonisolated func startSyncing(
        with databases: CloudDatabases, configuration: SyncConfiguration? = nil, environment: SyncEnvironment = .system
    ) {
        var chosen = configured(configuration)
        if chosen.exportDelay == nil { chosen.exportDelay = .milliseconds(500) }
        let settings = chosen
        let stores = stores
        syncing.start { previous in
            AutomaticSync(
                directory, history: stores.private.identity.history, environment: environment, events: syncing.events,
                after: previous
            ) { [weak self] lock in
                try self?.prepareForSync(environment)
                return try ContainerSync(
                    privateStore: stores.private, sharedStore: stores.shared, databases: databases, configuration: settings,
                    environment: environment, lock: lock)
            }
        }
    }

    /// Ends the automatic synchronisation, and returns when it has ended. Unsent changes wait until the next start.
    public nonisolated func stopSyncing() async { await syncing.remove()?.stop() }

    /// Whether the automatic synchronisation is on: ``startSyncing(with:configuration:environment:)`` was called, and
    /// ``stopSyncing()`` was not.
    public nonisolated var isSyncing: Bool { syncing.automatic != nil }

    /// Makes the running synchronisation fetch and send soon, also during a pause after a failure. For a button, or
    /// pull-to-refresh. Without a synchronisation, this does nothing.
    public nonisolated func requestSync() { syncing.sync?.requestSyncSoon() }

    /// Returns a stream of the events of the container's synchronisations in this process. Each call returns a separate stream
    /// with all events. The first stream also has the earlier events, at most 1,000. As the notification
    /// `NSPersistentCloudKitContainer.eventChangedNotification`.
    ///
    /// A stream ends when the container is closed or deallocated, or when its task is cancelled.
    public nonisolated func events() -> AsyncStream<ContainerEvent> { syncing.events.stream() }

    // Explicit synchronisation

    /// Makes an engine that synchronises the private store with a cloud. The container's merge policy resolves conflicts, unless
    /// the configuration has another one.
    ///
    /// ```swift
    /// let engine = try await journal.syncEngine(with: database)
    /// Task { try await engine.run() }
    /// for await event in engine.events { show(event) }
    /// ```
    ///
    /// Observations and ``changes(since:withOwn:)`` report the changes that the engine fetches, with the origin `cloud`.
    ///
    /// - Parameters:
    ///   - database: The private database of the account.
    ///   - configuration: The settings.
    ///   - environment: The clock and the waiting, which tests replace.
    /// - Throws: `ContainerEvent.Failure` 134410 when another process synchronises the container; 134417 while the automatic
    ///   synchronisation is on; ``StoreError``.
    public func syncEngine(
        with database: any CloudDatabase, configuration: SyncConfiguration? = nil, environment: SyncEnvironment = .system
    ) throws -> SyncEngine {
        let lock = try syncLock()
        try prepareForSync(environment)
        try spreadRelationships()
        let engine = try SyncEngine(
            store: stores.private, database: database, configuration: configured(configuration), environment: environment,
            lock: lock)
        syncing.note(engine)
        return engine
    }

    /// Makes an object that synchronises both stores with an account's cloud: the user's own records, and the records that others
    /// share.
    ///
    /// ```swift
    /// let both = try await journal.sync(with: databases)
    /// let report = try await both.sync()
    /// ```
    ///
    /// - Parameters:
    ///   - databases: The databases of the account.
    ///   - configuration: The settings.
    ///   - environment: The clock and the waiting, which tests replace.
    /// - Throws: `ContainerEvent.Failure` 134410 when another process synchronises the container; 134417 while the automatic
    ///   synchronisation is on; ``StoreError``.
    public func sync(
        with databases: CloudDatabases, configuration: SyncConfiguration? = nil, environment: SyncEnvironment = .system
    ) throws -> ContainerSync {
        let lock = try syncLock()
        try prepareForSync(environment)
        try spreadRelationships()
        let sync = try ContainerSync(
            privateStore: stores.private, sharedStore: stores.shared, databases: databases,
            configuration: configured(configuration), environment: environment, lock: lock)
        syncing.note(sync)
        return sync
    }

    /// - Throws: ``ContainerEvent/Failure`` 134410 and 134417; ``StoreError``.
    private nonisolated func syncLock() throws -> SyncLock {
        guard syncing.automatic == nil else {
            throw ContainerEvent.Failure(
                code: SyncErrorCode.duplicateRequest,
                reason: "the container synchronises by itself: call stopSyncing() before it is synchronised by hand",
                cause: .duplicateRequest)
        }
        return try SyncLock(directory)
    }

    /// Gives the stores the clock of a synchronisation, and makes observations in SQL follow its writes.
    private nonisolated func prepareForSync(_ environment: SyncEnvironment) throws {
        for store in stores.all { store.setClock(environment.now) }
        try followOthers()
    }

    /// Returns a configuration, completed with the container's merge policies and the types' share titles.
    private nonisolated func configured(_ configuration: SyncConfiguration?) -> SyncConfiguration {
        var chosen = configuration ?? SyncConfiguration()
        let (own, claims) = (chosen.shareTitleField, recordSources.claims)
        if chosen.mergePolicy == nil { chosen.mergePolicy = { [policy] type in claims.mergePolicy(of: type) ?? policy.value } }
        chosen.shareTitleField = { own($0) ?? claims.shareTitleField(of: $0) }
        return chosen
    }

    // Status

    /// Returns whether the container and its cloud have the same records, and the changes that are missing, as far as the
    /// container knows.
    ///
    /// - Throws: ``StoreError``.
    /// - Complexity: O(n) in the records that wait to be sent.
    public nonisolated func syncStatus() throws -> SyncStatus {
        try SyncStatus(of: stores.all.map { StoreReader($0) }, synchronized: syncing.scopes)
    }

    /// Returns whether nothing waits to be sent or fetched, as far as the container knows; see ``syncStatus()``.
    public nonisolated func isInSync() throws -> Bool { try syncStatus().isInSync }

    /// Returns the reasons why records have not reached the cloud: those of the private store, then those of the shared store.
    ///
    /// - Parameters:
    ///   - record: The name of a record; `nil` for all records.
    ///   - limit: The most issues to return.
    /// - Returns: The issues; none for a record that has reached the cloud.
    /// - Throws: ``StoreError``.
    public nonisolated func syncIssues(record: String? = nil, limit: Int = 1000) throws -> [SyncIssue] {
        try stores.all.reduce(into: []) { issues, store in
            issues += try StoreReader(store).syncIssues(record: record, limit: limit - issues.count)
        }
    }
}
