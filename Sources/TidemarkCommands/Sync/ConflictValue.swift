import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// The fields of a container's record types. They tell the types of values that are stored as JSON.
struct KnownFields {
    private var fields: [String: [String: RecordTypeSchema.Field]] = [:]

    init(_ readers: [StoreReader]) throws {
        for reader in readers {
            for type in try reader.types() {
                // A field that came through the cloud is no Boolean, but may be a Boolean in the other store.
                for field in type.fields where fields[type.name]?[field.name]?.isBoolean != true {
                    fields[type.name, default: [:]][field.name] = field
                }
            }
        }
    }

    subscript(type: String, field: String?) -> RecordTypeSchema.Field? { field.flatMap { fields[type]?[$0] } }
}

/// A value that is stored as JSON, as the tool prints it: a Boolean as `true` or `false`, a time as text.
struct ConflictValue: Encodable {
    /// The value as JSON, for people.
    let text: String

    /// - Parameters:
    ///   - json: The value as it is stored; `nil` for no value.
    ///   - field: The value's field; `nil` if it is not known any more.
    init?(_ json: String?, of field: RecordTypeSchema.Field?) {
        guard let json else { return nil }
        if let field, field.isBoolean, json == "0" || json == "1" {
            text = json == "1" ? "true" : "false"
        } else if let field, field.type == .timestamp, let time = Int64(json) {
            text = "\"\(Timestamp.text(microseconds: time))\""
        } else {
            text = json
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        // In a damaged store, a text that is no JSON is shown as it is stored.
        if let value = try? JSONDecoder().decode(JSONValue.self, from: Data(text.utf8)) {
            try container.encode(value)
        } else {
            try container.encode(text)
        }
    }
}

/// A JSON value.
private indirect enum JSONValue: Codable {
    case null
    case boolean(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    init(from decoder: any Decoder) throws {
        // The types are tried one after the other: only a try shows which one fits.
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .boolean(value)
        } else if let value = try? container.decode(Int64.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .boolean(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let values): try container.encode(values)
        case .object(let values): try container.encode(values)
        }
    }
}
