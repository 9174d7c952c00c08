import Foundation
import GRDB
import TidemarkModel
import TidemarkStore

/// What a property can be that is a field of its own type.
protocol FieldConvertible {
    static var fieldType: FieldType { get }
    func fieldContent() throws -> FieldContent
    /// From what the store has; `nil` when it can't be read as this.
    init?(_ stored: StoredField)
}

/// A field's value on the way into the store.
enum FieldContent: Hashable, Sendable {
    case value(FieldValue)
    /// Content that the container has yet to take in.
    case asset(Asset)
    case list([FieldContent], of: FieldType.Scalar)
}

extension FieldContent {
    /// The value as it is stored.
    ///
    /// - Parameter identifier: Of an asset that is not stored yet.
    func value(_ identifier: (Asset) throws -> String) throws -> FieldValue {
        switch self {
        case .value(let value): value
        case .asset(let asset): .asset(try identifier(asset))
        case .list(let elements, let scalar): .list(StoredText.list(try elements.map { try $0.value(identifier) }), of: scalar)
        }
    }
}

/// A field's value on the way out of the store: a column of a row, or an element of a list.
struct StoredField {
    enum Content {
        case column(Row, Int)
        case element(DatabaseValue)
    }

    let content: Content
    let assets: AssetPlace

    var text: String? {
        switch content {
        case .column(let row, let index): row[index]
        case .element(let value): String.fromDatabaseValue(value)
        }
    }

    var integer: Int64? {
        switch content {
        case .column(let row, let index): row[index]
        case .element(let value): Int64.fromDatabaseValue(value)
        }
    }

    var real: Double? {
        switch content {
        case .column(let row, let index): row[index]
        case .element(let value): Double.fromDatabaseValue(value)
        }
    }

    var bytes: Data? {
        switch content {
        case .column(let row, let index): row[index]
        case .element(let value): Data.fromDatabaseValue(value)
        }
    }
}

/// Where a record's assets are found.
struct AssetPlace {
    /// The container's.
    let folder: URL
    /// Those that are not stored yet, by what stands for them.
    var pending: [String: Asset] = [:]
}

/// Why a value can't be a field's; the encoder adds which.
struct FieldError: Error {
    let message: String

    init(_ message: String) { self.message = message }
}

extension String: FieldConvertible {
    static var fieldType: FieldType { .string }
    func fieldContent() -> FieldContent { .value(.string(self)) }

    init?(_ stored: StoredField) {
        guard let text = stored.text else { return nil }
        self = text
    }
}

extension URL: FieldConvertible {
    static var fieldType: FieldType { .string }
    func fieldContent() -> FieldContent { .value(.string(absoluteString)) }

    init?(_ stored: StoredField) {
        guard let url = stored.text.flatMap({ URL(string: $0) }) else { return nil }
        self = url
    }
}

extension UUID: FieldConvertible {
    static var fieldType: FieldType { .string }
    func fieldContent() -> FieldContent { .value(.string(uuidString)) }

    init?(_ stored: StoredField) {
        guard let uuid = stored.text.flatMap({ UUID(uuidString: $0) }) else { return nil }
        self = uuid
    }
}

extension Decimal: FieldConvertible {
    static var fieldType: FieldType { .string }
    func fieldContent() -> FieldContent { .value(.string(description)) }

    init?(_ stored: StoredField) {
        guard let decimal = stored.text.flatMap({ Decimal(string: $0, locale: Locale(identifier: "en_US_POSIX")) }) else {
            return nil
        }
        self = decimal
    }
}

extension Date: FieldConvertible {
    static var fieldType: FieldType { .timestamp }

    func fieldContent() throws -> FieldContent {
        let microseconds = (timeIntervalSince1970 * 1e6).rounded()
        guard let exact = Int64(exactly: microseconds), Timestamp.range.contains(exact) else {
            throw FieldError("a time outside the years 0 to 9999 can't be stored")
        }
        return .value(.timestamp(exact))
    }

    init?(_ stored: StoredField) {
        guard let microseconds = stored.integer else { return nil }
        self.init(timeIntervalSince1970: Double(microseconds) / 1e6)
    }
}

extension Data: FieldConvertible {
    static var fieldType: FieldType { .bytes }
    func fieldContent() -> FieldContent { .value(.bytes(Array(self))) }

    init?(_ stored: StoredField) {
        guard let bytes = stored.bytes else { return nil }
        self = bytes
    }
}

extension Bool: FieldConvertible {
    static var fieldType: FieldType { .int64 }
    func fieldContent() -> FieldContent { .value(.int64(self ? 1 : 0)) }

    init?(_ stored: StoredField) {
        guard let number = stored.integer else { return nil }
        self = number != 0
    }
}

extension Double: FieldConvertible {
    static var fieldType: FieldType { .double }

    func fieldContent() throws -> FieldContent {
        guard isFinite else { throw FieldError("\(self) can't be stored") }
        return .value(.double(self == 0 ? 0 : self))
    }

    init?(_ stored: StoredField) {
        guard let number = stored.real else { return nil }
        self = number
    }
}

extension Float: FieldConvertible {
    static var fieldType: FieldType { .double }
    func fieldContent() throws -> FieldContent { try Double(self).fieldContent() }

    init?(_ stored: StoredField) {
        guard let number = stored.real else { return nil }
        self = Float(number)
    }
}

extension FieldConvertible where Self: BinaryInteger {
    static var fieldType: FieldType { .int64 }

    func fieldContent() throws -> FieldContent {
        guard let value = Int64(exactly: self) else { throw FieldError("\(self) is beyond what 64 bits with a sign hold") }
        return .value(.int64(value))
    }

    init?(_ stored: StoredField) {
        guard let number = stored.integer, let exact = Self(exactly: number) else { return nil }
        self = exact
    }
}

extension Int: FieldConvertible {}
extension Int8: FieldConvertible {}
extension Int16: FieldConvertible {}
extension Int32: FieldConvertible {}
extension Int64: FieldConvertible {}
extension UInt: FieldConvertible {}
extension UInt8: FieldConvertible {}
extension UInt16: FieldConvertible {}
extension UInt32: FieldConvertible {}
extension UInt64: FieldConvertible {}

extension Reference: FieldConvertible {
    static var fieldType: FieldType { .reference }
    func fieldContent() -> FieldContent { .value(.reference(recordName)) }

    init?(_ stored: StoredField) {
        guard let name = stored.text else { return nil }
        self.init(name)
    }
}

extension Array: FieldConvertible where Element: FieldConvertible {
    static var fieldType: FieldType { .list(of: Element.fieldType.scalar) }

    func fieldContent() throws -> FieldContent {
        let scalar = Element.fieldType.scalar
        guard !Element.fieldType.isList, scalar != .bytes, scalar != .location else {
            throw FieldError("a list can't hold lists, bytes or locations; give it a Codable type of its own")
        }
        return .list(try map { try $0.fieldContent() }, of: scalar)
    }

    init?(_ stored: StoredField) {
        guard let text = stored.text,
            let elements = try? JSONDecoder().decode([ListElement].self, from: Foundation.Data(text.utf8))
        else { return nil }
        self = []
        reserveCapacity(elements.count)
        for element in elements {
            guard let value = Element(StoredField(content: .element(element.value), assets: stored.assets)) else { return nil }
            append(value)
        }
    }
}

/// A scalar of a stored list.
private struct ListElement: Decodable {
    let value: DatabaseValue

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let integer = try? container.decode(Int64.self) {
            value = integer.databaseValue
        } else if let real = try? container.decode(Double.self) {
            value = real.databaseValue
        } else {
            value = try container.decode(String.self).databaseValue
        }
    }
}
