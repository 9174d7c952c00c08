/// A sequence of values, which are fetched again after each change of the records behind them.
///
/// ``RecordObserving/observeCount(_:where:in:)`` and `observe(changesOf:fetch:)` return it:
///
/// ```swift
/// for try await count in journal.observeCount(Destination.self, where: \.rating >= 4) {
///     badge = count
/// }
/// ```
///
/// The sequence delivers the first value at once, and the next ones when something has changed. One fetch runs at a time, and none
/// runs while no task waits for a value. Changes that are committed during a fetch lead to one more fetch. So values may be
/// skipped; the newest one is always delivered.
///
/// Iteration throws `StoreError` when a store can no longer be read, and the errors of the program's own fetch. It ends when its
/// task is cancelled.
public struct FetchObservation<Value: Sendable>: AsyncSequence, Sendable {
    public typealias Element = Value

    /// Fetches the value the first time, and when something has changed. Returns `nil` when the value is the same as before.
    typealias Fetch = @Sendable () async throws -> Value?

    private let signals: CommitSignals
    private let makeFetch: @Sendable (ObservationEnvironment) -> Fetch
    /// The clock, and the hook for tests.
    package var environment = ObservationEnvironment()

    init(_ signals: CommitSignals, makeFetch: @escaping @Sendable (ObservationEnvironment) -> Fetch) {
        self.signals = signals
        self.makeFetch = makeFetch
    }

    /// Starts a separate observation, which ends with the iterator.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

    /// Waits for the value and for each change of it. Only one task may use it at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let signals: CommitSignals
        private let fetch: Fetch
        private let environment: ObservationEnvironment
        private var commits: AsyncStream<Void>.Iterator?
        private var pauseEnd = Duration.zero
        private var isDone = false

        fileprivate init(_ observation: FetchObservation) {
            signals = observation.signals
            environment = observation.environment
            fetch = observation.makeFetch(observation.environment)
        }

        /// Returns the value after the next change; `nil` when the task is cancelled.
        ///
        /// - Throws: `StoreError` when a store can no longer be read; the errors of the program's own fetch. After an error, `next`
        ///   returns `nil`.
        public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws -> Value? {
            while !isDone {
                do {
                    if commits == nil {
                        // Listen before the first fetch, so that no commit between the two is missed.
                        commits = try signals.listen().makeAsyncIterator()
                    } else {
                        guard try await waitForCommit(isolation: actor) else { break }
                    }
                    let start = environment.now()
                    let value = try await fetch()
                    let end = environment.now()
                    pauseEnd = end + ObservationEnvironment.pause(after: end - start)
                    if let value { return value }
                } catch {
                    isDone = true
                    if error is CancellationError || Task.isCancelled { return nil }
                    throw error
                }
            }
            isDone = true
            return nil
        }

        /// Returns `false` when the task is cancelled.
        private mutating func waitForCommit(isolation actor: isolated (any Actor)?) async throws -> Bool {
            // Commits during the pause become one signal.
            let pause = pauseEnd - environment.now()
            if pause > .zero { try await environment.sleep(pause) }
            return await commits?.next(isolation: actor) != nil
        }
    }
}
