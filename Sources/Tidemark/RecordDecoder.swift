import Foundation
import GRDB
import TidemarkModel
import TidemarkStore

/// Makes records of a fetch's rows, through `Codable`.
///
/// One belongs to one fetch: it remembers where the property is found that comes next.
final class RecordDecoder<R: Record> {
    private let columns: RecordColumns

    init(_ columns: RecordColumns) { self.columns = columns }

    /// - Throws: `DecodingError` that names the record and the property.
    func decode(_ row: Row) throws -> R {
        do {
            return try R(from: RowDecoder(row: row, columns: columns))
        } catch let error as DecodingError {
            throw Self.naming(row, columns, error)
        }
    }

    private static func naming(_ row: Row, _ columns: RecordColumns, _ error: DecodingError) -> DecodingError {
        let name = columns.name(row) ?? "?"
        func context(_ context: DecodingError.Context) -> DecodingError.Context {
            .init(
                codingPath: context.codingPath,
                debugDescription: "\(R.recordType) \(name) can't be read as \(R.self): \(context.debugDescription)",
                underlyingError: context.underlyingError)
        }
        switch error {
        case .dataCorrupted(let it): return .dataCorrupted(context(it))
        case .keyNotFound(let key, let it): return .keyNotFound(key, context(it))
        case .typeMismatch(let type, let it): return .typeMismatch(type, context(it))
        case .valueNotFound(let type, let it): return .valueNotFound(type, context(it))
        @unknown default: return error
        }
    }
}

/// Where the fields are in the rows of a fetch.
final class RecordColumns {
    private let fields: [(name: String, column: Int)]
    private let nameField: String
    let key: Int
    let assets: AssetPlace
    private var next = 0

    init(fields: [(name: String, column: Int)], key: Int, nameField: String, assets: AssetPlace) {
        self.fields = fields
        self.key = key
        self.nameField = nameField
        self.assets = assets
    }

    /// The column of a property; `nil` when the type has no such field.
    func index(of property: String) -> Int? {
        if property == nameField { return key }
        // Properties come in the same order in every row.
        for _ in fields.indices {
            let place = next
            next = next + 1 == fields.count ? 0 : next + 1
            if fields[place].name == property { return fields[place].column }
        }
        return nil
    }

    func name(_ row: Row) -> String? { StoreReader.recordName(key: row[key]) }
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

    func contains(_ key: Key) -> Bool { columns.index(of: key.stringValue) != nil }

    func decodeNil(forKey key: Key) throws -> Bool { column(key) == nil }

    func decode(_ type: String.Type, forKey key: Key) throws -> String {
        let column = try present(key, type)
        return column == columns.key ? try name(key) : row[column]
    }

    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { row[try present(key, type)] }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { row[try present(key, type)] }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { row[try present(key, type)] }
    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { (row[try present(key, type)] as Int64) != 0 }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try value(type, at: try present(key, type), key)
    }

    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
        try column(key).map { $0 == columns.key ? try name(key) : row[$0] }
    }

    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? { column(key).map { row[$0] } }
    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? { column(key).map { row[$0] } }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? { column(key).map { row[$0] } }
    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? { column(key).map { (row[$0] as Int64) != 0 } }

    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        try column(key).map { try value(type, at: $0, key) }
    }

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) throws -> KeyedDecodingContainer<Nested> {
        throw nested(key)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer { throw nested(key) }
    func superDecoder() -> any Decoder { RowDecoder(row: row, columns: columns) }
    func superDecoder(forKey key: Key) -> any Decoder { superDecoder() }

    /// The column of a property that has a value.
    private func column(_ key: Key) -> Int? {
        guard let column = columns.index(of: key.stringValue), !row.hasNull(atIndex: column) else { return nil }
        return column
    }

    private func present(_ key: Key, _ type: Any.Type) throws -> Int {
        guard let column = column(key) else {
            throw DecodingError.valueNotFound(
                type, .init(codingPath: [key], debugDescription: "the field '\(key.stringValue)' has no value"))
        }
        return column
    }

    private func name(_ key: Key) throws -> String {
        guard let name = columns.name(row) else { throw wrong(key, "its name can't be one") }
        return name
    }

    private func value<T: Decodable>(_ type: T.Type, at column: Int, _ key: Key) throws -> T {
        if column == columns.key { return try named(type, key) }
        let stored = StoredField(content: .column(row, column), assets: columns.assets)
        do {
            if let value = try FieldDecoder.decode(type, stored) { return value }
        } catch let error as DecodingError {
            throw error
        }
        throw wrong(key, "the value of the field '\(key.stringValue)' can't be read as \(T.self)")
    }

    private func named<T: Decodable>(_ type: T.Type, _ key: Key) throws -> T {
        if type == UUID.self, let bytes: Data = row[column: columns.key], bytes.count >= 16 {
            return bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) } as! T
        }
        let element = StoredField(content: .element(try name(key).databaseValue), assets: columns.assets)
        if let value = try FieldDecoder.decode(type, element) { return value }
        throw wrong(key, "its name can't be read as \(T.self)")
    }

    private func wrong(_ key: Key, _ message: String) -> DecodingError {
        .dataCorrupted(.init(codingPath: [key], debugDescription: message))
    }

    private func nested(_ key: Key) -> DecodingError {
        wrong(key, "a record's fields are values; give \(key.stringValue) a Codable type of its own")
    }
}

extension RecordDecoder {
    /// A record of values that lie in no store as they are.
    ///
    /// - Throws: `DecodingError` that names the record and the property.
    static func record(_ name: String, values: [String: FieldValue], assets: AssetPlace) throws -> R {
        // Names of fields begin with a letter.
        var row: [String: (any DatabaseValueConvertible)?] = ["_key": QueriedType.key(name)]
        for (field, value) in values { row[field] = value.argument }
        let columns = Row(row)
        let places = columns.columnNames.enumerated().map { (name: $1, column: $0) }
        let key = places.first { $0.name == "_key" }!.column
        let decoder = RecordDecoder(
            RecordColumns(fields: places.filter { $0.name != "_key" }, key: key, nameField: R.nameField, assets: assets))
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

/// Reads one field as whatever type a property has.
enum FieldDecoder {
    /// `nil` when the field can't be read as that.
    static func decode<T: Decodable>(_ type: T.Type, _ stored: StoredField) throws -> T? {
        // The usual ones first: asking for a conformance costs more than reading the value.
        if type == Date.self { return Date(stored) as! T? }
        if type == UUID.self { return UUID(stored) as! T? }
        if type == Asset.self { return Asset(stored) as! T? }
        if let type = type as? any FieldConvertible.Type { return type.init(stored) as! T? }
        do {
            return try T(from: SingleDecoder(stored: stored))
        } catch is IsMany {
            guard let text = stored.text else { return nil }
            return try JSONDecoder().decode(type, from: Data(text.utf8))
        }
    }

    /// The type decodes itself from more than one value.
    struct IsMany: Error {}

    private struct SingleDecoder: Decoder, SingleValueDecodingContainer {
        let stored: StoredField
        var codingPath: [any CodingKey] { [] }
        var userInfo: [CodingUserInfoKey: Any] { [:] }

        func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> { throw IsMany() }
        func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw IsMany() }
        func singleValueContainer() -> any SingleValueDecodingContainer { self }

        func decodeNil() -> Bool { false }

        func decode<T: Decodable>(_ type: T.Type) throws -> T {
            guard let value = try FieldDecoder.decode(type, stored) else {
                throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "the value can't be read as \(T.self)"))
            }
            return value
        }
    }
}
