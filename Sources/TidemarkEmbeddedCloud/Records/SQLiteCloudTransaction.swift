import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// The rows of a ``SQLiteCloudStorage`` in a transaction.
///
/// The owner comes first in each table, and in each statement of a request. It is a number, which ``OwnerNumbers`` finds by the
/// owner's name.
struct SQLiteCloudTransaction: CloudTransaction {
    let db: Database
    let context: SQLiteCloudContext
    let owners: OwnerNumbers
    /// The owners whose rows it may change.
    let written: WrittenOwners

    init(_ db: Database, _ context: SQLiteCloudContext, writing written: WrittenOwners = []) {
        (self.db, self.context, self.written) = (db, context, written)
        owners = OwnerNumbers(context.owners)
    }

    func run<Result>(_ body: () throws -> Result) throws(CloudError) -> Result {
        do {
            return try body()
        } catch {
            throw CloudError(storage: db.readError(error, of: context.path), of: context.path)
        }
    }

    func statement(_ sql: String) throws -> Statement {
        context.observe?(sql)
        return try db.cachedStatement(sql: sql)
    }

    func lastChange(of owner: String) throws(CloudError) -> Int64 {
        try run {
            let sql =
                owner.isEmpty
                ? "SELECT max((SELECT max(r.changed) FROM records r WHERE r.owner = z.owner AND r.zone = z.id)) FROM zones z WHERE z.owner = ?"
                : "SELECT change FROM owners WHERE number = ?"
            return try max(firstChange(), Int64.fetchOne(statement(sql), arguments: [number(of: owner)]) ?? 0)
        }
    }

    /// Returns the number after which each owner counts its changes since the last incarnation began.
    func firstChange() throws -> Int64 {
        try max(context.commonChanges, Int64.fetchOne(statement("SELECT max(began) FROM incarnations")) ?? 0)
    }

    func setLastChange(_ number: Int64, of owner: String) throws(CloudError) {
        try run {
            let key = try self.number(writing: owner)
            let stored = try Int64.fetchOne(statement("SELECT change FROM owners WHERE number = ?"), arguments: [key]) ?? 0
            try noteLostTime(after: stored, of: key)
            try noteWriter(upTo: number, after: max(stored, firstChange()), of: key)
            try statement("UPDATE owners SET change = ? WHERE number = ?").execute(arguments: [number, key])
        }
    }

    // Zones

    func zone(_ place: StoredZone.Place) throws(CloudError) -> StoredZone? {
        try run {
            let select = try statement("SELECT * FROM zones WHERE owner = ? AND name = ?")
            return try select.withRow([number(of: place.owner), place.name]) {
                try StoredZone(checked: $0, of: select)
            }
        }
    }

    func zone(_ id: StoredZone.ID) throws(CloudError) -> StoredZone? {
        try run {
            let select = try statement("SELECT * FROM zones WHERE owner = ? AND id = ?")
            return try select.withRow([number(of: id.owner), id.number]) { try StoredZone(checked: $0, of: select) }
        }
    }

    func newestChange(of owner: String) throws(CloudError) -> Int64 {
        try run {
            try Int64.fetchOne(statement("SELECT max(changed) FROM zones WHERE owner = ?"), arguments: [number(of: owner)]) ?? 0
        }
    }

    func zones(of owner: String, after change: Int64, limit: Int) throws(CloudError) -> [StoredZone] {
        try run {
            try Row.fetchAll(
                statement("SELECT * FROM zones WHERE owner = ? AND changed > ? ORDER BY changed LIMIT ?"),
                arguments: [number(of: owner), change, limit]
            ).map { StoredZone($0) }
        }
    }

    func save(_ zone: StoredZone) throws(CloudError) -> StoredZone {
        try run {
            let sql = """
                INSERT INTO zones (owner, scope, owner_name, name, state, made, changed, sharing, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (owner, name) DO UPDATE SET state = excluded.state, made = excluded.made, changed = excluded.changed,
                sharing = excluded.sharing, digest = excluded.digest RETURNING id
                """
            var saved = zone
            saved.number =
                try Int64.fetchOne(
                    statement(sql),
                    arguments: [
                        number(writing: zone.place.owner), zone.place.scope.rawValue, zone.place.owner, zone.place.name,
                        zone.state.rawValue, zone.made, zone.changed, zone.sharing.rawValue, zone.rowDigest,
                    ]) ?? 0
            return saved
        }
    }

    // Records

    func records(_ names: [String], in zone: StoredZone.ID) throws(CloudError) -> [String: StoredCloudRecord] {
        try run {
            let (select, owner) = (
                try statement("SELECT * FROM records WHERE owner = ? AND zone = ? AND name = ?"), try number(of: zone.owner)
            )
            var found: [String: StoredCloudRecord] = [:]
            found.reserveCapacity(names.count)
            for name in names {
                // Two spellings of a name are equal keys of a dictionary, so a missing spelling must not replace the other's
                // record.
                guard
                    let record = try select.withRow(
                        [owner, zone.number, name], { StoredCloudRecord($0, of: select, zone.owner) })
                else { continue }
                found[name] = record
            }
            return found
        }
    }

    func save(_ records: [StoredCloudRecord]) throws(CloudError) {
        try run {
            let insert = try statement(
                """
                INSERT INTO records (owner, zone, name, type, fields, parent, changed, created, created_by, modified, modified_by,
                is_deleted, digest) VALUES (?13, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
                ON CONFLICT (owner, zone, name) DO NOTHING
                """)
            let update = try statement(
                """
                UPDATE records SET type = ?3, fields = ?4, parent = ?5, changed = ?6, created = ?7, created_by = ?8, modified = ?9,
                modified_by = ?10, is_deleted = ?11, digest = ?12, damaged = NULL WHERE owner = ?13 AND zone = ?1 AND name = ?2
                RETURNING id
                """)
            // A damaged record stays as it is. Saving it would give it a digest that hides the damage.
            for record in records where record.damage == nil {
                let owner = try number(writing: record.zone.owner)
                let values: StatementArguments = [
                    record.zone.number, record.name, record.type, record.fields, record.parent, record.changed,
                    record.created.time,
                    record.created.userRecordName, record.modified.time, record.modified.userRecordName, record.isDeleted,
                    record.rowDigest, owner,
                ]
                try insert.execute(arguments: values)
                if db.changesCount > 0 {
                    try link(record, id: db.lastInsertedRowID, of: owner)
                } else if let id = try Int64.fetchOne(update, arguments: values) {
                    try unlink(id, of: owner)
                    try link(record, id: id, of: owner)
                }
            }
        }
    }

    /// Removes the rows by which a record is found.
    func unlink(_ id: Int64, of owner: Int64) throws {
        for table in ["dependencies", "found", "named"] {
            try statement("DELETE FROM \(table) WHERE owner = ? AND record = ?").execute(arguments: [owner, id])
        }
    }

    /// Adds the rows by which a record is found.
    private func link(_ record: StoredCloudRecord, id: Int64, of owner: Int64) throws {
        for target in record.dependsOn {
            try statement("INSERT INTO dependencies (owner, zone, target, record) VALUES (?, ?, ?, ?)")
                .execute(arguments: [owner, record.zone.number, target, id])
        }
        for digest in record.assets {
            try statement("INSERT INTO named (owner, zone, digest, record) VALUES (?, ?, ?, ?)")
                .execute(arguments: [owner, record.zone.number, digest, id])
        }
        try note(record.indexed, id: id, in: record.zone.number, of: owner)
    }

    private func note(_ indexed: [Int64: [IndexValue]], id: Int64, in zone: Int64, of owner: Int64) throws {
        for (index, values) in indexed {
            for (ordinal, value) in values.enumerated() {
                try statement("INSERT INTO found (owner, zone, idx, value, record, ordinal) VALUES (?, ?, ?, ?, ?, ?)")
                    .execute(arguments: [owner, zone, index, value.databaseValue, id, ordinal])
            }
        }
    }

    func reindex(
        _ type: String, _ indexed: (String, Data) throws(CloudError) -> [Int64: [IndexValue]]
    ) throws(CloudError) {
        try run {
            try checkWritesAll()
            let rows = try Row.fetchCursor(
                statement("SELECT id, fields, zone, owner, name FROM records WHERE type = ? AND is_deleted = 0"),
                arguments: [type])
            while let row = try rows.next() {
                // A damaged row is not indexed by its values.
                guard let id = Int64.fromDatabaseValue(row[0]), let fields = Data.fromDatabaseValue(row[1]),
                    let zone = Int64.fromDatabaseValue(row[2]), let owner = Int64.fromDatabaseValue(row[3]),
                    let name = String.fromDatabaseValue(row[4]), let values = try? indexed(name, fields)
                else { continue }
                try statement("DELETE FROM found WHERE owner = ? AND record = ?").execute(arguments: [owner, id])
                try note(values, id: id, in: zone, of: owner)
            }
        }
    }

    func records(in zone: StoredZone.ID, after change: Int64, limit: Int) throws(CloudError) -> [StoredCloudRecord] {
        try run {
            // The row of a cursor is read in place; a row that is kept is copied first.
            let select = try statement(
                "SELECT * FROM records WHERE owner = ? AND zone = ? AND changed > ? ORDER BY changed LIMIT ?")
            let rows = try Row.fetchCursor(select, arguments: [number(of: zone.owner), zone.number, change, limit])
            var records: [StoredCloudRecord] = []
            while let row = try rows.next() { records.append(StoredCloudRecord(row, of: select, zone.owner)) }
            return records
        }
    }

    func parent(of name: String, in zone: StoredZone.ID) throws(CloudError) -> String? {
        try run {
            try String.fetchOne(
                statement("SELECT parent FROM records WHERE owner = ? AND zone = ? AND name = ?"),
                arguments: [number(of: zone.owner), zone.number, name])
        }
    }

    func children(of names: [String], in zone: StoredZone.ID, limit: Int) throws(CloudError) -> [StoredChild] {
        try run {
            let select = try statement(
                """
                SELECT name, type, changed FROM records WHERE owner = ? AND zone = ? AND parent = ? AND is_deleted = 0
                ORDER BY id LIMIT ?
                """)
            let owner = try number(of: zone.owner)
            var found: [StoredChild] = []
            for name in names where found.count < limit {
                found += try Row.fetchAll(select, arguments: [owner, zone.number, name, limit - found.count]).map { row in
                    try StoredChild(
                        name: row.decode(atIndex: 0), type: row.decode(atIndex: 1), changed: row.decode(atIndex: 2))
                }
            }
            return found
        }
    }

    func hasChildren(in zone: StoredZone.ID) throws(CloudError) -> Bool {
        try run {
            let sql = "SELECT EXISTS (SELECT 1 FROM records WHERE owner = ? AND zone = ? AND parent IS NOT NULL)"
            return try Bool.fetchOne(statement(sql), arguments: [number(of: zone.owner), zone.number]) ?? false
        }
    }

    // Assets

    func assets(_ digests: Set<String>, owner: String) throws(CloudError) -> [String: Int64] {
        try run {
            let (select, key) = (
                try statement("SELECT size FROM assets WHERE owner = ? AND digest = ?"), try number(of: owner)
            )
            var found: [String: Int64] = [:]
            for digest in digests { found[digest] = try Int64.fetchOne(select, arguments: [key, digest]) }
            return found
        }
    }

    func assetsNamed(by records: [String], in zone: StoredZone.ID) throws(CloudError) -> Set<String> {
        try run {
            let sql = """
                SELECT n.digest FROM records r JOIN named n ON n.owner = r.owner AND n.record = r.id
                WHERE r.owner = ? AND r.zone = ? AND r.name = ?
                """
            let (select, owner) = (try statement(sql), try number(of: zone.owner))
            return try records.reduce(into: []) { found, name in
                try found.formUnion(String.fetchSet(select, arguments: [owner, zone.number, name]))
            }
        }
    }

    func addAsset(_ asset: CloudAsset, owner: String, payer: String) throws(CloudError) {
        try run {
            try statement("INSERT OR IGNORE INTO assets (owner, digest, size, payer) VALUES (?, ?, ?, ?)")
                .execute(arguments: [number(writing: owner), asset.digest, asset.size, payer])
        }
    }

    // Requests

    func answer(to token: String, of user: String) throws(CloudError) -> Data? {
        try run {
            try Data.fetchOne(
                statement("SELECT answer FROM answers WHERE owner = ? AND token = ?"), arguments: [number(of: user), token])
        }
    }

    func keep(_ answer: Data, to token: String, of user: String, at time: Int64) throws(CloudError) {
        try run {
            let sql = """
                INSERT OR REPLACE INTO answers (owner, token, time, answer)
                    VALUES (?1, ?2, max(?3, coalesce((SELECT max(time) + 1 FROM answers WHERE owner = ?1), 0)), ?4)
                """
            try statement(sql).execute(arguments: [number(writing: user), token, time, answer])
        }
    }

    /// Returns the metres on a sphere between a place in a "latitude longitude" text and a place in two numbers.
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
    static let columnCount = 15
}

extension IndexValue {
    init?(_ value: DatabaseValue) {
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
