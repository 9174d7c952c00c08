import Foundation
import TidemarkModel

/// The fields of a record as clouds and stores keep them: one run of bytes, whose layout Documentation/Formats/cloud.md tells.
package enum FieldCoding {
    package static func encode(_ fields: [String: CloudValue]) -> Data {
        var output = ByteOutput()
        output.reserve(fields.reduce(10) { $0 + $1.key.utf8.count + $1.value.byteCount + 16 })
        output.add(UInt64(fields.count))
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
            output.add(name)
            output.add(value)
        }
        return Data(output.bytes)
    }

    /// - Throws: `CloudError` `internalError` when the bytes are none that ``encode(_:)`` makes.
    package static func decode(_ data: Data, only keys: Set<String>? = nil) throws(CloudError) -> [String: CloudValue] {
        if let keys, keys.isEmpty { return [:] }
        do {
            return try data.withUnsafeBytes { bytes in
                var input = ByteInput(bytes)
                let count = try input.number()
                var fields: [String: CloudValue] = Dictionary(minimumCapacity: Int(min(count, 256)))
                for _ in 0..<count {
                    let name = try input.text()
                    let value = try input.value()
                    if keys?.contains(name) != false { fields[name] = value }
                }
                return fields
            }
        } catch {
            throw CloudError(.internalError, "the fields of a record can't be read: they are damaged")
        }
    }
}

extension ByteOutput {
    /// A type's code, that of the scalar, 16 more for a list of it; and the content.
    fileprivate mutating func add(_ value: CloudValue) {
        switch value {
        case .list(let elements, let scalar):
            add(scalar.rawValue + 16)
            add(UInt64(elements.count))
            for element in elements { add(content: element) }
        default:
            add(value.type.scalar.rawValue)
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
        // A list's elements are none.
        case .list: preconditionFailure("a list holds scalars")
        }
    }
}

extension ByteInput {
    fileprivate mutating func value() throws -> CloudValue {
        let code = try byte()
        guard let scalar = FieldType.Scalar(rawValue: code & 0x0f), code & 0xe0 == 0 else { throw ByteInput.Damaged() }
        guard code & 16 != 0 else { return try content(scalar) }
        let count = try number()
        guard count <= rest.count else { throw ByteInput.Damaged() }
        var elements: [CloudValue] = []
        elements.reserveCapacity(Int(count))
        for _ in 0..<count { elements.append(try content(scalar)) }
        return .list(elements, of: scalar)
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
