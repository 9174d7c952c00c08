package import Foundation
package import Logging
package import TidemarkCloud
public import TidemarkModel
import TidemarkSQLite
package import TidemarkStore

/// Synchronises a store with a cloud: fetches the changes of others, sends the changes that were made here, and resolves conflicts.
///
/// ```swift
/// let engine = try SyncEngine(container: container, database: cloud)
/// let report = try await engine.sync()          // once
/// try await engine.run()                        // and from then on, as things change
/// ```
///
/// It holds the container's right to synchronise until it is deallocated or closed. One process at a time has the right, and a
/// second one gets error 134410. An interrupted synchronisation continues the next time.
public actor SyncEngine {
    let store: RecordStore
    let database: any CloudDatabase
    let environment: SyncEnvironment
    let configuration: SyncConfiguration
    private let lock: SyncLock
    private let notifier: StoreChangeNotifier
    let assets: AssetTransfer
    let downloads: AssetDownloadQueue
    let zoneSyncs: ZoneSyncRegistry
    let accounts: AccountMonitor
    let recorder: EventRecorder
    let log: Logger
    var machine = SyncMachine()
    var limits = CloudLimits()
    var report = SyncReport()
    /// How many saves the cloud had refused before.
    private var refusedBefore = 0
    private(set) var isRunning = false
    var accountSeen: Int64 = .min
    /// The error if the account has no room for the changes that wait in bulk.
    var noRoom: CloudError?
    /// The rest of the patience of the last ``sync(patience:isContinued:)``. The time in which the cloud did its work does not count.
    private(set) var patienceLeft = Duration.zero

    /// Whether records have come or gone since the titles of shares were compared with their roots.
    var shareTitlesAreDue = true
    /// Whether the last set-up has found that the account has signed out.
    var accountIsOut = false
    /// Whether the cloud has reported a change that ``run()`` has not noted yet. A stream of wakes keeps only the newest.
    private let cloudHasChanged = LockedValue(false)
    /// Wakes ``run()``.
    private let waker = LockedValue<AsyncStream<Wake>.Continuation?>(nil)

    /// The reason why the engine looks for work again.
    private enum Wake: Sendable { case store, cloud, network, time, request }

    /// Makes an engine for a store that the process has open: it writes through that object, and opens no other.
    ///
    /// - Parameter lock: The right to synchronise the container, which others may share.
    package init(
        store: RecordStore, database: any CloudDatabase, configuration: SyncConfiguration,
        environment: SyncEnvironment = .system, log: Logger = Logger(label: "tidemark.sync"), lock: SyncLock
    ) throws {
        let environment = environment.bounded
        self.lock = lock
        self.store = store
        notifier = try StoreChangeNotifier(container: store.container, role: .sync)
        store.setSyncNotifier(notifier)
        self.database = database
        self.environment = environment
        self.configuration = configuration
        self.log = log
        assets = AssetTransfer(store: store, database: database, policy: configuration.assets)
        downloads = AssetDownloadQueue(assets)
        zoneSyncs = ZoneSyncRegistry(
            ZoneSync.Parts(
                store: store, database: database, assets: assets, configuration: configuration, environment: environment))
        accounts = AccountMonitor(
            store: store, database: database, state: configuration.accountState, signIn: configuration.signIn,
            signOut: configuration.signOut, now: environment.now)
        recorder = EventRecorder(store: store, environment: environment, log: log)
    }

    /// Releases the container at once, and not only after the last reference to the engine. The engine must not synchronise any more.
    public nonisolated func close() { lock.release() }

    /// The history of its store, by which events name it.
    package nonisolated var history: UUID { store.identity.history }

    /// The events of the synchronisation, as they happen: a stream of its own for each access. The first one also has the events since the
    /// engine was made. A stream does not end by itself, and buffers the last 1,000 events.
    public nonisolated var events: AsyncStream<ContainerEvent> { recorder.broadcaster.stream() }

    // Running

    /// Fetches and sends until there is nothing left to do now.
    ///
    /// - Parameters:
    ///   - patience: How long it waits in all for a cloud that does not answer. Steps that succeed do not count.
    ///   - isContinued: Whether this call continues the one before: then the account is not checked again.
    /// - Returns: A report of the work done and the work left. A refusal, or a cloud that can't be reached, throws no error: see
    ///   ``SyncReport/failure``.
    /// - Throws: `CancellationError`; ``StoreError``; ``ContainerEvent/Failure`` 134417 while it synchronises already.
    public func sync(patience: Duration = .seconds(10), isContinued: Bool = false) async throws -> SyncReport {
        try claim()
        defer { release() }
        if isContinued, machine.isSetUp {
            requestSync()
            try await beginReport()
        } else {
            try await begin()
        }
        let longest = Int64(patience / .microseconds(1))
        var limit = environment.now() + longest
        defer { patienceLeft = .microseconds(max(0, limit - environment.now())) }
        while true {
            // A clock that is set back does not make the wait longer.
            limit = min(limit, environment.now() + longest)
            switch machine.next(at: environment.now()) {
            case .wait(let until):
                guard let until, until <= limit, !machine.isIdle else { return try await finish() }
                try await environment.sleep(.microseconds(max(1, until - environment.now())))
            case .halt: return try await finish()
            case let step:
                let (begun, failures) = (environment.now(), machine.failures)
                try await perform(step)
                if machine.failures <= failures { limit += max(0, environment.now() - begun) }
            }
            try Task.checkCancellation()
        }
    }

    /// Synchronises whenever something changes here or in the cloud, until the task is cancelled. Refusals of the cloud are reported as
    /// events.
    ///
    /// - Throws: `CancellationError`; ``StoreError``; ``ContainerEvent/Failure`` 134417 while it synchronises already.
    public func run() async throws {
        try claim()
        defer { release() }
        try await begin()
        let (wakes, wake) = AsyncStream.makeStream(of: Wake.self, bufferingPolicy: .bufferingNewest(10))
        let listener = try StoreChangeListener(container: store.container, ignoring: notifier) { wake.yield(.store) }
        defer { listener.close() }
        let network = Task { [environment] in
            for await _ in environment.networkChanges() { wake.yield(.network) }
        }
        defer { network.cancel() }
        waker.withLock { $0 = wake }
        defer { waker.withLock { $0 = nil } }
        // Changes that came before the listener.
        wake.yield(.store)
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { [self] in try await listenToCloud(wake) }
                group.addTask { [self] in try await loop(wakes, wake) }
                defer { group.cancelAll() }
                try await group.next()
            }
        } catch {
            // The cause of the end is thrown, and not an error that follows from it.
            _ = try? await finish()
            throw error
        }
        _ = try await finish()
    }

    /// Begins what excludes a synchronisation; `release()` ends it.
    ///
    /// - Throws: ``ContainerEvent/Failure`` 134417 while it synchronises already.
    func claim() throws {
        guard !isRunning else {
            throw ContainerEvent.Failure(
                code: SyncErrorCode.duplicateRequest,
                reason: "the container is being synchronised already; this request is cancelled", cause: .duplicateRequest)
        }
        isRunning = true
    }

    /// Ends what `claim()` has begun.
    func release() { isRunning = false }

    private func loop(_ stream: AsyncStream<Wake>, _ wake: AsyncStream<Wake>.Continuation) async throws {
        var wakes = stream.makeAsyncIterator()
        while !Task.isCancelled {
            noteCloud()
            switch machine.next(at: environment.now()) {
            case .wait(let until):
                try await recorder.endAll()
                await assets.close()
                let timer = until.map { until in
                    Task { [environment] in
                        try await environment.sleep(.microseconds(max(1, until - environment.now())))
                        wake.yield(.time)
                    }
                }
                let woken = await wakes.next(isolation: self)
                timer?.cancel()
                note(woken)
                // A field was made here that deferred records may have waited for.
                if woken == .store, machine.isSetUp, try await hasRecordsToRetry() { machine.begin() }
            case .halt:
                try await recorder.endAll()
                let wasOn = configuration.accountState().isAvailable
                // A person may remove the cause.
                let timer = Task { [environment] in
                    try await environment.sleep(.seconds(30))
                    wake.yield(.time)
                }
                let woken = await wakes.next(isolation: self)
                timer.cancel()
                // A save is no reason to set up again: only a change from outside, or a switch, can have removed the cause.
                if woken != .store || !wasOn && configuration.accountState().isAvailable { machine.begin() }
            case let step: try await perform(step)
            }
        }
    }

    private func note(_ wake: Wake?) {
        switch wake {
        case .store: machine.saved(at: environment.now(), delay: configuration.exportDelay ?? .zero)
        case .cloud: noteCloud()
        case .network: machine.networkChanged(at: environment.now())
        case .request:
            requestSync()
            machine.hasten(at: environment.now())
        case .time, nil: break
        }
    }

    private func noteCloud() {
        let hasChanged = cloudHasChanged.withLock { flag in
            defer { flag = false }
            return flag
        }
        if hasChanged { machine.cloudNotified(at: environment.now()) }
    }

    /// Whether the schema has changed since deferred records, or fields that are there again, were tried with it.
    private func hasRecordsToRetry() async throws -> Bool {
        if try await store.awaitsRemadeFields() { return true }
        for zoneSync in try await zoneSyncs.all() {
            if try await zoneSync.resolver.hasRecordsToRetry() { return true }
        }
        return false
    }

    private func listenToCloud(_ wake: AsyncStream<Wake>.Continuation) async throws {
        while !Task.isCancelled {
            do {
                for await _ in try await database.notifications() { report(wake) }
            } catch {
                log.debug("no notifications", metadata: ["error": "\(error)"])
            }
            // Devices that lost the cloud at the same time must not come back at the same time.
            try await environment.sleep(.seconds(15 + 15 * environment.random()))
            report(wake)
        }
    }

    /// Has ``run()`` ask the cloud for changes.
    private func report(_ wake: AsyncStream<Wake>.Continuation) {
        cloudHasChanged.withLock { $0 = true }
        wake.yield(.cloud)
    }

    private func begin() async throws {
        machine.begin()
        try await beginReport()
        try await store.closeEvents()
    }

    private func beginReport() async throws {
        report = SyncReport()
        refusedBefore = try await store.refusedCount()
        await recorder.forgetFailures()
    }

    private func finish() async throws -> SyncReport {
        try await recorder.endAll()
        await zoneSyncs.forgetImports()
        await assets.close()
        report.outbox = try await store.outbox()
        report.deferred = 0
        report.refused = max(0, try await store.refusedCount() - refusedBefore)
        for zoneSync in try await zoneSyncs.all() {
            report.deferred += try await store.deferredRecords(Set(DeferredRecord.Reason.allCases), zone: zoneSync.zone.id).count
        }
        report.failure = await recorder.failure
        if case .halt(let failure) = machine.next(at: environment.now()) { report.failure = failure }
        return report
    }

    /// Whether the cloud could not be reached the last time, and did not say for how long.
    var isUnreached: Bool { machine.isUnreached }

    /// Whether the set-up has succeeded, this time.
    var isSetUp: Bool { machine.isSetUp }

    /// Performs a single step, for callers that decide what happens in between; `false` if there is nothing to do now.
    package func step() async throws -> Bool {
        switch machine.next(at: environment.now()) {
        case .wait, .halt: return false
        case let step:
            try await perform(step)
            return true
        }
    }

    /// The time when ``step()`` has work again; `nil` if it has none before something happens.
    package var nextStep: Int64? {
        if case .wait(let until) = machine.next(at: environment.now()) { return until }
        return nil
    }

    /// Makes the engine look for changes, here and in the cloud.
    package func requestSync() {
        machine.wantExport()
        machine.wantImport()
    }

    /// Makes ``run()`` fetch and send soon, even if it waits before it tries again after a failure.
    package nonisolated func requestSyncSoon() {
        waker.withLock { _ = $0?.yield(.request) }
    }

    /// Ends the streams of events. There will be no more events.
    nonisolated func endEvents() { recorder.broadcaster.finish() }

    /// Passes all events on to another broadcaster.
    package nonisolated func forwardEvents(to broadcaster: EventBroadcaster) { recorder.broadcaster.forward(to: broadcaster) }

    /// Whether it is open: ``close()`` was not called.
    package nonisolated var isOpen: Bool { lock.isHeld }
}
