/// Codes of a secret and the time, as authenticator apps make them: RFC 6238 with HMAC-SHA-1, 30 seconds and 6 digits.
package enum TimeCode {
    /// Seconds for which a code is shown.
    static let period: Int64 = 30
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

    /// The step of time of a moment in microseconds since 1970 UTC.
    static func step(at time: Int64) -> Int64 { time / 1_000_000 / period }

    /// The code of a step.
    package static func code(_ secret: [UInt8], step: Int64) -> String {
        let digest = Digest.hmacSHA1(step.bytesInOrder, key: secret)
        let offset = Int(digest[19] & 15)
        let number = digest[offset..<(offset + 4)].reduce(0 as UInt32) { $0 << 8 | UInt32($1) } & 0x7fff_ffff
        let digits = String(number % 1_000_000)
        return String(repeating: "0", count: 6 - digits.count) + digits
    }

    /// Bytes in base32 (RFC 4648) without padding, as apps take a secret.
    package static func base32(_ bytes: [UInt8]) -> String {
        var (text, kept, bits) = ([UInt8](), 0 as UInt32, 0 as UInt32)
        for byte in bytes {
            kept = kept << 8 | UInt32(byte)
            bits += 8
            while bits >= 5 {
                bits -= 5
                text.append(alphabet[Int(kept >> bits & 31)])
            }
        }
        if bits > 0 { text.append(alphabet[Int(kept << (5 - bits) & 31)]) }
        return String(decoding: text, as: UTF8.self)
    }
}
