import TidemarkModel

/// The clock of an observation, and what tests follow of it.
package struct ObservationEnvironment: Sendable {
    /// The time since any fixed moment.
    package var now: @Sendable () -> Duration
    /// Waits that long.
    package var sleep: @Sendable (Duration) async throws -> Void
    /// Is called where a store is about to be fetched from, on the thread that fetches. A fetch waits until it returns.
    package var willFetch: @Sendable (StoreScope) -> Void = { _ in }

    private static let start = ContinuousClock.now

    /// The clock of the system.
    package init() {
        now = { Self.start.duration(to: .now) }
        sleep = { try await Task.sleep(for: $0) }
    }

    /// Makes an environment with a clock of one's own.
    package init(
        now: @escaping @Sendable () -> Duration, sleep: @escaping @Sendable (Duration) async throws -> Void,
        willFetch: @escaping @Sendable (StoreScope) -> Void = { _ in }
    ) {
        self.now = now
        self.sleep = sleep
        self.willFetch = willFetch
    }

    /// The pause after a fetch: four times as long as that took, so that an observation takes a fifth of a core while others write; and
    /// never longer than a person notices.
    static func pause(after work: Duration) -> Duration { min(max(.zero, work * 4), .milliseconds(100)) }
}
