import Foundation
import TidemarkModel

/// A field as a record's `encode(to:)` gives it.
struct EncodedField: Hashable, Sendable {
    let name: String
    /// The type of the field; `nil` if the property has no value and its type does not determine the field's, as with an enum.
    let type: FieldType?
    /// The value; `nil` for no value.
    let content: FieldContent?
    /// Whether the property is a `Bool`.
    var isBoolean = false
}

/// Turns a record into its fields, through `Codable`.
struct RecordEncoder {
    /// The fields, and whether the record has a value for the name field.
    typealias Output = (fields: [EncodedField], hasName: Bool)

    /// Encodes a record.
    ///
    /// - Throws: `EncodingError` that names the property.
    func encode<R: Record>(_ record: R) throws -> Output {
        let output = try encode(record, keepsRequired: false)
        return (output.fields, output.hasName)
    }

    /// Encodes records, and returns them in their order. Many records are encoded on all cores.
    static func encode(_ records: ArraySlice<any Record>) -> [Result<Output, any Error>] {
        let count = min(ProcessInfo.processInfo.activeProcessorCount, records.count / smallestShare)
        guard count > 1 else { return records.map { encoded($0) } }
        let shares = LockedValue([[Result<Output, any Error>]](repeating: [], count: count))
        DispatchQueue.concurrentPerform(iterations: count) { number in
            let (begin, end) = (records.count * number / count, records.count * (number + 1) / count)
            let share = records[records.startIndex + begin..<records.startIndex + end].map { encoded($0) }
            shares.withLock { $0[number] = share }
        }
        return shares.withLock { Array($0.joined()) }
    }

    /// The least number of records for which another core is used.
    private static let smallestShare = 256

    private static func encoded(_ record: some Record) -> Result<Output, any Error> {
        Result { try RecordEncoder().encode(record) }
    }

    /// Encodes a record into fields.
    ///
    /// - Parameters:
    ///   - record: The record.
    ///   - keepsRequired: Whether the output keeps the values of properties that are not optional.
    /// - Returns: The fields, and the values that were kept.
    /// - Throws: `EncodingError` that names the property.
    func encode<R: Record>(_ record: R, keepsRequired: Bool) throws -> Fields {
        let output = Fields(nameField: R.nameField, keepsRequired: keepsRequired)
        do {
            try record.encode(to: TopEncoder(output: output))
        } catch let error as FieldError {
            throw EncodingError.invalidValue(record, .init(codingPath: [], debugDescription: error.message))
        }
        return output
    }

    /// Collects the values that a record encodes.
    final class Fields {
        private let nameField: String
        private(set) var fields: [EncodedField] = []
        private(set) var hasName = false

        private let keepsRequired: Bool
        /// The values of properties that are not optional, by coding key.
        private(set) var required: [String: Any] = [:]

        init(nameField: String, keepsRequired: Bool) {
            self.nameField = nameField
            self.keepsRequired = keepsRequired
            fields.reserveCapacity(12)
        }

        /// Keeps the value of a property that is not optional, if `keepsRequired` is set.
        func keep(_ value: some Encodable, for key: String) {
            if keepsRequired, key != nameField { required[key] = value }
        }

        func add(_ key: any CodingKey, type: FieldType?, content: FieldContent?, isBoolean: Bool = false) {
            guard key.stringValue != nameField else {
                hasName = true
                return
            }
            fields.append(EncodedField(name: key.stringValue, type: type, content: content, isBoolean: isBoolean))
        }

        /// Adds a value whose field type is known at compile time.
        func addKnown<Value: FieldConvertible>(_ value: Value, for key: String) throws {
            guard key != nameField else {
                hasName = true
                return
            }
            do {
                fields.append(
                    EncodedField(
                        name: key, type: Value.fieldType, content: try value.fieldContent(), isBoolean: Value.self == Bool.self))
            } catch let error as FieldError {
                throw EncodingError.invalidValue(
                    value, .init(codingPath: [FieldKey(stringValue: key)], debugDescription: error.message))
            }
        }

        func add<Value: Encodable>(_ value: Value, for key: any CodingKey) throws {
            // The usual types are first, because the dynamic cast to a protocol costs more than all the rest. Each cast below is to
            // the value's own type.
            if Value.self == Date.self { return try addKnown(value as! Date, for: key.stringValue) }
            if Value.self == UUID.self { return try addKnown(value as! UUID, for: key.stringValue) }
            if Value.self == Asset.self { return try addKnown(value as! Asset, for: key.stringValue) }
            guard key.stringValue != nameField else {
                hasName = true
                return
            }
            do {
                let content = try RecordEncoder.content(of: value)
                add(
                    key, type: RecordEncoder.type(of: Value.self) ?? content?.type, content: content,
                    isBoolean: Value.self == Bool.self)
            } catch let error as FieldError {
                throw EncodingError.invalidValue(value, .init(codingPath: [key], debugDescription: error.message))
            }
        }
    }

    /// The field type of a Swift type; `nil` if only a value determines it.
    static func type(of type: Any.Type) -> FieldType? { (type as? any FieldConvertible.Type)?.fieldType }

    /// Returns a value in the form of a field; `nil` for no value.
    static func content(of value: some Encodable) throws -> FieldContent? {
        if let value = value as? any FieldConvertible { return try value.fieldContent() }
        let single = SingleValue()
        do {
            try value.encode(to: SingleEncoder(output: single))
            return single.content
        } catch is SingleValue.IsMany {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return .value(.string(String(decoding: try encoder.encode(value), as: UTF8.self)))
        }
    }
}

extension FieldContent {
    var type: FieldType {
        switch self {
        case .asset: .asset
        case .list(_, let scalar): .list(of: scalar)
        case .value(let value): value.type
        }
    }
}

private struct TopEncoder: Encoder {
    let output: RecordEncoder.Fields
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(FieldContainer<Key>(output: output))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer { Refusal<AnyKey>(reason: Self.noKeys) }
    func singleValueContainer() -> any SingleValueEncodingContainer { Refusal<AnyKey>(reason: Self.noKeys) }

    private static var noKeys: FieldError { FieldError("a record encodes itself as keys and values") }
}

private struct FieldContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let output: RecordEncoder.Fields
    var codingPath: [any CodingKey] { [] }

    mutating func encodeNil(forKey key: Key) { output.add(key, type: nil, content: nil) }
    mutating func encode(_ value: Bool, forKey key: Key) throws { try encodeRequired(value, forKey: key) }
    mutating func encode(_ value: String, forKey key: Key) throws { try encodeRequired(value, forKey: key) }
    mutating func encode(_ value: Double, forKey key: Key) throws { try encodeRequired(value, forKey: key) }
    mutating func encode(_ value: Float, forKey key: Key) throws { try encodeRequired(value, forKey: key) }
    mutating func encode(_ value: Int, forKey key: Key) throws { try encodeRequired(value, forKey: key) }
    mutating func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
        output.keep(value, for: key.stringValue)
        try output.add(value, for: key)
    }

    private func encodeRequired<T: FieldConvertible & Encodable>(_ value: T, forKey key: Key) throws {
        output.keep(value, for: key.stringValue)
        try output.addKnown(value, for: key.stringValue)
    }

    // A property without a value still adds its field.
    mutating func encodeIfPresent(_ value: Bool?, forKey key: Key) throws { try encodeKnown(value, forKey: key) }
    mutating func encodeIfPresent(_ value: String?, forKey key: Key) throws { try encodeKnown(value, forKey: key) }
    mutating func encodeIfPresent(_ value: Double?, forKey key: Key) throws { try encodeKnown(value, forKey: key) }
    mutating func encodeIfPresent(_ value: Float?, forKey key: Key) throws { try encodeKnown(value, forKey: key) }
    mutating func encodeIfPresent(_ value: Int?, forKey key: Key) throws { try encodeKnown(value, forKey: key) }
    mutating func encodeIfPresent<T: Encodable>(_ value: T?, forKey key: Key) throws { try encodeOptional(value, forKey: key) }

    private func encodeKnown<T: FieldConvertible>(_ value: T?, forKey key: Key) throws {
        if let value {
            try output.addKnown(value, for: key.stringValue)
        } else {
            output.add(key, type: T.fieldType, content: nil, isBoolean: T.self == Bool.self)
        }
    }

    private func encodeOptional<T: Encodable>(_ value: T?, forKey key: Key) throws {
        if let value {
            try output.add(value, for: key)
        } else {
            output.add(key, type: RecordEncoder.type(of: T.self), content: nil, isBoolean: T.self == Bool.self)
        }
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        KeyedEncodingContainer(Refusal<Nested>(reason: nested(key)))
    }

    mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        Refusal<AnyKey>(reason: nested(key))
    }

    private func nested(_ key: Key) -> FieldError {
        FieldError("a record's fields are values; give \(key.stringValue) a Codable type of its own")
    }

    mutating func superEncoder() -> any Encoder { TopEncoder(output: output) }
    mutating func superEncoder(forKey key: Key) -> any Encoder { TopEncoder(output: output) }
}

/// The result of encoding a value that may be one scalar, such as an enum with raw values.
private final class SingleValue {
    /// The error that the value is not one scalar.
    struct IsMany: Error {}

    var content: FieldContent?
}

private struct SingleEncoder: Encoder {
    let output: SingleValue
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(Refusal<Key>(reason: SingleValue.IsMany()))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer { Refusal<AnyKey>(reason: SingleValue.IsMany()) }
    func singleValueContainer() -> any SingleValueEncodingContainer { SingleContainer(output: output) }
}

private struct SingleContainer: SingleValueEncodingContainer {
    let output: SingleValue
    var codingPath: [any CodingKey] { [] }

    mutating func encodeNil() { output.content = nil }
    mutating func encode<T: Encodable>(_ value: T) throws { output.content = try RecordEncoder.content(of: value) }
}

/// A coding key that names a property in an error.
private struct FieldKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

/// The key type of containers without keys.
private enum AnyKey: CodingKey {}

/// A container that accepts no value: each call throws the reason.
private struct Refusal<Key: CodingKey>: KeyedEncodingContainerProtocol, UnkeyedEncodingContainer, SingleValueEncodingContainer {
    let reason: any Error
    var codingPath: [any CodingKey] { [] }
    var count: Int { 0 }

    mutating func encodeNil() throws { throw reason }
    mutating func encode<T: Encodable>(_ value: T) throws { throw reason }
    mutating func encodeNil(forKey key: Key) throws { throw reason }
    mutating func encode<T: Encodable>(_ value: T, forKey key: Key) throws { throw reason }

    mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        KeyedEncodingContainer(Refusal<Nested>(reason: reason))
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        KeyedEncodingContainer(Refusal<Nested>(reason: reason))
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { Refusal<AnyKey>(reason: reason) }
    mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { nestedUnkeyedContainer() }
    mutating func superEncoder() -> any Encoder { RefusingEncoder(reason: reason) }
    mutating func superEncoder(forKey key: Key) -> any Encoder { superEncoder() }
}

private struct RefusingEncoder: Encoder {
    let reason: any Error
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(Refusal<Key>(reason: reason))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer { Refusal<AnyKey>(reason: reason) }
    func singleValueContainer() -> any SingleValueEncodingContainer { Refusal<AnyKey>(reason: reason) }
}
