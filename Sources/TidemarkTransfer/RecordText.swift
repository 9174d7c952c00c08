import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Renders records as manifests have them (Documentation/Formats/manifest.md), so that what is exported can be imported again.
public struct RecordText {
    private let schema: RecordTypeSchema
    /// What stands for an asset: `asset:` and its identifier, or the path of a copy.
    private let assetText: (String) throws -> String
    private let keys: [[UInt8]]
    private let nameKey: [UInt8]

    public init(
        schema: RecordTypeSchema, assetText: @escaping (String) throws -> String = Self.assetClaim
    ) {
        self.schema = schema
        self.assetText = assetText
        var nameKey: [UInt8] = []
        Self.appendString(schema.nameField ?? "_name", to: &nameKey)
        self.nameKey = nameKey + [UInt8(ascii: ":")]
        keys = schema.fields.map { field in
            var key: [UInt8] = []
            Self.appendString(field.name, to: &key)
            return key + [UInt8(ascii: ":")]
        }
    }

    /// How a manifest names an asset that the record holds already.
    public static func assetClaim(_ id: String) -> String { "asset:\(id)" }

    /// Appends a JSON object on one line, without fields that have no value.
    public func appendJSON(_ record: StoredRecord, to out: inout [UInt8]) throws {
        out.append(UInt8(ascii: "{"))
        out += nameKey
        Self.appendString(schema.shortName(of: record.name), to: &out)
        for (index, value) in record.values.enumerated() {
            guard let value else { continue }
            out.append(UInt8(ascii: ","))
            out += keys[index]
            if let boolean = Self.boolean(value, of: schema.fields[index]) {
                out += Array(boolean.utf8)
            } else {
                try appendJSON(value, to: &out)
            }
        }
        out.append(UInt8(ascii: "}"))
    }

    /// The text of a Boolean's value; `nil` for other fields, and for a value that is neither 0 nor 1.
    public static func boolean(_ value: FieldValue?, of field: RecordTypeSchema.Field) -> String? {
        guard field.isBoolean, case .int64(let number) = value, number == 0 || number == 1 else { return nil }
        return number == 1 ? "true" : "false"
    }

    /// Appends a value as JSON.
    public func appendJSON(_ value: FieldValue, to out: inout [UInt8]) throws {
        switch value {
        case .string(let text), .reference(let text): Self.appendString(text, to: &out)
        case .int64(let number): out += Array(String(number).utf8)
        case .double(let number): out += Array(number.description.utf8)
        case .timestamp(let time): Self.appendString(Timestamp.text(microseconds: time), to: &out)
        case .bytes(let bytes): Self.appendString(Data(bytes).base64EncodedString(), to: &out)
        case .location(let json): out += Array(json.utf8)
        case .asset(let id): Self.appendString(try assetText(id), to: &out)
        case .list(let json, of: let scalar): try appendList(json, of: scalar, to: &out)
        }
    }

    /// The names of a CSV's columns, and a line end.
    public func appendCSVHeader(to out: inout [UInt8]) {
        // Identifiers need no quotes.
        out += Array(([schema.nameField ?? "_name"] + schema.fields.map(\.name)).joined(separator: ",").utf8)
        out += [0x0d, 0x0a]
    }

    /// Appends a CSV row and a line end; no value is an empty cell, an empty text a quoted one.
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
                Self.appendQuoted(String(decoding: json, as: UTF8.self), to: &out)
            }
        }
        out += [0x0d, 0x0a]
    }

    private func appendList(_ json: String, of scalar: FieldType.Scalar, to out: inout [UInt8]) throws {
        switch scalar {
        case .timestamp:
            let times = try JSONDecoder().decode([Int64].self, from: Data(json.utf8))
            try appendItems(times.map(Timestamp.text(microseconds:)), to: &out)
        case .asset:
            let ids = try JSONDecoder().decode([String].self, from: Data(json.utf8))
            try appendItems(ids.map(assetText), to: &out)
        default:
            out += Array(json.utf8)
        }
    }

    private func appendItems(_ items: [String], to out: inout [UInt8]) throws {
        out.append(UInt8(ascii: "["))
        for (index, item) in items.enumerated() {
            if index > 0 { out.append(UInt8(ascii: ",")) }
            Self.appendString(item, to: &out)
        }
        out.append(UInt8(ascii: "]"))
    }

    /// Appends a text as a cell of a CSV file, in quotes where it needs them; an empty text does.
    ///
    /// A text that a spreadsheet would take for a formula gets an apostrophe before it, and so does one that is such a text behind
    /// apostrophes: importing takes off one. Numbers, which are no texts, stay as they are.
    public static func appendCell(_ text: String, to out: inout [UInt8]) {
        guard isFormula(text) else { return appendQuoted(text, to: &out) }
        appendQuoted("'" + text, to: &out)
    }

    /// Whether a spreadsheet takes a text for a formula, with or without apostrophes before it: one that begins with =, +, -, @, a tab or a line
    /// end, or with one of the first four as Chinese and Japanese keyboards have them.
    package static func isFormula(_ text: String) -> Bool {
        switch text.unicodeScalars.first(where: { $0 != "'" }) {
        case "=", "+", "-", "@", "\t", "\r", "\n", "\u{ff1d}", "\u{ff0b}", "\u{ff0d}", "\u{ff20}": true
        default: false
        }
    }

    private static func appendQuoted(_ text: String, to out: inout [UInt8]) {
        let needsQuotes = text.isEmpty || text.utf8.contains { $0 == 0x22 || $0 == 0x2c || $0 == 0x0a || $0 == 0x0d }
        guard needsQuotes else {
            out += Array(text.utf8)
            return
        }
        out.append(0x22)
        for byte in text.utf8 {
            if byte == 0x22 { out.append(0x22) }
            out.append(byte)
        }
        out.append(0x22)
    }

    /// Appends a JSON string, without characters that a terminal obeys.
    public static func appendString(_ text: String, to out: inout [UInt8]) { JSONString.append(text, to: &out) }
}
