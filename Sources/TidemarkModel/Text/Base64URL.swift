/// Bytes as text that needs no encoding in an address: base64 with `-` and `_`, and no padding (RFC 4648, section 5).
package enum Base64URL {
    private static let digits: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

    /// The number that each byte of text stands for. The signs `+` and `/` of plain base64 are read as well. A space is read as
    /// `+`, because form decoding turns a plus sign into a space.
    private static let numbers: [UInt8?] = {
        var numbers = [UInt8?](repeating: nil, count: 256)
        for (number, digit) in digits.description.utf8.enumerated() { numbers[Int(digit)] = UInt8(number) }
        for digit in "+ ".utf8 { numbers[Int(digit)] = 62 }
        numbers[Int(UInt8(ascii: "/"))] = 63
        return numbers
    }()

    package static func text(_ bytes: some Collection<UInt8>) -> String {
        bytes.withContiguousStorageIfAvailable { text(of: $0) } ?? Array(bytes).withUnsafeBufferPointer { text(of: $0) }
    }

    private static func text(of bytes: UnsafeBufferPointer<UInt8>) -> String {
        let digits = digits.utf8Start
        return String(unsafeUninitializedCapacity: (bytes.count * 4 + 2) / 3) { text in
            var (kept, bits, count) = (0 as UInt32, 0 as UInt32, 0)
            for byte in bytes {
                kept = kept << 8 | UInt32(byte)
                bits += 8
                while bits >= 6 {
                    bits -= 6
                    text[count] = digits[Int(kept >> bits & 63)]
                    count += 1
                }
            }
            if bits > 0 {
                text[count] = digits[Int(kept << (6 - bits) & 63)]
                count += 1
            }
            return count
        }
    }

    /// Returns the bytes of a text; `nil` if the text can't be read. Bits that are left over must be zero, so that bytes have
    /// only one text.
    package static func bytes(_ text: some StringProtocol) -> [UInt8]? {
        var rest = Substring(text).utf8[...]
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
