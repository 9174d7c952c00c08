import Foundation
import Logging
import Metrics
import TidemarkCloud
import TidemarkModel
import TidemarkStore

/// How a container is synchronised.
public struct SyncConfiguration: Sendable {
    /// The zone of the private database that its records are in.
    public var zoneName = "TidemarkZone"
    /// The merge policy of a type, by its name. All devices should have the same.
    public var mergePolicy: @Sendable (String) -> MergePolicy = { _ in .mergeByPropertyObjectTrump }
    /// Whether it may be synchronised at all: see ``AccountState``.
    public var accountState: @Sendable () -> AccountState = { AccountState(isSignedIn: true) }
    /// What becomes of records that are here when an account comes to them.
    public var signIn: SignInChoice = .merge
    /// What becomes of an account's records when another one comes.
    public var signOut: SignOutChoice = .quarantine
    /// The name that history gives the transactions.
    public var author = "cloud"

    public init() {}
}

/// What a synchronisation has come to.
public struct SyncReport: Hashable, Sendable {
    /// Changes that were taken in; a merged record counts twice.
    public var imported = 0
    /// Changes that the cloud has acknowledged.
    public var exported = 0
    /// Fields, or deletions, that a merge policy has settled.
    public var conflicts = 0
    /// What is still to be sent, and why.
    public var outbox = OutboxSummary()
    /// Records from the cloud that could not be taken in, or not whole.
    public var kept = 0
    /// Why it did not come to its end; `nil` when it did.
    public var failure: ContainerEvent.Failure?

    public init() {}

    /// Whether nothing waits to be sent and nothing failed; what could not be taken in is in ``kept``.
    public var isComplete: Bool { failure == nil && outbox.pending == 0 }
}

/// Has a store and a cloud say the same: fetches what others have changed, sends what was changed here, and settles what both have.
///
/// ```swift
/// let engine = try SyncEngine(container: container, database: cloud)
/// let report = try await engine.sync()          // once
/// try await engine.run()                        // and from then on, as things change
/// ```
///
/// It holds the container's right to synchronise until it is deallocated: one process at a time has it, and a second one gets error 134410.
/// What was interrupted goes on the next time.
public actor SyncEngine {
    private let store: RecordStore
    private let database: any CloudDatabase
    private let environment: SyncEnvironment
    private let configuration: SyncConfiguration
    private let lock: SyncLock
    private let doorbell: Doorbell
    private let assets: AssetTransfer
    private let resolver: ConflictResolver
    private let exports: ExportScheduler
    private let imports: ImportScheduler
    private let accounts: AccountMonitor
    private let log: Logger
    private var machine = SyncMachine()
    private var limits = CloudLimits()
    private var report = SyncReport()
    private var running: [ContainerEvent.Kind: ContainerEvent] = [:]
    private var noted: Int64 = .min
    private var isRunning = false
    /// Why the last of each kind has failed.
    private var failures: [ContainerEvent.Kind: ContainerEvent.Failure] = [:]
    /// Batches in a row of which nothing came.
    private var barren = 0
    private var accountSeen: Int64 = .min
    private var lastSetUpFailure: ContainerEvent.Failure?
    /// There is no room for what waits in bulk.
    private var noRoom: CloudError?
    private let stream: AsyncStream<ContainerEvent>
    private let told: AsyncStream<ContainerEvent>.Continuation

    /// Why it looks again.
    private enum Wake: Sendable { case store, cloud, time }

    /// Opens a container's store for synchronisation.
    ///
    /// - Throws: ``ContainerEvent/Failure`` 134410 when another process synchronises it; ``StoreError``.
    public init(
        container: ContainerDirectory, scope: DatabaseScope = .private, database: any CloudDatabase,
        configuration: SyncConfiguration = SyncConfiguration(), environment: SyncEnvironment = .system,
        log: Logger = Logger(label: "tidemark.sync")
    ) throws {
        lock = try SyncLock(container)
        doorbell = try Doorbell(container: container, role: .sync)
        store = try RecordStore(container: container, scope: scope, doorbell: doorbell, now: environment.now)
        self.database = database
        self.environment = environment
        self.configuration = configuration
        self.log = log
        let zone = CloudZoneID(configuration.zoneName)
        let mapping = RecordMapping(zone: zone)
        assets = AssetTransfer(store: store, database: database)
        resolver = ConflictResolver(
            store: store, assets: assets, mapping: mapping, author: configuration.author, policy: configuration.mergePolicy)
        exports = ExportScheduler(
            store: store, database: database, assets: assets, resolver: resolver, mapping: mapping, environment: environment)
        imports = ImportScheduler(store: store, database: database, resolver: resolver, zone: zone)
        accounts = AccountMonitor(
            store: store, database: database, state: configuration.accountState, signIn: configuration.signIn,
            signOut: configuration.signOut, now: environment.now)
        (stream, told) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1000))
    }

    /// What it does, as it does it. For one listener; it does not end by itself, and keeps the last 1,000 for whoever comes late.
    public nonisolated var events: AsyncStream<ContainerEvent> { stream }

    // Running

    /// Fetches and sends until there is nothing left to do now.
    ///
    /// - Parameters:
    ///   - patience: How long it waits for a cloud that does not answer.
    ///   - isContinued: It goes on with what it has just done: the account is not looked at again.
    /// - Returns: What was done, and what is left. That the cloud refuses something, or can't be reached, is no error: see
    ///   ``SyncReport/failure``.
    /// - Throws: `CancellationError`; ``StoreError``; ``ContainerEvent/Failure`` 134417 while it synchronises already.
    public func sync(patience: Duration = .seconds(10), isContinued: Bool = false) async throws -> SyncReport {
        try claim()
        defer { isRunning = false }
        if isContinued, machine.isSetUp {
            look()
            report = SyncReport()
            failures = [:]
        } else {
            try await begin()
        }
        let limit = environment.now() + Int64(patience / .microseconds(1))
        while true {
            switch machine.next(at: environment.now()) {
            case .wait(let until):
                guard let until, until <= limit, !machine.isIdle else { return try await finish() }
                try await environment.sleep(.microseconds(max(1, until - environment.now())))
            case .halt: return try await finish()
            case let step: try await perform(step)
            }
            try Task.checkCancellation()
        }
    }

    /// Synchronises until the task is cancelled: whenever something changes here or in the cloud. What the cloud refuses is told as events.
    ///
    /// - Throws: `CancellationError`; ``StoreError``; ``ContainerEvent/Failure`` 134417 while it synchronises already.
    public func run() async throws {
        try claim()
        defer { isRunning = false }
        try await begin()
        let (wakes, wake) = AsyncStream.makeStream(of: Wake.self, bufferingPolicy: .bufferingNewest(10))
        let listener = try DoorbellListener(container: store.container, ignoring: doorbell) { wake.yield(.store) }
        defer { listener.close() }
        // What came while nobody listened.
        wake.yield(.store)
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { [self] in try await listenToCloud(wake) }
                group.addTask { [self] in try await loop(wakes, wake) }
                defer { group.cancelAll() }
                try await group.next()
            }
        } catch {
            // Why it ends is told, not what fails for that reason.
            _ = try? await finish()
            throw error
        }
        _ = try await finish()
    }

    /// - Throws: ``ContainerEvent/Failure`` 134417 while it synchronises already.
    private func claim() throws {
        guard !isRunning else {
            throw ContainerEvent.Failure(
                code: SyncErrorCode.duplicateRequest,
                reason: "the container is being synchronised already; this request is cancelled")
        }
        isRunning = true
    }

    private func loop(_ stream: AsyncStream<Wake>, _ wake: AsyncStream<Wake>.Continuation) async throws {
        var wakes = stream.makeAsyncIterator()
        while !Task.isCancelled {
            switch machine.next(at: environment.now()) {
            case .wait(let until):
                try await endEvents()
                let timer = until.map { until in
                    Task { [environment] in
                        try await environment.sleep(.microseconds(max(1, until - environment.now())))
                        wake.yield(.time)
                    }
                }
                let woken = await wakes.next(isolation: self)
                timer?.cancel()
                note(woken)
            case .halt:
                try await endEvents()
                // Somebody may do something about it.
                let timer = Task { [environment] in
                    try await environment.sleep(.seconds(30))
                    wake.yield(.time)
                }
                let woken = await wakes.next(isolation: self)
                timer.cancel()
                // Every save would have it look again; only what comes from outside can have mended it.
                if woken != .store { machine.begin() }
            case let step: try await perform(step)
            }
        }
    }

    private func note(_ wake: Wake?) {
        switch wake {
        case .store: machine.wantExport()
        case .cloud: machine.wantImport()
        case .time, nil: break
        }
    }

    private func listenToCloud(_ wake: AsyncStream<Wake>.Continuation) async throws {
        while !Task.isCancelled {
            do {
                for await _ in try await database.notifications() { wake.yield(.cloud) }
            } catch {
                log.debug("no notifications", metadata: ["error": "\(error)"])
            }
            try await environment.sleep(.seconds(30))
            wake.yield(.cloud)
        }
    }

    private func begin() async throws {
        machine.begin()
        report = SyncReport()
        failures = [:]
        try await store.closeEvents()
    }

    private func finish() async throws -> SyncReport {
        try await endEvents()
        await imports.forget()
        await assets.close()
        report.outbox = try await store.outbox()
        report.kept = try await store.kept(Set(KeptRecord.Reason.allCases)).count
        report.failure = failures[.setup] ?? failures[.import] ?? failures[.export]
        if case .halt(let failure) = machine.next(at: environment.now()) { report.failure = failure }
        return report
    }

    /// One step, for those who want to decide what happens in between; `false` when there is nothing to do now.
    package func step() async throws -> Bool {
        switch machine.next(at: environment.now()) {
        case .wait, .halt: return false
        case let step:
            try await perform(step)
            return true
        }
    }

    /// When ``step()`` has something to do again; `nil`: when something has happened.
    package var nextStep: Int64? {
        if case .wait(let until) = machine.next(at: environment.now()) { return until }
        return nil
    }

    /// Something may have changed, here or in the cloud.
    package func look() {
        machine.wantExport()
        machine.wantImport()
    }

    /// Takes in what the cloud has, and sends nothing.
    ///
    /// - Throws: ``ContainerEvent/Failure`` when setting up fails.
    func preview() async throws {
        switch try await accounts.look() {
        case .available: break
        case .unavailable(let failure, _): throw failure
        case .stopped(let failures): throw failures[0]
        }
        limits = try await database.limits().bounded
        guard try await database.zones().contains(where: { $0.zoneName == configuration.zoneName }) else { return }
        while true {
            let outcome = try await imports.step(limits: limits, looksAhead: environment.looksAhead) { _ in }
            if let error = outcome.error { throw error }
            if !outcome.moreComing { return }
        }
    }

    /// Settles conflicts that the merge policy left to a person.
    ///
    /// - Parameters:
    ///   - record: One of them; `nil` for all.
    ///   - policy: Another policy than the one under which they are conflicts.
    /// - Returns: What was settled. The next synchronisation sends the outcome.
    @discardableResult
    public func settleConflicts(of record: String? = nil, policy: MergePolicy) async throws -> [KeptRecord] {
        try claim()
        defer { isRunning = false }
        limits = try await database.limits().bounded
        return try await resolver.settle(record: record, policy: policy, limits: limits)
    }

    // Steps

    private func perform(_ step: SyncMachine.Step) async throws {
        if step != .setUp, try await !accountIsOn() { return }
        switch step {
        case .setUp: try await setUp()
        case .importPage: try await importPage()
        case .exportBatch: try await exportBatch()
        case .wait, .halt: break
        }
    }

    /// Whether the account's switches are as they were; if not, it sets up anew, which then says what is wrong.
    private func accountIsOn() async throws -> Bool {
        guard environment.now() > accountSeen + 1_000_000 else { return true }
        accountSeen = environment.now()
        guard !configuration.accountState().isAvailable else { return true }
        try await endEvents()
        machine.begin()
        return false
    }

    private func setUp() async throws {
        await exports.forgetNext()
        await imports.forget()
        var event = ContainerEvent(
            id: environment.identifier(), store: store.identity.history, kind: .setup, start: environment.now())
        tell(event)
        var failures: [ContainerEvent.Failure] = []
        let user = try await store.syncState().user
        switch try await accounts.look() {
        case .available:
            if try await store.syncState().user != user { await exports.forget() }
            do {
                try await prepare()
                machine.setUpSucceeded()
            } catch let error as CloudError {
                failures = [.init(code: SyncErrorCode.notInitialized, reason: error.reason)]
                if ErrorReaction(error.code) == .ask {
                    machine.halt(failures[0])
                } else {
                    machine.setUpFailed(at: environment.now(), retryAfter: error.retryAfter, random: environment.random())
                }
            }
        case .unavailable(let failure, let retryAfter):
            failures = [failure]
            machine.setUpFailed(at: environment.now(), retryAfter: retryAfter, random: environment.random())
        case .stopped(let all):
            failures = all
            machine.halt(all[0])
        }
        self.failures[.setup] = failures.first
        // The last of them is the event's own.
        for failure in failures.dropLast() {
            var other = ContainerEvent(id: environment.identifier(), store: event.store, kind: .setup, start: event.start)
            other.failure = failure
            other.end = environment.now()
            try await note(other)
        }
        event.failure = failures.last
        event.end = environment.now()
        // What fails as it did before is no news.
        if event.failure != nil, event.failure == lastSetUpFailure { tell(event) } else { try await note(event) }
        lastSetUpFailure = event.failure
    }

    /// Looks who is signed in, and makes the store that account's: what belongs to another one is set aside.
    ///
    /// - Throws: ``ContainerEvent/Failure`` when nobody is signed in, or a person has to decide; `CloudError`; ``StoreError``.
    public func adoptAccount() async throws {
        try claim()
        defer { isRunning = false }
        switch try await accounts.look() {
        case .available: await exports.forget()
        case .unavailable(let failure, _): throw failure
        case .stopped(let failures): throw failures[0]
        }
    }

    /// Makes the zone, and looks again at what could not be taken in.
    private func prepare() async throws {
        limits = try await database.limits().bounded
        var state = try await store.syncState()
        if state.isPurged {
            throw CloudError(
                .permissionFailure,
                "the cloud's copy was deleted for good, and nothing is uploaded again. Sign in anew to begin with what is here")
        }
        if !state.zoneIsMade {
            try await database.modifyZones(saving: [CloudZoneID(configuration.zoneName)], deleting: [])
            let isNew = try await store.types().isEmpty && store.container.description.environment == .production
            state = try await store.updateSyncState { state in
                state.zoneIsMade = true
                if isNew, !state.initialImportIsComplete { state.isDeploying = true }
            }
        }
        // What only a person could mend, somebody may have mended.
        try await store.tryAgain([CloudError.Code.quotaExceeded, .notAuthenticated, .permissionFailure].map(\.rawValue))
        _ = try await resolver.takeKept(limits: limits)
    }

    private func importPage() async throws {
        begin(.import)
        // What is sent in between changes what comes.
        let looksAhead = environment.looksAhead && !machine.exportIsWanted
        let outcome = try await imports.step(limits: limits, looksAhead: looksAhead) { [weak self] bytes in
            await self?.add(bytes, to: .import)
        }
        report.imported += outcome.records
        report.conflicts += outcome.conflicts
        Counter(label: "tidemark_sync_imported_records").increment(by: outcome.records)
        try await progress(.import, records: outcome.records, conflicts: outcome.conflicts)
        if let error = outcome.error {
            try await fail(.import, error)
            try await react(to: error) {
                machine.importFailed(at: environment.now(), retryAfter: error.retryAfter, random: environment.random())
            }
        } else {
            machine.imported(moreComing: outcome.moreComing)
            // A merge may have something to send.
            if outcome.conflicts > 0 { machine.wantExport() }
            if !outcome.moreComing { try await end(.import) }
        }
    }

    private func exportBatch() async throws {
        begin(.export)
        await imports.forget()
        if running[.export]?.totalRecords == nil {
            running[.export]?.totalRecords = try await store.outbox().pending
            running[.export]?.totalBytes = try await store.pendingBytes()
            noRoom = try await quotaFailure()
        }
        let outcome = try await exports.step(limits: limits, withBulk: noRoom == nil) { [weak self] bytes in
            await self?.add(bytes, to: .export)
        }
        if let noRoom, !outcome.didWork, outcome.error == nil {
            // What persons edit and delete has gone, and may have made room.
            machine.exportFailed(at: environment.now(), retryAfter: .seconds(600), random: 0)
            return try await fail(.export, noRoom)
        }
        report.exported += outcome.sent
        barren = outcome.didWork && outcome.sent == 0 ? barren + 1 : 0
        report.conflicts += outcome.conflicts
        Counter(label: "tidemark_sync_exported_records").increment(by: outcome.sent)
        try await progress(.export, records: outcome.sent, conflicts: outcome.conflicts)
        if let error = outcome.error {
            try await fail(.export, error)
            try await react(to: error) {
                machine.exportFailed(
                    at: environment.now(), retryAfter: error.retryAfter, random: environment.random())
            }
        } else if outcome.didWork, outcome.sent == 0, barren >= Self.barrenLimit {
            // Whatever it is that keeps it from coming to an end: it does not turn without a pause.
            machine.exportFailed(
                at: environment.now(), retryAfter: nil, random: environment.random())
        } else {
            // What may be tried again and did not go is not asked for without a pause.
            let next = outcome.didWork ? nil : try await store.outbox().nextTry.map { max($0, environment.now() + Self.pause) }
            machine.exported(didWork: outcome.didWork, nextTry: next)
            if !outcome.didWork { try await end(.export) }
        }
    }

    private static let barrenLimit = 20
    private static let pause: Int64 = 1_000_000

    /// Before much goes up, whether it has room.
    private func quotaFailure() async throws -> CloudError? {
        guard let total = running[.export]?.totalRecords, total >= 1000 else { return nil }
        // Where the cloud does not say, it is found out when something is sent.
        guard let account = try? await database.account(), let quota = account.quota, let used = account.used else { return nil }
        let bytes = try await store.pendingBytes()
        guard used.addingReportingOverflow(bytes).partialValue > quota else { return nil }
        return CloudError(
            .quotaExceeded,
            "\(bytes) bytes are to be uploaded, and the account has \(max(0, quota.subtractingReportingOverflow(used).partialValue)) left of \(quota)"
        )
    }

    /// What stands in the way of everything; anything else is tried again.
    private func react(to error: CloudError, retry: () -> Void) async throws {
        switch ErrorReaction(error.code) {
        case _ where error.code == .storeFailure: throw StoreError(.io, error.reason)
        case .remakeZone:
            // The server has lost it, or never had it: all of it is sent again.
            log.warning("the zone is gone, and is made anew")
            await exports.forget()
            try await store.forgetCloud(user: try await store.syncState().user)
            machine.setUpFailed(at: environment.now(), retryAfter: nil, random: environment.random())
        case .wipe:
            log.warning("the zone's data was deleted for good")
            await exports.forget()
            let user = try await store.syncState().user
            try await store.wipe { state in
                state.user = user
                state.isPurged = true
            }
            machine.halt(.init(code: SyncErrorCode.other, reason: error.reason))
        case .ask where error.code == .notAuthenticated:
            machine.begin()
            machine.setUpFailed(at: environment.now(), retryAfter: error.retryAfter, random: environment.random())
        default: retry()
        }
    }

    // Events

    private func begin(_ kind: ContainerEvent.Kind) {
        guard running[kind] == nil else { return }
        let event = ContainerEvent(
            id: environment.identifier(), store: store.identity.history, kind: kind, start: environment.now())
        running[kind] = event
    }

    private func add(_ bytes: Int64, to kind: ContainerEvent.Kind) { running[kind]?.bytes += bytes }

    private func progress(_ kind: ContainerEvent.Kind, records: Int, conflicts: Int) async throws {
        running[kind]?.records += records
        running[kind]?.conflicts += conflicts
        guard let event = running[kind] else { return }
        told.yield(event)
        // Durable now and then: others look at it, too.
        guard event.hasNews, environment.now() > noted + 1_000_000 else { return }
        noted = environment.now()
        try await store.note(event)
    }

    private func fail(_ kind: ContainerEvent.Kind, _ error: CloudError) async throws {
        // That it was ended is no failure of anything.
        try Task.checkCancellation()
        guard var event = running.removeValue(forKey: kind) else { return }
        event.failure = .init(code: SyncErrorCode.code(error.code), reason: "\(error.code.rawValue): \(error.reason)")
        failures[kind] = event.failure
        event.end = environment.now()
        try await note(event)
    }

    private func end(_ kind: ContainerEvent.Kind) async throws {
        guard var event = running.removeValue(forKey: kind) else { return }
        event.end = environment.now()
        failures[kind] = nil
        // What had nothing to do is no news, but for the first that came to its end.
        if event.hasNews { try await note(event) } else { tell(event) }
    }

    private func endEvents() async throws {
        for kind in Array(running.keys) { try await end(kind) }
    }

    private func tell(_ event: ContainerEvent) {
        told.yield(event)
        log.debug(
            "\(event.kind.name)", metadata: ["records": "\(event.records)", "succeeded": "\(event.succeeded)"])
    }

    private func note(_ event: ContainerEvent) async throws {
        tell(event)
        if let failure = event.failure { log.notice("\(event.kind.name) failed", metadata: ["reason": "\(failure.reason)"]) }
        try await store.note(event)
    }
}

extension ContainerEvent {
    /// Whether anything has come of it, or was to.
    fileprivate var hasNews: Bool { records > 0 || bytes > 0 || conflicts > 0 || totalRecords ?? 0 > 0 }
}

extension SyncErrorCode {
    static func code(_ code: CloudError.Code) -> Int {
        switch code {
        case .notAuthenticated, .accountTemporarilyUnavailable: noAccount
        default: other
        }
    }
}
