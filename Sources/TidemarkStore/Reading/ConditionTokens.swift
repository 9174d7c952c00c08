/// A piece of an SQL expression.
struct ConditionToken: Equatable {
    enum Kind: Equatable {
        /// A name that is not quoted, in lower case: a column, a function or a keyword.
        case word
        /// A name in `"…"`, `` `…` `` or `[…]`, in lower case. SQLite takes one in `"…"` for a text where no column has the name.
        case quotedName
        case text, number, blob
        /// `?`, with its place among these. Of parameters with a number or a name nothing is known.
        case parameter(Int?)
        case symbol
    }

    let kind: Kind
    /// The piece as it is compared: a name in lower case, the content of a text, else what is written.
    let content: String
    /// The piece as it is written.
    let written: String
}

extension ConditionToken {
    /// Splits an SQL expression as SQLite does. What it can't read ends it: SQLite tells what is wrong.
    static func all(of expression: String) -> [ConditionToken] {
        var scanner = ConditionScanner(bytes: Array(expression.utf8))
        var tokens: [ConditionToken] = []
        while let token = scanner.next() { tokens.append(token) }
        return tokens
    }
}

private struct ConditionScanner {
    let bytes: [UInt8]
    private var position = 0
    private var parameters = 0
    /// Whether a parameter with a number or a name has come: what the plain ones behind it mean is not followed.
    private var hasOtherParameters = false

    private static let symbols = ["->>", "||", "->", "<>", "!=", "==", "<=", ">=", "<<", ">>"].map { Array($0.utf8) }

    init(bytes: [UInt8]) { self.bytes = bytes }

    private subscript(offset: Int) -> UInt8 {
        position + offset < bytes.count ? bytes[position + offset] : 0
    }

    private static func isNamePart(_ byte: UInt8) -> Bool { isDigit(byte) || isNameStart(byte) || byte == UInt8(ascii: "$") }

    private static func isNameStart(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) || byte == UInt8(ascii: "_") || byte >= 0x80
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private func text(from start: Int) -> String { String(decoding: bytes[start..<position], as: UTF8.self) }

    private mutating func skip(while isPart: (UInt8) -> Bool) {
        while position < bytes.count, isPart(bytes[position]) { position += 1 }
    }

    private mutating func skipSpace() {
        while position < bytes.count {
            switch (self[0], self[1]) {
            case (UInt8(ascii: "-"), UInt8(ascii: "-")): skip { $0 != UInt8(ascii: "\n") }
            case (UInt8(ascii: "/"), UInt8(ascii: "*")):
                position += 2
                while position < bytes.count, self[0] != UInt8(ascii: "*") || self[1] != UInt8(ascii: "/") { position += 1 }
                position = min(position + 2, bytes.count)
            case (9...13, _), (32, _): position += 1
            default: return
            }
        }
    }

    mutating func next() -> ConditionToken? {
        skipSpace()
        guard position < bytes.count else { return nil }
        let start = position
        switch self[0] {
        case UInt8(ascii: "'"): return quoted(.text, by: UInt8(ascii: "'"), from: start)
        case UInt8(ascii: "\""), UInt8(ascii: "`"): return quoted(.quotedName, by: self[0], from: start)
        case UInt8(ascii: "["): return quoted(.quotedName, by: UInt8(ascii: "]"), from: start)
        case UInt8(ascii: "x"), UInt8(ascii: "X"):
            guard self[1] == UInt8(ascii: "'") else { break }
            position += 1
            return quoted(.blob, by: UInt8(ascii: "'"), from: start)
        case UInt8(ascii: "?"):
            position += 1
            skip(while: Self.isDigit)
            hasOtherParameters = hasOtherParameters || position > start + 1
            parameters += 1
            return token(.parameter(hasOtherParameters ? nil : parameters - 1), from: start)
        case UInt8(ascii: ":"), UInt8(ascii: "@"), UInt8(ascii: "$"):
            position += 1
            skip(while: Self.isNamePart)
            hasOtherParameters = true
            return token(.parameter(nil), from: start)
        case UInt8(ascii: "."):
            guard Self.isDigit(self[1]) else { break }
            return number(from: start)
        default: break
        }
        if Self.isDigit(self[0]) { return number(from: start) }
        if Self.isNameStart(self[0]) {
            skip(while: Self.isNamePart)
            let written = text(from: start)
            return ConditionToken(kind: .word, content: written.lowercased(), written: written)
        }
        let symbol = Self.symbols.first { bytes[start...].starts(with: $0) }
        position += symbol?.count ?? 1
        return token(.symbol, from: start)
    }

    private func token(_ kind: ConditionToken.Kind, from start: Int) -> ConditionToken {
        ConditionToken(kind: kind, content: text(from: start), written: text(from: start))
    }

    private mutating func number(from start: Int) -> ConditionToken {
        skip { Self.isNamePart($0) || $0 == UInt8(ascii: ".") }
        // The sign of an exponent: 1e-5, and not that of 0x1e-5.
        let isHexadecimal = bytes[start...].starts(with: Array("0x".utf8)) || bytes[start...].starts(with: Array("0X".utf8))
        if !isHexadecimal, bytes[position - 1] | 0x20 == UInt8(ascii: "e"),
            [UInt8(ascii: "-"), UInt8(ascii: "+")].contains(self[0])
        {
            position += 1
            skip(while: Self.isDigit)
        }
        return token(.number, from: start)
    }

    /// Reads up to the closing quote; two of them are one that is meant.
    private mutating func quoted(_ kind: ConditionToken.Kind, by quote: UInt8, from start: Int) -> ConditionToken? {
        position += 1
        var content: [UInt8] = []
        while position < bytes.count {
            guard self[0] == quote else {
                content.append(self[0])
                position += 1
                continue
            }
            guard self[1] == quote, quote != UInt8(ascii: "]") else {
                position += 1
                let text = String(decoding: content, as: UTF8.self)
                return ConditionToken(
                    kind: kind, content: kind == .quotedName ? text.lowercased() : text, written: self.text(from: start))
            }
            content.append(quote)
            position += 2
        }
        return nil
    }
}
