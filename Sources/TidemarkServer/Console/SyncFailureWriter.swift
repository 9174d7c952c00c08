import Logging
import TidemarkCloudEngine
import TidemarkModel

/// Collects failures of clients, and writes them beside the requests: once a second at most, with equal failures merged.
///
/// No request waits for it or fails because of it. If the server is killed, the failures of about a second are lost.
final class SyncFailureWriter: Sendable {
    private struct State {
        /// By ``SyncFailure/kind``.
        var waiting: [SyncFailure: SyncFailure] = [:]
        /// The number of failures in ``waiting``, by group.
        var counts: [Group: Int] = [:]
        /// The number of failures for which there was no room.
        var dropped = 0
        /// The number of failures that are being written.
        var beingWritten = 0
        /// The task that writes until nothing waits.
        var writing: Task<Void, Never>?
    }

    /// Failures that share one limit. A client without an account takes no room from accounts. A device whose every record is
    /// refused takes none from other accounts. A client that tries many addresses takes none from other requests.
    private enum Group: Hashable {
        /// Failures of an account, by its identifier or by that of its session.
        case account(String)
        case signIns, nobody

        init(_ failure: SyncFailure) {
            let account = failure.account.isEmpty ? failure.session : failure.account
            guard account.isEmpty else {
                self = .account(account)
                return
            }
            self = failure.isSignInOfNobody ? .signIns : .nobody
        }

        /// The most different failures of the group that may wait.
        var limit: Int {
            switch self {
            case .account: SyncFailureLimits.ofAccount
            case .signIns: SyncFailureLimits.ofSignIns
            case .nobody: SyncFailureLimits.ofNobody
            }
        }
    }

    private let state = LockedValue(State())
    private let write: @Sendable ([SyncFailure]) async throws -> Void
    private let rest: @Sendable () async throws -> Void
    private let logger: Logger

    /// - Parameters:
    ///   - rest: Waits before each write; a parameter for tests.
    ///   - write: Adds failures to the cloud's storage.
    init(
        _ logger: Logger, rest: @escaping @Sendable () async throws -> Void = { try await Task.sleep(for: .seconds(1)) },
        write: @escaping @Sendable ([SyncFailure]) async throws -> Void
    ) {
        (self.logger, self.rest, self.write) = (logger, rest, write)
    }

    /// Adds failures of a request, to be written soon.
    func record(_ failures: [SyncFailure]) {
        guard !failures.isEmpty else { return }
        // Waiting failures hold no text that is as large as a request.
        let cut = failures.map { failure in
            var failure = failure
            failure.fit()
            return failure
        }
        state.withLock { state in
            for failure in cut {
                guard state.waiting[failure.kind]?.add(failure) == nil else { continue }
                let group = Group(failure)
                let own = state.counts[group] ?? 0
                let ofAccounts = state.waiting.count - (state.counts[.signIns] ?? 0) - (state.counts[.nobody] ?? 0)
                let isOfAccount = group != .signIns && group != .nobody
                guard own < group.limit, !isOfAccount || ofAccounts < SyncFailureLimits.ofAccounts else {
                    state.dropped += failure.count
                    continue
                }
                state.waiting[failure.kind] = failure
                state.counts[group] = own + 1
            }
            guard state.writing == nil else { return }
            state.writing = Task { [weak self, rest] in
                // If the pause is cancelled, the waiting failures are written at once.
                repeat { try? await rest() } while await self?.writeWaiting() == true
            }
        }
    }

    /// Writes the waiting failures.
    ///
    /// - Returns: Whether some may be waiting again.
    private func writeWaiting() async -> Bool {
        let (failures, dropped): ([SyncFailure], Int) = state.withLock { state in
            defer { (state.waiting, state.counts, state.dropped) = ([:], [:], 0) }
            if state.waiting.isEmpty { state.writing = nil }
            state.beingWritten = state.waiting.values.reduce(0) { $0 + $1.count }
            return (Array(state.waiting.values), state.dropped)
        }
        guard !failures.isEmpty else { return false }
        if dropped > 0 {
            logger.warning(
                "more was refused in a second than is kept: the list of sync errors lacks some",
                metadata: ["dropped": .stringConvertible(dropped)])
        }
        do {
            // The cancellation of this task does not cancel the write.
            try await Task { [write] in try await write(failures) }.value
        } catch {
            logger.warning(
                "the list of sync errors lacks what could not be written",
                metadata: ["count": .stringConvertible(failures.reduce(0) { $0 + $1.count }), "error": .string("\(error)")])
        }
        return true
    }

    /// Writes the waiting failures when no more requests come. If the storage does not answer in time, the log says what is lost:
    /// a server does not delay its end for diagnostics.
    func finish(within patience: Duration = .seconds(2)) async {
        let (ends, told) = AsyncStream<Bool>.makeStream()
        let clock = Task {
            // A cancelled sleep has ended, too.
            try? await Task.sleep(for: patience)
            told.yield(false)
        }
        Task { [self] in
            await finishWriting()
            told.yield(true)
        }
        // In a task of its own: the task of an ending server may be cancelled.
        let isWritten = await Task { () -> Bool in
            var answers = ends.makeAsyncIterator()
            return await answers.next() ?? false
        }.value
        clock.cancel()
        guard !isWritten else { return }
        let lost = state.withLock { state in
            state.beingWritten + state.waiting.values.reduce(0) { $0 + $1.count }
        }
        logger.warning(
            "the storage has not answered in time: the list of sync errors may lack the last",
            metadata: ["count": .stringConvertible(lost)])
    }

    private func finishWriting() async {
        // A running write is awaited. The pause before the next one is cut short.
        while let writing = state.withLock({ $0.writing }) {
            writing.cancel()
            await writing.value
        }
    }
}
