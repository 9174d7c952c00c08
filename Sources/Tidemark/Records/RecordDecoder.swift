import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Makes records from the rows of a fetch, through `Codable`.
///
/// A decoder belongs to one fetch, because it remembers the place of the next property in the rows.
final class RecordDecoder<R: Record> {
    private let columns: RecordColumns

    init(_ columns: RecordColumns) { self.columns = columns }

    /// - Throws: `DecodingError` that names the record and the property.
    func decode(_ row: Row) throws -> R {
        do {
            return try R(from: RowDecoder(row: row, columns: columns))
        } catch let error as DecodingError {
            let name = columns.name(row) ?? "?"
            throw error.within { "\(R.recordType) \(name) can't be read as \(R.self): \($0)" }
        }
    }
}

extension DecodingError {
    /// Returns the same error with more coding keys and a longer description.
    fileprivate func within(_ keys: [any CodingKey] = [], _ describe: (String) -> String) -> DecodingError {
        func wider(_ context: Context) -> Context {
            .init(
                codingPath: keys + context.codingPath, debugDescription: describe(context.debugDescription),
                underlyingError: context.underlyingError)
        }
        switch self {
        case .dataCorrupted(let context): return .dataCorrupted(wider(context))
        case .keyNotFound(let key, let context): return .keyNotFound(key, wider(context))
        case .typeMismatch(let type, let context): return .typeMismatch(type, wider(context))
        case .valueNotFound(let type, let context): return .valueNotFound(type, wider(context))
        @unknown default: return self
        }
    }
}

/// The place of a field in a row. It has no name, so that copying it is cheap.
struct FieldPlace {
    let column: Int
    let type: FieldType
}

/// The places of the fields in the rows of a fetch.
final class RecordColumns {
    private let fields: [(name: String, place: FieldPlace)]
    private let nameField: String
    /// The place of the record's name.
    private let name: FieldPlace
    let assets: AssetPlace
    private var next = 0
    private let naming: RecordNaming
    /// The Swift type, for messages.
    let type: any Record.Type

    init<R: Record>(fields: [(name: String, place: FieldPlace)], key: Int, of type: R.Type, assets: AssetPlace) {
        self.fields = fields
        self.type = type
        nameField = R.nameField
        naming = RecordNaming.of(type)
        name = FieldPlace(column: key, type: .string)
        self.assets = assets
    }

    /// The column of the record's key.
    var key: Int { name.column }

    /// The place of a property; `nil` when the type has no such field.
    func place(of property: String) -> FieldPlace? {
        if property == nameField { return name }
        // Properties come in the same order in every row.
        for _ in fields.indices {
            let place = next
            next = next + 1 == fields.count ? 0 : next + 1
            if fields[place].name == property { return fields[place].place }
        }
        return nil
    }

    /// Returns the place of a property under a former name that has a value.
    func formerPlace(of property: String, _ row: Row) -> FieldPlace? {
        guard let names = naming.formerNames[property] else { return nil }
        for name in names {
            if let place = fields.first(where: { $0.name == name })?.place, !row.hasNull(atIndex: place.column) { return place }
        }
        return nil
    }

    /// Returns the prototype's value of a property.
    func prototypeValue<Value>(of property: String, as type: Value.Type) -> Value? {
        naming.prototype?.properties[property] as? Value
    }

    func name(_ row: Row) -> String? { StoreReader.recordName(key: row[key] as DatabaseValue) }
}

private struct RowDecoder: Decoder {
    let row: Row
    let columns: RecordColumns
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(RowContainer<Key>(row: row, columns: columns))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw Self.noKeys }
    func singleValueContainer() throws -> any SingleValueDecodingContainer { throw Self.noKeys }

    private static var noKeys: DecodingError {
        .dataCorrupted(.init(codingPath: [], debugDescription: "a record decodes itself from keys and values"))
    }
}

private struct RowContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let row: Row
    let columns: RecordColumns
    var codingPath: [any CodingKey] { [] }
    var allKeys: [Key] { [] }

    func contains(_ key: Key) -> Bool {
        columns.place(of: key.stringValue) != nil || columns.formerPlace(of: key.stringValue, row) != nil
    }

    func decodeNil(forKey key: Key) throws -> Bool { place(key) == nil }

    func decode(_ type: String.Type, forKey key: Key) throws -> String { try present(key) { try text($0, key) } }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try present(key) { try value($0, .int64, key) } }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try present(key) { try value($0, .int64, key) } }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try present(key) { try value($0, .double, key) } }
    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool {
        try present(key) { place in
            let number: Int64 = try value(place, .int64, key)
            return number != 0
        }
    }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T { try present(key) { try any(type, $0, key) } }

    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? { try place(key).map { try text($0, key) } }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? { try place(key).map { try value($0, .int64, key) } }
    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? {
        try place(key).map { try value($0, .int64, key) }
    }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
        try place(key).map { try value($0, .double, key) }
    }
    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
        try decodeIfPresent(Int64.self, forKey: key).map { $0 != 0 }
    }

    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        try place(key).map { try any(type, $0, key) }
    }

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) throws -> KeyedDecodingContainer<Nested> {
        throw nested(key)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer { throw nested(key) }
    func superDecoder() -> any Decoder { RowDecoder(row: row, columns: columns) }
    func superDecoder(forKey key: Key) -> any Decoder { superDecoder() }

    /// The place of a property that has a value.
    private func place(_ key: Key) -> FieldPlace? {
        guard let place = columns.place(of: key.stringValue), !row.hasNull(atIndex: place.column) else {
            return columns.formerPlace(of: key.stringValue, row)
        }
        return place
    }

    /// Reads the value of a property that is not optional.
    private func present<Value>(_ key: Key, _ read: (FieldPlace) throws -> Value) throws -> Value {
        if let place = place(key) { return try read(place) }
        if let value = columns.prototypeValue(of: key.stringValue, as: Value.self) { return value }
        let name = key.stringValue
        throw DecodingError.valueNotFound(
            Value.self,
            .init(
                codingPath: [key],
                debugDescription:
                    "the field '\(name)' has no value, and the property '\(name)' must have one. Make it optional, or declare "
                    + "`static var prototype: \(columns.type)? { … }` with a value for it. If the property was renamed, "
                    + "declare `formerFieldNames`"))
    }

    /// Reads the usual types without a conformance check.
    private func value<Value: DatabaseValueConvertible & StatementColumnConvertible>(
        _ place: FieldPlace, _ type: FieldType, _ key: Key
    ) throws -> Value {
        guard place.type.isReadable(as: type) else {
            throw wrong(key, "the field '\(key.stringValue)' is a \(place.type) and no \(type)")
        }
        do {
            return try row.decode(atIndex: place.column)
        } catch is RowDecodingError {
            throw wrong(key, "the field '\(key.stringValue)' holds what is no \(type)")
        }
    }

    private func text(_ place: FieldPlace, _ key: Key) throws -> String {
        place.column == columns.key ? try name(key) : try value(place, .string, key)
    }

    private func any<T: Decodable>(_ type: T.Type, _ place: FieldPlace, _ key: Key) throws -> T {
        var content = StoredField.Content.column(row, place.column)
        if place.column == columns.key {
            if type == UUID.self, let bytes: Data = row[column: columns.key], bytes.count >= 16 {
                // The cast is to the type itself.
                return bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) } as! T
            }
            content = .element(try name(key).databaseValue)
        }
        do {
            return try FieldDecoder.decode(type, StoredField(content: content, type: place.type, assets: columns.assets))
        } catch let error as FieldError {
            throw wrong(key, "the field '\(key.stringValue)' \(error.message)")
        } catch let error as DecodingError {
            throw error.within([key]) { "the field '\(key.stringValue)': \($0)" }
        }
    }

    private func name(_ key: Key) throws -> String {
        guard let name = columns.name(row) else { throw wrong(key, "its name can't be one") }
        return name
    }

    private func wrong(_ key: Key, _ message: String) -> DecodingError {
        .dataCorrupted(.init(codingPath: [key], debugDescription: message))
    }

    private func nested(_ key: Key) -> DecodingError {
        wrong(key, "a record's fields are values; give \(key.stringValue) a Codable type of its own")
    }
}

extension RecordDecoder {
    /// Makes a record from values that are not a row of a store.
    ///
    /// - Throws: `DecodingError` that names the record and the property.
    static func record(_ name: String, values: [String: FieldValue], assets: AssetPlace) throws -> R {
        // Names of fields begin with a letter.
        var row: [String: (any DatabaseValueConvertible)?] = ["_key": QueriedType.key(name)]
        for (field, value) in values { row[field] = value.stored }
        let columns = Row(row)
        let names = Array(columns.columnNames)
        let places = names.enumerated().compactMap { column, name in
            values[name].map { (name: name, place: FieldPlace(column: column, type: $0.type)) }
        }
        let decoder = RecordDecoder(
            RecordColumns(fields: places, key: names.firstIndex(of: "_key")!, of: R.self, assets: assets))
        return try decoder.decode(columns)
    }
}

extension Row {
    /// The bytes of a column that has a BLOB; `nil` for any other value.
    fileprivate subscript(column index: Int) -> Data? {
        if case .blob(let data) = (self[index] as DatabaseValue).storage { return data }
        return nil
    }
}

/// Reads a field as the type of its property.
enum FieldDecoder {
    /// - Throws: ``FieldError``, `DecodingError`.
    static func decode<T: Decodable>(_ type: T.Type, _ stored: StoredField) throws -> T {
        // The usual types come first, because a conformance check costs more than reading the value. The casts are to the type
        // itself.
        if type == Date.self { return try Date(stored) as! T }
        if type == UUID.self { return try UUID(stored) as! T }
        if type == Asset.self { return try Asset(stored) as! T }
        if let type = type as? any FieldConvertible.Type { return try type.init(stored) as! T }
        do {
            return try T(from: SingleDecoder(stored: stored))
        } catch is IsMany {
            return try JSONDecoder().decode(type, from: try stored.json())
        }
    }

    /// The error that a type decodes itself from more than one value.
    private struct IsMany: Error {}

    private struct SingleDecoder: Decoder, SingleValueDecodingContainer {
        let stored: StoredField
        var codingPath: [any CodingKey] { [] }
        var userInfo: [CodingUserInfoKey: Any] { [:] }

        func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> { throw IsMany() }
        func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw IsMany() }
        func singleValueContainer() -> any SingleValueDecodingContainer { self }

        func decodeNil() -> Bool { false }
        func decode<T: Decodable>(_ type: T.Type) throws -> T { try FieldDecoder.decode(type, stored) }
    }
}
