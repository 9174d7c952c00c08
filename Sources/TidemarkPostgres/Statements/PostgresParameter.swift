package import Foundation

/// A value that a statement takes as a parameter, in PostgreSQL's binary form.
///
/// `Int64`, `Double`, `Bool`, `String` and `Data` conform, and so do their optionals and arrays. An array goes to `unnest`, so
/// one statement writes many rows. A text can't contain U+0000: the server refuses it with SQLSTATE 22021.
package protocol PostgresParameter: Sendable {
    /// The OID of the type in PostgreSQL.
    static var typeNumber: UInt32 { get }
    /// Whether the value is NULL; then ``append(to:)`` is not called.
    var isNull: Bool { get }
    /// Appends the value in the type's binary form.
    func append(to bytes: inout [UInt8])
}

/// A value that an array may contain.
package protocol PostgresElement: PostgresParameter {
    /// The OID of PostgreSQL's array type for this type.
    static var arrayTypeNumber: UInt32 { get }
}

extension PostgresParameter {
    package var isNull: Bool { false }
}

// The OIDs are those of PostgreSQL's catalogue pg_type, which never change.

extension Int64: PostgresElement {
    package static var typeNumber: UInt32 { 20 }
    package static var arrayTypeNumber: UInt32 { 1016 }
    package func append(to bytes: inout [UInt8]) { bytes.append(bigEndian: self) }
}

extension Double: PostgresElement {
    package static var typeNumber: UInt32 { 701 }
    package static var arrayTypeNumber: UInt32 { 1022 }
    package func append(to bytes: inout [UInt8]) { bytes.append(bigEndian: bitPattern) }
}

extension Bool: PostgresElement {
    package static var typeNumber: UInt32 { 16 }
    package static var arrayTypeNumber: UInt32 { 1000 }
    package func append(to bytes: inout [UInt8]) { bytes.append(self ? 1 : 0) }
}

extension String: PostgresElement {
    package static var typeNumber: UInt32 { 25 }
    package static var arrayTypeNumber: UInt32 { 1009 }
    package func append(to bytes: inout [UInt8]) { bytes.append(contentsOf: utf8) }
}

extension Data: PostgresElement {
    package static var typeNumber: UInt32 { 17 }
    package static var arrayTypeNumber: UInt32 { 1001 }
    package func append(to bytes: inout [UInt8]) { bytes.append(contentsOf: self) }
}

extension Optional: PostgresParameter where Wrapped: PostgresParameter {
    package static var typeNumber: UInt32 { Wrapped.typeNumber }
    package var isNull: Bool { self?.isNull ?? true }
    package func append(to bytes: inout [UInt8]) { self?.append(to: &bytes) }
}

extension Optional: PostgresElement where Wrapped: PostgresElement {
    package static var arrayTypeNumber: UInt32 { Wrapped.arrayTypeNumber }
}

extension Array: PostgresParameter where Element: PostgresElement {
    package static var typeNumber: UInt32 { Element.arrayTypeNumber }

    /// Appends the number of dimensions, whether there are NULLs, the type of the elements, their count, and the first index.
    /// Then comes each element, after its length.
    package func append(to bytes: inout [UInt8]) {
        bytes.append(bigEndian: Int32(isEmpty ? 0 : 1))
        bytes.append(bigEndian: Int32(contains(where: \.isNull) ? 1 : 0))
        bytes.append(bigEndian: Element.typeNumber)
        guard !isEmpty else { return }
        bytes.append(bigEndian: Int32(count))
        bytes.append(bigEndian: Int32(1))
        for element in self {
            guard !element.isNull else {
                bytes.append(bigEndian: Int32(-1))
                continue
            }
            let place = bytes.count
            bytes.append(bigEndian: Int32(0))
            element.append(to: &bytes)
            let length = UInt32(bytes.count - place - 4)
            for index in 0..<4 { bytes[place + index] = UInt8(truncatingIfNeeded: length >> (24 - 8 * UInt32(index))) }
        }
    }
}

extension [UInt8] {
    fileprivate mutating func append(bigEndian value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
    }
}

/// A statement with its parameters, ready to be sent.
package struct PostgresCommand: Hashable, Sendable {
    package let sql: String
    let types: [UInt32]
    /// Where each parameter begins in ``bytes``; -1 for NULL.
    let offsets: [Int]
    let lengths: [Int32]
    /// The values of all parameters, one after another. There is at least one byte, so that the buffer has an address.
    let bytes: [UInt8]

    package init(_ sql: String, _ parameters: [any PostgresParameter] = []) {
        var (types, offsets, lengths): ([UInt32], [Int], [Int32]) = ([], [], [])
        var bytes: [UInt8] = []
        for parameter in parameters {
            types.append(type(of: parameter).typeNumber)
            guard !parameter.isNull else {
                offsets.append(-1)
                lengths.append(0)
                continue
            }
            let place = bytes.count
            parameter.append(to: &bytes)
            offsets.append(place)
            lengths.append(Int32(bytes.count - place))
        }
        bytes.append(0)
        (self.sql, self.types, self.offsets, self.lengths, self.bytes) = (sql, types, offsets, lengths, bytes)
    }

    /// Calls `body` with the address of each parameter; `nil` for NULL.
    func withPointers<Result>(_ body: ([UnsafePointer<CChar>?]) -> Result) -> Result {
        bytes.withUnsafeBytes { bytes in
            let start = bytes.baseAddress!.assumingMemoryBound(to: CChar.self)
            return body(offsets.map { $0 < 0 ? nil : start + $0 })
        }
    }
}
