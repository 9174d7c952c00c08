import Foundation
import TidemarkTesting

/// A seeded generator. The seed is printed, and taken back from `TIDEMARK_SEED`.
public struct Randomness: RandomNumberGenerator, Sendable {
    public let seed: UInt64
    private var random: SeededRandom

    public init(_ purpose: String) {
        let given = ProcessInfo.processInfo.environment["TIDEMARK_SEED"].flatMap(UInt64.init)
        self.init(seed: given ?? UInt64.random(in: 1...UInt64(UInt32.max)))
        print("\(purpose): TIDEMARK_SEED=\(seed)")
    }

    public init(seed: UInt64) {
        self.seed = seed
        random = SeededRandom(seed)
    }

    public mutating func next() -> UInt64 { random.next() }
}
