import Foundation
import GRDB
package import TidemarkModel
package import TidemarkSQLite

/// A record and the zone that it is in.
package struct PlacedRecord: Hashable, Sendable {
    package let record: RecordName
    package let zone: ZoneName
}

extension RecordStore {
    /// Returns records and everything that hangs on them, in any number of steps: the records that they own, and records on
    /// either side of references that are no declared relationships.
    ///
    /// - Throws: ``StoreError`` `notFound` for one of the records that is not there.
    /// - Complexity: A look through each type that has references, for each step.
    package func graph(of records: [RecordName]) throws(StoreError) -> [PlacedRecord] {
        try connection.read("look for what hangs on the records") { db in
            try connection.refreshSchema(db)
            return try Self.graph(of: records, db, connection.types)
        }
    }

    static func graph(of records: [RecordName], _ db: Database, _ types: [StoredType]) throws -> [PlacedRecord] {
        var search = GraphSearch(db: db, types: types, zones: try Self.zoneNames(db))
        for record in records { try search.begin(with: record) }
        return try search.run()
    }

    /// Returns whether a zone has only records among these. A missing zone has none.
    package func hasOnly(_ records: [PlacedRecord], in zone: ZoneName) throws(StoreError) -> Bool {
        guard let known = try zones().first(where: { $0.name == zone }) else { return true }
        return try connection.read("count the records of a zone") { db in
            try connection.refreshSchema(db)
            let count = try connection.types.reduce(0) { count, type in
                try count
                    + (Int.fetchOne(
                        db, sql: "SELECT count(*) FROM \"\(type.table)\" WHERE _zone = ?", arguments: [known.id]) ?? 0)
            }
            return count == records.count { $0.zone == zone }
        }
    }

    /// The zone that a record is in; `nil` where it is not there.
    package func zone(of record: RecordName) throws(StoreError) -> ZoneName? {
        try connection.read("look for a record's zone") { db in
            try connection.refreshSchema(db)
            guard let type = connection.types.first(where: { $0.name == record.type }) else { return nil }
            let statement = try db.cachedStatement(
                sql: "SELECT _zone FROM \"\(type.table)\" WHERE \(RecordKey.condition(in: type.table))")
            let keys = RecordKey.all(name: record.name)
            guard let zone = try Int64.fetchOne(statement, arguments: [keys[0], keys[keys.count - 1]]) else { return nil }
            guard let name = try Self.zoneNames(db)[zone] else { throw StoreError.noZone(zone, of: record) }
            return name
        }
    }

    private static func zoneNames(_ db: Database) throws -> [Int64: ZoneName] {
        try Dictionary(uniqueKeysWithValues: StoreZone.fetchAll(db).map { ($0.id, $0.name) })
    }
}

extension StoreError {
    fileprivate static func noZone(_ zone: Int64, of record: RecordName) -> StoreError {
        StoreError(.corrupt, "\(record.type) \(record.name) is in the zone \(zone), and the store has no such zone")
    }
}

extension StoredType {
    fileprivate enum Direction { case toTargets, toReferrers }

    /// Returns the references that a graph follows. A reference without a declared relationship is followed both ways. An owning
    /// one is followed from the owner to the owned records only.
    fileprivate func fields(followed direction: Direction) -> [Field] {
        fields.filter { field in
            guard field.type.scalar == .reference else { return false }
            guard let declared = relationships.first(where: { $0.field == field }) else { return true }
            return declared.isOwning && direction == .toReferrers
        }
    }
}

/// Goes from record to record.
private struct GraphSearch {
    let db: Database
    let types: [StoredType]
    let zones: [Int64: ZoneName]
    private var found: [RecordName: PlacedRecord] = [:]
    private var order: [PlacedRecord] = []
    /// Names of records that are to be looked up, or whose referring records are.
    private var frontier: Set<String> = []

    init(db: Database, types: [StoredType], zones: [Int64: ZoneName]) {
        (self.db, self.types, self.zones) = (db, types, zones)
    }

    mutating func begin(with record: RecordName) throws {
        guard let type = types.first(where: { $0.name == record.type }) else { throw Self.notFound(record) }
        guard try take(record.name, type: type) else { throw Self.notFound(record) }
    }

    private static func notFound(_ record: RecordName) -> StoreError {
        StoreError(.notFound, "there is no \(record.type) \(record.name)")
    }

    mutating func run() throws -> [PlacedRecord] {
        while !frontier.isEmpty {
            let step = frontier
            frontier = []
            let list = String(decoding: try JSONEncoder().encode(step.flatMap(RecordName.spellings).sorted()), as: UTF8.self)
            for type in types {
                let columns = type.fields(followed: .toReferrers)
                guard !columns.isEmpty else { continue }
                let conditions = columns.map { field in
                    let column = "\"\(type.table)\".\"\(field.column)\""
                    return field.type.isList
                        ? "EXISTS (SELECT 1 FROM \(StoredText.elementsSQL(of: column)) AS element WHERE element.value IN (SELECT value FROM named))"
                        : "\(column) IN (SELECT value FROM named)"
                }
                let sql = """
                    WITH named AS MATERIALIZED (SELECT value FROM json_each(?))
                    SELECT _key FROM "\(type.table)" WHERE \(conditions.joined(separator: " OR "))
                    """
                let keys = try DatabaseValue.fetchAll(db, sql: sql, arguments: [list])
                for key in keys {
                    if let name = RecordKey.fromDatabaseValue(key)?.name { try take(name, type: type) }
                }
            }
        }
        return order
    }

    /// Adds a record and the records that it refers to, however their names are spelled. Returns whether the record exists.
    @discardableResult
    private mutating func take(_ name: String, type: StoredType) throws -> Bool {
        var open = [(name, type)]
        var isThere = false
        while let (name, type) = open.popLast() {
            guard found[RecordName(type: type.name, name: name)] == nil else {
                isThere = true
                continue
            }
            let columns = type.fields(followed: .toTargets)
            let list = columns.map { ", \"\($0.column)\"" }.joined()
            let statement = try db.cachedStatement(
                sql: "SELECT _zone, _key\(list) FROM \"\(type.table)\" WHERE \(RecordKey.condition(in: type.table))")
            let keys = RecordKey.all(name: name)
            guard let row = try Row.fetchOne(statement, arguments: [keys[0], keys[keys.count - 1]]) else { continue }
            isThere = true
            // The name as it is stored.
            let record = RecordName(type: type.name, name: RecordKey.fromDatabaseValue(row[1])?.name ?? name)
            guard found[record] == nil else { continue }
            let number: Int64 = try row.stored("_zone", of: type.table)
            guard let zone = zones[number] else { throw StoreError.noZone(number, of: record) }
            let placed = PlacedRecord(record: record, zone: zone)
            found[record] = placed
            order.append(placed)
            frontier.insert(record.name)
            for (index, field) in columns.enumerated() {
                guard let text = String.fromDatabaseValue(row[index + 2]) else { continue }
                var targets = [text]
                if field.type.isList {
                    guard let elements = StoredText.elements(of: text, .string) else { throw StoreError.damaged(record) }
                    targets = elements.compactMap { if case .string(let name) = $0 { name } else { nil } }
                }
                for target in targets {
                    for other in types where found[RecordName(type: other.name, name: target)] == nil {
                        open.append((target, other))
                    }
                }
            }
        }
        return isThere
    }
}
