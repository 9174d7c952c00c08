public import Foundation
import TidemarkModel

/// What a synchronisation takes from the world, apart from the store and the cloud: so that a simulation can give its own.
public struct SyncEnvironment: Sendable {
    /// Microseconds since 1970 UTC.
    public var now: @Sendable () -> Int64
    /// Waits for a duration; throws `CancellationError` when the task is cancelled.
    public var sleep: @Sendable (Duration) async throws -> Void
    /// A number from 0 up to 1.
    public var random: @Sendable () -> Double
    /// A name that nothing else has.
    public var identifier: @Sendable () -> UUID
    /// Whether the next page and the next batch are looked for while the one at hand is dealt with. What comes of it is the same; in which
    /// order stores and clouds are asked is not, so that one who replays a run leaves it off.
    public var looksAhead: Bool
    /// When that is done; one who replays a run says so.
    package var aheadOrder = AheadOrder.beside

    /// When the next page and the next batch are looked for.
    package enum AheadOrder: Sendable, CaseIterable {
        /// While the one at hand is dealt with.
        case beside
        /// Before it is dealt with.
        case before
        /// When it has been dealt with.
        case behind
    }

    /// Makes an environment of a simulation or a test; see the properties.
    public init(
        now: @escaping @Sendable () -> Int64, sleep: @escaping @Sendable (Duration) async throws -> Void,
        random: @escaping @Sendable () -> Double, identifier: @escaping @Sendable () -> UUID, looksAhead: Bool = false
    ) {
        self.now = now
        self.sleep = sleep
        self.random = random
        self.identifier = identifier
        self.looksAhead = looksAhead
    }

    /// The system's.
    public static let system = SyncEnvironment(
        now: Timestamp.now, sleep: { try await Task.sleep(for: $0) }, random: { Double.random(in: 0..<1) },
        identifier: { UUID() }, looksAhead: true)
}
