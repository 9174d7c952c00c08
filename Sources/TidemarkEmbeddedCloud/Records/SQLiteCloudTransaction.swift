import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// The rows of a ``SQLiteCloudStorage``.
struct SQLiteCloudTransaction: CloudTransaction {
    let db: Database
    let schemas: CloudSchemaCache
    /// 8 random bytes of the storage that has the database open.
    let writer: Data

    func run<Result>(_ body: () throws -> Result) throws(CloudError) -> Result {
        do {
            return try body()
        } catch {
            throw CloudError(storage: error)
        }
    }

    func statement(_ sql: String) throws -> Statement { try db.cachedStatement(sql: sql) }

    func lastChange() throws(CloudError) -> Int64 {
        try run { try Int64.fetchOne(statement("SELECT value FROM counters WHERE name = 'change'")) ?? 0 }
    }

    func setLastChange(_ number: Int64) throws(CloudError) {
        try run {
            try noteWriter(upTo: number)
            try statement("INSERT OR REPLACE INTO counters (name, value) VALUES ('change', ?)").execute(arguments: [number])
        }
    }

    // Zones

    func zone(_ place: StoredZone.Place) throws(CloudError) -> StoredZone? {
        try run {
            let select = try statement("SELECT * FROM zones WHERE scope = ? AND owner = ? AND name = ?")
            return try select.withRow([place.scope.rawValue, place.owner, place.name]) {
                try StoredZone(checked: $0, of: select)
            }
        }
    }

    func zone(id: Int64) throws(CloudError) -> StoredZone? {
        try run {
            let select = try statement("SELECT * FROM zones WHERE id = ?")
            return try select.withRow([id]) { try StoredZone(checked: $0, of: select) }
        }
    }

    func lastChange(_ scope: DatabaseScope, owner: String) throws(CloudError) -> Int64 {
        try run {
            try Int64.fetchOne(
                statement("SELECT max(changed) FROM zones WHERE scope = ? AND owner = ?"), arguments: [scope.rawValue, owner])
                ?? 0
        }
    }

    func zones(
        _ scope: DatabaseScope, owner: String, after change: Int64, limit: Int
    ) throws(CloudError) -> [StoredZone] {
        try run {
            try Row.fetchAll(
                statement("SELECT * FROM zones WHERE scope = ? AND owner = ? AND changed > ? ORDER BY changed LIMIT ?"),
                arguments: [scope.rawValue, owner, change, limit]
            ).map { StoredZone($0) }
        }
    }

    func save(_ zone: StoredZone) throws(CloudError) -> StoredZone {
        try run {
            let sql = """
                INSERT INTO zones (scope, owner, name, state, made, changed, sharing, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (scope, owner, name) DO UPDATE SET state = excluded.state, made = excluded.made, changed = excluded.changed,
                sharing = excluded.sharing, digest = excluded.digest RETURNING id
                """
            var saved = zone
            saved.id =
                try Int64.fetchOne(
                    statement(sql),
                    arguments: [
                        zone.place.scope.rawValue, zone.place.owner, zone.place.name, zone.state.rawValue, zone.made,
                        zone.changed, zone.sharing.rawValue, zone.rowDigest,
                    ]) ?? 0
            return saved
        }
    }

    // Records

    func records(_ names: [String], in zone: Int64) throws(CloudError) -> [String: StoredCloudRecord] {
        try run {
            let select = try statement("SELECT * FROM records WHERE zone = ? AND name = ?")
            var found: [String: StoredCloudRecord] = [:]
            found.reserveCapacity(names.count)
            for name in names {
                // Two spellings of a name are one key: the one that is not there takes nothing from the other.
                guard let record = try select.withRow([zone, name], { StoredCloudRecord($0, of: select) }) else { continue }
                found[name] = record
            }
            return found
        }
    }

    func save(_ records: [StoredCloudRecord]) throws(CloudError) {
        try run {
            let insert = try statement(
                """
                INSERT INTO records (zone, name, type, fields, parent, changed, created, created_by, modified, modified_by, is_deleted,
                digest) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT (zone, name) DO NOTHING
                """)
            let update = try statement(
                """
                UPDATE records SET type = ?3, fields = ?4, parent = ?5, changed = ?6, created = ?7, created_by = ?8, modified = ?9,
                modified_by = ?10, is_deleted = ?11, digest = ?12, damaged = NULL WHERE zone = ?1 AND name = ?2 RETURNING id
                """)
            // What is damaged stays as it is: it would get a digest by which nobody could tell.
            for record in records where record.damage == nil {
                let values: StatementArguments = [
                    record.zone, record.name, record.type, record.fields, record.parent, record.changed, record.created.time,
                    record.created.userRecordName, record.modified.time, record.modified.userRecordName, record.isDeleted,
                    record.rowDigest,
                ]
                try insert.execute(arguments: values)
                if db.changesCount > 0 {
                    try link(record, id: db.lastInsertedRowID)
                } else if let id = try Int64.fetchOne(update, arguments: values) {
                    try unlink(id)
                    try link(record, id: id)
                }
            }
        }
    }

    /// Forgets under what a record was found.
    func unlink(_ id: Int64) throws {
        for table in ["dependencies", "found", "named"] {
            try statement("DELETE FROM \(table) WHERE record = ?").execute(arguments: [id])
        }
    }

    /// Notes under what a record is found.
    private func link(_ record: StoredCloudRecord, id: Int64) throws {
        for target in record.dependsOn {
            try statement("INSERT INTO dependencies (zone, target, record) VALUES (?, ?, ?)")
                .execute(arguments: [record.zone, target, id])
        }
        for digest in record.assets {
            try statement("INSERT INTO named (digest, zone, record) VALUES (?, ?, ?)").execute(arguments: [
                digest, record.zone, id,
            ])
        }
        try note(record.indexed, id: id, in: record.zone)
    }

    private func note(_ indexed: [Int64: [IndexValue]], id: Int64, in zone: Int64) throws {
        for (index, values) in indexed {
            for (ordinal, value) in values.enumerated() {
                try statement("INSERT INTO found (zone, idx, value, record, ordinal) VALUES (?, ?, ?, ?, ?)")
                    .execute(arguments: [zone, index, value.databaseValue, id, ordinal])
            }
        }
    }

    func reindex(_ type: String, _ indexed: (Data) throws(CloudError) -> [Int64: [IndexValue]]) throws(CloudError) {
        try run {
            let rows = try Row.fetchCursor(
                statement("SELECT id, fields, zone FROM records WHERE type = ? AND is_deleted = 0"), arguments: [type])
            while let row = try rows.next() {
                // What is damaged is not found by what it says.
                guard let id: Int64 = row[0], let fields: Data = row[1], let values = try? indexed(fields) else { continue }
                try statement("DELETE FROM found WHERE record = ?").execute(arguments: [id])
                try note(values, id: id, in: row[2])
            }
        }
    }

    func records(in zone: Int64, after change: Int64, limit: Int) throws(CloudError) -> [StoredCloudRecord] {
        try run {
            // A cursor's row is read where it lies; one that is kept is copied first.
            let select = try statement("SELECT * FROM records WHERE zone = ? AND changed > ? ORDER BY changed LIMIT ?")
            let rows = try Row.fetchCursor(select, arguments: [zone, change, limit])
            var records: [StoredCloudRecord] = []
            while let row = try rows.next() { records.append(StoredCloudRecord(row, of: select)) }
            return records
        }
    }

    func parent(of name: String, in zone: Int64) throws(CloudError) -> String? {
        try run {
            try String.fetchOne(statement("SELECT parent FROM records WHERE zone = ? AND name = ?"), arguments: [zone, name])
        }
    }

    func children(of names: [String], in zone: Int64, limit: Int) throws(CloudError) -> [StoredChild] {
        try run {
            let select = try statement(
                "SELECT name, type, changed FROM records WHERE zone = ? AND parent = ? AND is_deleted = 0 ORDER BY id LIMIT ?")
            var found: [StoredChild] = []
            for name in names where found.count < limit {
                found += try Row.fetchAll(select, arguments: [zone, name, limit - found.count]).map {
                    StoredChild(name: $0[0], type: $0[1], changed: $0[2])
                }
            }
            return found
        }
    }

    func hasChildren(in zone: Int64) throws(CloudError) -> Bool {
        try run {
            let sql = "SELECT EXISTS (SELECT 1 FROM records WHERE zone = ? AND parent IS NOT NULL)"
            return try Bool.fetchOne(statement(sql), arguments: [zone]) ?? false
        }
    }

    func find(
        _ query: IndexQuery, in zone: Int64, limit: Int, within budget: QueryBudget
    ) throws(CloudError) -> FoundRecords {
        try run {
            var builder = QueryBuilder(isFrequent: try isFrequent(query.type, in: zone))
            let sql = builder.sql(query, zone: zone, limit: limit)
            // Each query is another text: those that are kept for the next time would never end.
            let select = try db.makeStatement(sql: sql)
            var found = FoundRecords()
            let began = QueryBudget.processorTime()
            let isWhole: Bool? = try budget.limit(db) {
                let rows = try Row.fetchCursor(select, arguments: builder.arguments)
                while let row = try rows.next() {
                    let keys = query.order.indices.map { IndexValue(row[StoredCloudRecord.columnCount + $0] as DatabaseValue) }
                    found.rows.append((StoredCloudRecord(row, of: select), keys))
                }
                return true
            }
            found.isCut = isWhole == nil
            found.steps = QueryBudget.steps(of: select)
            found.seconds = QueryBudget.processorTime() - began
            return found
        }
    }

    /// Whether a zone has so many records of a type that they are rather met on the way through all names than sorted.
    private func isFrequent(_ type: String, in zone: Int64) throws -> Bool {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM records WHERE zone = ? AND type = ? AND is_deleted = 0 LIMIT 5000)"
        return try Int.fetchOne(statement(sql), arguments: [zone, type]) == 5000
    }

    // Assets

    func assets(_ digests: Set<String>, owner: String) throws(CloudError) -> [String: Int64] {
        try run {
            let select = try statement("SELECT size FROM assets WHERE owner = ? AND digest = ?")
            var found: [String: Int64] = [:]
            for digest in digests { found[digest] = try Int64.fetchOne(select, arguments: [owner, digest]) }
            return found
        }
    }

    func assetsNamed(by records: [String], in zone: Int64) throws(CloudError) -> Set<String> {
        try run {
            let sql = "SELECT n.digest FROM records r JOIN named n ON n.record = r.id WHERE r.zone = ? AND r.name = ?"
            return try records.reduce(into: []) { found, name in
                try found.formUnion(String.fetchSet(statement(sql), arguments: [zone, name]))
            }
        }
    }

    func addAsset(_ asset: CloudAsset, owner: String, payer: String) throws(CloudError) {
        try run {
            try statement("INSERT OR IGNORE INTO assets (owner, digest, size, payer) VALUES (?, ?, ?, ?)")
                .execute(arguments: [owner, asset.digest, asset.size, payer])
        }
    }

    // Requests

    func answer(to token: String, of user: String) throws(CloudError) -> Data? {
        try run {
            try Data.fetchOne(statement("SELECT answer FROM answers WHERE user = ? AND token = ?"), arguments: [user, token])
        }
    }

    func keep(_ answer: Data, to token: String, of user: String, at time: Int64) throws(CloudError) {
        try run {
            try statement("INSERT OR REPLACE INTO answers (user, token, time, answer) VALUES (?, ?, ?, ?)")
                .execute(arguments: [user, token, time, answer])
        }
    }

    /// Metres between two places of a "latitude longitude" text and two numbers, on a sphere.
    static let distance = DatabaseFunction("cloud_distance", argumentCount: 3, pure: true) { values in
        guard let text = String.fromDatabaseValue(values[0]), let latitude = Double.fromDatabaseValue(values[1]),
            let longitude = Double.fromDatabaseValue(values[2])
        else { return nil }
        let parts = text.split(separator: " ").compactMap { Double($0) }
        guard parts.count == 2 else { return nil }
        let radians = Double.pi / 180
        let (one, other) = (parts[0] * radians, latitude * radians)
        let (north, east) = (sin((other - one) / 2), sin((longitude - parts[1]) * radians / 2))
        return 2 * 6_371_008.8 * asin(min(1, (north * north + cos(one) * cos(other) * east * east).squareRoot()))
    }
}

extension StoredCloudRecord {
    /// The columns that ``init(_:)`` reads.
    fileprivate static let columnCount = 14
}

extension IndexValue {
    fileprivate init?(_ value: DatabaseValue) {
        switch value.storage {
        case .null: return nil
        case .int64(let number): self = .integer(number)
        case .double(let number): self = .real(number)
        case .string(let text): self = .text(text)
        case .blob(let data): self = .bytes(data)
        }
    }

    var databaseValue: DatabaseValue {
        switch self {
        case .integer(let number): number.databaseValue
        case .real(let number): number.databaseValue
        case .text(let text): text.databaseValue
        case .bytes(let data): data.databaseValue
        }
    }
}
