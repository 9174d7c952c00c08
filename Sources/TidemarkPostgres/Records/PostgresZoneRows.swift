import Foundation
import TidemarkCloud
import TidemarkCloudEngine

/// The rows of a zone and of some of its records, as one statement has read them.
struct PostgresZoneRows: Sendable {
    /// A zone whose records are looked up together.
    struct Group: Hashable, Sendable {
        let owner, name: String
    }

    let place: StoredZone.Place
    /// A row for each record that was found, also for other requests, with the zone; the zone alone if no record was found.
    let rows: PostgresRows
    /// The names that were looked up for the request.
    let names: Set<Data>

    /// Makes the look-up of records by their names, and of their zone by its name.
    static func lookUp(_ database: PostgresDatabase, container: Int64) -> PostgresLookUp<Group, Data, PostgresRows> {
        PostgresLookUp(database, keysMost: 200) { zone, names in
            PostgresCommand(sql, [container, zone.owner.key, zone.name.key, names])
        } found: { rows in
            rows
        }
    }

    /// Each record is looked up by itself, as ``PostgresCloudTransaction/byName(_:in:_:)`` says.
    private static let sql = """
        SELECT z.number, z.scope, z.owner, z.name, z.state, z.made, z.changed, z.sharing, z.digest, x.*
        FROM tidemark_zones z LEFT JOIN LATERAL (
            SELECT y.* FROM unnest($4) AS n (name) CROSS JOIN LATERAL (
                SELECT \(PostgresCloudTransaction.recordColumns) FROM tidemark_records r
                WHERE r.container = $1 AND r.owner = $2 AND r.zone = z.number AND r.name = n.name OFFSET 0) y) x ON true
        WHERE z.container = $1 AND z.owner = $2 AND z.name = $3
        """
    private static let zoneColumnCount = 9

    /// - Throws: `CloudError` `recordDamaged`.
    func zone() throws -> StoredZone? { try rows.first.map { try StoredZone(checked: $0) } }

    /// Returns records by their names; `nil` where others were looked up.
    func records(_ names: [String], in zone: StoredZone.ID) throws(PostgresError) -> [String: StoredCloudRecord]? {
        let wanted = Set(names.map(\.key))
        guard wanted.isSubset(of: self.names), zone.owner == place.owner, let first = rows.first,
            try first.value(0) == zone.number
        else { return nil }
        var found: [String: StoredCloudRecord] = [:]
        for row in rows {
            guard let name = try row.value(Self.zoneColumnCount + 1, as: Data?.self), wanted.contains(name) else { continue }
            let record = try StoredCloudRecord(row, zone.owner, from: Self.zoneColumnCount)
            found[record.name] = record
        }
        return found
    }
}
