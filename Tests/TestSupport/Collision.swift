import Foundation

/// Two different contents of one length with the same XXH3-128, which is easy to make: a multiplication by zero in one half of a lane
/// makes the other half commute between two stripes.
public enum Collision {
    /// The first 16 bytes of XXH3's default secret, and those that the second stripe uses.
    private static let secret: [UInt8] = [
        0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    ]

    public static let pair: (Data, Data) = (content(1, 2), content(2, 1))

    private static func content(_ first: UInt32, _ second: UInt32) -> Data {
        var bytes = [UInt8](repeating: 0x41, count: 512)
        for (stripe, value) in [first, second].enumerated() {
            let low = secret[(8 * stripe)..<(8 * stripe + 4)]
            bytes.replaceSubrange((64 * stripe)..<(64 * stripe + 4), with: low)
            let high = (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
            bytes.replaceSubrange((64 * stripe + 4)..<(64 * stripe + 8), with: high)
        }
        return Data(bytes)
    }
}
