import Foundation
package import TidemarkCloud
package import TidemarkModel
import TidemarkWire

/// Values of fields as people read and type them.
///
/// A list is a JSON array, a moment is ISO 8601 in UTC, bytes are base64, a place is `latitude, longitude`. A reference is the
/// name of the record, followed by its action if it has one.
package enum FieldText {
    /// Returns the text of a value.
    package static func text(_ value: CloudValue) -> String {
        switch value {
        case .string(let text): return text
        case .int64(let number): return String(number)
        case .double(let number): return "\(number)"
        case .timestamp(let time): return Timestamp.text(microseconds: time)
        case .bytes(let data): return data.base64EncodedString()
        case .location(let place):
            return "\(place.latitude), \(place.longitude)" + (place.altitude.map { ", \($0)" } ?? "")
        case .reference(let reference):
            return reference.recordName + (reference.action == .none ? "" : " \(reference.action.rawValue)")
        case .asset(let asset): return "\(asset.digest) \(asset.size)"
        case .list(let elements, let scalar):
            var json = JSONWriter()
            json.array { json in
                for element in elements {
                    switch (element, scalar) {
                    case (.int64(let number), _): json.integer(number)
                    case (.double(let number), _): json.number(number)
                    default: json.string(text(element))
                    }
                }
            }
            return String(decoding: json.bytes, as: UTF8.self)
        }
    }

    /// Reads a value of a type.
    ///
    /// - Throws: ``AdministrationError`` `invalid`, with what was expected.
    package static func value(_ text: String, as type: FieldType, field: String) throws(AdministrationError) -> CloudValue {
        guard type.isList else { return try scalar(text, type.scalar, field) }
        var elements: [String]?
        do throws(CloudError) {
            elements = try JSONText.read(Array(text.utf8)) { node throws(CloudError) -> [String]? in
                guard node.isArray else { return nil }
                var texts: [String] = []
                for element in node.elements {
                    if let text = element.string {
                        texts.append(text)
                    } else if let number = element.wholeNumber {
                        texts.append(String(number))
                    } else if let number = element.number {
                        texts.append("\(number)")
                    } else {
                        return nil
                    }
                }
                return texts
            }
        } catch {
            elements = nil
        }
        guard let elements else { throw expected("a list, such as [\"a\", \"b\"] or [1, 2]", field) }
        var values: [CloudValue] = []
        for element in elements { values.append(try scalar(element, type.scalar, field)) }
        return .list(values, of: type.scalar)
    }

    private static func scalar(
        _ text: String, _ type: FieldType.Scalar, _ field: String
    ) throws(AdministrationError) -> CloudValue {
        let bare = text.trimmingCharacters(in: .whitespacesAndNewlines)
        switch type {
        case .string: return .string(text)
        case .int64:
            guard let number = Int64(bare) else { throw expected("a whole number", field) }
            return .int64(number)
        case .double:
            guard let number = Double(bare), number.isFinite else { throw expected("a number", field) }
            return .double(number)
        case .timestamp:
            guard let time = time(bare) else { throw expected("a time such as 2026-11-21T08:00:00Z", field) }
            return .timestamp(time)
        case .bytes:
            guard let data = Data(base64Encoded: bare) else { throw expected("bytes in base64", field) }
            return .bytes(data)
        case .location:
            let numbers = bare.split(separator: ",").map { text in
                Double(text.trimmingCharacters(in: .whitespaces)).flatMap { $0.isFinite ? $0 : nil }
            }
            guard (2...3).contains(numbers.count), let latitude = numbers[0], let longitude = numbers[1] else {
                throw expected("a place as latitude, longitude", field)
            }
            guard numbers.count == 2 || numbers[2] != nil else {
                throw expected("a place as latitude, longitude, altitude", field)
            }
            return .location(
                Location(latitude: latitude, longitude: longitude, altitude: numbers.count == 3 ? numbers[2] : nil))
        case .reference:
            guard !bare.isEmpty else { throw expected("the name of a record", field) }
            for action in [CloudReference.Action.deleteSelf, .validate] where bare.hasSuffix(" \(action.rawValue)") {
                return .reference(CloudReference(String(bare.dropLast(action.rawValue.count + 1)), action: action))
            }
            return .reference(CloudReference(bare))
        case .asset:
            let parts = bare.split(separator: " ")
            guard parts.count == 2, parts[0].utf8.count == 64, let size = Int64(parts[1]) else {
                throw expected("an asset that the cloud has: its SHA-256 and its size", field)
            }
            return .asset(CloudAsset(digest: String(parts[0]), size: size))
        }
    }

    /// A moment: ISO 8601 in UTC, with or without fractions of a second; or a day.
    static func time(_ text: String) -> Int64? {
        let style = Date.ISO8601FormatStyle()
        let plain = text.split(separator: ".", maxSplits: 1)
        if plain.count == 2, plain[1].hasSuffix("Z") {
            let digits = plain[1].dropLast()
            guard (1...6).contains(digits.count), digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                let date = try? style.parse(plain[0] + "Z"),
                let fraction = Int64(digits + String(repeating: "0", count: 6 - digits.count))
            else { return nil }
            return Int64(date.timeIntervalSince1970) * 1_000_000 + fraction
        }
        // A text of neither form is no time.
        let date = (try? style.parse(text)) ?? (try? style.year().month().day().parse(text))
        return date.map { Int64($0.timeIntervalSince1970) * 1_000_000 }
    }

    private static func expected(_ what: String, _ field: String) -> AdministrationError {
        AdministrationError(.invalid, "'\(field.prefix(100))' takes \(what)")
    }
}
