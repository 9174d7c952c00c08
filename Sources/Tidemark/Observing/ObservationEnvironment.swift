import TidemarkModel

/// The clock of an observation, and the hook by which tests follow its fetches.
package struct ObservationEnvironment: Sendable {
    /// Returns the time since a fixed moment.
    package var now: @Sendable () -> Duration
    /// Waits for a duration.
    package var sleep: @Sendable (Duration) async throws -> Void
    /// Called before each fetch from a store, on the thread of the fetch. The fetch waits until the call returns.
    package var willFetch: @Sendable (StoreScope) -> Void = { _ in }

    private static let start = ContinuousClock.now

    /// Creates an environment with the clock of the system.
    package init() {
        now = { Self.start.duration(to: .now) }
        sleep = { try await Task.sleep(for: $0) }
    }

    /// Creates an environment with the given clock.
    package init(
        now: @escaping @Sendable () -> Duration, sleep: @escaping @Sendable (Duration) async throws -> Void,
        willFetch: @escaping @Sendable (StoreScope) -> Void = { _ in }
    ) {
        self.now = now
        self.sleep = sleep
        self.willFetch = willFetch
    }

    /// Returns the pause after a fetch that took `work`: four times as long, at most 100 ms. So an observation uses at most a fifth
    /// of a core while others write, and no person notices the delay.
    static func pause(after work: Duration) -> Duration { min(max(.zero, work * 4), .milliseconds(100)) }
}
