import CTideCore
import Foundation
import GRDB
import GRDBSQLite
import TidemarkModel
import TidemarkSQLite

/// The result of comparing an edit with the record in the store.
package enum StoredMatch: Hashable, Sendable {
    /// The store has no record of that name.
    case missing
    /// The store has the record with the values of the edit.
    case equal
    /// The store has the record with other values, or the edit deletes the record.
    case different
}

/// The record of an edit, as it was found in the store.
struct LookedUpRecord {
    let found: StoreTransaction.FoundRecord?
    let match: StoredMatch
}

extension StoreTransaction {
    struct FoundRecord {
        let row: Int64
        let name: String
        let zone: Int64
        let version: Int64
        /// Values in the order of the type's fields.
        let values: [FieldValue?]
        /// The type as it was when the record was found.
        let type: StoredType
        /// Whether the values match the digest.
        let isIntact: Bool

        /// - Complexity: O(n) in the fields.
        var state: StoredVersion {
            var values: [String: FieldValue] = [:]
            for (field, value) in zip(type.fields, self.values) { values[field.name] = value }
            return StoredVersion(version: version, values: values)
        }

        func value(of field: String) -> FieldValue? {
            guard let index = type.fields.firstIndex(where: { $0.name == field }), index < values.count else { return nil }
            return values[index]
        }

        static func columns(_ type: StoredType) -> String {
            (["_id", "_key", "_version"] + type.fields.map { "\"\($0.column)\"" } + ["_zone", "_digest"]).joined(separator: ", ")
        }

        /// - Throws: ``StoreError`` `damaged`.
        func checkIntact() throws(StoreError) {
            guard isIntact else { throw StoreError.damaged(RecordName(type: type.name, name: name)) }
        }

        /// Reads the current row of a statement of ``columns(_:)``.
        ///
        /// - Parameters:
        ///   - statement: A statement that stands at a row.
        ///   - type: The type of the record.
        ///   - withValues: Whether to read the values.
        /// - Throws: ``StoreError`` `corrupt` when the key or the version has a wrong form.
        init(_ statement: Statement, type: StoredType, withValues: Bool = true) throws {
            let (handle, count) = (statement.sqliteStatement, type.fields.count)
            row = sqlite3_column_int64(handle, 0)
            guard let name = RecordKey.name(handle, column: 1), sqlite3_column_type(handle, 2) == SQLITE_INTEGER else {
                throw StoreError(.corrupt, "the row \(row) of the table \(type.table) has no key or version that can be one")
            }
            self.name = name
            version = sqlite3_column_int64(handle, 2)
            values =
                withValues
                ? type.fields.enumerated().map { FieldValue(handle, column: Int32($0 + 3), type: $1.type) } : []
            zone = sqlite3_column_int64(handle, Int32(count + 3))
            isIntact = type.digest.isIntact(statement, key: 1, digest: count + 4, fields: 3)
            self.type = type
        }
    }

    /// Looks for the record of an edit, and compares the two.
    func lookUp(_ edit: RecordEdit) throws -> LookedUpRecord {
        guard let type = type(named: edit.record.type) else { return LookedUpRecord(found: nil, match: .missing) }
        let found = try withRow(of: edit.record.name, type: type, zone: edit.zone) { statement in
            if edit.isSame(as: statement.sqliteStatement, type: type) {
                let found = try FoundRecord(statement, type: type, withValues: edit.needsValues(of: statement.sqliteStatement))
                if found.name == edit.record.name { return LookedUpRecord(found: found, match: .equal) }
            }
            return LookedUpRecord(found: try FoundRecord(statement, type: type), match: .different)
        }
        return found ?? LookedUpRecord(found: nil, match: .missing)
    }

    /// Returns the record of a name. A UUID is found in upper and lower case.
    ///
    /// - Parameters:
    ///   - name: The name of the record.
    ///   - type: The type of the record.
    ///   - zone: In a shared store, the zone of the record, because each zone can have the name; `nil` for any zone.
    func find(_ name: String, type: StoredType, zone: Int64? = nil) throws -> FoundRecord? {
        try withRow(of: name, type: type, zone: zone) { try FoundRecord($0, type: type) }
    }

    func find(row id: Int64, type: StoredType) throws -> FoundRecord? {
        let columns = FoundRecord.columns(type)
        let statement = try db.cachedStatement(sql: "SELECT \(columns) FROM \"\(type.table)\" WHERE _id = ?")
        return try statement.withRow([id]) { _ in try FoundRecord(statement, type: type) }
    }

    /// Calls `body` with a statement of ``FoundRecord/columns(_:)`` that stands at the row of a name.
    ///
    /// It does not use GRDB's rows, which cost more than the look-up.
    private func withRow<Result>(
        of name: String, type: StoredType, zone: Int64?, _ body: (Statement) throws -> Result
    ) throws -> Result? {
        let zone = connection.scope == .shared ? zone : nil
        let statement = try lookUpStatement(type, inZone: zone != nil)
        let handle = statement.sqliteStatement
        sqlite3_reset(handle)
        defer { sqlite3_reset(handle) }
        var code = RecordKey.bind(name, to: handle)
        if code == SQLITE_OK, let zone { code = sqlite3_bind_int64(handle, 3, zone) }
        if code == SQLITE_OK { code = sqlite3_step(handle) }
        switch code {
        case SQLITE_ROW: return try body(statement)
        case SQLITE_DONE: return nil
        default: throw DatabaseError(resultCode: ResultCode(rawValue: code), message: db.lastErrorMessage)
        }
    }

    private func lookUpStatement(_ type: StoredType, inZone: Bool) throws -> Statement {
        // Making the text of the statement takes longer than running the statement.
        if let last = lookUpStatement, last.type == type.id, last.fields == type.fields.count, last.inZone == inZone {
            return last.statement
        }
        let statement = try db.cachedStatement(
            sql: """
                SELECT \(FoundRecord.columns(type)) FROM "\(type.table)" WHERE _key IN (?1, ?2)\(inZone ? " AND _zone = ?3" : "")
                ORDER BY _key <> ?1, _zone LIMIT 1
                """)
        lookUpStatement = LookUpStatement(type: type.id, fields: type.fields.count, inZone: inZone, statement: statement)
        return statement
    }

    /// The statement of the last look-up.
    struct LookUpStatement {
        let type: Int64
        let fields: Int
        let inZone: Bool
        let statement: Statement
    }
}

extension RecordEdit {
    /// Returns whether the current row of a statement of ``FoundRecord/columns(_:)`` has the values of this edit. Fields that the
    /// edit does not name are ignored.
    fileprivate func isSame(as row: SQLiteStatement, type: StoredType) -> Bool {
        guard let values else { return false }
        var count = 0
        for (index, field) in type.fields.enumerated() {
            let column = Int32(index + 3)
            if let value = values[field.name] {
                guard value.isSame(as: row, column: column) else { return false }
                count += 1
            } else if sqlite3_column_type(row, column) != SQLITE_NULL, fields.contains(field.name) {
                return false
            }
        }
        // Otherwise the edit has a value for a field that the type does not have yet.
        return count == values.count
    }

    /// Returns whether a merge needs the values of a record that equal the values of this edit.
    fileprivate func needsValues(of row: SQLiteStatement) -> Bool {
        switch base {
        case .any: false
        case .loaded(let version, _): version != sqlite3_column_int64(row, 2)
        case .none: true
        }
    }

    /// Returns the changes of the edit to a record, or the values of a new record; `nil` for a deletion.
    func changes(of found: StoreTransaction.FoundRecord?, type: StoredType) -> [(field: Int, value: FieldValue?)]? {
        guard let values else { return nil }
        let stored = found?.values ?? []
        var changes: [(field: Int, value: FieldValue?)] = []
        changes.reserveCapacity(found == nil ? values.count : 0)
        for (index, field) in type.fields.enumerated() {
            // Fields that were added after the look-up are behind the fields that the record was found with.
            let before = index < stored.count ? stored[index] : nil
            if let value = values[field.name] {
                if before.map({ !value.isSame(as: $0) }) ?? true { changes.append((index, value)) }
            } else if before != nil, fields.contains(field.name) {
                changes.append((index, nil))
            }
        }
        return changes
    }
}

extension StoredVersion {
    init(_ record: StoredRecord, type: StoredType) {
        var values: [String: FieldValue] = [:]
        for (field, value) in zip(type.fields, record.values) { values[field.name] = value }
        self.init(version: record.version, values: values)
    }
}

/// Reads values of columns without GRDB's `Row`.
extension FieldValue {
    /// Returns whether a column holds this value in the store's spelling. Another spelling of a list or a place counts as another
    /// value.
    fileprivate func isSame(as row: SQLiteStatement, column: Int32) -> Bool {
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
    fileprivate init?(_ row: SQLiteStatement, column: Int32, type: FieldType) {
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
    fileprivate static func bind(_ name: String, to statement: SQLiteStatement) -> Int32 {
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
    fileprivate static func name(_ row: SQLiteStatement, column: Int32) -> String? {
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
