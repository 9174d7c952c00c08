import CTideCore
import Foundation
import GRDB
import TidemarkModel

/// A value in a condition, as it is compared with a field.
struct ComparedValue {
    enum Kind {
        case text, number, blob, null
        /// A text of SQLite's for a time.
        case time
        /// A number for a time that is no number of microseconds.
        case secondsOrDays
    }

    let kind: Kind
    let content, written: String

    init(_ kind: Kind, content: String = "", written: String) {
        (self.kind, self.content, self.written) = (kind, content, written)
    }

    /// - Returns: `nil` for NULL, which a condition may be given on purpose.
    init?(_ value: DatabaseValue) {
        switch value.storage {
        case .null: return nil
        case .int64(let number): self.init(.number, content: "\(number)", written: "\(number)")
        case .double(let number): self.init(.number, content: "\(number)", written: "\(number)")
        case .string(let text): self.init(.text, content: text, written: Self.quoted(text))
        case .blob: self.init(.blob, written: "a value of bytes")
        }
    }

    static func quoted(_ text: String) -> String { "'\(text.replacing("'", with: "''"))'" }

    /// Whether SQLite makes a number of it where it is compared with one.
    fileprivate var isNumber: Bool {
        switch kind {
        case .number, .secondsOrDays: return true
        case .text: break
        case .blob, .null, .time: return false
        }
        return content.wholeMatch(of: /[\t\n\x0B\f\r ]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[\t\n\x0B\f\r ]*/) != nil
    }
}

/// A field in a condition.
struct ComparedField {
    /// Its name, as the condition has it.
    let written: String
    /// `nil` for the name of a record, which SQLite compares with no number.
    let type: FieldType?
    let isBoolean: Bool

    /// Returns why a comparison has one answer for all records, and what to write; `nil` where records can differ, or it is not known.
    func reason(against value: ComparedValue, isEquality: Bool) -> String? {
        guard value.kind != .null else { return "NULL is equal to nothing; write \(written) IS NULL or \(written) IS NOT NULL" }
        guard let type else {
            return [.text, .time].contains(value.kind)
                ? nil : "\(written) is the name of a record; write a text in single quotes"
        }
        if type.isList || type == .location { return json(type, value, isEquality: isEquality) }
        switch type.scalar {
        case .timestamp: return time(value)
        case .int64, .double:
            guard !value.isNumber else { return nil }
            return isBoolean
                ? "\(written) is true or false; write TRUE or FALSE" : "\(written) is of type \(type); write a number"
        case .string, .reference, .asset:
            return value.kind == .blob ? "\(written) is of type \(type); write a text in single quotes" : nil
        case .bytes:
            return value.kind == .blob ? nil : "\(written) is of type \(type); write x'…' with hexadecimal digits"
        case .location: return nil
        }
    }

    private func json(_ type: FieldType, _ value: ComparedValue, isEquality: Bool) -> String? {
        let start: Character = type.isList ? "[" : "{"
        let isJSON = value.kind == .text && (!isEquality || value.content.first { !$0.isWhitespace } == start)
        guard !isJSON else { return nil }
        let help =
            type.isList
            ? "to find an element, write \(value.kind == .text ? value.written : "'…'") IN (SELECT value FROM json_each(\(written)))"
            : "see json_extract()"
        return "\(written) is of type \(type), which is stored as JSON; \(help)"
    }

    private func time(_ value: ComparedValue) -> String? {
        let what = "\(written) is a time, a number of microseconds since 1970"
        switch value.kind {
        case .number: return nil
        case .secondsOrDays:
            let isSeconds = value.content != "julianday"
            return "\(what), and no number of \(isSeconds ? "seconds" : "days"); "
                + (isSeconds ? "multiply it by 1000000" : "write unixepoch(…) * 1000000")
        case .time: return "\(what); write unixepoch(\(value.written)) * 1000000"
        case .text:
            // Any other number may be meant as it is.
            if value.isNumber, value.content.wholeMatch(of: /[0-9]{4}/) == nil { return nil }
            if value.content == "now" { return "\(what); write unixepoch('now') * 1000000" }
            return "\(what); write \(WrittenTime(value.content)?.sql ?? "it as unixepoch('2026-01-01') * 1000000")"
        case .blob, .null: return "\(what); write it as unixepoch('2026-01-01') * 1000000"
        }
    }
}

/// A time as people write it in a condition, in UTC.
private struct WrittenTime {
    /// What gives its microseconds in SQL.
    let sql: String

    /// - Returns: `nil` where a part is none, or another part follows.
    init?(_ text: String) {
        let form = /(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6})\d*)?)?Z?)?)?)?/
        guard let found = text.wholeMatch(of: form)?.output, let year = Int64(found.1) else { return nil }
        func number(_ part: Substring?, _ fallback: Int) -> Int { part.flatMap { Int($0) } ?? fallback }
        let (month, day) = (number(found.2, 1), number(found.3, 1))
        let (hour, minute, second) = (number(found.4, 0), number(found.5, 0), number(found.6, 0))
        guard (1...12).contains(month), (1...Int(tide_days_in_month(year, Int32(month)))).contains(day), hour < 24, minute < 60,
            second < 60
        else { return nil }
        guard let fraction = found.7, let microseconds = Int64(fraction.padding(toLength: 6, withPad: "0", startingAt: 0)),
            microseconds > 0
        else {
            let end = text.count > 10 ? String(text.dropFirst(10).prefix { $0 != "." && $0 != "Z" }) : ""
            sql = "unixepoch('\(found.1)-\(found.2 ?? "01")-\(found.3 ?? "01")\(end)') * 1000000"
            return
        }
        let seconds = tide_days_from_civil(year, Int32(month), Int32(day)) * 86_400 + Int64(hour * 3600 + minute * 60 + second)
        sql = "\(seconds * 1_000_000 + microseconds)"
    }
}
