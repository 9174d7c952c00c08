/// Writes text as JSON strings that are harmless in a terminal: control characters (C0, DEL, C1) and characters that change the
/// direction of text are escaped.
package enum JSONString {
    /// Appends a text with its quotes.
    package static func append(_ text: String, to out: inout [UInt8]) {
        out.append(0x22)
        var text = text
        text.withUTF8 { utf8 in
            var from = 0
            var at = 0
            while at < utf8.count {
                if at + 8 <= utf8.count, isPlain(UnsafeRawPointer(utf8.baseAddress! + at)) {
                    at += 8
                    continue
                }
                let byte = utf8[at]
                guard byte < 0x20 || byte == 0x22 || byte == 0x5c || byte == 0x7f || byte == 0xc2 || byte == 0xe2 else {
                    at += 1
                    continue
                }
                let (count, code) = escaped(utf8, at)
                if count > 0 {
                    out.append(contentsOf: UnsafeBufferPointer(rebasing: utf8[from..<at]))
                    append(code, to: &out)
                    from = at + count
                }
                at += max(1, count)
            }
            out.append(contentsOf: UnsafeBufferPointer(rebasing: utf8[from...]))
        }
        out.append(0x22)
    }

    /// Returns a JSON text with such characters escaped. They can only be in its strings.
    package static func escaping(_ json: some Collection<UInt8>) -> [UInt8] {
        let bytes = Array(json)
        guard bytes.contains(where: { $0 == 0x7f || $0 == 0xc2 || $0 == 0xe2 }) else { return bytes }
        var out: [UInt8] = []
        out.reserveCapacity(bytes.count + 64)
        bytes.withUnsafeBufferPointer { utf8 in
            var at = 0
            while at < utf8.count {
                let byte = utf8[at]
                let (count, code) = byte == 0x7f || byte == 0xc2 || byte == 0xe2 ? escaped(utf8, at) : (0, 0)
                if count > 0 { append(code, to: &out) } else { out.append(byte) }
                at += max(1, count)
            }
        }
        return out
    }

    /// Whether eight bytes are ASCII characters that need no escape. It tests all of them at once, since most text is like this.
    private static func isPlain(_ bytes: UnsafeRawPointer) -> Bool {
        let word = bytes.loadUnaligned(as: UInt64.self)
        let (ones, tops): (UInt64, UInt64) = (0x0101_0101_0101_0101, 0x8080_8080_8080_8080)
        // Each of the three tests sets the top bit of a byte that needs an escape. It may set further top bits above such a byte
        // only.
        func zeros(_ word: UInt64) -> UInt64 { (word &- ones) & ~word }
        let quotes = zeros(word ^ (ones &* 0x22)) | zeros(word ^ (ones &* 0x5c)) | zeros(word ^ (ones &* 0x7f))
        return (word | quotes | ((word &- ones &* 0x20) & ~word)) & tops == 0
    }

    /// The length in bytes and the code of the character at a place, if it is escaped; a length of 0 if it is not.
    private static func escaped(_ utf8: UnsafeBufferPointer<UInt8>, _ at: Int) -> (count: Int, code: UInt16) {
        let byte = utf8[at]
        if byte < 0x20 || byte == 0x22 || byte == 0x5c || byte == 0x7f { return (1, UInt16(byte)) }
        if byte == 0xc2, at + 1 < utf8.count, (0x80...0x9f).contains(utf8[at + 1]) { return (2, UInt16(utf8[at + 1])) }
        guard byte == 0xe2, at + 2 < utf8.count else { return (0, 0) }
        switch (utf8[at + 1], utf8[at + 2]) {
        // U+202A to U+202E, and the separators of lines and paragraphs before them.
        case (0x80, 0xa8...0xae): return (3, 0x2000 + UInt16(utf8[at + 2]) - 0x80)
        // U+2066 to U+2069.
        case (0x81, 0xa6...0xa9): return (3, 0x2040 + UInt16(utf8[at + 2]) - 0x80)
        default: return (0, 0)
        }
    }

    private static func append(_ code: UInt16, to out: inout [UInt8]) {
        out.append(0x5c)
        switch code {
        case 0x0a: out.append(0x6e)
        case 0x0d: out.append(0x72)
        case 0x09: out.append(0x74)
        case 0x22, 0x5c: out.append(UInt8(code))
        default:
            out.append(0x75)
            for shift in [12, 8, 4, 0] as [UInt16] {
                out.append(Hexadecimal.digit(UInt8(code >> shift & 15)))
            }
        }
    }
}
