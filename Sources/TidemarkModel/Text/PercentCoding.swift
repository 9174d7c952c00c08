/// Text in addresses and forms: percent encoding (RFC 3986, section 2.1).
///
/// Foundation's decoding does not read forms, in which `+` stands for a space. Its encoding takes a `CharacterSet`, and the
/// ready-made sets leave characters unencoded that this encoding has to encode.
package enum PercentCoding {
    /// Returns a text as it can stand in a path or in the value of a query: all but letters, digits, `-`, `.`, `_` and `~` is encoded.
    ///
    /// - Parameter keepsSlashes: Whether slashes stay, as in a whole path.
    package static func encoded(_ text: String, keepsSlashes: Bool = false) -> String {
        var text = text
        return text.withUTF8 { bytes in
            String(unsafeUninitializedCapacity: 3 * bytes.count) { encoded in
                var count = 0
                for byte in bytes {
                    if isUnreserved(byte) || keepsSlashes && byte == UInt8(ascii: "/") {
                        encoded[count] = byte
                        count += 1
                    } else {
                        encoded[count] = UInt8(ascii: "%")
                        encoded[count + 1] = upperCaseDigit(byte >> 4)
                        encoded[count + 2] = upperCaseDigit(byte & 15)
                        count += 3
                    }
                }
                return count
            }
        }
    }

    /// Returns the text that was encoded; `nil` where a percent sign has no two digits behind it, or the bytes are not UTF-8.
    ///
    /// - Parameter plusIsSpace: Whether `+` stands for a space, as in forms.
    package static func decoded(_ text: Substring.UTF8View, plusIsSpace: Bool = false) -> String? {
        let bytes = text.withContiguousStorageIfAvailable { decoded($0, plusIsSpace) }
        return bytes ?? Array(text).withUnsafeBufferPointer { decoded($0, plusIsSpace) }
    }

    package static func decoded(_ text: some StringProtocol, plusIsSpace: Bool = false) -> String? {
        decoded(Substring(text).utf8, plusIsSpace: plusIsSpace)
    }

    private static func decoded(_ text: UnsafeBufferPointer<UInt8>, _ plusIsSpace: Bool) -> String? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var place = 0
        while place < text.count {
            let byte = text[place]
            place += 1
            if byte == UInt8(ascii: "%") {
                guard place + 1 < text.count, let high = Hexadecimal.value(ofDigit: text[place]),
                    let low = Hexadecimal.value(ofDigit: text[place + 1])
                else { return nil }
                bytes.append(high << 4 | low)
                place += 2
            } else {
                bytes.append(plusIsSpace && byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
            true
        default: false
        }
    }

    private static func upperCaseDigit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x37 + value }
}
