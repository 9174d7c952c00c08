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
        ///   - knownName: The name of the record, if its key is known to be that of the row.
        ///   - withValues: Whether to read the values.
        /// - Throws: ``StoreError`` `corrupt` when the key or the version has a wrong form.
        init(_ statement: Statement, type: StoredType, knownName: String? = nil, withValues: Bool = true) throws {
            let (handle, count) = (statement.sqliteStatement, type.fields.count)
            row = sqlite3_column_int64(handle, 0)
            (name, version) = try Self.nameAndVersion(handle, type: type, knownName: knownName)
            values =
                withValues
                ? type.fields.enumerated().map { FieldValue(handle, column: Int32($0 + 3), type: $1.type) } : []
            zone = sqlite3_column_int64(handle, Int32(count + 3))
            isIntact = type.digest.isIntact(statement, key: 1, digest: count + 4, fields: 3)
            self.type = type
        }

        /// - Throws: ``StoreError`` `corrupt` when the key or the version has a wrong form.
        static func nameAndVersion(
            _ row: SQLiteStatement, type: StoredType, knownName: String?
        ) throws(StoreError) -> (name: String, version: Int64) {
            guard let name = knownName ?? RecordKey.name(row, column: 1), sqlite3_column_type(row, 2) == SQLITE_INTEGER else {
                let id = sqlite3_column_int64(row, 0)
                throw StoreError(.corrupt, "the row \(id) of the table \(type.table) has no key or version that can be one")
            }
            return (name, sqlite3_column_int64(row, 2))
        }
    }

    /// Looks for the record of an edit, and compares the two.
    func lookUp(_ edit: RecordEdit) throws -> LookedUpRecord {
        guard let type = type(named: edit.record.type) else { return LookedUpRecord(found: nil, match: .missing) }
        let places = edit.listed.map { self.places(of: $0.names, in: type) }
        let found = try withRow(of: edit.record.name, type: type, zone: edit.zone) { statement, hasName in
            let name = hasName ? edit.record.name : nil
            if edit.isSame(as: statement.sqliteStatement, type: type, places) {
                let found = try FoundRecord(
                    statement, type: type, knownName: name, withValues: edit.needsValues(of: statement.sqliteStatement))
                if found.name == edit.record.name { return LookedUpRecord(found: found, match: .equal) }
            }
            return LookedUpRecord(found: try FoundRecord(statement, type: type, knownName: name), match: .different)
        }
        return found ?? LookedUpRecord(found: nil, match: .missing)
    }

    /// The places of the fields of a type in a list of names.
    struct FieldPlaces {
        let names: FieldNames
        let type: StoredType
        /// By the places of the fields in the type, their places in the list; `nil` for a field that the list lacks.
        let places: [Int?]
        /// The places in the list of names that the type has no field of.
        private let unknown: [Int]
        /// The places in the list of fields of whole numbers, and of lists of them.
        private let wholeNumbers: [Int]

        init(_ names: FieldNames, _ type: StoredType) {
            (self.names, self.type) = (names, type)
            places = type.fields.map { names.list.firstIndex(of: $0.name) }
            unknown = names.list.indices.filter { [places] place in !places.contains(place) }
            wholeNumbers = zip(type.fields, places).compactMap { $0.type.scalar == .int64 ? $1 : nil }
        }

        /// Returns whether all values of a list are of fields that the type has.
        func coversAll(_ values: [FieldValue?]) -> Bool { unknown.allSatisfy { values[$0] == nil } }

        func hasDoublesForWholeNumbers(_ values: [FieldValue?]) -> Bool {
            wholeNumbers.contains { place in
                switch values[place] {
                case .double?, .list(_, of: .double)?: true
                default: false
                }
            }
        }
    }

    func places(of names: FieldNames, in type: StoredType) -> FieldPlaces {
        if let last = fieldPlaces, last.names === names, last.type === type { return last }
        let places = FieldPlaces(names, type)
        fieldPlaces = places
        return places
    }

    /// Returns the record of a name. A UUID is found in upper and lower case.
    ///
    /// - Parameters:
    ///   - name: The name of the record.
    ///   - type: The type of the record.
    ///   - zone: In a shared store, the zone of the record, because each zone can have the name; `nil` for any zone.
    func find(_ name: String, type: StoredType, zone: Int64? = nil) throws -> FoundRecord? {
        try withRow(of: name, type: type, zone: zone) { statement, hasName in
            try FoundRecord(statement, type: type, knownName: hasName ? name : nil)
        }
    }

    /// Returns the state of a record after an edit, and its name in the store. The state shares the values of the edit where the store
    /// has the same.
    func state(of name: String, type: StoredType, after edit: RecordEdit) throws -> (state: StoredVersion, name: String)? {
        let places = edit.listed.map { self.places(of: $0.names, in: type) }
        let (given, named) = (edit.listed?.values, edit.listed == nil ? edit.values : nil)
        return try withRow(of: name, type: type, zone: edit.zone) { statement, hasName in
            let handle = statement.sqliteStatement
            let found = try FoundRecord.nameAndVersion(handle, type: type, knownName: hasName ? name : nil)
            var values = [String: FieldValue](minimumCapacity: type.fields.count)
            for (index, field) in type.fields.enumerated() {
                let column = Int32(index + 3)
                guard sqlite3_column_type(handle, column) != SQLITE_NULL else { continue }
                let mine = places.map { $0.places[index].flatMap { given?[$0] } } ?? named?[field.name]
                values[field.name] =
                    if let mine, mine.type == field.type, mine.isIdentical(to: handle, column: column) { mine } else {
                        FieldValue(handle, column: column, type: field.type)
                    }
            }
            return (StoredVersion(version: found.version, values: values), found.name)
        }
    }

    func find(row id: Int64, type: StoredType) throws -> FoundRecord? {
        let columns = FoundRecord.columns(type)
        let statement = try db.cachedStatement(sql: "SELECT \(columns) FROM \"\(type.table)\" WHERE _id = ?")
        return try statement.withRow([id]) { _ in try FoundRecord(statement, type: type) }
    }

    /// Calls `body` with a statement of ``FoundRecord/columns(_:)`` that stands at the row of a name, and with whether the row is known
    /// to have the name as it is given.
    ///
    /// It does not use GRDB's rows, which cost more than the look-up.
    private func withRow<Result>(
        of name: String, type: StoredType, zone: Int64?, _ body: (Statement, Bool) throws -> Result
    ) throws -> Result? {
        let zone = connection.scope == .shared ? zone : nil
        let statement = try lookUpStatement(type, inZone: zone != nil)
        let handle = statement.sqliteStatement
        defer { sqlite3_reset(handle) }
        let isASCII = name.utf8.allSatisfy { $0 < 0x80 }
        for form in RecordKey.Form.allCases {
            sqlite3_reset(handle)
            guard var code = RecordKey.bind(name, form, isASCII: isASCII, to: handle) else { continue }
            if code == SQLITE_OK, let zone { code = sqlite3_bind_int64(handle, 2, zone) }
            if code == SQLITE_OK { code = sqlite3_step(handle) }
            switch code {
            case SQLITE_ROW: return try body(statement, isASCII && form == .given)
            case SQLITE_DONE: continue
            default: throw DatabaseError(resultCode: ResultCode(rawValue: code), message: db.lastErrorMessage)
            }
        }
        return nil
    }

    private func lookUpStatement(_ type: StoredType, inZone: Bool) throws -> Statement {
        // Making the text of the statement takes longer than running the statement.
        if let last = lookUpStatement, last.type == type.id, last.fields == type.fields.count, last.inZone == inZone {
            return last.statement
        }
        // With both keys of a name SQLite would make a table for each look-up, which takes longer than a second look-up.
        let statement = try db.cachedStatement(
            sql: """
                SELECT \(FoundRecord.columns(type)) FROM "\(type.table)" WHERE _key = ?1\(inZone ? " AND _zone = ?2" : "")
                ORDER BY _zone LIMIT 1
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
    fileprivate func isSame(as row: SQLiteStatement, type: StoredType, _ places: StoreTransaction.FieldPlaces?) -> Bool {
        if let listed, let places {
            for (index, place) in places.places.enumerated() {
                guard let place else { continue }
                let column = Int32(index + 3)
                if let value = listed.values[place] {
                    guard value.isSame(as: row, column: column) else { return false }
                } else if sqlite3_column_type(row, column) != SQLITE_NULL {
                    return false
                }
            }
            return places.coversAll(listed.values)
        }
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
    func changes(
        of found: StoreTransaction.FoundRecord?, type: StoredType, _ places: StoreTransaction.FieldPlaces?
    ) -> [(field: Int, value: FieldValue?)]? {
        let stored = found?.values ?? []
        var changes: [(field: Int, value: FieldValue?)] = []
        if let listed, let places {
            changes.reserveCapacity(found == nil ? listed.values.count : 0)
            for (index, place) in places.places.enumerated() {
                guard let place else { continue }
                let (value, before) = (listed.values[place], index < stored.count ? stored[index] : nil)
                if !value.isSame(as: before) { changes.append((index, value)) }
            }
            return changes
        }
        guard let values else { return nil }
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
