public import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// A type of properties that has a field type of its own.
protocol FieldConvertible {
    static var fieldType: FieldType { get }
    func fieldContent() throws -> FieldContent
    /// Makes a value from the store's value.
    ///
    /// - Throws: ``FieldError``.
    init(_ stored: StoredField) throws
}

/// A field's value on the way into the store.
enum FieldContent: Hashable, Sendable {
    case value(FieldValue)
    /// An asset that the container has not ingested yet.
    case asset(Asset)
    case list([FieldContent], of: FieldType.Scalar)
}

extension FieldContent {
    /// Returns the value as it is stored.
    ///
    /// - Parameter identifier: Returns the identifier of an asset that is not stored yet.
    func value(_ identifier: (Asset) throws -> String) throws -> FieldValue {
        switch self {
        case .value(let value): value
        case .asset(let asset): .asset(try identifier(asset))
        case .list(let elements, let scalar): .list(try elements.map { try $0.value(identifier) }, of: scalar)
        }
    }
}

/// A field's value on the way out of the store: a column of a row, or an element of a list. It is not null.
struct StoredField {
    enum Content {
        case column(Row, Int)
        case element(DatabaseValue)
    }

    let content: Content
    let type: FieldType
    let assets: AssetPlace

    func text(as type: FieldType) throws -> String { try read(as: type) }
    func integer(as type: FieldType) throws -> Int64 { try read(as: type) }
    func real() throws -> Double { try read(as: .double) }
    func bytes() throws -> Data { try read(as: .bytes) }

    /// The JSON text of a value that is stored as JSON.
    func json() throws -> Data {
        guard type.isList || type == .string || type == .location else { throw FieldError("is a \(type) and no JSON") }
        return Data(try text(as: type).utf8)
    }

    private func read<Value: DatabaseValueConvertible & StatementColumnConvertible>(as wanted: FieldType) throws -> Value {
        guard type.isReadable(as: wanted) else { throw FieldError("is a \(type) and no \(wanted)") }
        switch content {
        case .column(let row, let index):
            do {
                return try row.decode(atIndex: index)
            } catch is RowDecodingError {
                throw FieldError("holds what is no \(wanted)")
            }
        case .element(let element):
            guard let value = Value.fromDatabaseValue(element) else { throw FieldError("holds what is no \(wanted)") }
            return value
        }
    }
}

extension FieldType {
    /// Whether a field of this type can be read into a property of another field type.
    func isReadable(as wanted: FieldType) -> Bool {
        if self == wanted { return true }
        guard isList == wanted.isList else { return false }
        return switch scalar {
        case .int64: wanted.scalar == .double
        case .reference: wanted.scalar == .string
        case .string: wanted.scalar == .reference
        case .double, .timestamp, .bytes, .location, .asset: false
        }
    }
}

/// The place of a record's assets.
struct AssetPlace {
    /// The container's folder of assets.
    let folder: URL
    /// The assets that are not stored yet, by the texts that stand for them.
    var pending: [String: Asset] = [:]
}

/// The reason why a value can't be stored in a field, or a field's value can't be read into a property. The coder adds the name.
struct FieldError: Error {
    /// The reason. For a value that is read, words that follow the field's name.
    let message: String

    init(_ message: String) { self.message = message }
}

extension FieldConvertible {
    /// - Throws: ``FieldError`` when there is no value.
    fileprivate static func make(_ value: Self?, of content: some Any) throws -> Self {
        guard let value else { throw FieldError("holds '\(content)', which is no \(Self.self)") }
        return value
    }
}

extension String: FieldConvertible {
    static var fieldType: FieldType { .string }
    func fieldContent() -> FieldContent { .value(.string(self)) }
    init(_ stored: StoredField) throws { self = try stored.text(as: .string) }
}

extension URL: FieldConvertible {
    static var fieldType: FieldType { .string }
    func fieldContent() -> FieldContent { .value(.string(absoluteString)) }

    init(_ stored: StoredField) throws {
        let text = try stored.text(as: .string)
        self = try Self.make(URL(string: text), of: text)
    }
}

extension UUID: FieldConvertible {
    static var fieldType: FieldType { .string }
    func fieldContent() -> FieldContent { .value(.string(uuidString)) }

    init(_ stored: StoredField) throws {
        let text = try stored.text(as: .string)
        self = try Self.make(UUID(uuidString: text), of: text)
    }
}

extension Decimal: FieldConvertible {
    static var fieldType: FieldType { .string }
    func fieldContent() -> FieldContent { .value(.string(description)) }

    init(_ stored: StoredField) throws {
        let text = try stored.text(as: .string)
        self = try Self.make(Decimal(number: text), of: text)
    }
}

extension Date: FieldConvertible {
    static var fieldType: FieldType { .timestamp }

    func fieldContent() throws -> FieldContent {
        guard let microseconds else { throw FieldError("a time outside the years 0 to 9999 can't be stored") }
        return .value(.timestamp(microseconds))
    }

    init(_ stored: StoredField) throws { self.init(microseconds: try stored.integer(as: .timestamp)) }

    /// The microseconds since 1970 UTC; `nil` for a date that can't be stored.
    private var microseconds: Int64? {
        guard let exact = Int64(exactly: (timeIntervalSince1970 * 1e6).rounded()), Timestamp.range.contains(exact) else {
            return nil
        }
        return exact
    }

    private init(microseconds: Int64) { self.init(timeIntervalSince1970: Double(microseconds) / 1e6) }
}

extension Date {
    /// The date as a store keeps it, rounded to the microsecond.
    ///
    /// A `Date` is more precise. If the dates of a record are made with `stored`, the record equals its fetch after the save:
    ///
    /// ```swift
    /// destination.createdAt = Date().stored
    /// ```
    ///
    /// A time that can't be stored, outside the years 0 to 9999, is returned as it is.
    public var stored: Date { microseconds.map { Date(microseconds: $0) } ?? self }
}

extension Data: FieldConvertible {
    static var fieldType: FieldType { .bytes }
    func fieldContent() -> FieldContent { .value(.bytes(Array(self))) }
    init(_ stored: StoredField) throws { self = try stored.bytes() }
}

extension Bool: FieldConvertible {
    static var fieldType: FieldType { .int64 }
    func fieldContent() -> FieldContent { .value(.int64(self ? 1 : 0)) }
    init(_ stored: StoredField) throws { self = try stored.integer(as: .int64) != 0 }
}

extension Double: FieldConvertible {
    static var fieldType: FieldType { .double }

    func fieldContent() throws -> FieldContent {
        guard isFinite else { throw FieldError("\(self) can't be stored") }
        return .value(.double(self == 0 ? 0 : self))
    }

    init(_ stored: StoredField) throws { self = try stored.real() }
}

extension Float: FieldConvertible {
    static var fieldType: FieldType { .double }
    func fieldContent() throws -> FieldContent { try Double(self).fieldContent() }
    init(_ stored: StoredField) throws { self = Float(try stored.real()) }
}

extension FieldConvertible where Self: BinaryInteger {
    static var fieldType: FieldType { .int64 }

    func fieldContent() throws -> FieldContent {
        guard let value = Int64(exactly: self) else { throw FieldError("\(self) is beyond what 64 bits with a sign hold") }
        return .value(.int64(value))
    }

    init(_ stored: StoredField) throws {
        let number = try stored.integer(as: .int64)
        self = try Self.make(Self(exactly: number), of: number)
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

    init(_ stored: StoredField) throws { self.init(try stored.text(as: .reference)) }
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

    init(_ stored: StoredField) throws {
        let text = try stored.text(as: Self.fieldType)
        guard let elements = StoredText.elements(of: text, stored.type.scalar) else {
            throw FieldError("holds '\(text)', which is no list")
        }
        let type = FieldType(stored.type.scalar)
        self = try elements.map { try Element(StoredField(content: .element($0.stored), type: type, assets: stored.assets)) }
    }
}
