public import Foundation
public import TidemarkCloud
public import TidemarkContainers
public import TidemarkModel
public import TidemarkSQLite
public import TidemarkStore
public import TidemarkSync

extension PersistentContainer {
    // By itself

    /// Opens a container, making it if there is none, and synchronises it from then on. As `NSPersistentCloudKitContainer`.
    ///
    /// ```swift
    /// let journal = try PersistentContainer(named: "Journal", cloud: databases)
    /// ```
    ///
    /// - Parameters:
    ///   - name: The container's; its directory is `NAME.tidemark`.
    ///   - location: Where that lies.
    ///   - cloud: The databases of the account; see ``startSyncing(with:configuration:environment:)``.
    ///   - configuration: The settings of the synchronisation.
    ///   - environment: That of a container that is made.
    ///   - author: The name that history gives the transactions.
    ///   - mergePolicy: The policy where neither a type nor a save has one.
    /// - Throws: As ``init(named:at:environment:author:role:mergePolicy:)``. What keeps the container from its cloud is an event.
    public init(
        named name: String, at location: StoreLocation = .default, cloud: CloudDatabases,
        configuration: SyncConfiguration? = nil, environment: StoreEnvironment = .development,
        author: String = ProcessInfo.processInfo.processName, mergePolicy: MergePolicy = .mergeByPropertyObjectTrump
    ) throws(StoreError) {
        try self.init(named: name, at: location, environment: environment, author: author, mergePolicy: mergePolicy)
        startSyncing(with: cloud, configuration: configuration)
    }

    /// Synchronises the container from now on: after saves, when the cloud has changes, and when the network is back. As an
    /// `NSPersistentCloudKitContainer`, which needs no more than its cloud.
    ///
    /// ```swift
    /// journal.startSyncing(with: databases)
    /// for await event in journal.events() { show(event) }
    /// ```
    ///
    /// The saves of half a second are sent together. What fails is tried again, after pauses that become longer. Where another process
    /// synchronises the container already, this one waits until that ends. It stops with ``stopSyncing()``, ``close()``, or when the container
    /// is deallocated. A call while it synchronises begins again with these databases.
    ///
    /// Nothing is thrown: what goes wrong is an event (``events()``), and ``syncStatus()`` says what is missing.
    ///
    /// - Parameters:
    ///   - databases: The databases of the account.
    ///   - configuration: The settings. What they leave open, the container knows: the merge policies of its types, else its own, and an
    ///     `exportDelay` of half a second.
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

    /// Ends what ``startSyncing(with:configuration:environment:)`` has begun, and returns when it has ended. Changes wait until the next start.
    public nonisolated func stopSyncing() async { await syncing.remove()?.stop() }

    /// Whether the container synchronises by itself: ``startSyncing(with:configuration:environment:)`` was called, and ``stopSyncing()`` was
    /// not.
    public nonisolated var isSyncing: Bool { syncing.automatic != nil }

    /// Has the running synchronisation fetch and send soon, also where it pauses after a failure: for a button, or a view that is pulled
    /// down. Where nothing synchronises the container, nothing happens.
    public nonisolated func requestSync() { syncing.sync?.requestSyncSoon() }

    /// The events of the container's synchronisations in this process, as they happen: a stream of its own for each call, so that several
    /// listeners hear all of them. The first call also gets the events from before, at most 1,000. As the notifications
    /// `NSPersistentCloudKitContainer.eventChangedNotification`.
    ///
    /// A stream ends when the container is closed or deallocated, or its task is cancelled.
    public nonisolated func events() -> AsyncStream<ContainerEvent> { syncing.events.stream() }

    // By hand

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
    /// - Parameter environment: The clock and the waiting, which tests replace.
    /// - Throws: `ContainerEvent.Failure` 134410 when another process synchronises the container, 134417 when this container synchronises by
    ///   itself; ``StoreError``.
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

    /// What synchronises both stores with an account's cloud: one's own records, and what others share.
    ///
    /// ```swift
    /// let both = try await journal.sync(with: databases)
    /// let report = try await both.sync()
    /// ```
    ///
    /// - Parameter environment: The clock and the waiting, which tests replace.
    /// - Throws: `ContainerEvent.Failure` 134410 when another process synchronises the container, 134417 when this container synchronises by
    ///   itself; ``StoreError``.
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

    /// Gives the stores the clock of a synchronisation, and has observations in SQL see what it writes.
    private nonisolated func prepareForSync(_ environment: SyncEnvironment) throws {
        for store in stores.all { store.setClock(environment.now) }
        try followOthers()
    }

    /// A configuration with what the container knows.
    private nonisolated func configured(_ configuration: SyncConfiguration?) -> SyncConfiguration {
        var chosen = configuration ?? SyncConfiguration()
        let (own, claims) = (chosen.shareTitleField, recordSources.claims)
        if chosen.mergePolicy == nil { chosen.mergePolicy = { [policy] type in claims.mergePolicy(of: type) ?? policy.value } }
        chosen.shareTitleField = { own($0) ?? claims.shareTitleField(of: $0) }
        return chosen
    }

    // What is missing

    /// Returns whether the container and its cloud have the same, and what is missing, as far as the container knows.
    ///
    /// - Throws: ``StoreError``.
    /// - Complexity: A look at each record that waits to be sent.
    public nonisolated func syncStatus() throws -> SyncStatus {
        try SyncStatus(of: stores.all.map { StoreReader($0) }, synchronized: syncing.scopes)
    }

    /// Returns whether nothing waits to be sent or fetched, as far as the container knows; ``syncStatus()`` says what does.
    public nonisolated func isInSync() throws -> Bool { try syncStatus().isInSync }

    /// Why records have not reached the cloud; empty for what has.
    ///
    /// - Parameter record: One record's name; `nil` for all.
    public nonisolated func syncIssues(record: String? = nil, limit: Int = 1000) throws -> [SyncIssue] {
        try history().syncIssues(record: record, limit: limit)
    }
}
