public import Foundation
import TidemarkModel

/// The clock, the randomness and the waiting of a synchronisation, which a simulation replaces.
public struct SyncEnvironment: Sendable {
    /// Microseconds since 1970 UTC.
    public var now: @Sendable () -> Int64
    /// Waits for a duration; throws `CancellationError` when the task is cancelled.
    public var sleep: @Sendable (Duration) async throws -> Void
    /// A number from 0 up to 1.
    public var random: @Sendable () -> Double
    /// Makes a UUID that nothing else has.
    public var identifier: @Sendable () -> UUID
    /// Whether the next page and the next batch are prepared while the present one is handled. The outcome is the same, but the order in
    /// which stores and clouds are asked is not: turn it off to replay a run.
    public var looksAhead: Bool
    /// Makes a stream with an element for each change of the network, as an interface that comes or goes: a cloud that could not be reached
    /// is tried again then. The stream may end, where the system reports no changes.
    public var networkChanges: @Sendable () -> AsyncStream<Void>
    /// When the next page and batch are prepared; a replay fixes it.
    package var aheadOrder = AheadOrder.beside

    /// When the next page and the next batch are prepared.
    package enum AheadOrder: Sendable, CaseIterable {
        /// While the present one is handled.
        case beside
        /// Before the present one is handled.
        case before
        /// After the present one was handled.
        case behind
    }

    /// Makes an environment of a simulation or a test; see the properties.
    public init(
        now: @escaping @Sendable () -> Int64, sleep: @escaping @Sendable (Duration) async throws -> Void,
        random: @escaping @Sendable () -> Double, identifier: @escaping @Sendable () -> UUID, looksAhead: Bool = false,
        networkChanges: @escaping @Sendable () -> AsyncStream<Void> = { AsyncStream { $0.finish() } }
    ) {
        self.now = now
        self.sleep = sleep
        self.random = random
        self.identifier = identifier
        self.looksAhead = looksAhead
        self.networkChanges = networkChanges
    }

    /// The environment with a clock whose times are bounded, so that durations can be added to them.
    var bounded: SyncEnvironment {
        var environment = self
        environment.now = Timestamp.bounded(now)
        return environment
    }

    /// The environment of the system.
    public static let system = SyncEnvironment(
        now: Timestamp.now, sleep: { try await Task.sleep(for: $0) }, random: { Double.random(in: 0..<1) },
        identifier: { UUID() }, looksAhead: true, networkChanges: { NetworkMonitor.changes() })
}
