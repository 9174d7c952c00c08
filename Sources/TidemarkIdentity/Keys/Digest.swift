import COpenSSL
import Foundation
import TidemarkModel

/// SHA-256 and HMAC, and a comparison in constant time.
enum Digest {
    static let size = 32

    static func sha256(_ bytes: some ContiguousBytes) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: size)
        // It fails only without memory.
        let isDone = bytes.withUnsafeBytes { EVP_Digest($0.baseAddress, $0.count, &digest, nil, EVP_sha256(), nil) }
        precondition(isDone == 1)
        return digest
    }

    static func hmac(_ bytes: [UInt8], key: [UInt8]) -> [UInt8] { HMACSHA256.code(of: bytes, key: key) }

    /// HMAC-SHA-1, of which codes of second factors are made: 20 bytes.
    static func hmacSHA1(_ bytes: [UInt8], key: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 20)
        var count: UInt32 = 0
        precondition(HMAC(EVP_sha1(), key, Int32(key.count), bytes, bytes.count, &digest, &count) != nil && count == 20)
        return digest
    }

    /// Whether both are the same, in a time that does not depend on where they differ.
    static func areEqual(_ left: some Collection<UInt8>, _ right: some Collection<UInt8>) -> Bool {
        let (left, right) = (Array(left), Array(right))
        return left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
    }
}

extension FixedWidthInteger {
    /// The bytes of a number, the most significant one first.
    var bytesInOrder: [UInt8] { withUnsafeBytes(of: bigEndian, Array.init) }

    /// - Parameter bytes: The bytes of the number, the most significant one first.
    init(bytesInOrder bytes: some Collection<UInt8>) {
        precondition(bytes.count == Self.bitWidth / 8)
        self = bytes.reduce(0) { $0 << 8 | Self(truncatingIfNeeded: $1) }
    }
}
