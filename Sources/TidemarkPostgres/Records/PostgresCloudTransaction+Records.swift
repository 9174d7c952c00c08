import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// Records, and the values under which they are found.
extension PostgresCloudTransaction {
    /// The columns that ``StoredCloudRecord/init(_:_:from:)`` reads, of a table that is called `r`.
    static let recordColumns = """
        r.zone, r.name, r.type, r.fields, r.parent, r.changed, r.created, r.created_by, r.modified, r.modified_by, r.is_deleted, \
        r.digest, r.damaged, r.id
        """

    func records(_ names: [String], in zone: StoredZone.ID) throws(CloudError) -> [String: StoredCloudRecord] {
        try run {
            guard !names.isEmpty else { return [:] }
            if let found = try state.together?.records(names, in: zone) { return found }
            let isShared = isShared(zone.owner)
            var keys = Self.keys(of: names)
            // Transactions lock records in one order, so that they don't wait for each other.
            if isShared { keys.sort { $0.lexicographicallyPrecedes($1) } }
            let rows = try db.query(command(records: keys, in: zone, isShared ? "FOR UPDATE OF r" : "OFFSET 0"))
            if written != nil { state.absent.formUnion(keys.map { RecordKey(zone: zone, name: $0) }) }
            var found: [String: StoredCloudRecord] = [:]
            found.reserveCapacity(rows.count)
            for row in rows {
                let record = try StoredCloudRecord(row, zone.owner)
                if written != nil { state.absent.remove(RecordKey(zone: zone, name: try row.value(1))) }
                found[record.name] = record
            }
            return found
        }
    }

    func records(in zone: StoredZone.ID, after change: Int64, limit: Int) throws(CloudError) -> [StoredCloudRecord] {
        try run {
            let sql = """
                SELECT \(Self.recordColumns) FROM tidemark_records r
                WHERE r.container = $1 AND r.owner = $2 AND r.zone = $3 AND r.changed > $4 AND r.\(PostgresCloudTables.hasChange)
                ORDER BY r.changed LIMIT $5
                """
            return try db.query(sql, container, zone.owner.key, zone.number, change, Int64(limit))
                .map { try StoredCloudRecord($0, zone.owner) }
        }
    }

    // Saving

    func save(_ records: [StoredCloudRecord]) throws(CloudError) {
        try run {
            // Damaged records are not written: a new digest would hide the damage.
            var rows: [RecordKey: (place: Int, record: StoredCloudRecord)] = [:]
            for (place, record) in records.enumerated() where record.damage == nil {
                rows[RecordKey(zone: record.zone, name: record.name.key)] = (place, record)
            }
            for (zone, rows) in Dictionary(grouping: rows, by: \.key.zone) {
                let key = try key(writing: zone.owner)
                let sorted = rows.sorted { $0.value.place < $1.value.place }
                let (new, known) = (
                    sorted.filter { state.absent.contains($0.key) }.map(\.value.record),
                    sorted.filter { !state.absent.contains($0.key) }.map(\.value.record)
                )
                state.absent.subtract(rows.map(\.key))
                // Transactions lock records in one order, so that they don't wait for each other.
                if isShared(zone.owner) {
                    try insert(new.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }, in: zone, key, isNew: true)
                } else {
                    try insert(new, in: zone, key, isNew: true)
                }
                try insert(known, in: zone, key, isNew: false)
                if !known.isEmpty { try unlink(known.map(\.name.key), in: zone, key) }
                try link(sorted.map(\.value.record), in: zone, key)
            }
        }
    }

    /// Writes rows of records of one zone.
    ///
    /// - Parameter isNew: Whether the rows were looked for, and are missing.
    private func insert(_ records: [StoredCloudRecord], in zone: StoredZone.ID, _ owner: Data, isNew: Bool) throws {
        guard !records.isEmpty else { return }
        let isShared = isShared(zone.owner)
        var conflict = ""
        if !isNew {
            conflict = """
                ON CONFLICT (container, owner, zone, name) DO UPDATE SET type = excluded.type, fields = excluded.fields,
                    parent = excluded.parent, changed = excluded.changed, created = excluded.created,
                    created_by = excluded.created_by, modified = excluded.modified, modified_by = excluded.modified_by,
                    is_deleted = excluded.is_deleted, digest = excluded.digest, damaged = NULL
                """
            // The number was given out before the record was locked. Another transaction may have given the record a higher one.
            if isShared { conflict += " WHERE t.changed < excluded.changed" }
        }
        let sql = """
            INSERT INTO tidemark_records AS t (container, owner, zone, name, type, fields, parent, changed, created, created_by,
                modified, modified_by, is_deleted, digest)
            SELECT $1, $2, $3, v.* FROM unnest($4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) AS v
            \(conflict)
            """
        let command = PostgresCommand(
            sql,
            [
                container, owner, zone.number, records.map(\.name.key), records.map(\.type.key), records.map(\.fields),
                records.map { $0.parent?.key }, records.map(\.changed), records.map(\.created.time),
                records.map(\.created.userRecordName.key), records.map(\.modified.time),
                records.map(\.modified.userRecordName.key), records.map(\.isDeleted), records.map(\.rowDigest),
            ])
        guard isShared else { return try db.enqueue(command) }
        guard try db.run([command])[0].affected == records.count else {
            throw db.restart("another server has changed a record of the public database meanwhile")
        }
    }

    /// Removes the rows by which records are found: dependencies, values of indexes, and names of assets.
    func unlink(_ names: [Data], in zone: StoredZone.ID, _ owner: Data) throws {
        let hasName = "AND r.\(PostgresCloudTables.hasName) OFFSET 0"
        for (table, end) in [("tidemark_dependencies", hasName), ("tidemark_found", "OFFSET 0"), ("tidemark_named", hasName)] {
            try db.enqueue(Self.deletion(byNameIn: table, end), container, owner, zone.number, names)
        }
    }

    /// Adds the rows by which records are found: dependencies, values of indexes, and names of assets.
    private func link(_ records: [StoredCloudRecord], in zone: StoredZone.ID, _ owner: Data) throws {
        func insert(_ column: String, into table: String, _ values: (StoredCloudRecord) -> Set<String>) throws {
            var (names, keys): ([Data], [Data]) = ([], [])
            for record in records {
                for value in values(record) {
                    names.append(record.name.key)
                    keys.append(value.key)
                }
            }
            guard !names.isEmpty else { return }
            let sql = """
                INSERT INTO \(table) (container, owner, zone, name, \(column)) SELECT $1, $2, $3, v.* FROM unnest($4, $5) AS v
                """
            try db.enqueue(sql, container, owner, zone.number, names, keys)
        }
        try insert("target", into: "tidemark_dependencies", \.dependsOn)
        try insert("digest", into: "tidemark_named", \.assets)
        var found = FoundValues()
        for record in records { found.add(record.indexed, of: record.name.key) }
        try add(found, in: zone.number, owner)
    }

    /// Values under which records are found, by columns.
    private struct FoundValues {
        var names: [Data] = []
        var indexes: [Int64] = []
        var ordinals: [Int64] = []
        var values: [Data] = []
        var latitudes: [Double?] = []
        var longitudes: [Double?] = []

        mutating func add(_ indexed: [Int64: [IndexValue]], of name: Data) {
            for (index, content) in indexed {
                for (ordinal, value) in content.enumerated() {
                    names.append(name)
                    indexes.append(index)
                    ordinals.append(Int64(ordinal))
                    values.append(value.sortableBytes)
                    let place = value.place
                    latitudes.append(place?.latitude)
                    longitudes.append(place?.longitude)
                }
            }
        }
    }

    private func add(_ found: FoundValues, in zone: Int64, _ owner: Data) throws {
        guard !found.names.isEmpty else { return }
        let sql = """
            INSERT INTO tidemark_found (container, owner, zone, name, idx, ordinal, value, latitude, longitude)
            SELECT $1, $2, $3, v.* FROM unnest($4, $5, $6, $7, $8, $9) AS v
            """
        try db.enqueue(
            sql, container, owner, zone, found.names, found.indexes, found.ordinals, found.values, found.latitudes,
            found.longitudes)
    }

    // Hierarchies

    func parent(of name: String, in zone: StoredZone.ID) throws(CloudError) -> String? {
        try run {
            let lock = isShared(zone.owner) ? "FOR SHARE" : ""
            let sql = """
                SELECT parent FROM tidemark_records WHERE container = $1 AND owner = $2 AND zone = $3 AND name = $4 \(lock)
                """
            return try db.query(sql, container, zone.owner.key, zone.number, name.key).first?.optionalText(0)
        }
    }

    func children(of names: [String], in zone: StoredZone.ID, limit: Int) throws(CloudError) -> [StoredChild] {
        try run {
            let sql = """
                SELECT c.name, c.type, c.changed FROM unnest($4) WITH ORDINALITY AS p (name, place) CROSS JOIN LATERAL (
                    SELECT r.name, r.type, r.changed, r.id FROM tidemark_records r
                    WHERE r.container = $1 AND r.owner = $2 AND r.zone = $3 AND r.parent = p.name AND NOT r.is_deleted
                    ORDER BY r.id LIMIT $5) c
                ORDER BY p.place, c.id LIMIT $5
                """
            return try db.query(sql, container, zone.owner.key, zone.number, names.map(\.key), Int64(limit)).map {
                StoredChild(name: try $0.text(0), type: try $0.text(1), changed: try $0.value(2))
            }
        }
    }

    func hasChildren(in zone: StoredZone.ID) throws(CloudError) -> Bool {
        try run {
            let sql = """
                SELECT EXISTS (SELECT FROM tidemark_records
                    WHERE container = $1 AND owner = $2 AND zone = $3 AND parent IS NOT NULL)
                """
            return try db.query(sql, container, zone.owner.key, zone.number)[0].value(0)
        }
    }

    // All records of a type

    /// How many records a page has.
    private static let pageSize: Int64 = 500

    /// Calls a body with each page of the container's records, of all owners.
    ///
    /// - Parameter condition: SQL that may use `$6`.
    func forEachPage(
        of columns: String, where condition: String = "$6 IS NOT NULL", _ parameter: Data = Data(),
        _ body: (PostgresRows) throws -> Void
    ) throws {
        let sql = """
            SELECT r.owner, r.zone, r.name, \(columns) FROM tidemark_records r
            WHERE r.container = $1 AND (r.owner, r.zone, r.name) > ($2, $3, $4) AND \(condition)
            ORDER BY r.owner, r.zone, r.name LIMIT $5
            """
        var place: (owner: Data, zone: Int64, name: Data) = (Data(), .min, Data())
        while true {
            let rows = try db.query(sql, container, place.owner, place.zone, place.name, Self.pageSize, parameter)
            try body(rows)
            guard rows.count == Self.pageSize, let last = rows.last else { return }
            place = (try last.value(0), try last.value(1), try last.value(2))
        }
    }

    private static let isOfType = "r.type = $6 AND NOT r.is_deleted"

    func reindex(
        _ type: String, _ indexed: (String, Data) throws(CloudError) -> [Int64: [IndexValue]]
    ) throws(CloudError) {
        try run {
            try checkWritesAll()
            try forEachPage(of: "r.fields", where: Self.isOfType, type.key) { rows in
                struct Place: Hashable {
                    let owner: Data
                    let zone: Int64
                }
                var (found, names): ([Place: FoundValues], [Place: [Data]]) = ([:], [:])
                for row in rows {
                    // A damaged record is not found by its values.
                    guard let values = try? indexed(try row.text(2), try row.value(3)) else { continue }
                    let place = Place(owner: try row.value(0), zone: try row.value(1))
                    let name: Data = try row.value(2)
                    names[place, default: []].append(name)
                    found[place, default: FoundValues()].add(values, of: name)
                }
                for (place, names) in names {
                    try db.enqueue(
                        Self.deletion(byNameIn: "tidemark_found"), container, place.owner, place.zone, names)
                    try add(found[place] ?? FoundValues(), in: place.zone, place.owner)
                }
            }
        }
    }

    func countRecords(
        of type: String, where isCounted: (Data) throws(CloudError) -> Bool
    ) throws(CloudError) -> Int {
        try run {
            var count = 0
            try forEachPage(of: "r.fields", where: Self.isOfType, type.key) { rows in
                for row in rows where try isCounted(try row.value(3)) { count += 1 }
            }
            return count
        }
    }
}
