import CTideCore
import Foundation
import GRDB
import GRDBSQLite
import TidemarkModel

/// Reads values of columns without GRDB's `Row`.
extension FieldValue {
    /// Returns whether a column holds this value in the store's spelling. Another spelling of a list or a place counts as another
    /// value.
    func isSame(as row: SQLiteStatement, column: Int32) -> Bool {
        switch self {
        case .int64(let number), .timestamp(let number):
            sqlite3_column_type(row, column) == SQLITE_INTEGER && sqlite3_column_int64(row, column) == number
        case .double(let number):
            sqlite3_column_type(row, column) == SQLITE_FLOAT && sqlite3_column_double(row, column) == number
        case .bytes(let bytes):
            sqlite3_column_type(row, column) == SQLITE_BLOB && bytes.withUnsafeBytes { Self.hold($0, row, column) }
        case .string(let text), .reference(let text), .asset(let text): Self.holds(text, row, column)
        case .location, .list: Self.holds(StoredText.text(self) ?? "", row, column)
        }
    }

    private static func holds(_ text: String, _ row: SQLiteStatement, _ column: Int32) -> Bool {
        guard sqlite3_column_type(row, column) == SQLITE_TEXT else { return false }
        var text = text
        return text.withUTF8 { hold(UnsafeRawBufferPointer($0), row, column) }
    }

    private static func hold(_ bytes: UnsafeRawBufferPointer, _ row: SQLiteStatement, _ column: Int32) -> Bool {
        guard let start = sqlite3_column_blob(row, column), let mine = bytes.baseAddress else {
            return bytes.isEmpty && sqlite3_column_bytes(row, column) == 0
        }
        return Int(sqlite3_column_bytes(row, column)) == bytes.count && memcmp(start, mine, bytes.count) == 0
    }

    /// Reads the value of a column of a field of `type`; `nil` for NULL, and for a value that such a column can't hold.
    init?(_ row: SQLiteStatement, column: Int32, type: FieldType) {
        let found: FieldValue?
        switch sqlite3_column_type(row, column) {
        case SQLITE_INTEGER:
            let number = sqlite3_column_int64(row, column)
            found = type == .int64 ? .int64(number) : type == .timestamp ? .timestamp(number) : nil
        case SQLITE_FLOAT: found = type == .double ? .double(sqlite3_column_double(row, column)) : nil
        case SQLITE_BLOB: found = type == .bytes ? .bytes(Array(Self.bytes(row, column))) : nil
        case SQLITE_TEXT:
            let text = String(decoding: Self.bytes(row, column), as: UTF8.self)
            if type.isList {
                found = StoredText.elements(of: text, type.scalar).map { .list($0, of: type.scalar) }
            } else {
                switch type.scalar {
                case .string: found = .string(text)
                case .reference: found = .reference(text)
                case .asset: found = .asset(text)
                case .location: found = StoredText.place(text).map { .location($0) }
                case .int64, .timestamp, .double, .bytes: found = nil
                }
            }
        default: found = nil
        }
        guard let found else { return nil }
        self = found
    }

    private static func bytes(_ row: SQLiteStatement, _ column: Int32) -> UnsafeRawBufferPointer {
        // The bytes are read first, because SQLite determines their number then.
        let start = sqlite3_column_blob(row, column)
        return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(row, column)))
    }
}

extension RecordKey {
    /// Binds the keys of a name, as ``all(name:)`` returns them, to the first two parameters of a statement.
    static func bind(_ name: String, to statement: SQLiteStatement) -> Int32 {
        let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        func bindText(_ name: String, _ parameter: Int32) -> Int32 {
            var name = name
            return name.withUTF8 { utf8 in
                utf8.withMemoryRebound(to: CChar.self) {
                    sqlite3_bind_text(statement, parameter, $0.baseAddress, Int32($0.count), copied)
                }
            }
        }
        guard name.utf8.allSatisfy({ $0 < 0x80 }) else {
            let keys = all(name: name).map(\.name)
            let code = bindText(keys[0], 1)
            return code == SQLITE_OK ? bindText(keys[keys.count - 1], 2) : code
        }
        var utf8 = name
        let code = utf8.withUTF8 { utf8 in
            utf8.withMemoryRebound(to: CChar.self) { characters -> Int32? in
                withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 17) { key in
                    guard let start = characters.baseAddress else { return nil }
                    let length = Int32(tide_name_encode(start, characters.count, key.baseAddress!))
                    guard length > 0 else { return nil }
                    let code = sqlite3_bind_blob(statement, 1, key.baseAddress, length, copied)
                    if code != SQLITE_OK { return code }
                    // The same UUID in the other case.
                    key[16] = UInt8(ascii: "U")
                    return sqlite3_bind_blob(statement, 2, key.baseAddress, length == 16 ? 17 : 16, copied)
                }
            }
        }
        if let code { return code }
        let first = bindText(name, 1)
        return first == SQLITE_OK ? bindText(name, 2) : first
    }

    /// Reads the record name from a column of keys; `nil` when the value is not a key.
    static func name(_ row: SQLiteStatement, column: Int32) -> String? {
        let start = sqlite3_column_blob(row, column)
        let count = Int(sqlite3_column_bytes(row, column))
        guard let start else { return nil }
        let bytes = UnsafeRawBufferPointer(start: start, count: count)
        switch sqlite3_column_type(row, column) {
        case SQLITE_TEXT where (1...255).contains(count): return String(decoding: bytes, as: UTF8.self)
        case SQLITE_BLOB where count == 16 || count == 17 && bytes.last == UInt8(ascii: "U"):
            return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 36) { name in
                let length = tide_name_decode(start, count, name.baseAddress!)
                return String(decoding: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(name)[..<length]), as: UTF8.self)
            }
        default: return nil
        }
    }
}
