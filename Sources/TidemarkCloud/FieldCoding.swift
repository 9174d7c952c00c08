import Foundation
import TidemarkModel

/// The fields of a record as clouds and stores keep them: one run of bytes, whose layout Documentation/Formats/cloud.md tells.
package enum FieldCoding {
    package static func encode(_ fields: [String: CloudValue]) -> Data {
        var output = Output()
        output.add(UInt64(fields.count))
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
            output.add(name)
            output.add(value)
        }
        return Data(output.bytes)
    }

    /// - Throws: `CloudError` `internalError` when the bytes are none that ``encode(_:)`` makes.
    package static func decode(_ data: Data, only keys: Set<String>? = nil) throws(CloudError) -> [String: CloudValue] {
        do {
            return try data.withUnsafeBytes { bytes in
                var input = Input(rest: bytes)
                let count = try input.number()
                var fields: [String: CloudValue] = [:]
                fields.reserveCapacity(Int(min(count, 256)))
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

    /// A type's code: that of the scalar, 16 more for a list of it.
    private struct Output {
        var bytes: [UInt8] = []

        mutating func add(_ number: UInt64) {
            var rest = number
            while rest >= 0x80 {
                bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
                rest >>= 7
            }
            bytes.append(UInt8(rest))
        }

        mutating func add(signed number: Int64) { add(UInt64(bitPattern: number << 1 ^ number >> 63)) }

        mutating func add(_ number: Double) {
            withUnsafeBytes(of: number.bitPattern.littleEndian) { bytes.append(contentsOf: $0) }
        }

        mutating func add(_ text: String) {
            var text = text
            text.withUTF8 { utf8 in
                add(UInt64(utf8.count))
                bytes.append(contentsOf: utf8)
            }
        }

        mutating func add(_ value: CloudValue) {
            switch value {
            case .list(let elements, let scalar):
                bytes.append(scalar.rawValue + 16)
                add(UInt64(elements.count))
                for element in elements { add(content: element) }
            default:
                bytes.append(value.type.scalar.rawValue)
                add(content: value)
            }
        }

        private mutating func add(content value: CloudValue) {
            switch value {
            case .string(let text): add(text)
            case .int64(let number), .timestamp(let number): add(signed: number)
            case .double(let number): add(number)
            case .bytes(let data):
                add(UInt64(data.count))
                bytes.append(contentsOf: data)
            case .location(let place):
                let optional = [place.altitude, place.horizontalAccuracy, place.verticalAccuracy, place.course, place.speed]
                var mask: UInt8 = 0
                for (bit, number) in optional.enumerated() where number != nil { mask |= 1 << bit }
                bytes.append(mask)
                add(place.latitude)
                add(place.longitude)
                for case let number? in optional { add(number) }
            case .reference(let reference):
                bytes.append(reference.action == .none ? 0 : reference.action == .deleteSelf ? 1 : 2)
                add(reference.recordName)
            case .asset(let asset):
                add(asset.digest)
                add(signed: asset.size)
            // A list's elements are none.
            case .list: preconditionFailure("a list holds scalars")
            }
        }
    }

    private struct Damaged: Error {}

    private struct Input {
        var rest: UnsafeRawBufferPointer

        mutating func byte() throws -> UInt8 {
            guard let byte = rest.first else { throw Damaged() }
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst())
            return byte
        }

        mutating func number() throws -> UInt64 {
            var (number, shift): (UInt64, UInt64) = (0, 0)
            while true {
                let byte = try byte()
                guard shift < 64 else { throw Damaged() }
                number |= UInt64(byte & 0x7f) << shift
                if byte < 0x80 { return number }
                shift += 7
            }
        }

        mutating func signed() throws -> Int64 {
            let number = try number()
            return Int64(bitPattern: number >> 1) ^ -Int64(number & 1)
        }

        mutating func bytes(_ count: UInt64) throws -> UnsafeRawBufferPointer {
            guard count <= rest.count else { throw Damaged() }
            defer { rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(Int(count))) }
            return UnsafeRawBufferPointer(rebasing: rest.prefix(Int(count)))
        }

        mutating func double() throws -> Double {
            Double(bitPattern: UInt64(littleEndian: try bytes(8).loadUnaligned(as: UInt64.self)))
        }

        mutating func text() throws -> String { String(decoding: try bytes(try number()), as: UTF8.self) }

        mutating func value() throws -> CloudValue {
            let code = try byte()
            guard let scalar = FieldType.Scalar(rawValue: code & 0x0f), code & 0xe0 == 0 else { throw Damaged() }
            guard code & 16 != 0 else { return try content(scalar) }
            let count = try number()
            guard count <= rest.count else { throw Damaged() }
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
            case .bytes: return .bytes(Data(try bytes(try number())))
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
                guard action <= 2 else { throw Damaged() }
                let actions: [CloudReference.Action] = [.none, .deleteSelf, .validate]
                return .reference(CloudReference(try text(), action: actions[Int(action)]))
            case .asset: return .asset(CloudAsset(digest: try text(), size: try signed()))
            }
        }
    }
}
