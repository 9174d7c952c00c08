import Logging
import TidemarkCloudEngine
import TidemarkModel

/// Collects what clients are refused, and writes it beside the requests: once a second at the most, and equal failures as one.
///
/// No request waits for it, and none fails with it. What a server has collected when it is killed is lost: a second's failures.
final class SyncFailureWriter: Sendable {
    private struct State {
        /// By ``SyncFailure/kind``.
        var waiting: [SyncFailure: SyncFailure] = [:]
        /// How many of ``waiting`` each group has.
        var counts: [Group: Int] = [:]
        /// How many failures had no room.
        var dropped = 0
        /// How many failures a write has that is under way.
        var beingWritten = 0
        /// Writes until nothing waits.
        var writing: Task<Void, Never>?
    }

    /// Failures that share one bound. A client without an account takes no place from accounts, a device whose every record is refused takes none
    /// from other accounts, and a client that tries many addresses takes none from other requests.
    private enum Group: Hashable {
        /// Those of an account, by its identifier or by that of its session.
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

        /// How many different failures of the group wait at the most.
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

    /// Takes failures of a request, which are written soon.
    func record(_ failures: [SyncFailure]) {
        guard !failures.isEmpty else { return }
        // What waits holds no text that is as large as a request.
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
                // A rest that is cut short is over: what waits is written.
                repeat { try? await rest() } while await self?.writeWaiting() == true
            }
        }
    }

    /// Writes what waits.
    ///
    /// - Returns: Whether something may wait again.
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
            // What the task is told by its end does not end what it writes.
            try await Task { [write] in try await write(failures) }.value
        } catch {
            logger.warning(
                "the list of sync errors lacks what could not be written",
                metadata: ["count": .stringConvertible(failures.reduce(0) { $0 + $1.count }), "error": .string("\(error)")])
        }
        return true
    }

    /// Writes what waits, when no more requests come. The log says what is lost where the storage does not answer in time: the end of a server
    /// waits for no diagnostics.
    func finish(within patience: Duration = .seconds(2)) async {
        let (ends, told) = AsyncStream<Bool>.makeStream()
        let clock = Task {
            // A sleep that is cut short is over.
            try? await Task.sleep(for: patience)
            told.yield(false)
        }
        Task { [self] in
            await finishWriting()
            told.yield(true)
        }
        // In a task of its own: that of a server that ends may have been cancelled.
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
        // A write that is under way is waited for; the rest before the next one is cut short.
        while let writing = state.withLock({ $0.writing }) {
            writing.cancel()
            await writing.value
        }
    }
}
