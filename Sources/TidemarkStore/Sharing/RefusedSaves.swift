import Foundation
import GRDB
import TidemarkModel

/// Saves that a cloud has refused and that were taken back: `tide_refused`.
struct RefusedSaves {
    private let db: Database

    init(_ db: Database) { self.db = db }

    /// - Parameters:
    ///   - before: The fields that were changed, as they are again.
    ///   - after: As they were saved.
    func add(
        _ kind: RefusedSave.Kind, type: StoredType, name: String, zone: ZoneName, before: [String: FieldValue?],
        after: [String: FieldValue?], code: String, reason: String, at time: Int64
    ) throws {
        try db.cachedStatement(
            sql: """
                INSERT INTO tide_refused (time, owner, zone_name, type, name, kind, before, after, code, reason)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """
        ).execute(arguments: [
            time, zone.owner ?? "", zone.name, type.name, name, kind.rawValue, Self.text(before), Self.text(after), code, reason,
        ])
    }

    /// As history notes values; `nil` for none.
    private static func text(_ values: [String: FieldValue?]) -> String? {
        guard !values.isEmpty else { return nil }
        // Names of fields have nothing that JSON would quote.
        let members = values.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value?.notedText ?? "null")" }
        return "{\(members.joined(separator: ","))}"
    }

    func fetchAll(scope: DatabaseScope) throws -> [RefusedSave] {
        let types = try StoredType.fetchAll(db)
        let sql = "SELECT id, time, owner, zone_name, type, name, kind, before, after, code, reason FROM tide_refused ORDER BY id"
        return try Row.fetchAll(db.cachedStatement(sql: sql)).map { row in
            let (id, owner, typeName): (Int64, String, String) = (row[0], row[2], row[4])
            guard let kind = RefusedSave.Kind(rawValue: row[6]) else {
                throw StoreError(.corrupt, "tide_refused has a row \(id) whose kind cannot be one")
            }
            let type = types.first { $0.name == typeName }
            return RefusedSave(
                id: id, time: row[1], scope: scope, zone: ZoneName(row[3], owner: owner.isEmpty ? nil : owner),
                record: RecordName(type: typeName, name: row[5]), kind: kind, before: try Self.values(row[7], type, id),
                after: try Self.values(row[8], type, id), code: row[9], reason: row[10])
        }
    }

    private static func values(_ text: String?, _ type: StoredType?, _ id: Int64) throws -> [String: FieldValue?] {
        guard let text else { return [:] }
        guard let noted = try? JSONDecoder().decode([String: StoredScalar].self, from: Data(text.utf8)) else {
            throw StoreError(.corrupt, "the row \(id) in tide_refused has values that are no JSON object")
        }
        var values: [String: FieldValue?] = [:]
        for field in type?.fields ?? [] {
            if let value = noted[field.name] { values[field.name] = .some(FieldValue(noted: value.value, type: field.type)) }
        }
        return values
    }

    func discard(_ ids: [Int64]) throws {
        let statement = try db.cachedStatement(sql: "DELETE FROM tide_refused WHERE id = ?")
        for id in ids { try statement.execute(arguments: [id]) }
    }
}

extension FieldValue {
    /// The value as history notes it: what a column holds, as JSON.
    fileprivate var notedText: String {
        switch self {
        case .int64, .timestamp, .double, .bytes: logText
        case .string(let text), .location(let text), .reference(let text), .asset(let text), .list(let text, _):
            FieldValue.string(text).logText
        }
    }
}

extension StoreReader {
    /// Saves that the cloud has refused and that were taken back, oldest first.
    public func refused() throws(StoreError) -> [RefusedSave] {
        try read("read what was refused") { try RefusedSaves($0).fetchAll(scope: scope) }
    }
}

extension RecordStore {
    /// Saves that the cloud has refused and that were taken back, oldest first.
    package func refused() throws(StoreError) -> [RefusedSave] {
        try connection.read("read what was refused") { try RefusedSaves($0).fetchAll(scope: scope) }
    }

    /// Removes refused saves, for good.
    package func discardRefused(_ ids: [Int64]) throws(StoreError) {
        try connection.locked("discard what was refused") { db in
            try RefusedSaves(db).discard(ids)
            return ((), .commit)
        }
    }
}
