/// Bytes as text: two hexadecimal digits for each byte.
package enum Hexadecimal {
    /// Returns the digits of bytes, in lower case.
    package static func text(_ bytes: some Collection<UInt8>) -> String {
        bytes.withContiguousStorageIfAvailable { text(of: $0) } ?? Array(bytes).withUnsafeBufferPointer { text(of: $0) }
    }

    private static func text(of bytes: UnsafeBufferPointer<UInt8>) -> String {
        String(unsafeUninitializedCapacity: 2 * bytes.count) { text in
            for (place, byte) in bytes.enumerated() {
                text[2 * place] = digit(byte >> 4)
                text[2 * place + 1] = digit(byte & 15)
            }
            return 2 * bytes.count
        }
    }

    /// Returns the bytes of a text with digits in lower or upper case; `nil` if the text is not made of pairs of digits.
    package static func bytes(_ text: some StringProtocol) -> [UInt8]? {
        let utf8 = text.utf8
        // The inner optional is the result.
        return utf8.withContiguousStorageIfAvailable { bytes(of: $0) } ?? Array(utf8).withUnsafeBufferPointer { bytes(of: $0) }
    }

    private static func bytes(of digits: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 2)
        for place in stride(from: 0, to: digits.count, by: 2) {
            guard let high = value(ofDigit: digits[place]), let low = value(ofDigit: digits[place + 1]) else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    /// Whether ``text(_:)`` can have returned a text for `count` bytes.
    package static func isText(_ text: some StringProtocol, ofBytes count: Int) -> Bool {
        func isText(_ digits: UnsafeBufferPointer<UInt8>) -> Bool {
            digits.count == 2 * count && digits.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
        }
        let utf8 = text.utf8
        return utf8.withContiguousStorageIfAvailable(isText) ?? Array(utf8).withUnsafeBufferPointer(isText)
    }

    /// The character of a number from 0 to 15, in lower case.
    static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }

    /// The number of a digit in lower or upper case; `nil` for other characters.
    static func value(ofDigit digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x41...0x46: digit - 0x37
        case 0x61...0x66: digit - 0x57
        default: nil
        }
    }
}
