import Foundation

/// Converts values of a field into values of another type.
package struct FieldConversion: Sendable {
    /// The reason why a value can't be converted, and a remedy.
    package struct Failure: Error {
        package let reason: String
    }

    /// The result of reading the file of a path.
    package enum File: Sendable {
        /// The identifier of an asset.
        case asset(String)
        case failed(String)
    }

    package let source: RecordTypeSchema.Field
    package let target: RecordTypeSchema.Field
    /// The results of reading files, by their paths. Only for a target that holds assets.
    private let files: [String: File]

    /// - Returns: `nil` if values of the one type can never be converted into the other.
    package init?(from source: RecordTypeSchema.Field, to target: RecordTypeSchema.Field, files: [String: File] = [:]) {
        guard Self.isPossible(source.type, target.type) else { return nil }
        self.source = source
        self.target = target
        self.files = files
    }

    private static func isPossible(_ source: FieldType, _ target: FieldType) -> Bool {
        if source == target { return true }
        if target.isList, target.scalar == .bytes || target.scalar == .location { return false }
        switch (source.isList, target.isList) {
        case (false, false), (true, true): return isPossible(source.scalar, target.scalar)
        case (false, true), (true, false): return source.scalar == target.scalar || isPossible(source.scalar, target.scalar)
        }
    }

    private static func isPossible(_ source: FieldType.Scalar, _ target: FieldType.Scalar) -> Bool {
        switch (source, target) {
        case (.string, .int64), (.string, .double), (.string, .timestamp), (.string, .reference), (.string, .asset),
            (.string, .bytes), (.int64, .string), (.int64, .double), (.double, .string), (.double, .int64),
            (.timestamp, .string), (.reference, .string):
            true
        default: source == target
        }
    }

    /// Whether texts are paths of files.
    package var readsFiles: Bool { source.type.scalar == .string && target.type.scalar == .asset }

    /// The paths of files that a value names.
    package func paths(in value: FieldValue) -> [String] {
        guard readsFiles else { return [] }
        switch value {
        case .string(let text): return (target.type.isList ? Self.elements(ofJSON: text) : nil) ?? (text.isEmpty ? [] : [text])
        case .list(let elements, of: .string):
            return elements.compactMap { if case .string(let text) = $0, !text.isEmpty { text } else { nil } }
        case .int64, .double, .timestamp, .bytes, .location, .reference, .asset, .list: return []
        }
    }

    /// Converts a value into the target's type.
    ///
    /// - Returns: `nil` for an empty text or list that stands for no value.
    package func convert(_ value: FieldValue) throws(Failure) -> FieldValue? {
        switch value {
        case .list(let elements, _) where target.type.isList:
            var converted: [FieldValue] = []
            for element in elements { if let value = try scalar(element) { converted.append(value) } }
            return .list(converted, of: target.type.scalar)
        case .list(let elements, _):
            guard elements.count < 2 else { throw Failure(reason: "it is a list of \(elements.count) values, and one is wanted") }
            guard let element = elements.first else { return nil }
            return try scalar(element)
        default:
            guard target.type.isList else { return try scalar(value) }
            if case .string(let text) = value, let elements = Self.elements(ofJSON: text) {
                var converted: [FieldValue] = []
                for element in elements { if let value = try scalar(.string(element)) { converted.append(value) } }
                return .list(converted, of: target.type.scalar)
            }
            guard let element = try scalar(value) else { return nil }
            return .list([element], of: target.type.scalar)
        }
    }

    /// The elements of a text that is a JSON array of strings; `nil` for any other text.
    private static func elements(ofJSON text: String) -> [String]? {
        guard text.utf8.first == UInt8(ascii: "[") else { return nil }
        // Any other text is one value.
        return try? JSONDecoder().decode([String].self, from: Data(text.utf8))
    }

    private func scalar(_ value: FieldValue) throws(Failure) -> FieldValue? {
        switch (value, target.type.scalar) {
        case (.string(let text), let wanted): return try read(text, as: wanted)
        case (.int64(let number), .int64):
            guard !target.isBoolean || (0...1).contains(number) else {
                throw Failure(reason: "it is neither 0 nor 1, which stand for false and true")
            }
            return value
        case (.int64(let number), .double):
            let double = Double(number)
            guard Int64(exactly: double) == number else { throw Failure(reason: "a double can't hold all of its digits") }
            return .double(double)
        case (.int64(let number), .string): return .string(source.isBoolean ? "\(number != 0)" : "\(number)")
        case (.double(let number), .int64):
            guard let whole = Int64(exactly: number), !target.isBoolean || (0...1).contains(whole) else {
                throw Failure(
                    reason: target.isBoolean ? "it is neither 0 nor 1" : "it is not a whole number of 64 bits; round it first")
            }
            return .int64(whole)
        case (.double(let number), .string): return .string("\(number)")
        case (.timestamp(let time), .string): return .string(Timestamp.text(microseconds: time))
        case (.reference(let name), .string): return .string(name)
        default:
            guard value.type.scalar == target.type.scalar else { throw Failure(reason: "a \(value.type) is no \(target.type)") }
            return value
        }
    }

    private func read(_ given: String, as wanted: FieldType.Scalar) throws(Failure) -> FieldValue? {
        if wanted == .string { return .string(given) }
        let text = given.trimmingCharacters(in: .whitespaces)
        if text.isEmpty { return nil }
        switch wanted {
        case .int64 where target.isBoolean:
            switch text.lowercased() {
            case "true", "1": return .int64(1)
            case "false", "0": return .int64(0)
            default: throw Failure(reason: "it is no Boolean; write true or false")
            }
        case .int64:
            guard let number = Int64(text) else { throw Failure(reason: "it is no whole number of 64 bits; write one such as 3") }
            return .int64(number)
        case .double:
            let isNumber = text.utf8.allSatisfy { (0x30...0x39).contains($0) || "+-.eE".utf8.contains($0) }
            guard isNumber, let number = Double(text), number.isFinite else {
                throw Failure(reason: "it is no number; write one such as 3.5")
            }
            return .double(number == 0 ? 0 : number)
        case .timestamp:
            guard let time = Timestamp.microseconds(text) else {
                throw Failure(reason: "it is no time in ISO 8601; write one such as 2024-05-01T12:30:00Z")
            }
            return .timestamp(time)
        case .reference:
            guard (1...255).contains(text.utf8.count), text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }) else {
                throw Failure(reason: "it can't be a record's name: 1 to 255 bytes without control characters")
            }
            return .reference(text.composed)
        case .bytes:
            guard let data = Data(base64Encoded: text) else { throw Failure(reason: "it is no Base64") }
            return .bytes(Array(data))
        case .asset:
            switch files[given] ?? files[text] {
            case .asset(let identifier)?: return .asset(identifier)
            case .failed(let reason)?: throw Failure(reason: reason)
            case nil: throw Failure(reason: "it has come since the files were read; try again")
            }
        case .string, .location: throw Failure(reason: "a text is no \(wanted.name)")
        }
    }
}

extension Timestamp {
    /// Reads a moment in ISO 8601: a date, a `T` or a space, and a time of day with or without seconds and decimals. `Z` or an
    /// offset may follow; without them the time is in UTC. A date alone stands for its beginning in UTC.
    ///
    /// - Returns: Microseconds since 1970 UTC; `nil` for a text that is not such a moment.
    package static func microseconds(_ text: String) -> Int64? {
        var rest = Substring(text)
        func number(_ digits: Int) -> Int64? {
            guard rest.utf8.count >= digits, rest.utf8.prefix(digits).allSatisfy({ (0x30...0x39).contains($0) }) else {
                return nil
            }
            defer { rest = rest.dropFirst(digits) }
            return Int64(rest.prefix(digits))
        }
        func skip(_ characters: String) -> Bool {
            guard let first = rest.first, characters.contains(first) else { return false }
            rest.removeFirst()
            return true
        }
        guard let year = number(4), skip("-"), let month = number(2), skip("-"), let day = number(2), (1...12).contains(month),
            (1...daysOfMonth(month, year)).contains(day)
        else { return nil }
        var (seconds, micros) = (secondsOfDay(year, month, day), 0 as Int64)
        guard !rest.isEmpty else { return checked(seconds, 0) }
        guard skip("Tt "), let hour = number(2), skip(":"), let minute = number(2), hour < 24, minute < 60 else { return nil }
        seconds += hour * 3600 + minute * 60
        if skip(":") {
            guard let second = number(2), second < 60 else { return nil }
            seconds += second
            if skip(".,") {
                let digits = rest.prefix { $0.isASCII && $0.isNumber }
                guard (1...9).contains(digits.count) else { return nil }
                micros = Int64(String((String(digits) + "000000").prefix(6))) ?? 0
                rest = rest.dropFirst(digits.count)
            }
        }
        if rest.isEmpty || skip("Zz") { return rest.isEmpty ? checked(seconds, micros) : nil }
        let isEast = rest.first == "+"
        guard skip("+-"), let hours = number(2), hours <= 18 else { return nil }
        _ = skip(":")
        let minutes = rest.isEmpty ? 0 : number(2)
        guard rest.isEmpty, let minutes, minutes < 60 else { return nil }
        seconds += (hours * 3600 + minutes * 60) * (isEast ? -1 : 1)
        return checked(seconds, micros)
    }

    private static func checked(_ seconds: Int64, _ micros: Int64) -> Int64? {
        let time = seconds * 1_000_000 + micros
        return range.contains(time) ? time : nil
    }

    private static func daysOfMonth(_ month: Int64, _ year: Int64) -> Int64 {
        if month == 2 { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28 }
        return [4, 6, 9, 11].contains(month) ? 30 : 31
    }

    /// Seconds since 1970 at the beginning of a day of the proleptic Gregorian calendar.
    private static func secondsOfDay(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shiftedYear = month <= 2 ? year - 1 : year
        let era = (shiftedYear >= 0 ? shiftedYear : shiftedYear - 399) / 400
        let yearOfEra = shiftedYear - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return (era * 146_097 + dayOfEra - 719_468) * 86_400
    }
}
