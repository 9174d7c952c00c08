import CTideCore
import Foundation
import GRDB

/// A record name as it is stored: UUIDs as 16 bytes (17 when written in upper case), other names as text.
struct RecordKey: Hashable, DatabaseValueConvertible {
    let databaseValue: DatabaseValue

    init(bytes: UnsafeRawBufferPointer, isBlob: Bool) {
        databaseValue =
            isBlob ? Data(bytes).databaseValue : String(decoding: bytes, as: UTF8.self).databaseValue
    }

    init(name: String) {
        let utf8 = Array(name.utf8CString.dropLast())
        var key = [UInt8](repeating: 0, count: 17)
        let length = tide_name_encode(utf8, utf8.count, &key)
        databaseValue = length > 0 ? Data(key.prefix(length)).databaseValue : name.databaseValue
    }

    static func fromDatabaseValue(_ value: DatabaseValue) -> RecordKey? {
        switch value.storage {
        case .blob(let data): data.withUnsafeBytes { RecordKey(bytes: $0, isBlob: true) }
        case .string(let string): Array(string.utf8).withUnsafeBytes { RecordKey(bytes: $0, isBlob: false) }
        default: nil
        }
    }

    /// The record name; for a blob that is no UUID, which no store of ours has, its hexadecimal digits.
    var name: String {
        switch databaseValue.storage {
        case .string(let string):
            return string
        case .blob(let data):
            return data.withUnsafeBytes { bytes in
                withUnsafeTemporaryAllocation(of: CChar.self, capacity: 36) { name in
                    let length = tide_name_decode(bytes.baseAddress!, bytes.count, name.baseAddress!)
                    return length > 0
                        ? String(
                            decoding: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(name)[..<length]), as: UTF8.self)
                        : bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
                }
            }
        default:
            return ""
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
