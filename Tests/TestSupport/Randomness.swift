import Foundation

/// A seeded generator (SplitMix64). The seed is printed, and taken back from `TIDEMARK_SEED`.
public struct Randomness: RandomNumberGenerator, Sendable {
    public let seed: UInt64
    private var state: UInt64

    public init(_ purpose: String) {
        let given = ProcessInfo.processInfo.environment["TIDEMARK_SEED"].flatMap(UInt64.init)
        self.init(seed: given ?? UInt64.random(in: 1...UInt64(UInt32.max)))
        print("\(purpose): TIDEMARK_SEED=\(seed)")
    }

    public init(seed: UInt64) {
        self.seed = seed
        state = seed
    }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
