import Foundation
import TidemarkModel
import TidemarkTesting

/// The time of a run, which moves only when the simulation moves it.
final class VirtualTime: Sendable {
    private let elapsed = LockedValue<Int64>(0)

    /// Microseconds since 1970 UTC.
    var now: Int64 { 1_700_000_000_000_000 + elapsed.withLock { $0 } }

    func advance(by microseconds: Int64) { elapsed.withLock { $0 += max(0, microseconds) } }
}

/// Random numbers for closures that may be called from any thread, one at a time.
final class RandomSource: Sendable {
    private let random: LockedValue<SeededRandom>

    init(_ seed: UInt64) { random = LockedValue(SeededRandom(seed)) }

    func unit() -> Double { random.withLock { $0.unit() } }

    func identifier() -> UUID {
        let (high, low) = random.withLock { ($0.next(), $0.next()) }
        func bytes(_ number: UInt64) -> [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) } }
        let all = bytes(high) + bytes(low)
        return all.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }
}
