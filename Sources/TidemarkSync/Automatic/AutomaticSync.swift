package import Foundation
import TidemarkModel
import TidemarkSQLite
package import TidemarkStore

/// Synchronises a container until it is stopped or deallocated. It waits while another process synchronises the container, and
/// begins again after an error. Failures are reported as events.
package final class AutomaticSync: Sendable {
    /// The running synchronisation; `nil` while another process synchronises, and between two tries.
    private final class Current: Sendable {
        private struct State {
            weak var sync: ContainerSync?
            /// The error of the last try, if it has failed.
            var failure: (any Error)?
            var waiting: [CheckedContinuation<Void, Never>] = []
        }
        private let state = LockedValue(State())

        var sync: ContainerSync? { state.withLock(\.sync) }

        func begin(_ sync: ContainerSync) { set { ($0.sync, $0.failure) = (sync, nil) } }
        func fail(_ error: any Error) { set { ($0.sync, $0.failure) = (nil, error) } }

        private func set(_ change: (inout State) -> Void) {
            let waiting = state.withLock { state in
                change(&state)
                defer { state.waiting = [] }
                return state.waiting
            }
            for continuation in waiting { continuation.resume() }
        }

        /// Returns the running synchronisation; waits for the first try.
        func opened() async throws -> ContainerSync {
            while true {
                try Task.checkCancellation()
                let (sync, failure) = state.withLock { ($0.sync, $0.failure) }
                if let sync, sync.isOpen { return sync }
                if let failure { throw failure }
                await withTaskCancellationHandler {
                    await withCheckedContinuation { continuation in
                        let isKnown = state.withLock { state in
                            if Task.isCancelled || state.failure != nil || state.sync?.isOpen == true { return true }
                            state.waiting.append(continuation)
                            return false
                        }
                        if isKnown { continuation.resume() }
                    }
                } onCancel: {
                    // All waiting tasks look again. Those that find nothing wait on.
                    set { _ in }
                }
            }
        }
    }

    private let task: Task<Void, Never>
    private let current: Current

    /// The running synchronisation, if there is one.
    package var sync: ContainerSync? { current.sync }

    /// Returns the running synchronisation, as soon as there is one.
    ///
    /// - Throws: The error that keeps it from running; `CancellationError` when it was stopped.
    package func opened() async throws -> ContainerSync { try await current.opened() }

    /// The time until it looks again whether the other process still synchronises.
    static let otherProcessPause = Duration.seconds(5)

    /// - Parameters:
    ///   - container: The container.
    ///   - history: The history of the private store, by which the events of failures name it.
    ///   - environment: The clock and the waiting.
    ///   - events: Gets all events.
    ///   - previous: The automatic synchronisation of the container before this one, which is stopped first.
    ///   - open: Makes the synchronisation, with the right to synchronise.
    package init(
        _ container: ContainerDirectory, history: UUID, environment: SyncEnvironment, events: EventBroadcaster,
        after previous: AutomaticSync? = nil, open: @escaping @Sendable (SyncLock) throws -> ContainerSync
    ) {
        let current = Current()
        self.current = current
        task = Task {
            await previous?.stop()
            let failures = Failures(history: history, environment: environment, events: events)
            await Self.run(container, environment, events, failures, current, open)
            current.fail(CancellationError())
        }
    }

    deinit { task.cancel() }

    /// Ends the synchronisation, and returns when it has ended.
    package func stop() async {
        task.cancel()
        await task.value
    }

    private static func run(
        _ container: ContainerDirectory, _ environment: SyncEnvironment, _ events: EventBroadcaster, _ failures: Failures,
        _ current: Current, _ open: @Sendable (SyncLock) throws -> ContainerSync
    ) async {
        var backoff = SyncMachine.backoff
        while !Task.isCancelled {
            let pause: Duration
            do {
                try await run(SyncLock(container), events, failures, current, open)
                backoff.succeed()
                continue
            } catch is CancellationError {
                return
            } catch let error as StoreError where [.moved, .closed, .newerFormat].contains(error.code) {
                // The container is gone or unusable, so there is nothing to synchronise.
                return failures.post(error, current)
            } catch let failure as ContainerEvent.Failure where failure.cause == .anotherSyncer {
                failures.post(failure, current)
                pause = otherProcessPause
            } catch {
                failures.post(error, current)
                pause = backoff.fail(random: environment.random())
            }
            // A wait that is cancelled ends the loop.
            try? await environment.sleep(pause)
        }
    }

    /// Synchronises until an error occurs, or the task is cancelled.
    private static func run(
        _ lock: SyncLock, _ events: EventBroadcaster, _ failures: Failures, _ current: Current,
        _ open: @Sendable (SyncLock) throws -> ContainerSync
    ) async throws {
        let sync = try open(lock)
        defer {
            sync.close()
            sync.endEvents()
        }
        sync.broadcaster.forward(to: events)
        failures.forget()
        current.begin(sync)
        try await sync.run()
    }

    /// Posts failures to begin as events, each only once.
    private final class Failures: Sendable {
        private let history: UUID
        private let environment: SyncEnvironment
        private let events: EventBroadcaster
        private let last = LockedValue<ContainerEvent.Failure?>(nil)

        init(history: UUID, environment: SyncEnvironment, events: EventBroadcaster) {
            (self.history, self.environment, self.events) = (history, environment, events)
        }

        func forget() { last.withLock { $0 = nil } }

        func post(_ error: any Error, _ current: Current) {
            current.fail(error)
            let failure =
                error as? ContainerEvent.Failure
                ?? ContainerEvent.Failure(code: SyncErrorCode.notInitialized, reason: "\(error)")
            let isNew = last.withLock { last in
                defer { last = failure }
                return last != failure
            }
            guard isNew else { return }
            var event = ContainerEvent(
                id: environment.identifier(), store: history, kind: .setup, start: environment.now())
            event.end = event.start
            event.failure = failure
            events.post(event)
        }
    }
}
