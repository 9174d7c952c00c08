/// The text of addresses and forms, as they come from outside.
enum TextCoding {
    /// A piece of a path, with what is behind percent signs taken back; `nil` when it is no text.
    static func decoded(_ piece: Substring.UTF8View, plusIsSpace: Bool = false) -> String? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(piece.count)
        var at = piece.startIndex
        while at < piece.endIndex {
            let byte = piece[at]
            at = piece.index(after: at)
            if byte == UInt8(ascii: "%") {
                guard at < piece.endIndex, let high = digit(piece[at]) else { return nil }
                at = piece.index(after: at)
                guard at < piece.endIndex, let low = digit(piece[at]) else { return nil }
                at = piece.index(after: at)
                bytes.append(high << 4 | low)
            } else {
                bytes.append(plusIsSpace && byte == UInt8(ascii: "+") ? 0x20 : byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }

    /// Names and values of a query or a form; of a name that comes twice, the first. What is no text is passed over.
    static func pairs(_ text: Substring) -> [String: String] {
        guard !text.isEmpty else { return [:] }
        var pairs: [String: String] = [:]
        for pair in text.utf8.split(separator: UInt8(ascii: "&"), maxSplits: 100) {
            let end = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
            guard let name = decoded(Substring(pair[..<end]).utf8, plusIsSpace: true) else { continue }
            let rest = end == pair.endIndex ? pair[end...] : pair[pair.index(after: end)...]
            guard let value = decoded(Substring(rest).utf8, plusIsSpace: true), pairs[name] == nil else { continue }
            pairs[name] = value
        }
        return pairs
    }

    /// A text as part of a query.
    static func encoded(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "~"):
                result.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                result += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return result
    }

    /// A text as part of HTML, between tags or in an attribute.
    static func html(_ text: String) -> String {
        var result = ""
        for character in text.unicodeScalars {
            switch character {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "'": result += "&#39;"
            default: result.unicodeScalars.append(character)
            }
        }
        return result
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
