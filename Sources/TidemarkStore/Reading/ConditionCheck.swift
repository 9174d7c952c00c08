import GRDB
import TidemarkModel
import TidemarkSQLite

/// Finds comparisons of a field with a value of another type, which SQLite answers without an error, and the same for all records.
///
/// It reads comparisons of a field with a literal or a parameter, and of a time with one of SQLite's functions of time. What is in a
/// subquery, and what is part of a longer expression, it leaves to SQLite.
struct ConditionCheck {
    private let type: StoredType
    private let tokens: [ConditionToken]
    private let values: [DatabaseValue]
    /// Whether each token is in a subquery, where names may mean fields of another type.
    private let isInSubquery: [Bool]

    /// - Parameter values: What stands for `?`, in their order.
    init(_ condition: String, of type: StoredType, _ values: [DatabaseValue]) {
        self.type = type
        self.values = values
        tokens = ConditionToken.all(of: condition)
        var open: [Bool] = []
        isInSubquery = tokens.enumerated().map { [tokens] index, token in
            let isInside = open.last ?? false
            if token.isSymbol("(") {
                let starts = ["select", "with", "values"].contains { index + 1 < tokens.count && tokens[index + 1].isWord($0) }
                open.append(isInside || starts)
            } else if token.isSymbol(")") {
                _ = open.popLast()
            }
            return isInside
        }
    }

    /// - Throws: ``StoreError`` `sql`.
    func run() throws {
        for index in tokens.indices where !isInSubquery[index] && isStart(index) {
            guard let field = field(at: index) else { continue }
            try check(field, at: index)
        }
        for index in tokens.indices.dropFirst(2) where !isInSubquery[index] && isEnd(index + 1) && !isReference(index - 1) {
            // A value before the field.
            guard let field = field(at: index), Self.operators.contains(tokens[index - 1].content),
                case (let value, let end)? = value(before: index - 1), isStart(end)
            else { continue }
            try compare(field, tokens[index - 1].content, value)
        }
    }

    private static let operators: Set = ["=", "==", "<>", "!=", "<", "<=", ">", ">="]
    private static let timeFunctions: Set = ["date", "datetime", "time", "strftime", "unixepoch", "julianday"]

    private func token(_ index: Int) -> ConditionToken? { tokens.indices.contains(index) ? tokens[index] : nil }

    private func isReference(_ index: Int) -> Bool { token(index)?.isSymbol(".") ?? false }

    /// Whether a comparison may begin there.
    private func isStart(_ index: Int) -> Bool {
        guard let before = token(index - 1) else { return true }
        return before.isSymbol("(") || before.isSymbol(",")
            || ["and", "or", "not", "when", "then", "else", "where"].contains { before.isWord($0) }
    }

    /// Whether a comparison may have ended before that.
    private func isEnd(_ index: Int) -> Bool {
        guard let after = token(index) else { return true }
        return after.isSymbol(")") || after.isSymbol(",")
            || ["and", "or", "then", "else", "when", "end", "collate"].contains { after.isWord($0) }
    }

    // Fields and values

    private struct ComparedField {
        let name: String
        /// `nil` for the name of a record, which SQLite compares with no number.
        let type: FieldType?
        let isBoolean: Bool
    }

    private func field(at index: Int) -> ComparedField? {
        guard let token = token(index), token.kind == .word || token.kind == .quotedName,
            !(self.token(index + 1)?.isSymbol("(") ?? false), !isReference(index + 1)
        else { return nil }
        if token.content == "_name" || token.content == type.nameField?.lowercased() {
            return ComparedField(name: token.written, type: nil, isBoolean: false)
        }
        return type.fields.first { $0.column.lowercased() == token.content }
            .map { ComparedField(name: $0.name, type: $0.type, isBoolean: $0.isBoolean) }
    }

    private struct ComparedValue {
        enum Kind { case text, number, blob, null, secondsOrDays }
        let kind: Kind
        let content, written: String
    }

    /// Reads the value that begins there.
    ///
    /// - Returns: `nil` where it is no literal, no parameter whose value is known, and no function of time.
    private func value(at index: Int) -> (value: ComparedValue, next: Int)? {
        guard let token = token(index) else { return nil }
        switch token.kind {
        case .text: return (.init(kind: .text, content: token.content, written: token.written), index + 1)
        case .blob: return (.init(kind: .blob, content: token.content, written: token.written), index + 1)
        case .number: return (.init(kind: .number, content: token.content, written: token.written), index + 1)
        case .symbol:
            guard token.isSymbol("-") || token.isSymbol("+"), let number = self.token(index + 1), number.kind == .number else {
                return nil
            }
            let text = token.written + number.written
            return (.init(kind: .number, content: text, written: text), index + 2)
        case .parameter(let place):
            guard let place, values.indices.contains(place) else { return nil }
            return (Self.value(values[place]), index + 1)
        case .quotedName:
            // A name that no column has is a text in SQLite.
            guard token.written.hasPrefix("\""), field(at: index) == nil, !token.content.hasPrefix("_"), !isReference(index + 1)
            else {
                return nil
            }
            return (.init(kind: .text, content: token.content, written: token.written), index + 1)
        case .word:
            if token.isWord("null") { return (.init(kind: .null, content: "NULL", written: token.written), index + 1) }
            guard Self.timeFunctions.contains(token.content), self.token(index + 1)?.isSymbol("(") ?? false,
                let end = end(ofParenthesis: index + 1)
            else { return nil }
            let isNumber = ["unixepoch", "julianday"].contains(token.content)
            return (.init(kind: isNumber ? .secondsOrDays : .text, content: "", written: token.written + "(…)"), end + 1)
        }
    }

    private static func value(_ value: DatabaseValue) -> ComparedValue {
        switch value.storage {
        case .null: .init(kind: .null, content: "NULL", written: "a value of nil")
        case .int64(let number): .init(kind: .number, content: "\(number)", written: "\(number)")
        case .double(let number): .init(kind: .number, content: "\(number)", written: "\(number)")
        case .string(let text): .init(kind: .text, content: text, written: "'\(text)'")
        case .blob: .init(kind: .blob, content: "", written: "a value of bytes")
        }
    }

    /// Reads the literal or parameter that ends before an index.
    ///
    /// - Returns: The value and where it begins.
    private func value(before index: Int) -> (value: ComparedValue, start: Int)? {
        for start in [index - 2, index - 1] where start >= 0 {
            if let (value, next) = value(at: start), next == index, token(start)?.kind != .word || value.kind == .null {
                return (value, start)
            }
        }
        return nil
    }

    private func end(ofParenthesis index: Int) -> Int? {
        var depth = 0
        for index in index..<tokens.count {
            if tokens[index].isSymbol("(") { depth += 1 }
            if tokens[index].isSymbol(")") { depth -= 1 }
            if depth == 0 { return index }
        }
        return nil
    }

    // Comparisons

    private func check(_ field: ComparedField, at index: Int) throws {
        var next = index + 1
        let isNegated = token(next)?.isWord("not") ?? false
        if isNegated { next += 1 }
        guard let first = token(next) else { return }
        if first.isWord("in"), token(next + 1)?.isSymbol("(") ?? false {
            var place = next + 2
            while let (value, end) = value(at: place), let after = token(end), after.isSymbol(",") || after.isSymbol(")") {
                try compare(field, "=", value)
                place = end + 1
            }
        } else if first.isWord("between") {
            guard let (low, end) = value(at: next + 1), token(end)?.isWord("and") ?? false else { return }
            try compare(field, ">=", low)
            guard let (high, last) = value(at: end + 1), isEnd(last) else { return }
            try compare(field, "<=", high)
        } else if first.isWord("is") {
            next += 1
            for word in ["not", "distinct", "from"] where token(next)?.isWord(word) ?? false { next += 1 }
            guard let (value, end) = value(at: next), isEnd(end), value.kind != .null else { return }
            try compare(field, "=", value)
        } else if !isNegated, Self.operators.contains(first.content) {
            guard let (value, end) = value(at: next + 1), isEnd(end) else { return }
            try compare(field, first.content, value)
        }
    }

    /// - Throws: ``StoreError`` `sql` unless records can differ in the answer.
    private func compare(_ field: ComparedField, _ operation: String, _ value: ComparedValue) throws {
        let isEquality = !operation.contains("<") && !operation.contains(">") || operation == "<>"
        let reason: String? =
            if value.kind == .null {
                "NULL is equal to nothing; write \(field.name) IS NULL or \(field.name) IS NOT NULL"
            } else if let type = field.type {
                Self.reason(field, type, value, isEquality: isEquality)
            } else if value.kind == .text {
                nil
            } else {
                "\(field.name) is the name of a record, a text; write a text in single quotes: '\(value.content)'"
            }
        guard let reason else { return }
        throw StoreError(.sql, "the condition compares \(field.name) with \(value.written), which no record can match: \(reason)")
    }

    private static func reason(
        _ field: ComparedField, _ type: FieldType, _ value: ComparedValue, isEquality: Bool
    ) -> String? {
        let isText = value.kind == .text
        if type.isList || type == .location {
            return isText || value.kind == .null
                ? nil : "\(field.name) is of type \(type), which is stored as JSON; see json_each() and json_extract()"
        }
        switch type.scalar {
        case .timestamp:
            return switch value.kind {
            case .number where isFinite(value.content): nil
            case .secondsOrDays:
                "\(field.name) is a time in microseconds since 1970, and no number of seconds or days; multiply what unixepoch() gives by 1000000"
            default:
                "\(field.name) is a time, a number of microseconds since 1970; write unixepoch('\(day(value))') * 1000000"
            }
        case .int64, .double:
            if field.isBoolean {
                guard isEquality || value.kind != .number else { return nil }
                return value.kind == .number && ["0", "1"].contains(value.content)
                    ? nil : "\(field.name) is true or false; write TRUE or FALSE"
            }
            return value.kind == .number || value.kind == .secondsOrDays || isText && isFinite(value.content)
                ? nil : "\(field.name) is of type \(type); write a number"
        case .string, .reference, .asset:
            return value.kind == .blob ? "\(field.name) is of type \(type); write a text in single quotes" : nil
        case .bytes:
            return value.kind == .blob ? nil : "\(field.name) is of type \(type); write x'…' with hexadecimal digits"
        case .location: return nil
        }
    }

    /// Returns a text as SQLite reads a day or a time; a year alone it would read as a number of days.
    private static func day(_ value: ComparedValue) -> String {
        let text = value.kind == .text ? value.content : ""
        if text.wholeMatch(of: /\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?/) != nil { return text }
        if text.wholeMatch(of: /\d{4}-\d{2}/) != nil { return text + "-01" }
        return text.wholeMatch(of: /\d{4}/) != nil ? text + "-01-01" : "2026-01-01"
    }

    private static func isFinite(_ text: String) -> Bool {
        let text = text.drop { $0 == " " }.replacing("_", with: "")
        return text.lowercased().hasPrefix("0x") || (Double(text)?.isFinite ?? false)
    }
}

extension ConditionToken {
    fileprivate func isWord(_ word: String) -> Bool { kind == .word && content == word }
    fileprivate func isSymbol(_ symbol: String) -> Bool { kind == .symbol && content == symbol }
}
