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
