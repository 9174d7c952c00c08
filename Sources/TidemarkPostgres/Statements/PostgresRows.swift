import CPostgres
package import Foundation

/// The rows that a statement has returned. They stay valid after their transaction.
package struct PostgresRows: RandomAccessCollection, Sendable {
    /// Owns libpq's result. `@unchecked`: nothing changes it, and libpq's functions only read it.
    final class Result: @unchecked Sendable {
        let pointer: OpaquePointer

        init(_ pointer: OpaquePointer) { self.pointer = pointer }

        deinit { PQclear(pointer) }
    }

    let result: Result
    package let count: Int

    init(_ pointer: OpaquePointer) {
        result = Result(pointer)
        count = Int(PQntuples(pointer))
    }

    package var startIndex: Int { 0 }
    package var endIndex: Int { count }
    package subscript(position: Int) -> PostgresRow { PostgresRow(result: result, row: Int32(position)) }

    /// How many rows the statement has written, or returned.
    package var affected: Int { PQcmdTuples(result.pointer).flatMap { Int(String(cString: $0)) } ?? 0 }

    /// The command tag, such as `COMMIT` or `INSERT 0 1`.
    var tag: String { PQcmdStatus(result.pointer).map { String(cString: $0) } ?? "" }
}

/// A row of a result.
package struct PostgresRow: Sendable {
    let result: PostgresRows.Result
    let row: Int32

    /// Returns the value of a column.
    ///
    /// - Parameter column: The column's index, from 0.
    /// - Throws: `PostgresError` `decoding` where the column has another type, or is NULL and the type is no optional.
    package func value<Value: PostgresDecodable>(_ column: Int, as type: Value.Type = Value.self) throws(PostgresError) -> Value {
        let (pointer, place) = (result.pointer, Int32(column))
        guard column >= 0, place < PQnfields(pointer) else {
            throw PostgresError(.decoding, "a result of the database has no column \(column)")
        }
        let number = PQftype(pointer, place)
        var bytes: UnsafeRawBufferPointer?
        if PQgetisnull(pointer, row, place) == 0, let start = PQgetvalue(pointer, row, place) {
            bytes = UnsafeRawBufferPointer(start: start, count: Int(PQgetlength(pointer, row, place)))
        }
        guard PQfformat(pointer, place) == 1, let value = Value.decode(bytes, number) else {
            let name = PQfname(pointer, place).map { String(cString: $0) } ?? "\(column)"
            let what = bytes == nil ? "NULL" : "a value of type \(number)"
            throw PostgresError(.decoding, "the column '\(name)' of the database has \(what), which is no \(Value.self)")
        }
        return value
    }
}

/// A value that a column can be read as.
package protocol PostgresDecodable: Sendable {
    /// Reads a value from its binary form.
    ///
    /// - Parameters:
    ///   - bytes: `nil` for NULL.
    ///   - type: The OID of the column's type.
    /// - Returns: The value; `nil` where the bytes are no value of this type.
    static func decode(_ bytes: UnsafeRawBufferPointer?, _ type: UInt32) -> Self?
}

extension Int64: PostgresDecodable {
    package static func decode(_ bytes: UnsafeRawBufferPointer?, _ type: UInt32) -> Int64? {
        switch (type, bytes?.count) {
        case (20, 8): bytes.map { Int64(bigEndian: $0.loadUnaligned(as: Int64.self)) }
        case (23, 4): bytes.map { Int64(Int32(bigEndian: $0.loadUnaligned(as: Int32.self))) }
        case (21, 2): bytes.map { Int64(Int16(bigEndian: $0.loadUnaligned(as: Int16.self))) }
        default: nil
        }
    }
}

extension Double: PostgresDecodable {
    package static func decode(_ bytes: UnsafeRawBufferPointer?, _ type: UInt32) -> Double? {
        guard type == 701, let bytes, bytes.count == 8 else { return nil }
        return Double(bitPattern: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)))
    }
}

extension Bool: PostgresDecodable {
    package static func decode(_ bytes: UnsafeRawBufferPointer?, _ type: UInt32) -> Bool? {
        type == 16 && bytes?.count == 1 ? bytes.map { $0[0] != 0 } : nil
    }
}

extension String: PostgresDecodable {
    /// Decodes `text`, `varchar` and `name`.
    package static func decode(_ bytes: UnsafeRawBufferPointer?, _ type: UInt32) -> String? {
        type == 25 || type == 1043 || type == 19 ? bytes.map { String(decoding: $0, as: UTF8.self) } : nil
    }
}

extension Data: PostgresDecodable {
    package static func decode(_ bytes: UnsafeRawBufferPointer?, _ type: UInt32) -> Data? {
        type == 17 ? bytes.map { Data($0) } : nil
    }
}

extension Optional: PostgresDecodable where Wrapped: PostgresDecodable {
    package static func decode(_ bytes: UnsafeRawBufferPointer?, _ type: UInt32) -> Wrapped?? {
        guard let bytes else { return .some(nil) }
        return Wrapped.decode(bytes, type).map { .some($0) }
    }
}

extension Array: PostgresDecodable where Element: PostgresDecodable {
    package static func decode(_ bytes: UnsafeRawBufferPointer?, _ type: UInt32) -> [Element]? {
        guard let bytes else { return nil }
        var place = 0
        func number() -> Int32? {
            guard place + 4 <= bytes.count else { return nil }
            defer { place += 4 }
            return Int32(bigEndian: bytes.loadUnaligned(fromByteOffset: place, as: Int32.self))
        }
        guard let dimensions = number(), number() != nil, let element = number() else { return nil }
        guard dimensions > 0 else { return dimensions == 0 ? [] : nil }
        guard dimensions == 1, let count = number(), count >= 0, Int(count) <= bytes.count, number() != nil else { return nil }
        var values: [Element] = []
        values.reserveCapacity(Int(count))
        for _ in 0..<count {
            guard let length = number() else { return nil }
            var content: UnsafeRawBufferPointer?
            if length >= 0 {
                guard place + Int(length) <= bytes.count else { return nil }
                content = UnsafeRawBufferPointer(rebasing: bytes[place..<place + Int(length)])
                place += Int(length)
            }
            guard let value = Element.decode(content, UInt32(bitPattern: element)) else { return nil }
            values.append(value)
        }
        return place == bytes.count ? values : nil
    }
}
