import Foundation
import TidemarkCloud

/// Numbers of changes as callers get them: in tags and tokens.
///
/// All databases of a container count together. Who sees a part of a zone could tell from the numbers themselves how much changes beside it. So
/// they are told under a permutation that only the cloud knows: equal ones can be told from different ones, and nothing more.
package struct ChangeTagCipher: Sendable {
    private let key: [UInt8]
    private let words: [UInt32]

    /// - Parameter key: 16 bytes.
    init(_ key: [UInt8]) {
        precondition(key.count == 16)
        self.key = key
        words = stride(from: 0, to: 16, by: 4).map { place in key[place..<(place + 4)].reduce(0) { $0 << 8 | UInt32($1) } }
    }

    func text(_ number: Int64) -> String { String(encrypt(UInt64(bitPattern: number)), radix: 36) }

    /// - Returns: `nil` for a text that is not one of these.
    package func number(_ text: some StringProtocol) -> Int64? {
        guard let encrypted = UInt64(text, radix: 36) else { return nil }
        let number = Int64(bitPattern: decrypt(encrypted))
        return number < 0 ? nil : number
    }

    /// The same for the same text, and telling nothing of it.
    func digest(_ text: String) -> String { String(AssetDigest.asset(of: Data(key + Array(text.utf8))).digest.prefix(32)) }

    // XTEA: a block cipher of 64 bits, by Needham and Wheeler (1997), with 32 cycles.

    private static let delta: UInt32 = 0x9e37_79b9
    private static let cycles: UInt32 = 32

    private func encrypt(_ block: UInt64) -> UInt64 {
        var (left, right, sum) = (UInt32(truncatingIfNeeded: block >> 32), UInt32(truncatingIfNeeded: block), 0 as UInt32)
        for _ in 0..<Self.cycles {
            left &+= ((right << 4 ^ right >> 5) &+ right) ^ (sum &+ words[Int(sum & 3)])
            sum &+= Self.delta
            right &+= ((left << 4 ^ left >> 5) &+ left) ^ (sum &+ words[Int(sum >> 11 & 3)])
        }
        return UInt64(left) << 32 | UInt64(right)
    }

    private func decrypt(_ block: UInt64) -> UInt64 {
        var (left, right) = (UInt32(truncatingIfNeeded: block >> 32), UInt32(truncatingIfNeeded: block))
        var sum = Self.delta &* Self.cycles
        for _ in 0..<Self.cycles {
            right &-= ((left << 4 ^ left >> 5) &+ left) ^ (sum &+ words[Int(sum >> 11 & 3)])
            sum &-= Self.delta
            left &-= ((right << 4 ^ right >> 5) &+ right) ^ (sum &+ words[Int(sum & 3)])
        }
        return UInt64(left) << 32 | UInt64(right)
    }
}
