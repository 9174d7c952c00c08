import CTideCore
import Foundation
package import GRDB
import TidemarkModel
import TidemarkSQLite

/// A record name as it is stored: UUIDs as 16 bytes (17 when written in upper case), other names as text.
package struct RecordKey: Hashable, DatabaseValueConvertible {
    package let databaseValue: DatabaseValue

    init(bytes: UnsafeRawBufferPointer, isBlob: Bool) {
        databaseValue =
            isBlob ? Data(bytes).databaseValue : String(decoding: bytes, as: UTF8.self).databaseValue
    }

    private init(_ bytes: Data) { databaseValue = bytes.databaseValue }

    init(name: String) {
        let utf8 = Array(name.utf8CString.dropLast())
        var key = [UInt8](repeating: 0, count: 17)
        let length = tide_name_encode(utf8, utf8.count, &key)
        databaseValue = length > 0 ? Data(key.prefix(length)).databaseValue : name.databaseValue
    }

    /// The keys under which a record of that name is looked for, at most two. Names are stored in the normal form C of Unicode: that is the
    /// first, and a name from before that rule, as it is given or decomposed, the second. Of a UUID the second is the same UUID in the
    /// other case, because programs know UUIDs, and not how they were written.
    static func all(name: String) -> [RecordKey] {
        guard name.utf8.allSatisfy({ $0 < 0x80 }) else {
            let composed = name.composed
            let isComposed = name.utf8.elementsEqual(composed.utf8)
            let other = isComposed ? name.decomposedStringWithCanonicalMapping : name
            return other.utf8.elementsEqual(composed.utf8) ? [RecordKey(name: composed)] : [composed, other].map(RecordKey.init)
        }
        let own = RecordKey(name: name)
        guard case .blob(let data) = own.databaseValue.storage else { return [own] }
        let other = data.count == 16 ? data + [UInt8(ascii: "U")] : data.prefix(16)
        // A UUID of digits alone has no case.
        return other.withUnsafeBytes(isUUID) ? [own, RecordKey(other)] : [own]
    }

    /// SQL of a condition that holds for the one row that a name means: of its two keys, the arguments `?1` and `?2`, the first counts before
    /// the other, and of several zones the first. An `IN` with an order would build a table and a sorter for each look-up.
    static func condition(in table: String) -> String {
        let row = { (key: String) in "(SELECT _id FROM \"\(table)\" WHERE _key = \(key) ORDER BY _zone LIMIT 1)" }
        return "_id = coalesce(\(row("?1")), \(row("?2")))"
    }

    /// SQL that tells whether a table has a row of one of two keys, the arguments `?1` and `?2`.
    static func existence(in table: String) -> String {
        "EXISTS (SELECT 1 FROM \"\(table)\" WHERE _key = ?1) OR EXISTS (SELECT 1 FROM \"\(table)\" WHERE _key = ?2)"
    }

    /// `nil` for what is no key.
    package static func fromDatabaseValue(_ value: DatabaseValue) -> RecordKey? {
        switch value.storage {
        case .blob(let data) where data.withUnsafeBytes(isUUID): RecordKey(data)
        case .string(let string) where (1...255).contains(string.utf8.count):
            Array(string.utf8).withUnsafeBytes { RecordKey(bytes: $0, isBlob: false) }
        default: nil
        }
    }

    /// SQL that finds the rows of a table whose key is none: of another type or length, a text with control characters, or one that
    /// should be a BLOB, and so could be there twice.
    package static let misshapenSQL = """
        CASE typeof(_key)
        WHEN 'blob' THEN length(_key) <> 16
            AND NOT (length(_key) = 17 AND substr(_key, 17) = x'55' AND hex(substr(_key, 1, 16)) GLOB '*[A-F]*')
        WHEN 'text' THEN length(CAST(_key AS BLOB)) NOT BETWEEN 1 AND 255
            OR instr(CAST(_key AS BLOB), x'00') > 0 OR _key GLOB '*[\u{01}-\u{1f}\u{7f}]*'
            OR _key GLOB '\(uuidPattern)' AND _key IN (lower(_key), upper(_key))
        ELSE 1 END
        """

    private static let uuidPattern = [8, 4, 4, 4, 12].map { String(repeating: "[0-9a-fA-F]", count: $0) }.joined(separator: "-")

    /// The record name.
    package var name: String {
        switch databaseValue.storage {
        case .string(let string):
            return string
        case .blob(let data):
            return data.withUnsafeBytes(Self.uuid) ?? ""
        default:
            return ""
        }
    }

    /// The name that the key of a UUID stands for; `nil` where the bytes are no such key.
    static func uuid(_ bytes: UnsafeRawBufferPointer) -> String? { decode(bytes) { String(decoding: $0, as: UTF8.self) } }

    /// Whether the bytes are the key of a record whose name is a UUID.
    static func isUUID(_ bytes: UnsafeRawBufferPointer) -> Bool { decode(bytes) { _ in true } ?? false }

    private static func decode<Result>(_ bytes: UnsafeRawBufferPointer, _ use: (UnsafeRawBufferPointer) -> Result) -> Result? {
        guard let start = bytes.baseAddress else { return nil }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 36) { name in
            let length = tide_name_decode(start, bytes.count, name.baseAddress!)
            return length > 0 ? use(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(name)[..<length])) : nil
        }
    }

    /// SQL that gives the name of the record in a row that has `_key`.
    static let nameSQL = """
        CASE WHEN typeof(_key) = 'text' THEN _key ELSE \
        CASE length(_key) WHEN 16 THEN lower(\(uuidSQL)) ELSE \(uuidSQL) END END
        """

    private static let uuidSQL =
        "substr(hex(_key), 1, 8) || '-' || substr(hex(_key), 9, 4) || '-' || substr(hex(_key), 13, 4) || '-' || "
        + "substr(hex(_key), 17, 4) || '-' || substr(hex(_key), 21, 12)"
}
