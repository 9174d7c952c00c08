import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite

/// The changes of one row, from the newest to the oldest that history still has.
struct RecordHistory {
    let name: String
    let changes: [HistoryChange]
    /// The latest change before which the record was damaged. The values that history has from before it are not restored.
    let damagedChange: Int64?
    /// - Parameter oldest: The number of the oldest change that is wanted.
    /// - Throws: ``StoreError`` `corrupt`.
    init?(_ db: Database, type: StoredType, rowID: Int64, oldest: Int64 = 0) throws {
        let columns = (["_id", "_key", "_version"] + type.fields.map { "\"\($0.column)\"" }).joined(separator: ", ")
        let statement = try db.cachedStatement(sql: "SELECT \(columns) FROM \"\(type.table)\" WHERE _id = ?")
        var values: [String: FieldValue?] = [:]
        var next: Int64?
        if let row = try Row.fetchOne(statement, arguments: [rowID]) {
            let record = try StoredRecord(row, type: type)
            name = record.name
            next = record.version
            values = Dictionary(uniqueKeysWithValues: zip(type.fields.map(\.name), record.values))
        } else if let deletion = try Self.deletion(db, type: type, rowID: rowID) {
            (name, next) = deletion
        } else {
            return nil
        }
        var found: [HistoryChange] = []
        var damaged: Int64?
        while let id = next, id >= oldest {
            let sql = """
                SELECT c.id AS change_id, c.kind, c.previous, c.before, t.* FROM tide_changes c
                JOIN tide_transactions t ON t.id = c.transaction_id WHERE c.id = ?
                """
            guard let change = try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [id]),
                let kind = ChangeKind(rawValue: try change.stored("kind", of: "tide_changes"))
            else { break }
            var fields: [HistoryChange.FieldChange] = []
            let noted = try NotedValues(change.stored("before", of: "tide_changes"), change: id)
            if noted.isDamaged, damaged == nil { damaged = id }
            for (field, before) in type.historyFields(noted.fields, at: id) {
                let value = FieldValue(noted: before, type: field.type)
                fields.append(.init(field: field.name, type: field.type, before: value, after: values[field.name] ?? nil))
                values[field.name] = value
            }
            found.append(
                HistoryChange(
                    id: id, transaction: try HistoryTransaction(change), type: type.name, record: name, kind: kind,
                    fields: fields))
            let previous: Int64? = try change.stored("previous", of: "tide_changes")
            // Change numbers rise along a history. A chain that goes up would never end.
            guard previous ?? 0 < id else {
                throw StoreError(.corrupt, "the change \(id) in tide_changes says that it came after the change \(previous!)")
            }
            // A record that was moved has its earlier changes under another row.
            next = kind == .insert ? nil : previous
        }
        changes = found
        damagedChange = damaged
    }

    /// The name of a row that was deleted, and the change that did it.
    private static func deletion(_ db: Database, type: StoredType, rowID: Int64) throws -> (String, Int64?)? {
        let sql = "SELECT id, key FROM tide_changes WHERE type_id = ? AND first_row = ? AND kind = \(ChangeKind.delete.rawValue)"
        guard let row = try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [type.id, rowID]) else { return nil }
        let id: Int64 = try row.stored("id", of: "tide_changes")
        guard let key = RecordKey.fromDatabaseValue(row[1]) else {
            throw StoreError(.corrupt, "the change \(id) in tide_changes has no key that can be one")
        }
        return (key.name, id)
    }
}

/// The values before a change, as history has them: a JSON object of the fields in stored form, with bytes in Base64.
struct NotedValues {
    let fields: [(String, DatabaseValue)]
    /// Whether the record was damaged before the change, so that its values were never written by a program.
    let isDamaged: Bool

    /// Marks the values of a damaged record. No field can have this name.
    private static let damaged = "_damaged"

    init(_ text: String?, change: Int64) throws {
        guard let text else {
            (fields, isDamaged) = ([], false)
            return
        }
        guard let noted = try? JSONDecoder().decode([String: StoredScalar].self, from: Data(text.utf8)) else {
            throw StoreError(.corrupt, "the change \(change) in tide_changes has no JSON object in 'before'")
        }
        isDamaged = noted[Self.damaged] != nil
        fields = noted.filter { $0.key != Self.damaged }.map { ($0.key, $0.value.value) }.sorted { $0.0 < $1.0 }
    }
}

extension StoredType {
    /// Returns the fields that a change names, under their present names. The change that renames a field names it twice, and
    /// changes nothing.
    func historyFields(
        _ noted: [(String, DatabaseValue)], at change: Int64
    ) -> [(field: HistoryField, before: DatabaseValue)] {
        let found = noted.compactMap { name, before in historyField(name, at: change).map { (field: $0, before: before) } }
        guard found.contains(where: \.field.isRenamed) else { return found }
        let names = Dictionary(grouping: found, by: \.field.name)
        return found.filter { names[$0.field.name]?.count == 1 }
    }
}

extension FieldValue {
    /// Makes a value from history's JSON, where whole doubles look like integers, and bytes are Base64.
    init?(noted value: DatabaseValue, type: FieldType) {
        if !type.isList {
            switch (type.scalar, value.storage) {
            case (.double, .int64(let number)):
                self = .double(Double(number))
                return
            case (.bytes, .string(let text)):
                self = .bytes(Array(Data(base64Encoded: text) ?? Data()))
                return
            case (.string, _), (.int64, _), (.double, _), (.timestamp, _), (.bytes, _), (.location, _), (.reference, _),
                (.asset, _):
                break
            }
        }
        self.init(value, type: type)
    }
}
