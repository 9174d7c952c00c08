import GRDB
import TidemarkModel
import TidemarkSQLite

/// Finds comparisons of a field with what it can't be, which SQLite answers without an error, and for all records alike.
///
/// It reads comparisons of a field with a literal, with a parameter, and with one of SQLite's functions of time. What is in a subquery,
/// and what is part of a longer expression, it leaves to SQLite, as it does everything that it does not know.
struct ConditionCheck {
    private let type: StoredType
    private let tokens: [ConditionToken]
    private let values: [DatabaseValue]
    private let structure: ConditionStructure

    /// - Parameter values: What stands for `?`, in their order.
    init(_ condition: String, of type: StoredType, _ values: [DatabaseValue]) {
        self.type = type
        self.values = values
        tokens = ConditionToken.all(of: condition)
        structure = ConditionStructure(tokens)
    }

    /// - Throws: ``StoreError`` `sql`.
    /// - Complexity: O(n) in the pieces of the condition.
    func run() throws {
        for index in tokens.indices where !structure.isInSubquery[index] {
            guard let field = field(at: index) else { continue }
            if isStart(index) { try check(field, at: index) }
            // A value before the field.
            if isEnd(index + 1), let operation = token(index - 1), Self.operators.contains(operation.content),
                let (value, start) = value(before: index - 1), isStart(start)
            {
                try compare(field, operation.content, value)
            }
        }
    }

    private static let operators: Set = ["=", "==", "<>", "!=", "<", "<=", ">", ">="]

    private func token(_ index: Int) -> ConditionToken? { tokens.indices.contains(index) ? tokens[index] : nil }

    /// Whether a comparison may begin there.
    private func isStart(_ index: Int) -> Bool {
        guard let before = token(index - 1) else { return true }
        if before.isWord("and") { return !structure.andsOfBetween.contains(index - 1) }
        return before.isSymbol("(") || before.isSymbol(",")
            || ["or", "not", "when", "then", "else", "where"].contains { before.isWord($0) }
    }

    /// Whether a comparison may have ended before that.
    private func isEnd(_ index: Int) -> Bool {
        guard let after = token(index) else { return true }
        return after.isSymbol(")") || after.isSymbol(",")
            || ["and", "or", "then", "else", "when", "end", "collate"].contains { after.isWord($0) }
    }

    // Fields and values

    private func field(at index: Int) -> ComparedField? {
        guard let token = token(index), token.kind == .word || token.kind == .quotedName,
            !(self.token(index + 1)?.isSymbol("(") ?? false), !(self.token(index + 1)?.isSymbol(".") ?? false),
            !(self.token(index - 1)?.isSymbol(".") ?? false)
        else { return nil }
        if token.content == "_name" || token.content == type.nameField?.lowercased() {
            return ComparedField(written: token.written, type: nil, isBoolean: false)
        }
        return type.fields.first { $0.column.lowercased() == token.content }
            .map { ComparedField(written: token.written, type: $0.type, isBoolean: $0.isBoolean) }
    }

    /// Reads the value that begins there.
    ///
    /// - Returns: `nil` where it is no literal, no parameter whose value is known, and no function of time.
    private func value(at index: Int) -> (value: ComparedValue, next: Int)? {
        guard let token = token(index) else { return nil }
        switch token.kind {
        case .text: return (.init(.text, content: token.content, written: token.written), index + 1)
        case .blob: return (.init(.blob, written: token.written), index + 1)
        case .number: return (.init(.number, content: token.content, written: token.written), index + 1)
        case .symbol:
            guard token.isSymbol("-") || token.isSymbol("+"), let number = self.token(index + 1), number.kind == .number else {
                return nil
            }
            let text = token.written + number.written
            return (.init(.number, content: text, written: text), index + 2)
        case .parameter(let place):
            guard let place, values.indices.contains(place), let value = ComparedValue(values[place]) else { return nil }
            return (value, index + 1)
        case .quotedName:
            // A name that no column has is a text in SQLite.
            guard token.written.hasPrefix("\""), field(at: index) == nil, !token.content.hasPrefix("_"),
                !(self.token(index + 1)?.isSymbol(".") ?? false)
            else { return nil }
            return (.init(.text, content: token.content, written: token.written), index + 1)
        case .word:
            if token.isWord("null") { return (.init(.null, written: token.written), index + 1) }
            if ["current_timestamp", "current_date", "current_time"].contains(token.content) {
                return (.init(.time, written: token.written), index + 1)
            }
            return function(at: index)
        }
    }

    private func function(at index: Int) -> (value: ComparedValue, next: Int)? {
        guard let name = token(index), name.kind == .word, let end = structure.closing[index + 1] else { return nil }
        let kind: ComparedValue.Kind
        switch name.content {
        case "date", "datetime", "time": kind = .time
        case "unixepoch", "julianday": kind = .secondsOrDays
        // What else it gives may be a number, which SQLite compares as one.
        case "strftime" where token(index + 2)?.content == "%s": kind = .secondsOrDays
        default: return nil
        }
        // A long one is no help in a message.
        guard end - index < 40 else { return (.init(kind, content: name.content, written: name.written + "(…)"), end + 1) }
        let written = tokens[index...end].reduce("") { text, token in
            let isClose = text.isEmpty || text.hasSuffix("(") || ["(", ")", ","].contains(token.written)
            return text + (isClose ? "" : " ") + token.written
        }
        return (.init(kind, content: name.content, written: written), end + 1)
    }

    /// Reads the value that ends before an index.
    ///
    /// - Returns: The value and where it begins.
    private func value(before index: Int) -> (value: ComparedValue, start: Int)? {
        if let opening = structure.opening[index - 1] {
            return function(at: opening - 1).map { ($0.value, opening - 1) }
        }
        for start in [index - 2, index - 1] where start >= 0 {
            if let (value, next) = value(at: start), next == index { return (value, start) }
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
                if value.kind != .null { try compare(field, "=", value) }
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
        let isEquality = ["=", "==", "<>", "!="].contains(operation)
        guard let reason = field.reason(against: value, isEquality: isEquality) else { return }
        throw StoreError(
            .sql,
            "the condition compares \(field.written.prefix(300)) with \(value.written.prefix(300)), which has one answer for all records: \(reason)"
        )
    }
}

/// Where the parentheses of a condition are, and what they mean.
private struct ConditionStructure {
    /// Whether each token is in a subquery, where names may mean fields of another type.
    private(set) var isInSubquery: [Bool] = []
    /// By opening parentheses, the closing ones, and the other way round.
    private(set) var closing: [Int: Int] = [:]
    private(set) var opening: [Int: Int] = [:]
    /// Each AND that belongs to a BETWEEN before it.
    private(set) var andsOfBetween: Set<Int> = []

    init(_ tokens: [ConditionToken]) {
        var open: [(place: Int, isSubquery: Bool, betweens: Int)] = [(-1, false, 0)]
        for (index, token) in tokens.enumerated() {
            isInSubquery.append(open[open.count - 1].isSubquery)
            if token.isSymbol("(") {
                let next = index + 1 < tokens.count ? tokens[index + 1] : nil
                let starts = ["select", "with", "values"].contains { next?.isWord($0) ?? false }
                open.append((index, open[open.count - 1].isSubquery || starts, 0))
            } else if token.isSymbol(")"), open.count > 1, let last = open.popLast() {
                (closing[last.place], opening[index]) = (index, last.place)
            } else if token.isWord("between") {
                open[open.count - 1].betweens += 1
            } else if token.isWord("and"), open[open.count - 1].betweens > 0 {
                open[open.count - 1].betweens -= 1
                andsOfBetween.insert(index)
            }
        }
    }
}

extension ConditionToken {
    fileprivate func isWord(_ word: String) -> Bool { kind == .word && content == word }
    fileprivate func isSymbol(_ symbol: String) -> Bool { kind == .symbol && content == symbol }
}
