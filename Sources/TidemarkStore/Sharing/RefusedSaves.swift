import Foundation
import GRDB
public import TidemarkModel
public import TidemarkSQLite

/// Saves that a cloud has refused and the store has reverted: `tide_refused`.
struct RefusedSaves {
    private let db: Database

    init(_ db: Database) { self.db = db }

    /// - Parameters:
    ///   - before: The changed fields with their values from before the save, which they have again.
    ///   - after: The values that were saved.
    func add(
        _ kind: ChangeKind, type: StoredType, name: String, zone: ZoneName, before: [String: FieldValue?],
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

    /// Returns values in the form of history; `nil` for none.
    private static func text(_ values: [String: FieldValue?]) -> String? {
        guard !values.isEmpty else { return nil }
        // Names of fields have no character that JSON escapes.
        let members = values.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value?.notedText ?? "null")" }
        return "{\(members.joined(separator: ","))}"
    }

    var count: Int { get throws { try Int.fetchOne(db, sql: "SELECT count(*) FROM tide_refused") ?? 0 } }

    private static let columns = "time, owner, zone_name, type, name, kind, before, after, code, reason"

    /// Returns the rows as they are stored, oldest first, for another store.
    func copies() throws -> [[DatabaseValue]] {
        try Row.fetchAll(db, sql: "SELECT \(Self.columns) FROM tide_refused ORDER BY id").map { Array($0.databaseValues) }
    }

    /// Returns rows of another store, with the identifiers that their contents have here.
    ///
    /// - Parameter schemas: The types of that store.
    static func naming(
        _ copies: [[DatabaseValue]], _ assets: RestoredAssets, _ schemas: [RecordTypeSchema]
    ) -> [[DatabaseValue]] {
        let names = columns.components(separatedBy: ", ")
        var fields: [String: [String]] = [:]
        for schema in schemas { fields[schema.name] = schema.fields.filter { $0.type.scalar == .asset }.map(\.name) }
        return copies.map { copy in
            var named = copy
            let type = names.firstIndex(of: "type").flatMap { String.fromDatabaseValue(copy[$0]) }
            guard let type, let assetFields = fields[type] else { return copy }
            for (index, name) in names.enumerated() where name == "before" || name == "after" {
                guard let text = String.fromDatabaseValue(copy[index]) else { continue }
                named[index] = assets.noted(text, assetFields).databaseValue
            }
            return named
        }
    }

    /// Adds rows of another store, unless they exist.
    func add(copies: [[DatabaseValue]]) throws {
        let names = Self.columns.split(separator: ", ")
        let isThere = names.enumerated().map { "\($1) IS ?\($0 + 1)" }.joined(separator: " AND ")
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO tide_refused (\(Self.columns)) SELECT \(names.indices.map { "?\($0 + 1)" }.joined(separator: ", "))
                WHERE NOT EXISTS (SELECT 1 FROM tide_refused WHERE \(isThere))
                """)
        for copy in copies { try statement.execute(arguments: StatementArguments(copy)) }
    }

    func fetchAll(scope: StoreScope) throws -> [RefusedSave] {
        let types = try StoredType.fetchAll(db)
        let table = "tide_refused"
        let sql = "SELECT id, \(Self.columns) FROM tide_refused ORDER BY id"
        return try Row.fetchAll(db.cachedStatement(sql: sql)).map { row in
            let id: Int64 = try row.stored("id", of: table)
            let owner: String = try row.stored("owner", of: table)
            let record = RecordName(type: try row.stored("type", of: table), name: try row.stored("name", of: table))
            guard let kind = ChangeKind(rawValue: try row.stored("kind", of: table)) else {
                throw StoreError(.corrupt, "tide_refused has a row \(id) whose kind cannot be one")
            }
            let type = types.first { $0.name == record.type }
            let zone = ZoneName(try row.stored("zone_name", of: table), owner: owner.isEmpty ? nil : owner)
            return RefusedSave(
                id: id, time: try row.stored("time", of: table), scope: scope, zone: zone, record: record, kind: kind,
                before: try Self.values(row.stored("before", of: table), type, id),
                after: try Self.values(row.stored("after", of: table), type, id), code: try row.stored("code", of: table),
                reason: try row.stored("reason", of: table))
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
    /// The value in the form of history: a column's value as JSON.
    fileprivate var notedText: String {
        switch self {
        case .int64, .timestamp, .double, .bytes: logText
        case .string, .location, .reference, .asset, .list: FieldValue.string(StoredText.text(self) ?? "").logText
        }
    }
}

extension StoreReader {
    /// Saves that the cloud has refused and the store has reverted, oldest first.
    public func refused() throws(StoreError) -> [RefusedSave] {
        try read("read what was refused") { try RefusedSaves($0).fetchAll(scope: scope) }
    }
}

extension RecordStore {
    /// Saves that the cloud has refused and the store has reverted, oldest first.
    package func refused() throws(StoreError) -> [RefusedSave] {
        try connection.read("read what was refused") { try RefusedSaves($0).fetchAll(scope: scope) }
    }

    package func refusedCount() throws(StoreError) -> Int {
        try connection.read("count what was refused") { try Int.fetchOne($0, sql: "SELECT count(*) FROM tide_refused") ?? 0 }
    }

    /// Deletes refused saves permanently.
    package func discardRefused(_ ids: [Int64]) throws(StoreError) {
        try connection.locked("discard what was refused") { db in
            try RefusedSaves(db).discard(ids)
            return ((), .commit)
        }
    }
}
