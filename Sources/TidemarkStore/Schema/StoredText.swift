import CTideCore
import Foundation
import GRDB
package import TidemarkModel
import TidemarkSQLite

/// Lists and locations in the one spelling that the store has for each (Documentation/Formats/store.md).
package enum StoredText {
    /// SQL of a table with the elements of a list, `value`; of a damaged list it has none.
    package static func elementsSQL(of column: String) -> String {
        "json_each(CASE WHEN json_valid(\(column)) THEN \(column) END)"
    }

    /// A JSON array of scalars as they are stored.
    package static func list(_ values: [FieldValue]) -> String {
        var text = tide_text()
        defer { tide_text_free(&text) }
        append("[", to: &text)
        for (index, value) in values.enumerated() {
            if index > 0 { append(",", to: &text) }
            switch value {
            case .int64(let number), .timestamp(let number): append(String(number), to: &text)
            case .double(let number): append(Self.number(number), to: &text)
            case .location, .list: preconditionFailure("a list holds no locations and no lists")
            case .string(let string), .reference(let string), .asset(let string):
                var string = string
                string.withUTF8 { utf8 in
                    utf8.withMemoryRebound(to: CChar.self) { characters in
                        guard let start = characters.baseAddress else { return append("\"\"", to: &text) }
                        tide_text_json_string(&text, start, characters.count)
                    }
                }
            case .bytes(let bytes): tide_text_base64(&text, bytes, bytes.count)
            }
        }
        append("]", to: &text)
        return String(text)
    }

    /// A JSON object of numbers, in the order given.
    package static func object(_ members: [(name: String, value: Double)]) -> String {
        let members = members.map { "\"\($0.name)\":\(number($0.value == 0 ? 0 : $0.value))" }
        return "{\(members.joined(separator: ","))}"
    }

    /// A place, its numbers in order.
    package static func location(_ place: Location) -> String {
        let members: [(String, Double?)] = [
            ("latitude", place.latitude), ("longitude", place.longitude), ("altitude", place.altitude),
            ("horizontalAccuracy", place.horizontalAccuracy), ("verticalAccuracy", place.verticalAccuracy),
            ("course", place.course), ("speed", place.speed),
        ]
        return object(members.compactMap { name, value in value.map { (name, $0) } })
    }

    /// The text of a value whose column holds text; `nil` for numbers and bytes.
    package static func text(_ value: FieldValue) -> String? {
        switch value {
        case .string(let text), .reference(let text), .asset(let text): text
        case .location(let place): location(place)
        case .list(let elements, _): list(elements)
        case .int64, .timestamp, .double, .bytes: nil
        }
    }

    /// The elements of a list; `nil` where the text is no list of such elements.
    ///
    /// - Complexity: O(n) in the text, without Foundation's decoder while the text has the store's own spelling and no escaped character.
    package static func elements(of text: String, _ scalar: FieldType.Scalar) -> [FieldValue]? {
        var text = text
        return text.withUTF8 { StoredListReader($0, scalar).elements() } ?? decoded(text, scalar)
    }

    private static func decoded(_ text: String, _ scalar: FieldType.Scalar) -> [FieldValue]? {
        func list<Element: Decodable>(_ value: (Element) -> FieldValue) -> [FieldValue]? {
            // A text that is no such list has no elements: the callers report the value as damaged.
            (try? JSONDecoder().decode([Element].self, from: Data(text.utf8)))?.map(value)
        }
        return switch scalar {
        case .string: list { .string($0) }
        case .reference: list { .reference($0) }
        case .asset: list { .asset($0) }
        case .int64: list { .int64($0) }
        case .timestamp: list { .timestamp($0) }
        case .double: list { .double($0) }
        case .bytes, .location: nil
        }
    }

    /// The place that a text says; `nil` where it says none.
    package static func place(_ text: String) -> Location? {
        var text = text
        return text.withUTF8 { StoredListReader($0, .double).place() }
            ?? (try? JSONDecoder().decode(Location.self, from: Data(text.utf8)))
    }

    /// The shortest text of a number that reads back as the same.
    package static func number(_ value: Double) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(TIDE_NUMBER_SIZE)) { text in
            var length = 0
            for digits in 15...17 as ClosedRange<Int32> {
                length = tide_number_print(value, digits, text.baseAddress!)
                var again = 0.0
                if tide_number_parse(text.baseAddress!, length, &again), again == value { break }
            }
            return String(decoding: UnsafeRawBufferPointer(start: text.baseAddress!, count: length), as: UTF8.self)
        }
    }

    private static func append(_ string: String, to text: inout tide_text) {
        var string = string
        string.withUTF8 { tide_text_append(&text, $0.baseAddress, $0.count) }
    }
}

extension String {
    fileprivate init(_ text: tide_text) {
        self.init(decoding: UnsafeRawBufferPointer(start: text.bytes, count: text.length), as: UTF8.self)
    }
}
