import Foundation
public import TidemarkModel
import TidemarkSQLite
public import TidemarkStore

/// Writes records in the form of manifests (Documentation/Formats/manifest.md), so that an export can be imported again.
public struct RecordText {
    private let schema: RecordTypeSchema
    /// Returns the text for an asset's identifier: `asset:` and the identifier, or the path of a copy.
    private let assetText: (String) throws -> String
    private let keys: [[UInt8]]
    private let nameKey: [UInt8]

    /// Makes a writer of one type's records.
    ///
    /// - Parameters:
    ///   - schema: The record type.
    ///   - assetText: Returns the text for an asset's identifier, such as the path of a copy.
    public init(
        schema: RecordTypeSchema, assetText: @escaping (String) throws -> String = Self.assetClaim
    ) {
        self.schema = schema
        self.assetText = assetText
        nameKey = JSONWriter.encoded(name: schema.nameField ?? "_name")
        keys = schema.fields.map { JSONWriter.encoded(name: $0.name) }
    }

    /// The text by which a manifest names an asset that the record has already: `asset:` and its identifier.
    public static func assetClaim(_ id: String) -> String { "asset:\(id)" }

    /// Appends a JSON object on one line, without fields that have no value.
    public func appendJSON(_ record: StoredRecord, to out: inout [UInt8]) throws {
        try JSONWriter.append(to: &out) { try write(record, to: &$0) }
    }

    /// Writes a JSON object, without fields that have no value.
    ///
    /// - Parameter more: Writes further members.
    package func write(
        _ record: StoredRecord, to json: inout JSONWriter, more: (inout JSONWriter) -> Void = { _ in }
    ) throws {
        try json.object { json in
            json.name(encoded: nameKey)
            json.string(schema.shortName(of: record.name))
            for (index, value) in record.values.enumerated() {
                guard let value else { continue }
                json.name(encoded: keys[index])
                if let boolean = Self.boolean(value, of: schema.fields[index]) {
                    json.raw(boolean)
                } else {
                    try write(value, to: &json)
                }
            }
            more(&json)
        }
    }

    /// The text of a Boolean's value; `nil` for other fields, and for a value that is neither 0 nor 1.
    public static func boolean(_ value: FieldValue?, of field: RecordTypeSchema.Field) -> String? {
        guard field.isBoolean, case .int64(let number) = value, number == 0 || number == 1 else { return nil }
        return number == 1 ? "true" : "false"
    }

    /// Appends a value as JSON.
    public func appendJSON(_ value: FieldValue, to out: inout [UInt8]) throws {
        try JSONWriter.append(to: &out) { try write(value, to: &$0) }
    }

    private func write(_ value: FieldValue, to json: inout JSONWriter) throws {
        switch value {
        case .string(let text), .reference(let text): json.string(text)
        case .int64(let number): json.integer(number)
        case .double(let number): json.number(number)
        case .timestamp(let time): json.string(Timestamp.text(microseconds: time))
        case .bytes(let bytes): json.string(Data(bytes).base64EncodedString())
        case .location(let place): json.raw(StoredText.location(place))
        case .asset(let id): json.string(try assetText(id))
        case .list(let elements, of: let scalar): try writeList(elements, of: scalar, to: &json)
        }
    }

    /// Appends the names of a CSV's columns, and a line end.
    public func appendCSVHeader(to out: inout [UInt8]) {
        // Identifiers need no quotes.
        out += Array(([schema.nameField ?? "_name"] + schema.fields.map(\.name)).joined(separator: ",").utf8)
        out += [0x0d, 0x0a]
    }

    /// Appends a CSV row and a line end. A field without a value is an empty cell, and an empty text is a quoted empty cell.
    public func appendCSV(_ record: StoredRecord, to out: inout [UInt8]) throws {
        Self.appendCell(schema.shortName(of: record.name), to: &out)
        for (index, value) in record.values.enumerated() {
            out.append(UInt8(ascii: ","))
            if let boolean = Self.boolean(value, of: schema.fields[index]) {
                out += Array(boolean.utf8)
                continue
            }
            switch value {
            case nil: break
            case .string(let text), .reference(let text): Self.appendCell(text, to: &out)
            case .timestamp(let time): out += Array(Timestamp.text(microseconds: time).utf8)
            case .bytes(let bytes): Self.appendCell(Data(bytes).base64EncodedString(), to: &out)
            case .asset(let id): Self.appendCell(try assetText(id), to: &out)
            case .int64, .double, .location, .list:
                var json: [UInt8] = []
                try appendJSON(value!, to: &json)
                CSVText.appendQuoted(String(decoding: json, as: UTF8.self), to: &out)
            }
        }
        out += [0x0d, 0x0a]
    }

    private func writeList(_ elements: [FieldValue], of scalar: FieldType.Scalar, to json: inout JSONWriter) throws {
        switch scalar {
        case .timestamp, .asset: try json.array { json in for element in elements { try write(element, to: &json) } }
        case .string, .int64, .double, .bytes, .location, .reference: json.raw(StoredText.list(elements))
        }
    }

    /// Appends a text as a cell of a CSV file. An empty text, and a text that needs quotes, is quoted.
    ///
    /// A text that a spreadsheet would take for a formula gets an apostrophe before it. So does such a text that has apostrophes
    /// before it already, because an import removes one apostrophe.
    public static func appendCell(_ text: String, to out: inout [UInt8]) { CSVText.appendCell(text, to: &out) }
}
