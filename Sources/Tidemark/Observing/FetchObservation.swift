/// A value that is fetched again after each change of what it was made of: what ``RecordObserving/observeCount(_:where:in:)`` and
/// ``RecordObserving/observe(changesOf:fetch:)`` return.
///
/// ```swift
/// for try await count in journal.observeCount(Destination.self, where: \.rating >= 4) {
///     badge = count
/// }
/// ```
///
/// The first value comes at once, and the next ones when something has changed. There is one fetch at a time, none while nobody waits for
/// a value, and changes that come during a fetch become one more fetch. So values may be left out; the newest one always comes.
///
/// Iteration throws `StoreError` when the stores can't be read any longer, and what the program's own fetch throws. It ends when its task is
/// cancelled.
public struct FetchObservation<Value: Sendable>: AsyncSequence, Sendable {
    public typealias Element = Value

    /// Fetches if something has changed, and the first time; `nil` when the value is as before.
    typealias Fetch = @Sendable () async throws -> Value?

    private let signals: CommitSignals
    private let makeFetch: @Sendable (ObservationEnvironment) -> Fetch
    /// The clock, and what tests follow.
    package var environment = ObservationEnvironment()

    init(_ signals: CommitSignals, makeFetch: @escaping @Sendable (ObservationEnvironment) -> Fetch) {
        self.signals = signals
        self.makeFetch = makeFetch
    }

    /// Begins an observation of its own, which ends with the iterator.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

    /// Waits for the value, and for each change of it; one task at a time.
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
        /// - Throws: `StoreError` when a store can't be read any longer; what the program's own fetch throws. After that it returns `nil`.
        public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws -> Value? {
            while !isDone {
                do {
                    if commits == nil {
                        // Listening comes first, so that nothing is missed between fetching and listening.
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
            // The commits of the pause become one signal.
            let pause = pauseEnd - environment.now()
            if pause > .zero { try await environment.sleep(pause) }
            return await commits?.next(isolation: actor) != nil
        }
    }
}
