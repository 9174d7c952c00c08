import Foundation

/// Bytes as text that an address can have as it is: base64 with `-` and `_`, and no padding (RFC 4648, section 5).
enum Base64URL {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// The number that a byte of text stands for. Plain base64 is understood as well, and so is a space for `+`, which is what becomes of a
    /// plus sign in an address.
    private static let numbers: [UInt8?] = {
        var numbers = [UInt8?](repeating: nil, count: 256)
        for (number, digit) in digits.enumerated() { numbers[Int(digit)] = UInt8(number) }
        for digit in "+ ".utf8 { numbers[Int(digit)] = 62 }
        numbers[Int(UInt8(ascii: "/"))] = 63
        return numbers
    }()

    static func text(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        var (kept, bits) = (0 as UInt32, 0)
        for byte in bytes {
            kept = kept << 8 | UInt32(byte)
            bits += 8
            while bits >= 6 {
                bits -= 6
                text.append(digits[Int(kept >> UInt32(bits) & 63)])
            }
        }
        if bits > 0 { text.append(digits[Int(kept << UInt32(6 - bits) & 63)]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// - Returns: `nil` for a text that is none. One run of bytes has one text: bits that are left over must be zero.
    static func bytes(_ text: String) -> [UInt8]? {
        var rest = text.utf8[...]
        while rest.last == UInt8(ascii: "=") { rest.removeLast() }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(rest.count * 3 / 4)
        var (kept, bits) = (0 as UInt32, 0)
        for digit in rest {
            guard let number = numbers[Int(digit)] else { return nil }
            kept = kept << 6 | UInt32(number)
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: kept >> UInt32(bits)))
            }
        }
        guard bits < 6, kept & (1 << UInt32(bits) - 1) == 0 else { return nil }
        return bytes
    }
}
