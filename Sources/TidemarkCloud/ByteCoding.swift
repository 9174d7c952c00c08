package import Foundation

/// Encodes values into a growing run of bytes: numbers in groups of seven bits, texts after their lengths.
package struct ByteOutput {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    package mutating func reserve(_ count: Int) { bytes.reserveCapacity(count) }

    package mutating func add(_ byte: UInt8) { bytes.append(byte) }

    package mutating func add(_ number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    package mutating func add(signed number: Int64) { add(UInt64(bitPattern: number << 1 ^ number >> 63)) }

    package mutating func add(_ number: Double) {
        withUnsafeBytes(of: number.bitPattern.littleEndian) { bytes.append(contentsOf: $0) }
    }

    package mutating func add(_ text: String) {
        var text = text
        text.withUTF8 { utf8 in
            add(UInt64(utf8.count))
            bytes.append(contentsOf: utf8)
        }
    }

    package mutating func add(_ data: Data) {
        add(UInt64(data.count))
        bytes.append(contentsOf: data)
    }
}

/// Decodes the bytes that a ``ByteOutput`` has encoded.
package struct ByteInput {
    /// The error for bytes that no ``ByteOutput`` encodes.
    package struct Damaged: Error {
        package init() {}
    }

    package private(set) var rest: UnsafeRawBufferPointer

    package init(_ bytes: UnsafeRawBufferPointer) { rest = bytes }

    package mutating func byte() throws -> UInt8 {
        guard let byte = rest.first else { throw Damaged() }
        rest = UnsafeRawBufferPointer(rebasing: rest[1...])
        return byte
    }

    package mutating func number() throws -> UInt64 {
        var (number, shift): (UInt64, UInt64) = (0, 0)
        while true {
            let byte = try byte()
            guard shift < 64 else { throw Damaged() }
            number |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return number }
            shift += 7
        }
    }

    package mutating func signed() throws -> Int64 {
        let number = try number()
        return Int64(bitPattern: number >> 1) ^ -Int64(number & 1)
    }

    package mutating func bytes(_ count: UInt64) throws -> UnsafeRawBufferPointer {
        guard count <= rest.count else { throw Damaged() }
        defer { rest = UnsafeRawBufferPointer(rebasing: rest[Int(count)...]) }
        return UnsafeRawBufferPointer(rebasing: rest[..<Int(count)])
    }

    package mutating func double() throws -> Double {
        Double(bitPattern: UInt64(littleEndian: try bytes(8).loadUnaligned(as: UInt64.self)))
    }

    package mutating func text() throws -> String { String(decoding: try bytes(try number()), as: UTF8.self) }

    package mutating func data() throws -> Data { Data(try bytes(try number())) }
}
