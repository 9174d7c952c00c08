import Foundation
import Logging
import Metrics
package import TidemarkCloud
package import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Reports the events of a synchronisation as they happen, and logs those that matter later.
actor EventRecorder {
    nonisolated let broadcaster = EventBroadcaster()
    private let store: RecordStore
    private let environment: SyncEnvironment
    private let log: Logger
    private var running: [ContainerEvent.Kind: ContainerEvent] = [:]
    /// The last event of each kind, if it has failed.
    private var failed: [ContainerEvent.Kind: ContainerEvent] = [:]
    private var lastSetUpFailure: ContainerEvent.Failure?
    /// When a running event was logged last.
    private var noted: Int64 = .min

    init(store: RecordStore, environment: SyncEnvironment, log: Logger) {
        self.store = store
        self.environment = environment
        self.log = log
    }

    /// The failure that kept the synchronisation from its end.
    var failure: ContainerEvent.Failure? { (failed[.setup] ?? failed[.import] ?? failed[.export])?.failure }

    func forgetFailures() { failed = [:] }

    private func event(_ kind: ContainerEvent.Kind) -> ContainerEvent {
        ContainerEvent(id: environment.identifier(), store: store.identity.history, kind: kind, start: environment.now())
    }

    // Imports and exports

    /// - Returns: Whether it has just begun.
    @discardableResult
    func begin(_ kind: ContainerEvent.Kind) -> Bool {
        guard running[kind] == nil else { return false }
        running[kind] = event(kind)
        return true
    }

    /// Sets the number of records and bytes that there are to do.
    func expect(_ kind: ContainerEvent.Kind, records: Int, bytes: Int64) {
        running[kind]?.totalRecords = records
        running[kind]?.totalBytes = bytes
    }

    func add(_ bytes: Int64, to kind: ContainerEvent.Kind) { running[kind]?.bytes += bytes }

    func progress(_ kind: ContainerEvent.Kind, records: Int, conflicts: Int) async throws {
        Counter(label: "tidemark_sync_\(kind.name)ed_records").increment(by: records)
        running[kind]?.records += records
        running[kind]?.conflicts += conflicts
        guard let event = running[kind] else { return }
        broadcaster.post(event)
        // Logged now and then, because other processes read it, too.
        let now = environment.now()
        guard event.hasNewChanges, now > noted + 1_000_000 || now < noted else { return }
        noted = now
        try await store.note(event)
    }

    func fail(_ kind: ContainerEvent.Kind, _ error: CloudError) async throws {
        // A cancellation is not a failure.
        try Task.checkCancellation()
        guard var event = running.removeValue(forKey: kind) else { return }
        event.failure = .init(
            error, code: SyncErrorCode.code(error.code), reason: "\(error.code.rawValue): \(error.reason)")
        event.end = environment.now()
        failed[kind] = event
        try await note(event)
    }

    /// Logs the last failed event of a kind again, after the store was emptied: its log has lost the reasons.
    ///
    /// - Parameter addition: The end of the reason; empty for none.
    func noteFailureAgain(_ kind: ContainerEvent.Kind, adding addition: String) async throws {
        guard var event = failed[kind], let failure = event.failure else { return }
        event.failure = .init(
            code: failure.code, reason: failure.reason + addition, isPassing: failure.isPassing, retryAfter: failure.retryAfter,
            remedy: failure.remedy, cause: failure.cause)
        try await store.note(event)
    }

    /// - Parameter refused: The number of changes that an export leaves because the cloud has refused them or a change before
    ///   them; `nil` where they were not counted, as in an export that was stopped midway.
    func end(_ kind: ContainerEvent.Kind, refused: Int? = nil) async throws {
        guard var event = running.removeValue(forKey: kind) else { return }
        event.end = environment.now()
        failed[kind] = nil
        let isLogged = event.hasNewChanges
        // Merges and new edits have changed how much there was.
        if kind == .export { event.totalRecords = refused.map { $0 + event.records } }
        // An event without work is not logged, except for the first one that ended.
        if isLogged { try await note(event) } else { tell(event) }
    }

    func endAll() async throws {
        for kind in [ContainerEvent.Kind.import, .export] { try await end(kind) }
    }

    // Setting up

    func beginSetUp() {
        let event = event(.setup)
        running[.setup] = event
        tell(event)
    }

    /// - Parameters:
    ///   - all: The failures. Each becomes an event of its own, and the last one ends the event that was begun.
    ///   - accountChange: The change of the account since the last set-up.
    func endSetUp(_ all: [ContainerEvent.Failure], _ accountChange: AccountChange?) async throws {
        guard var event = running.removeValue(forKey: .setup) else { return }
        event.accountChange = accountChange
        failed[.setup] = all.first.map { first in
            var event = event
            event.failure = first
            return event
        }
        for failure in all.dropLast() {
            var other = self.event(.setup)
            other.failure = failure
            other.end = environment.now()
            try await note(other)
        }
        event.failure = all.last
        event.end = environment.now()
        // The same failure as before is not logged again.
        if event.failure != nil, event.failure == lastSetUpFailure { tell(event) } else { try await note(event) }
        lastSetUpFailure = event.failure
    }

    private func tell(_ event: ContainerEvent) {
        broadcaster.post(event)
        log.debug("\(event.kind.name)", metadata: ["records": "\(event.records)", "succeeded": "\(event.succeeded)"])
    }

    private func note(_ event: ContainerEvent) async throws {
        tell(event)
        if let failure = event.failure { log.notice("\(event.kind.name) failed", metadata: ["reason": "\(failure.reason)"]) }
        try await store.note(event)
    }
}

extension ContainerEvent {
    /// Whether the event has changed anything, or should have.
    fileprivate var hasNewChanges: Bool { records > 0 || bytes > 0 || conflicts > 0 || totalRecords ?? 0 > 0 }
}

extension ContainerEvent.Failure {
    /// - Parameter reason: The reason, if it says more than the error's own.
    package init(_ error: CloudError, code: Int, reason: String? = nil) {
        self.init(
            code: code, reason: reason ?? error.reason, isPassing: ErrorReaction(error.code).isPassing,
            retryAfter: error.retryAfter, remedy: error.remedy, cause: FailureCause(error.code))
    }
}

extension FailureCause {
    /// The obstacle behind an error of the cloud; `nil` for an error that is none of them.
    init?(_ code: CloudError.Code) {
        switch code {
        case .networkUnavailable, .networkFailure: self = .offline
        case .serviceUnavailable, .requestRateLimited, .zoneBusy: self = .cloudIsBusy
        case .accountTemporarilyUnavailable: self = .accountUnavailable
        case .notAuthenticated: self = .signedOut
        case .quotaExceeded: self = .quotaExceeded
        case .permissionFailure: self = .notPermitted
        default: return nil
        }
    }
}

extension SyncErrorCode {
    static func code(_ code: CloudError.Code) -> Int {
        switch code {
        case .notAuthenticated, .accountTemporarilyUnavailable: noAccount
        default: other
        }
    }
}
