package import Foundation
import TidemarkModel

/// Encodes and decodes the fields of a record as clouds and stores keep them: one run of bytes. Documentation/Formats/cloud.md
/// specifies the layout.
package enum FieldCoding {
    /// - Parameter encrypted: The marks of fields whose values clients encrypt.
    package static func encode(
        _ fields: [String: CloudValue], encrypted: [String: CloudRecord.FieldEncryption] = [:]
    ) -> Data {
        var output = ByteOutput()
        output.reserve(fields.reduce(10) { $0 + $1.key.utf8.count + $1.value.byteCount + 16 })
        output.add(UInt64(fields.count))
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
            output.add(name)
            output.add(value, encrypted.isEmpty ? [] : encrypted[name] ?? [])
        }
        return Data(output.bytes)
    }

    /// Decodes the values alone.
    ///
    /// - Throws: As ``decodeMarked(_:only:)``.
    package static func decode(_ data: Data, only keys: Set<String>? = nil) throws(CloudError) -> [String: CloudValue] {
        try decodeMarked(data, only: keys).fields
    }

    /// Decodes the values and the marks of encrypted fields.
    ///
    /// - Parameter keys: The names of the fields to return; `nil` for all.
    /// - Throws: `CloudError` `internalError` when ``encode(_:encrypted:)`` makes no such bytes.
    package static func decodeMarked(
        _ data: Data, only keys: Set<String>? = nil
    ) throws(CloudError) -> (fields: [String: CloudValue], encrypted: [String: CloudRecord.FieldEncryption]) {
        if let keys, keys.isEmpty { return ([:], [:]) }
        do {
            return try data.withUnsafeBytes { bytes in
                var input = ByteInput(bytes)
                let count = try input.number()
                var fields: [String: CloudValue] = Dictionary(minimumCapacity: Int(min(count, 256)))
                var encrypted: [String: CloudRecord.FieldEncryption] = [:]
                for _ in 0..<count {
                    let name = try input.text()
                    let (value, encryption) = try input.value()
                    guard keys?.contains(name) != false else { continue }
                    fields[name] = value
                    if !encryption.isEmpty { encrypted[name] = encryption }
                }
                return (fields, encrypted)
            }
        } catch {
            throw CloudError(.internalError, "the fields of a record can't be read: they are damaged")
        }
    }
}

extension ByteOutput {
    /// Adds a type's code and the content. The code is the scalar's raw value, plus 16 for a list, plus 32 times the marks of
    /// encryption.
    fileprivate mutating func add(_ value: CloudValue, _ encryption: CloudRecord.FieldEncryption) {
        let marks = encryption.rawValue << 5
        switch value {
        case .list(let elements, let scalar):
            add(scalar.rawValue + 16 + marks)
            add(UInt64(elements.count))
            for element in elements { add(content: element) }
        default:
            add(value.type.scalar.rawValue + marks)
            add(content: value)
        }
    }

    private mutating func add(content value: CloudValue) {
        switch value {
        case .string(let text): add(text)
        case .int64(let number), .timestamp(let number): add(signed: number)
        case .double(let number): add(number)
        case .bytes(let data): add(data)
        case .location(let place):
            let optional = [place.altitude, place.horizontalAccuracy, place.verticalAccuracy, place.course, place.speed]
            var mask: UInt8 = 0
            for (bit, number) in optional.enumerated() where number != nil { mask |= 1 << bit }
            add(mask)
            add(place.latitude)
            add(place.longitude)
            for case let number? in optional { add(number) }
        case .reference(let reference):
            add(reference.action == .none ? 0 : reference.action == .deleteSelf ? 1 : 2 as UInt8)
            add(reference.recordName)
        case .asset(let asset):
            add(asset.digest)
            add(signed: asset.size)
        // A list has no lists as elements.
        case .list: preconditionFailure("a list holds scalars")
        }
    }
}

extension ByteInput {
    fileprivate mutating func value() throws -> (CloudValue, CloudRecord.FieldEncryption) {
        let code = try byte()
        guard let scalar = FieldType.Scalar(rawValue: code & 0x0f), code & 0x80 == 0 else { throw ByteInput.Damaged() }
        let encryption = CloudRecord.FieldEncryption(rawValue: code >> 5)
        guard code & 16 != 0 else { return (try content(scalar), encryption) }
        let count = try number()
        guard count <= rest.count else { throw ByteInput.Damaged() }
        var elements: [CloudValue] = []
        elements.reserveCapacity(Int(count))
        for _ in 0..<count { elements.append(try content(scalar)) }
        return (.list(elements, of: scalar), encryption)
    }

    private mutating func content(_ scalar: FieldType.Scalar) throws -> CloudValue {
        switch scalar {
        case .string: return .string(try text())
        case .int64: return .int64(try signed())
        case .timestamp: return .timestamp(try signed())
        case .double: return .double(try double())
        case .bytes: return .bytes(try data())
        case .location:
            let mask = try byte()
            var place = Location(latitude: try double(), longitude: try double())
            if mask & 1 != 0 { place.altitude = try double() }
            if mask & 2 != 0 { place.horizontalAccuracy = try double() }
            if mask & 4 != 0 { place.verticalAccuracy = try double() }
            if mask & 8 != 0 { place.course = try double() }
            if mask & 16 != 0 { place.speed = try double() }
            return .location(place)
        case .reference:
            let action = try byte()
            guard action <= 2 else { throw ByteInput.Damaged() }
            let actions: [CloudReference.Action] = [.none, .deleteSelf, .validate]
            return .reference(CloudReference(try text(), action: actions[Int(action)]))
        case .asset: return .asset(CloudAsset(digest: try text(), size: try signed()))
        }
    }
}
