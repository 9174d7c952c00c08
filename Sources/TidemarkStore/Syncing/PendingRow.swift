import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite

/// A record's row, with the known state of the record in the cloud.
struct PendingRow {
    let id: Int64
    let key: RecordKey
    let version: Int64
    let tag: String?
    let base: Int64?
    let edited: String?
    /// The fields that the cloud does not have; `nil` for all.
    let pending: Data?
    let isPending: Bool
    let values: [FieldValue?]
    let name: String

    /// Whether its values match its digest, and each can be a value of its field.
    let isIntact: Bool

    /// Returns whether the cloud had the record and has lost it.
    func isLost(_ type: StoredType) -> Bool {
        edited.map { RowTimes($0).isLost(fields: type.fields.map(\.name)) } ?? false
    }

    private static func statement(_ db: Database, type: StoredType, _ condition: String) throws -> Statement {
        let columns = type.fields.map { ", \"\($0.column)\"" }.joined()
        return try db.cachedStatement(
            sql: """
                SELECT _id, _key, _version, _tag, _base, _edited, _pending, _digest\(columns) FROM "\(type.table)" WHERE \(condition)
                """)
    }

    /// The first row that an SQL condition holds for.
    static func fetchOne(
        _ db: Database, type: StoredType, _ condition: String, arguments: StatementArguments = []
    ) throws -> PendingRow? {
        try Cursor(db, type: type, condition, arguments: arguments).next()
    }

    /// All rows that an SQL condition holds for.
    static func fetchAll(
        _ db: Database, type: StoredType, _ condition: String, arguments: StatementArguments = []
    ) throws -> [PendingRow] {
        let cursor = try Cursor(db, type: type, condition, arguments: arguments)
        var rows: [PendingRow] = []
        while let row = try cursor.next() { rows.append(row) }
        return rows
    }

    /// The rows that an SQL condition holds for, one after the other.
    struct Cursor {
        private let statement: Statement
        private let rows: RowCursor
        private let type: StoredType

        init(_ db: Database, type: StoredType, _ condition: String, arguments: StatementArguments = []) throws {
            statement = try PendingRow.statement(db, type: type, condition)
            rows = try Row.fetchCursor(statement, arguments: arguments)
            self.type = type
        }

        func next() throws -> PendingRow? {
            try rows.next().map { try PendingRow($0, at: statement, type: type) }
        }
    }

    /// - Parameter statement: A statement that stands at the row.
    private init(_ row: Row, at statement: Statement, type: StoredType) throws {
        guard let key = RecordKey.fromDatabaseValue(row[1]), let version = Int64.fromDatabaseValue(row[2]) else {
            throw StoreError(
                .corrupt, "the row \(row[0] as DatabaseValue) of the table \(type.table) has no key or version that can be one")
        }
        id = try row.decode(atIndex: 0)
        self.key = key
        name = key.name
        self.version = version
        tag = try row.decode(atIndex: 3)
        base = try row.decode(atIndex: 4)
        edited = try row.decode(atIndex: 5)
        let pending = row[6] as DatabaseValue
        isPending = !pending.isNull
        if case .blob(let data) = pending.storage { self.pending = data } else { self.pending = nil }
        var holdsAll = true
        values = type.fields.indices.map { index in
            let column = row[index + 8] as DatabaseValue
            let value = FieldValue(column, type: type.fields[index].type)
            if value == nil, !column.isNull { holdsAll = false }
            return value
        }
        isIntact = holdsAll && type.digest.isIntact(statement, key: 1, digest: 7, fields: 8)
    }

    func state(_ type: StoredType) -> [String: FieldValue] {
        var state: [String: FieldValue] = [:]
        for (field, value) in zip(type.fields, values) { state[field.name] = value }
        return state
    }

    func isPending(_ ordinal: Int) -> Bool {
        guard let pending else { return isPending }
        return Self.isPending(ordinal, in: pending)
    }

    /// Whether the value of a `_pending` column stands for a field.
    static func isPending(_ ordinal: Int, in value: DatabaseValue) -> Bool {
        if case .blob(let data) = value.storage { isPending(ordinal, in: data) } else { !value.isNull }
    }

    private static func isPending(_ ordinal: Int, in pending: Data) -> Bool {
        ordinal / 8 < pending.count && pending[pending.startIndex + ordinal / 8] & (1 << (ordinal % 8)) != 0
    }

    func item(type: StoredType, key: ExportItem.Key, edited: EditTimes) throws -> ExportItem {
        var (values, cleared): ([String: FieldValue], Set<String>) = ([:], [])
        for (field, value) in zip(type.fields, self.values) where tag == nil || isPending(field.ordinal) {
            if let value { values[field.name] = value } else if tag != nil { cleared.insert(field.name) }
        }
        return ExportItem(
            key: key, type: type.name, name: name, version: version, tag: tag, values: values, cleared: cleared, edited: edited)
    }
}
