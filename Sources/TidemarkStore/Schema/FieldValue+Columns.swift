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

    /// Returns whether reading a column gives this value. `false` also for values that are spelled as text: a list, or a place.
    func isIdentical(to row: SQLiteStatement, column: Int32) -> Bool {
        switch self {
        case .double(let number):
            sqlite3_column_type(row, column) == SQLITE_FLOAT && sqlite3_column_double(row, column).bitPattern == number.bitPattern
        case .location, .list: false
        case .int64, .timestamp, .bytes, .string, .reference, .asset: isSame(as: row, column: column)
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
    /// The forms in which a name is looked for, in this order.
    enum Form: CaseIterable {
        /// The name as it is given, in the normal form C of Unicode.
        case given
        /// A UUID in the other case; a name from before that rule.
        case other
    }

    /// Binds the key of a name in a form, one of those that ``all(name:)`` returns, to the first parameter of a statement.
    ///
    /// - Parameter isASCII: Whether the name has only characters of ASCII.
    /// - Returns: The result code; `nil` where the name has no such form.
    static func bind(_ name: String, _ form: Form, isASCII: Bool, to statement: SQLiteStatement) -> Int32? {
        guard isASCII else { return bindOther(name, form, to: statement) }
        let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        var utf8 = name
        return utf8.withUTF8 { utf8 in
            utf8.withMemoryRebound(to: CChar.self) { characters -> Int32? in
                guard let start = characters.baseAddress else {
                    return form == .given ? sqlite3_bind_text(statement, 1, "", 0, copied) : nil
                }
                return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 17) { key -> Int32? in
                    let length = Int32(tide_name_encode(start, characters.count, key.baseAddress!))
                    switch form {
                    case .given where length > 0: return sqlite3_bind_blob(statement, 1, key.baseAddress, length, copied)
                    case .given: return sqlite3_bind_text(statement, 1, start, Int32(characters.count), copied)
                    case .other where length > 0:
                        // The same UUID in the other case. A UUID of digits alone has none.
                        key[16] = UInt8(ascii: "U")
                        guard length == 17 || isUUID(UnsafeRawBufferPointer(key)) else { return nil }
                        return sqlite3_bind_blob(statement, 1, key.baseAddress, length == 16 ? 17 : 16, copied)
                    case .other: return nil
                    }
                }
            }
        }
    }

    /// Binds a key of a name that has other characters than those of ASCII.
    private static func bindOther(_ name: String, _ form: Form, to statement: SQLiteStatement) -> Int32? {
        let keys = all(name: name).map(\.name)
        guard form == .given || keys.count > 1 else { return nil }
        let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        var text = form == .given ? keys[0] : keys[1]
        return text.withUTF8 { utf8 in
            utf8.withMemoryRebound(to: CChar.self) { sqlite3_bind_text(statement, 1, $0.baseAddress, Int32($0.count), copied) }
        }
    }

    /// Reads the record name from a column of keys; `nil` when the value is not a key.
    static func name(_ row: SQLiteStatement, column: Int32) -> String? {
        let start = sqlite3_column_blob(row, column)
        let count = Int(sqlite3_column_bytes(row, column))
        guard let start else { return nil }
        let bytes = UnsafeRawBufferPointer(start: start, count: count)
        switch sqlite3_column_type(row, column) {
        case SQLITE_TEXT where (1...255).contains(count): return String(decoding: bytes, as: UTF8.self)
        case SQLITE_BLOB: return uuid(bytes)
        default: return nil
        }
    }
}
