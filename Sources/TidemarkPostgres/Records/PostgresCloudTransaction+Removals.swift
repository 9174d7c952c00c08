import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// Removals that take more than one transaction.
extension PostgresCloudTransaction {
    static let removalColumns = "id, zone, kind, target, change, account"

    private static func removal(_ row: PostgresRow, of owner: String) throws(PostgresError) -> StoredRemoval {
        StoredRemoval(
            id: try row.value(0), zone: .init(owner: owner, number: try row.value(1)),
            kind: .init(rawValue: Int(try row.value(2, as: Int64.self))) ?? .dependents, target: try row.text(3),
            change: try row.value(4), user: try row.text(5))
    }

    func add(_ removal: StoredRemoval) throws(CloudError) {
        try run {
            let sql = """
                INSERT INTO tidemark_removals (container, owner, zone, kind, target, change, account)
                VALUES ($1, $2, $3, $4, $5, $6, $7)
                """
            try db.enqueue(
                sql, container, key(writing: removal.zone.owner), removal.zone.number, Int64(removal.kind.rawValue),
                removal.target.key, removal.change, removal.user.key)
        }
    }

    func nextRemoval(of owner: String) throws(CloudError) -> StoredRemoval? {
        try run {
            let sql = """
                SELECT \(Self.removalColumns) FROM tidemark_removals WHERE container = $1 AND owner = $2 ORDER BY id LIMIT 1
                """
            return try db.query(sql, container, owner.key).first.map { try Self.removal($0, of: owner) }
        }
    }

    func ownerOfNextRemoval() throws(CloudError) -> String? {
        try run {
            let sql = "SELECT owner FROM tidemark_removals WHERE container = $1 ORDER BY id LIMIT 1"
            return try db.query(sql, container).first?.text(0)
        }
    }

    func removals(in zone: StoredZone.ID) throws(CloudError) -> [StoredRemoval] {
        try run {
            try db.query(command(removalsIn: zone)).map { try Self.removal($0, of: zone.owner) }
        }
    }

    func endRemoval(_ removal: StoredRemoval) throws(CloudError) {
        try run {
            try db.enqueue(
                "DELETE FROM tidemark_removals WHERE container = $1 AND owner = $2 AND id = $3", container,
                key(writing: removal.zone.owner), removal.id)
        }
    }

    func dependents(
        of names: [String], in zone: StoredZone.ID, before change: Int64, limit: Int
    ) throws(CloudError) -> [String] {
        try run {
            let sql = """
                SELECT c.name FROM unnest($4) WITH ORDINALITY AS p (name, place) CROSS JOIN LATERAL (
                    SELECT o.name FROM (SELECT d.name FROM tidemark_dependencies d
                        WHERE d.container = $1 AND d.owner = $2 AND d.zone = $3 AND d.target = p.name
                            AND d.\(PostgresCloudTables.hasTarget)
                        ORDER BY d.name OFFSET 0) o
                    CROSS JOIN LATERAL (SELECT r.is_deleted, coalesce(r.damaged, r.changed) AS changed FROM tidemark_records r
                        WHERE r.container = $1 AND r.owner = $2 AND r.zone = $3 AND r.name = o.name OFFSET 0) x
                    WHERE NOT x.is_deleted AND x.changed < $5
                    ORDER BY o.name LIMIT $6) c
                ORDER BY p.place, c.name LIMIT $6
                """
            return try db.query(sql, container, zone.owner.key, zone.number, names.map(\.key), change, Int64(limit))
                .map { try $0.text(0) }
        }
    }

    func removeRecords(
        in zone: StoredZone.ID, limit: Int
    ) throws(CloudError) -> (count: Int, bytes: Int64, assets: Set<String>) {
        try run {
            let owner = try key(writing: zone.owner)
            let sql = """
                SELECT r.name, (\(Self.recordSize))::int8 FROM tidemark_records r
                WHERE r.container = $1 AND r.owner = $2 AND r.zone = $3 AND r.\(PostgresCloudTables.hasChange)
                ORDER BY r.changed LIMIT $4
                """
            let rows = try db.query(sql, container, owner, zone.number, Int64(limit))
            guard !rows.isEmpty else { return (0, 0, []) }
            let names: [Data] = try rows.map { try $0.value(0) }
            let bytes = try rows.reduce(0 as Int64) { try $0 + $1.value(1) }
            let named = try db.query(
                Self.assetsNamed, container, owner, zone.number, names)
            try unlink(names, in: zone, owner)
            try db.enqueue(Self.deletion(byNameIn: "tidemark_records"), container, owner, zone.number, names)
            return (names.count, bytes, Set(try named.map { try $0.text(0) }))
        }
    }

    /// As ``StoredCloudRecord/size``.
    static let recordSize =
        "\(StoredCloudRecord.overhead) + length(r.name) + length(r.type) + coalesce(length(r.parent), 0) + length(r.fields)"
}
