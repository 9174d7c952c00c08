import Foundation
import TidemarkTesting

/// A seeded generator. The seed is printed: that of `TIDEMARK_SEED`, or one that follows from the purpose. `TIDEMARK_SEED=any`
/// takes a new seed.
public struct Randomness: RandomNumberGenerator, Sendable {
    public let seed: UInt64
    private var random: SeededRandom

    public init(_ purpose: String) {
        let given = ProcessInfo.processInfo.environment["TIDEMARK_SEED"]
        let own = purpose.utf8.reduce(2_166_136_261 as UInt32) { ($0 ^ UInt32($1)) &* 16_777_619 }
        self.init(seed: given == "any" ? UInt64.random(in: 1...UInt64(UInt32.max)) : given.flatMap(UInt64.init) ?? UInt64(own))
        print("\(purpose): TIDEMARK_SEED=\(seed)")
    }

    public init(seed: UInt64) {
        self.seed = seed
        random = SeededRandom(seed)
    }

    public mutating func next() -> UInt64 { random.next() }
}
