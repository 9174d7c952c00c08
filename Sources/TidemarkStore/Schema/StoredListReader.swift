import CTideCore
import Foundation
import TidemarkModel

/// Reads lists and locations in the store's own spelling: no spaces, and here no escaped characters. Of any other text it says nothing, and
/// a decoder of JSON reads it.
///
/// A list is read for each record of an export or a merge; Foundation's decoder takes many times as long as the rest of the record.
struct StoredListReader {
    private let bytes: UnsafeBufferPointer<UInt8>
    private let scalar: FieldType.Scalar
    private var at = 0

    init(_ bytes: UnsafeBufferPointer<UInt8>, _ scalar: FieldType.Scalar) { (self.bytes, self.scalar) = (bytes, scalar) }

    /// The elements of a list; `nil` for a text that it does not read.
    func elements() -> [FieldValue]? {
        guard !isEscaped else { return nil }
        var reader = self
        guard reader.skip("[") else { return nil }
        if reader.skip("]") { return reader.isAtEnd ? [] : nil }
        var elements: [FieldValue] = []
        while let element = reader.element() {
            elements.append(element)
            if reader.skip(",") { continue }
            return reader.skip("]") && reader.isAtEnd ? elements : nil
        }
        return nil
    }

    /// A location; `nil` for a text that it does not read.
    func place() -> Location? {
        guard !isEscaped else { return nil }
        var reader = self
        var (place, latitude, longitude) = (Location(latitude: 0, longitude: 0), nil as Double?, nil as Double?)
        guard reader.skip("{") else { return nil }
        repeat {
            guard let name = reader.string(), reader.skip(":"), let number = reader.number() else { return nil }
            switch name {
            case "latitude": latitude = number
            case "longitude": longitude = number
            case "altitude": place.altitude = number
            case "horizontalAccuracy": place.horizontalAccuracy = number
            case "verticalAccuracy": place.verticalAccuracy = number
            case "course": place.course = number
            case "speed": place.speed = number
            default: return nil
            }
        } while reader.skip(",")
        guard reader.skip("}"), reader.isAtEnd, let latitude, let longitude else { return nil }
        (place.latitude, place.longitude) = (latitude, longitude)
        return place
    }

    private var isAtEnd: Bool { at == bytes.count }

    private var isEscaped: Bool {
        guard let start = bytes.baseAddress else { return true }
        return memchr(start, 0x5c, bytes.count) != nil
    }

    private mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard at < bytes.count, bytes[at] == UInt8(ascii: character) else { return false }
        at += 1
        return true
    }

    private mutating func element() -> FieldValue? {
        switch scalar {
        case .string: string().map { .string($0) }
        case .reference: string().map { .reference($0) }
        case .asset: string().map { .asset($0) }
        case .int64: integer().map { .int64($0) }
        case .timestamp: integer().map { .timestamp($0) }
        case .double: number().map { .double($0) }
        case .bytes, .location: nil
        }
    }

    private mutating func string() -> String? {
        guard skip("\""), let end = memchr(bytes.baseAddress! + at, 0x22, bytes.count - at) else { return nil }
        let begin = at
        at = UnsafeRawPointer(end) - UnsafeRawPointer(bytes.baseAddress!)
        defer { at += 1 }
        return String(decoding: UnsafeBufferPointer(rebasing: bytes[begin..<at]), as: UTF8.self)
    }

    /// The characters up to the next one that can't be part of a number.
    private mutating func digits() -> UnsafeBufferPointer<UInt8> {
        let begin = at
        while at < bytes.count, ![UInt8(ascii: ","), UInt8(ascii: "]"), UInt8(ascii: "}")].contains(bytes[at]) { at += 1 }
        return UnsafeBufferPointer(rebasing: bytes[begin..<at])
    }

    private mutating func integer() -> Int64? {
        let digits = digits()
        guard let first = digits.first, first != UInt8(ascii: "+") else { return nil }
        return Int64(String(decoding: digits, as: UTF8.self))
    }

    private mutating func number() -> Double? {
        let digits = digits()
        return digits.withMemoryRebound(to: CChar.self) { text in
            var value = 0.0
            guard let start = text.baseAddress, tide_number_parse(start, text.count, &value), value.isFinite else { return nil }
            return value
        }
    }
}
