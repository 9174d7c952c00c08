import Foundation
package import GRDB
public import TidemarkModel
public import TidemarkSQLite

/// A record as it lies in a store.
public struct StoredRecord: Hashable, Sendable {
    /// The record's name; `_name` in SQL.
    public let name: String
    /// The number of the change that last touched it; rises with every change.
    public let version: Int64
    /// In the order of the type's fields; `nil` for no value.
    public let values: [FieldValue?]
    /// Whether the values are what the record's digest says; `true` also where that was not looked at.
    public let isIntact: Bool
}

/// Which records, and in which order.
public struct RecordQuery: Sendable {
    /// The name of the record type.
    public var type: String
    /// An SQL expression over the fields, `_name` and the bookkeeping columns; `nil` for all.
    public var condition: String?
    /// What stands for `?` in the condition.
    package var arguments: StatementArguments
    /// Adds the functions that the condition calls to a connection.
    package var prepare: (@Sendable (Database) throws -> Void)?
    /// A field, or `_name`; `nil` for the order in which records came.
    public var sortField: String?
    /// Whether `sortField` is sorted from the greatest value to the least.
    public var isDescending: Bool
    /// The greatest number of records; `nil` for all.
    public var limit: Int?

    /// Makes a query. Names and the condition are checked when it runs.
    ///
    /// - Parameters:
    ///   - condition: An SQL expression. It is used as it is: don't put texts into it that come from others.
    ///   - sortField: A field, or `_name`.
    ///   - limit: The greatest number of records; `nil` for all.
    public init(
        type: String, condition: String? = nil, sortField: String? = nil, isDescending: Bool = false, limit: Int? = nil
    ) {
        self.init(
            type: type, condition: condition, arguments: StatementArguments(), sortField: sortField, isDescending: isDescending,
            limit: limit)
    }

    package init(
        type: String, condition: String?, arguments: StatementArguments, sortField: String? = nil, isDescending: Bool = false,
        limit: Int? = nil, prepare: (@Sendable (Database) throws -> Void)? = nil
    ) {
        self.type = type
        self.prepare = prepare
        self.condition = condition
        self.arguments = arguments
        self.sortField = sortField
        self.isDescending = isDescending
        self.limit = limit
    }
}

extension StoreReader {
    /// The schema of a type.
    ///
    /// - Throws: ``StoreError`` `schema` when the store has no such type.
    public func type(named name: String) throws(StoreError) -> RecordTypeSchema {
        try read("read the schema") { db in try storedType(db, named: name).schema }
    }

    /// Calls `body` for each record that the query matches, one at a time, all of one state of the store.
    ///
    /// - Parameter checksDigests: Whether each record is compared with its digest; see ``StoredRecord/isIntact``. It adds some 3% to an export.
    /// - Throws: ``StoreError`` `sql` when the condition is no SQL expression over the type's fields, `schema` for an unknown type or
    ///   field; `changed` when another process began to write, after the first call, to a store that had no `-shm` file; and what
    ///   `body` throws.
    /// - Complexity: Memory is constant; without an order, records come as they are read.
    public func forEachRecord(
        _ query: RecordQuery, checksDigests: Bool = false, _ body: (StoredRecord) throws -> Void
    ) throws {
        // What `body` has seen can't be taken back.
        var hasBegun = false
        let mayRepeat = { !hasBegun }
        try ReadOnlyDatabase.reading(database, mayRepeat: mayRepeat) {
            try database.read { db in
                try container.checkFormat(db, of: scope)
                let type = try storedType(db, named: query.type)
                let columns =
                    ["_id", "_key", "_version"] + type.fields.map { "\"\($0.column)\"" } + (checksDigests ? ["_digest"] : [])
                let count = type.fields.count
                try query.forEachRow(db, of: container.store(scope).path, type: type, columns: columns) { row, statement in
                    let isIntact = !checksDigests || type.digest.isIntact(statement, key: 1, digest: count + 3, fields: 3)
                    let record = try StoredRecord(row, type: type, isIntact: isIntact)
                    hasBegun = true
                    try body(record)
                }
            }
        }
    }

    /// The number of records of a type.
    public func count(type name: String) throws(StoreError) -> Int {
        try read("count the records") { db in
            let type = try storedType(db, named: name)
            return try Int.fetchOne(db, sql: "SELECT count(*) FROM \"\(type.table)\"") ?? 0
        }
    }
}

extension RecordQuery {
    /// Calls `body` for each row that it matches, one at a time, with the statement that stands at it.
    ///
    /// - Parameter path: The store's, for messages.
    func forEachRow(
        _ db: Database, of path: String, type: StoredType, columns: [String], _ body: (Row, Statement) throws -> Void
    ) throws {
        // What has arguments was made of a predicate, which has checked a user's part.
        if let condition, arguments.isEmpty { try type.check(condition: condition) }
        try prepare?(db)
        let sql = try sql(type, columns: columns)
        let rows: RowCursor
        do {
            rows = try Row.fetchCursor(db, sql: sql, arguments: arguments)
        } catch {
            throw failure(error, path)
        }
        while let row = try next(of: rows, path) { try body(row, rows._statement) }
    }

    private func next(of rows: RowCursor, _ path: String) throws(StoreError) -> Row? {
        do {
            return try rows.next()
        } catch {
            throw failure(error, path)
        }
    }

    private func failure(_ error: any Error, _ path: String) -> StoreError {
        if let condition, let error = error as? DatabaseError, !ReadOnlyDatabase.isVoid(error),
            ![.SQLITE_CORRUPT, .SQLITE_IOERR, .SQLITE_BUSY].contains(error.resultCode)
        {
            // An open quote reaches into the SQL behind the condition, which is nothing of the user's.
            var reason = error.message ?? "\(error)"
            if let end = reason.range(of: "\n)") { reason = "\(reason[..<end.lowerBound])\" (is a quote or a parenthesis open?)" }
            return StoreError(.sql, "the condition '\(condition)' can't be used: \(reason)")
        }
        return StoreError(error, doing: "read the records of \(path)")
    }

    private func sql(_ type: StoredType, columns: [String]) throws -> String {
        // What the type's view shows; the view itself may say anything in a store that others have made.
        var sql = "SELECT \(columns.joined(separator: ", ")) FROM (\(type.querySQL))"
        // On a line of its own, so that a comment in it ends there.
        if let condition { sql += " WHERE (\(condition)\n)" }
        if let sortField {
            sql += " ORDER BY \(try orderColumn(sortField, type: type)) \(isDescending ? "DESC" : "ASC"), _id"
        } else {
            sql += " ORDER BY _id \(isDescending ? "DESC" : "ASC")"
        }
        if let limit { sql += " LIMIT \(limit)" }
        return sql
    }

    private func orderColumn(_ field: String, type: StoredType) throws -> String {
        if field == "_name" || field == type.nameField { return "_name" }
        guard let known = type.fields.first(where: { $0.name == field }) else {
            throw StoreError(
                .schema,
                "\(type.name) has no field '\(field)' to sort by; it has \(type.fields.map(\.name).joined(separator: ", "))")
        }
        return "\"\(known.column)\""
    }
}

extension StoredRecord {
    /// From a row of its number, key, version, and the fields.
    ///
    /// - Throws: ``StoreError`` `corrupt` when key or version have a wrong form.
    init(_ row: Row, type: StoredType, isIntact: Bool = true) throws(StoreError) {
        guard let key = RecordKey.fromDatabaseValue(row[1]), let version = Int64.fromDatabaseValue(row[2]) else {
            throw StoreError(
                .corrupt, "the row \(row[0] as DatabaseValue) of the table \(type.table) has no key or version that can be one")
        }
        name = key.name
        self.version = version
        var holdsAll = true
        values = type.fields.indices.map { index in
            let column = row[index + 3] as DatabaseValue
            let value = FieldValue(column, type: type.fields[index].type)
            if value == nil, !column.isNull { holdsAll = false }
            return value
        }
        // A value that can't be one of its field was not saved by a store, whatever the digest says.
        self.isIntact = isIntact && holdsAll
    }
}

extension FieldValue {
    /// The value that a column of a field of `type` holds; `nil` for NULL, and for what such a column can't hold.
    init?(_ value: DatabaseValue, type: FieldType) {
        var text: String? { if case .string(let text) = value.storage { text } else { nil } }
        var integer: Int64? { if case .int64(let number) = value.storage { number } else { nil } }
        let found: FieldValue? =
            if type.isList {
                text.flatMap { StoredText.elements(of: $0, type.scalar) }.map { .list($0, of: type.scalar) }
            } else {
                switch type.scalar {
                case .int64: integer.map { .int64($0) }
                case .timestamp: integer.map { .timestamp($0) }
                case .double: if case .double(let number) = value.storage { .double(number) } else { nil }
                case .string: text.map { .string($0) }
                case .location: text.flatMap(StoredText.place).map { .location($0) }
                case .reference: text.map { .reference($0) }
                case .asset: text.map { .asset($0) }
                case .bytes: if case .blob(let data) = value.storage { .bytes(Array(data)) } else { nil }
                }
            }
        guard let found else { return nil }
        self = found
    }
}
