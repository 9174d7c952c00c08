import TidemarkModel

/// Runs something for many callers, one run after the other. A caller that comes during a run gets the outcome of the next.
final class PostgresSharedTask<Outcome: Sendable>: Sendable {
    private struct State {
        var waiting: [CheckedContinuation<Result<Outcome, PostgresError>, Never>] = []
        var isRunning = false
    }

    private let body: @Sendable () async throws(PostgresError) -> Outcome
    private let state = LockedValue(State())

    init(_ body: @escaping @Sendable () async throws(PostgresError) -> Outcome) { self.body = body }

    /// Returns the outcome of a run that begins after the call.
    func run() async throws(PostgresError) -> Outcome {
        let result = await withCheckedContinuation { continuation in
            let begins = state.withLock { state in
                state.waiting.append(continuation)
                defer { state.isRunning = true }
                return !state.isRunning
            }
            // A task of its own: it serves other callers too if this caller's task is cancelled.
            if begins { Task { await runAll() } }
        }
        return try result.get()
    }

    private func runAll() async {
        while let waiting = next() {
            let result: Result<Outcome, PostgresError>
            do throws(PostgresError) {
                result = .success(try await body())
            } catch {
                result = .failure(error)
            }
            for continuation in waiting { continuation.resume(returning: result) }
        }
    }

    private func next() -> [CheckedContinuation<Result<Outcome, PostgresError>, Never>]? {
        state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.isRunning = false
                return nil
            }
            defer { state.waiting = [] }
            return state.waiting
        }
    }
}
