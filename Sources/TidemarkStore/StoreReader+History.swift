import Foundation
import GRDB
import TidemarkModel

/// One transaction of a store's history.
public struct HistoryTransaction: Hashable, Sendable {
    public let id: Int64
    /// Microseconds since 1970 UTC.
    public let time: Int64
    public let author: String
    /// Where it came from: `import`, …
    public let origin: String
    public let inserted: Int
    public let updated: Int
    public let deleted: Int
}

/// One change of one record.
public struct HistoryChange: Hashable, Sendable {
    public enum Kind: Int, Sendable {
        case insert = 1
        case update = 2
    }

    /// What a field was and what it became, as the store holds values.
    public struct FieldChange: Hashable, Sendable {
        public let field: String
        public let type: FieldType
        public let before: FieldValue?
        public let after: FieldValue?

        public init(field: String, type: FieldType, before: FieldValue?, after: FieldValue?) {
            self.field = field
            self.type = type
            self.before = before
            self.after = after
        }
    }

    public let id: Int64
    public let transaction: HistoryTransaction
    public let type: String
    public let record: String
    public let kind: Kind
    /// Of an update.
    public let fields: [FieldChange]
}

extension StoreReader {
    /// The newest transactions, newest first.
    public func transactions(limit: Int? = nil) throws(StoreError) -> [HistoryTransaction] {
        try read("read the history") { db in
            try Row.fetchAll(
                db, sql: "SELECT * FROM tide_transactions ORDER BY id DESC LIMIT ?", arguments: [limit ?? -1]
            ).map { row in try HistoryTransaction(row) }
        }
    }

    /// The changes of one record, newest first; empty when there is no record of that name.
    public func changes(ofRecord name: String) throws(StoreError) -> [HistoryChange] {
        try read("read the history") { db in
            for type in try StoredType.fetchAll(db) {
                guard
                    let id = try Int64.fetchOne(
                        db, sql: "SELECT _id FROM \"\(type.table)\" WHERE _key = ?", arguments: [RecordKey(name: name)])
                else { continue }
                return try RecordHistory(db, type: type, rowID: id).changes
            }
            return []
        }
    }

    /// The updates of one transaction, in order; and how many records it inserted, per type.
    public func changes(ofTransaction id: Int64) throws(StoreError) -> (updates: [HistoryChange], inserted: [String: Int]) {
        try read("read the history") { db in
            let types = try StoredType.fetchAll(db)
            var updates: [HistoryChange] = []
            var inserted: [String: Int] = [:]
            for row in try Row.fetchAll(
                db, sql: "SELECT * FROM tide_changes WHERE transaction_id = ? ORDER BY id", arguments: [id])
            {
                let table = "tide_changes"
                let (change, typeID): (Int64, Int64) = (try row.stored("id", of: table), try row.stored("type_id", of: table))
                let (kind, first, last): (Int, Int64, Int64) =
                    (
                        try row.stored("kind", of: table), try row.stored("first_row", of: table),
                        try row.stored("last_row", of: table)
                    )
                guard let type = types.first(where: { $0.id == typeID }) else { continue }
                if kind == HistoryChange.Kind.insert.rawValue {
                    let (sum, overflows) = inserted[type.name, default: 0].addingReportingOverflow(Int(last &- first &+ 1))
                    guard first > 0, last >= first, !overflows else {
                        throw StoreError(.corrupt, "the change \(change) in tide_changes names rows that cannot be")
                    }
                    inserted[type.name] = sum
                } else {
                    updates += try RecordHistory(db, type: type, rowID: first).changes.filter { $0.id == change }
                }
            }
            return (updates, inserted)
        }
    }
}

extension HistoryTransaction {
    init(_ row: Row) throws {
        let table = "tide_transactions"
        id = try row.stored("id", of: table)
        time = try row.stored("time", of: table)
        author = try row.stored("author", of: table)
        origin = try row.stored("origin", of: table)
        inserted = try row.stored("inserted", of: table)
        updated = try row.stored("updated", of: table)
        deleted = try row.stored("deleted", of: table)
    }
}

extension FieldValue {
    /// A value as history notes it in JSON: whole doubles look like integers there, bytes are Base64.
    fileprivate init?(noted value: DatabaseValue, type: FieldType) {
        switch (value.storage, type) {
        case (.int64(let number), .double): self = .double(Double(number))
        case (.string(let text), .bytes): self = .bytes(Array(Data(base64Encoded: text) ?? Data()))
        default: self.init(value, type: type)
        }
    }
}

/// Walks the changes of one row from the newest to the oldest that history still has.
private struct RecordHistory {
    let changes: [HistoryChange]

    init(_ db: Database, type: StoredType, rowID: Int64) throws {
        let columns = (["_id", "_key", "_version"] + type.fields.map { "\"\($0.column)\"" }).joined(separator: ", ")
        guard let row = try Row.fetchOne(db, sql: "SELECT \(columns) FROM \"\(type.table)\" WHERE _id = ?", arguments: [rowID])
        else {
            changes = []
            return
        }
        let record = try StoredRecord(row, type: type)
        var values = Dictionary(uniqueKeysWithValues: zip(type.fields.map(\.name), record.values))
        var next: Int64? = record.version
        var found: [HistoryChange] = []
        while let id = next {
            let sql = """
                SELECT c.id AS change_id, c.kind, c.previous, c.before, t.* FROM tide_changes c
                JOIN tide_transactions t ON t.id = c.transaction_id WHERE c.id = ?
                """
            guard let change = try Row.fetchOne(db, sql: sql, arguments: [id]),
                let kind = HistoryChange.Kind(rawValue: try change.stored("kind", of: "tide_changes"))
            else { break }
            var fields: [HistoryChange.FieldChange] = []
            for (name, before) in try Self.before(change.stored("before", of: "tide_changes"), change: id) {
                guard let field = type.fields.first(where: { $0.name == name }) else { continue }
                let value = FieldValue(noted: before, type: field.type)
                fields.append(.init(field: name, type: field.type, before: value, after: values[name] ?? nil))
                values[name] = value
            }
            found.append(
                HistoryChange(
                    id: id, transaction: try HistoryTransaction(change), type: type.name, record: record.name, kind: kind,
                    fields: fields))
            next = try change.stored("previous", of: "tide_changes")
            // Numbers rise; a chain that goes up would have no end.
            guard next ?? 0 < id else {
                throw StoreError(.corrupt, "the change \(id) in tide_changes says that it came after the change \(next!)")
            }
        }
        changes = found
    }

    /// The values before a change: a JSON object of the fields as the store held them, bytes in Base64.
    private static func before(_ text: String?, change: Int64) throws -> [(String, DatabaseValue)] {
        guard let text else { return [] }
        guard let fields = try? JSONDecoder().decode([String: Stored].self, from: Data(text.utf8)) else {
            throw StoreError(.corrupt, "the change \(change) in tide_changes has no JSON object in 'before'")
        }
        return fields.map { ($0.key, $0.value.value) }.sorted { $0.0 < $1.0 }
    }

    private struct Stored: Decodable {
        let value: DatabaseValue

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if container.decodeNil() {
                value = .null
            } else if let integer = try? container.decode(Int64.self) {
                value = integer.databaseValue
            } else if let real = try? container.decode(Double.self) {
                value = real.databaseValue
            } else {
                value = try container.decode(String.self).databaseValue
            }
        }
    }
}
