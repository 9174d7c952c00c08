import Foundation
package import TidemarkCloud
package import TidemarkModel

extension FieldType {
    /// The protocol's name of the type: `STRING`, `ASSETID_LIST`.
    package var wireName: String { isList ? scalar.wireName + "_LIST" : scalar.wireName }

    /// Makes the type of a name of the protocol; `nil` for any other name, and for `UNKNOWN_LIST`.
    package init?(wire name: String) {
        let isList = name.hasSuffix("_LIST")
        var base = isList ? String(name.dropLast(5)) : name
        if base == "ASSET" { base = "ASSETID" }
        if base == "NUMBER_INT64" { base = "INT64" }
        guard let scalar = Scalar.allCases.first(where: { $0.wireName == base }) else { return nil }
        self.init(scalar, isList: isList)
    }
}

extension FieldType.Scalar {
    var wireName: String {
        switch self {
        case .string: "STRING"
        case .int64: "INT64"
        case .double: "DOUBLE"
        case .timestamp: "TIMESTAMP"
        case .bytes: "BYTES"
        case .location: "LOCATION"
        case .reference: "REFERENCE"
        case .asset: "ASSETID"
        }
    }
}

// Writing

extension CloudValue {
    /// Writes the object of a field's value.
    ///
    /// - Parameters:
    ///   - encryption: The marks of the field.
    ///   - url: Returns the address at which an asset's content can be fetched.
    package func write(
        _ json: inout JSONWriter, zone: CloudZoneID, _ dialect: WireDialect, encryption: CloudRecord.FieldEncryption = [],
        url: (CloudAsset) -> String?
    ) {
        json.beginObject()
        json.name("value")
        switch self {
        case .list(let elements, _):
            json.beginArray()
            for element in elements { element.content(&json, zone, dialect, url) }
            json.endArray()
        default: content(&json, zone, dialect, url)
        }
        json.member("type", encryption.contains(.bytesType) && type == .bytes ? Self.encryptedBytes : type.wireName)
        if encryption.contains(.member) { json.member("isEncrypted", true) }
        if dialect.isExtended { exactTimes(&json) }
        json.endObject()
    }

    /// The type of bytes that a client encrypts.
    fileprivate static let encryptedBytes = "ENCRYPTED_BYTES"

    private func content(_ json: inout JSONWriter, _ zone: CloudZoneID, _ dialect: WireDialect, _ url: (CloudAsset) -> String?) {
        switch self {
        case .string(let text): json.string(text)
        case .int64(let number):
            if dialect.numbersAsStrings { json.string("\(number)") } else { json.integer(number) }
        case .double(let number):
            if dialect.numbersAsStrings { json.string("\(number)") } else { json.number(number) }
        case .timestamp(let time): json.integer(WireTime.milliseconds(time))
        case .bytes(let data): json.string(data.base64EncodedString())
        case .location(let place): place.write(&json)
        case .reference(let reference):
            json.beginObject()
            json.member("recordName", reference.recordName)
            json.member("zoneID") { zone.writeMembers(&$0) }
            json.member("action", reference.action.rawValue)
            json.endObject()
        case .asset(let asset):
            json.beginObject()
            asset.write(&json, dialect)
            json.member("downloadURL", url(asset))
            json.endObject()
        // A list has no lists as elements.
        case .list: json.null()
        }
    }

    /// Writes times in microseconds, if milliseconds are not exact.
    private func exactTimes(_ json: inout JSONWriter) {
        switch self {
        case .timestamp(let time) where time % 1000 != 0: json.member("tidemark") { $0.member("microseconds", time) }
        case .list(let elements, of: .timestamp):
            let times = elements.map { if case .timestamp(let time) = $0 { time } else { 0 as Int64 } }
            guard times.contains(where: { $0 % 1000 != 0 }) else { return }
            json.member("tidemark") { $0.list("microseconds") { for time in times { $0.integer(time) } } }
        case .string, .int64, .double, .timestamp, .bytes, .location, .reference, .asset, .list: break
        }
    }
}

/// Converts times. The protocol has milliseconds since 1970, a `CloudValue` microseconds since 1970.
enum WireTime {
    static func milliseconds(_ time: Int64) -> Int64 { time / 1000 - (time % 1000 < 0 ? 1 : 0) }

    static func microseconds(_ node: JSONNode) throws(CloudError) -> Int64 {
        guard let number = node.wholeNumber else {
            throw node.refusal(
                "is no time: a whole number of milliseconds since 1970 was expected. Invalid value, expected type TIMESTAMP")
        }
        let (time, isTooFar) = number.multipliedReportingOverflow(by: 1000)
        guard !isTooFar else { throw node.refusal("is a time beyond what can be kept. Invalid value, expected type TIMESTAMP") }
        return time
    }
}

extension Location {
    package func write(_ json: inout JSONWriter) {
        json.beginObject()
        json.member("latitude", number: latitude)
        json.member("longitude", number: longitude)
        json.member("horizontalAccuracy", number: horizontalAccuracy)
        json.member("verticalAccuracy", number: verticalAccuracy)
        json.member("altitude", number: altitude)
        json.member("speed", number: speed)
        json.member("course", number: course)
        json.endObject()
    }

    package init(_ node: JSONNode) throws(CloudError) {
        guard node.isObject else { throw node.refusal("is no location. Invalid value, expected type LOCATION") }
        self.init(
            latitude: try node.required("latitude").asNumber(), longitude: try node.required("longitude").asNumber(),
            altitude: try node.number("altitude"))
        horizontalAccuracy = try node.number("horizontalAccuracy")
        verticalAccuracy = try node.number("verticalAccuracy")
        speed = try node.number("speed")
        course = try node.number("course")
    }
}

// Reading

/// The value of a field in a request or in an answer.
package enum WireFieldValue: Hashable, Sendable {
    case value(CloudValue)
    /// The `value` is `null` or missing: the field has no value.
    case cleared
    /// A list without elements whose type neither the value nor the schema names. A saved record gets no value for it.
    case emptyList
}

/// Reads values of fields.
package struct WireValueReader {
    /// The zone of the record. A reference into another zone is refused.
    package let zone: CloudZoneID
    /// Makes the asset that a value names.
    package let asset: (AssetClaim, JSONNode) throws(CloudError) -> CloudAsset

    package init(zone: CloudZoneID, asset: @escaping (AssetClaim, JSONNode) throws(CloudError) -> CloudAsset) {
        self.zone = zone
        self.asset = asset
    }

    /// Reads the object of a field, which has `value` and may have `type`.
    ///
    /// - Parameter known: Returns the type that the schema has for the field. It is called if the object names no
    ///   type, or `UNKNOWN_LIST`.
    /// - Throws: `CloudError` `invalidArguments`, with the place.
    package func field(_ node: JSONNode, known: () -> FieldType?) throws(CloudError) -> WireFieldValue {
        guard node.isObject else { throw node.refusal("is no value of a field: an object with 'value' was expected") }
        guard let value = node["value"] else { return .cleared }
        var type: FieldType?
        if let named = node["type"] {
            let name = try named.asString()
            if let read = FieldType(wire: name) {
                type = read
            } else if name == CloudValue.encryptedBytes {
                type = .bytes
            } else if name != "UNKNOWN_LIST" {
                throw named.refusal("is no type of a field: '\(name.prefix(40))'")
            } else {
                type = known()
            }
        } else {
            type = known()
        }
        let exact = node["tidemark"]?["microseconds"]
        if let type { return .value(try self.value(value, as: type, exact: exact)) }
        return try inferred(value)
    }

    /// Reads the marks of encryption of a field's object.
    ///
    /// - Throws: `CloudError` `invalidArguments` where `isEncrypted` is neither `true` nor `false`.
    package static func encryption(_ node: JSONNode) throws(CloudError) -> CloudRecord.FieldEncryption {
        guard node.isObject else { return [] }
        var encryption: CloudRecord.FieldEncryption = []
        if node["type"]?.isString("ENCRYPTED_BYTES") == true { encryption.insert(.bytesType) }
        if try node.bool("isEncrypted") == true { encryption.insert(.member) }
        return encryption
    }

    private func value(_ node: JSONNode, as type: FieldType, exact: JSONNode?) throws(CloudError) -> CloudValue {
        guard type.isList else { return try scalar(node, as: type.scalar, exact: exact) }
        guard node.isArray else { throw node.refusal("is no list. Invalid value, expected type \(type.wireName)") }
        let times = exact.map { Array($0.elements) }
        var elements: [CloudValue] = []
        elements.reserveCapacity(node.elementCount)
        for element in node.elements {
            let exact = times.flatMap { $0.count == node.elementCount ? $0[elements.count] : nil }
            elements.append(try scalar(element, as: type.scalar, exact: exact))
        }
        return .list(elements, of: type.scalar)
    }

    private func scalar(_ node: JSONNode, as type: FieldType.Scalar, exact: JSONNode?) throws(CloudError) -> CloudValue {
        func expected() -> CloudError { node.refusal("does not fit. Invalid value, expected type \(type.wireName)") }
        switch type {
        case .string:
            guard let text = node.string else { throw expected() }
            return .string(text)
        case .int64:
            if let number = node.wholeNumber { return .int64(number) }
            if let bool = node.bool { return .int64(bool ? 1 : 0) }
            if let number = node.string.flatMap({ Int64($0) }) { return .int64(number) }
            throw expected()
        case .double:
            if let number = node.number { return .double(number) }
            if let number = node.string.flatMap({ Double($0) }), number.isFinite { return .double(number) }
            throw expected()
        case .timestamp:
            if let exact { return .timestamp(try exact.asInteger()) }
            return .timestamp(try WireTime.microseconds(node))
        case .bytes:
            guard let text = node.string, let data = Data(base64Encoded: text, options: .ignoreUnknownCharacters) else {
                throw expected()
            }
            return .bytes(data)
        case .location: return .location(try Location(node))
        case .reference: return .reference(try reference(node))
        case .asset: return .asset(try asset(AssetClaim(node), node))
        }
    }

    private func reference(_ node: JSONNode) throws(CloudError) -> CloudReference {
        guard node.isObject else { throw node.refusal("is no reference. Invalid value, expected type REFERENCE") }
        if let named = node["zoneID"] {
            let other = try CloudZoneID(named)
            guard other.zoneName == zone.zoneName else {
                throw named.refusal("names another zone than the record's, and references are within one")
            }
        }
        let name = try node.required("recordName").asString()
        guard let action = try node.string("action") else { return CloudReference(name) }
        guard let known = CloudReference.Action(rawValue: action) else {
            throw node.refusal("has an action that is not one of NONE, DELETE_SELF, VALIDATE")
        }
        return CloudReference(name, action: known)
    }

    /// Reads the value of a field without a type, and infers the type.
    private func inferred(_ node: JSONNode) throws(CloudError) -> WireFieldValue {
        guard node.isArray else { return .value(try scalar(node, as: try inferredType(node), exact: nil)) }
        var type: FieldType.Scalar?
        for element in node.elements {
            let next = try inferredType(element)
            // In a list of doubles, whole numbers may be written without a fraction.
            if type == .int64, next == .double { type = .double }
            if type == nil { type = next }
            guard type == next || (type == .double && next == .int64) else {
                throw element.refusal("is of another type than the list's first element")
            }
        }
        guard let type else { return .emptyList }
        return .value(try value(node, as: .list(of: type), exact: nil))
    }

    private func inferredType(_ node: JSONNode) throws(CloudError) -> FieldType.Scalar {
        if node.string != nil { return .string }
        if node.integer != nil || node.bool != nil { return .int64 }
        if node.number != nil { return .double }
        if node["recordName"] != nil { return .reference }
        if node["latitude"] != nil { return .location }
        if node["fileChecksum"] != nil || node["receipt"] != nil || node["tidemark"]?["digest"] != nil { return .asset }
        throw node.refusal("is a value of no type that a field can have")
    }
}
