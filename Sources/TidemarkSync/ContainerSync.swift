import Foundation
public import Logging
public import TidemarkCloud
public import TidemarkModel
import TidemarkSQLite
public import TidemarkStore

/// Synchronises a container with an account's cloud: the private store, and the records that others share.
///
/// ```swift
/// let sync = try ContainerSync(container: container, databases: cloud.databases(of: "iCloud.org.example.journal", account: anna.id))
/// let report = try await sync.sync()          // once
/// try await sync.run()                        // and from then on, as things change
/// ```
///
/// It holds the container's right to synchronise until it is deallocated: one process at a time has it, and a second one gets error 134410.
public final class ContainerSync: Sendable {
    /// The engine of the private store.
    public let privateEngine: SyncEngine
    /// The engine of the shared store.
    public let sharedEngine: SyncEngine
    /// The events of both stores, as they happen: a stream of its own for each access. The first one also has the events since this object
    /// was made. A stream ends with this object, and buffers the last 1,000 events.
    public var events: AsyncStream<ContainerEvent> { broadcaster.stream() }
    package let broadcaster = EventBroadcaster()
    private let lock: SyncLock
    private let assetLimit: Int64?

    /// Opens a container's stores for synchronisation.
    ///
    /// - Throws: ``ContainerEvent/Failure`` 134410 when another process synchronises it; ``StoreError``.
    public convenience init(
        container: ContainerDirectory, databases: CloudDatabases, configuration: SyncConfiguration = SyncConfiguration(),
        environment: SyncEnvironment = .system, log: Logger = Logger(label: "tidemark.sync")
    ) throws {
        let lock = try SyncLock(container)
        try self.init(
            privateStore: RecordStore(container: container, scope: .private, notifier: nil, now: environment.now),
            sharedStore: RecordStore(container: container, scope: .shared, notifier: nil, now: environment.now),
            databases: databases, configuration: configuration, environment: environment, log: log, lock: lock)
    }

    /// Synchronises the stores that a container has open: both engines write through these objects, and open no others.
    ///
    /// - Parameter lock: The right to synchronise the container; by default it is acquired here.
    /// - Throws: ``ContainerEvent/Failure`` 134410 when another process synchronises the container; ``StoreError``.
    package init(
        privateStore: RecordStore, sharedStore: RecordStore, databases: CloudDatabases, configuration: SyncConfiguration,
        environment: SyncEnvironment = .system, log: Logger = Logger(label: "tidemark.sync"), lock: SyncLock? = nil
    ) throws {
        let lock = try lock ?? SyncLock(privateStore.container)
        self.lock = lock
        assetLimit = configuration.assetLimit
        let (own, others) = (
            try SyncEngine(
                store: privateStore, database: databases.private, configuration: configuration, environment: environment,
                log: log, lock: lock),
            try SyncEngine(
                store: sharedStore, database: databases.shared, configuration: configuration, environment: environment,
                log: log, lock: lock)
        )
        (privateEngine, sharedEngine) = (own, others)
        for engine in [own, others] { engine.recorder.broadcaster.forward(to: broadcaster) }
    }

    /// Releases the container at once, and not only with the last reference to this object. The object can't synchronise afterwards.
    public func close() { lock.release() }

    /// Whether it is open: ``close()`` was not called.
    package var isOpen: Bool { lock.isHeld }

    /// Makes ``run()`` fetch and send soon, even if it waits before it tries again after a failure.
    package func requestSyncSoon() {
        for engine in [privateEngine, sharedEngine] { engine.requestSyncSoon() }
    }

    /// Makes both stores belong to the account that is signed in, also while they are synchronised.
    ///
    /// - Parameter startsByItself: Whether ``run()`` is about to be called, if it was not yet.
    /// - Returns: Whether they belong to it; `false` where the synchronisation ended before.
    /// - Throws: ``ContainerEvent/Failure`` when no account is signed in, or a person has to decide; `CloudError`; ``StoreError``;
    ///   `CancellationError`.
    @discardableResult
    package func adoptAccount(startsByItself: Bool = false) async throws -> Bool {
        for engine in [privateEngine, sharedEngine] {
            guard try await engine.waitForAccount(startsByItself: startsByItself) else { return false }
        }
        return true
    }

    /// Ends the streams of events. It must not synchronise any more.
    func endEvents() {
        for engine in [privateEngine, sharedEngine] { engine.endEvents() }
        broadcaster.finish()
    }

    /// Fetches and sends until there is nothing left to do now, the private store first.
    ///
    /// - Parameters:
    ///   - patience: How long it waits in all for a cloud that does not answer. Steps that succeed do not count.
    ///   - isContinued: Whether this call continues the one before: then the account is not checked again.
    /// - Returns: A report of both stores: the work done, and the work left.
    /// - Throws: `CancellationError`; ``StoreError``; ``ContainerEvent/Failure`` 134417 while it synchronises already.
    public func sync(patience: Duration = .seconds(10), isContinued: Bool = false) async throws -> SyncReport {
        let own = try await privateEngine.sync(patience: patience, isContinued: isContinued)
        // If the cloud has not answered so far, the second store does not wait for it again.
        let left: Duration = await privateEngine.isSetUp ? privateEngine.patienceLeft : .zero
        let others = try await sharedEngine.sync(patience: left, isContinued: isContinued)
        await tidyAssets(assetLimit)
        return SyncReport(own, beside: others)
    }

    /// Synchronises whenever something changes here or in the cloud, until the task is cancelled.
    ///
    /// - Throws: `CancellationError`; ``StoreError``; ``ContainerEvent/Failure`` 134417 while it synchronises already.
    public func run() async throws {
        let (own, others) = (privateEngine, sharedEngine)
        let ended = broadcaster.stream(replaying: false)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await own.run() }
            group.addTask { try await others.run() }
            group.addTask { [self] in
                for await event in ended where event.end != nil && event.failure == nil && event.kind != .setup {
                    await tidyAssets(assetLimit)
                }
                // A stream ends where its task is cancelled.
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    /// Has the next synchronisation fetch everything again; see ``SyncEngine/refetch()``.
    public func refetch() async throws {
        try await privateEngine.refetch()
        try await sharedEngine.refetch()
    }

    /// Repairs the damaged records of both stores; see ``SyncEngine/repair()``.
    public func repair() async throws -> RepairReport {
        var report = try await privateEngine.repair()
        let others = try await sharedEngine.repair()
        report.repaired += others.repaired
        report.remaining += others.remaining
        return report
    }

    /// Resolves conflicts that the merge policy left to a person; see ``SyncEngine/resolveConflicts(of:policy:)``.
    @discardableResult
    public func resolveConflicts(of record: String? = nil, policy: MergePolicy) async throws -> [DeferredRecord] {
        let own = try await privateEngine.resolveConflicts(of: record, policy: policy)
        return try await own + sharedEngine.resolveConflicts(of: record, policy: policy)
    }
}

extension SyncReport {
    /// Combines the reports of two stores.
    init(_ one: SyncReport, beside other: SyncReport) {
        self.init()
        imported = one.imported + other.imported
        exported = one.exported + other.exported
        conflicts = one.conflicts + other.conflicts
        outbox.pending = one.outbox.pending + other.outbox.pending
        outbox.blocked = one.outbox.blocked + other.outbox.blocked
        outbox.nextTry = [one.outbox.nextTry, other.outbox.nextTry].compactMap { $0 }.min()
        deferred = one.deferred + other.deferred
        refused = one.refused + other.refused
        failure = one.failure ?? other.failure
    }
}
