import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// Removals that take more than one transaction.
extension SQLiteCloudTransaction {
    static let removalTables = """
        CREATE TABLE removals (owner INTEGER NOT NULL, id INTEGER PRIMARY KEY, zone INTEGER NOT NULL, kind INTEGER NOT NULL,
            target TEXT NOT NULL, change INTEGER NOT NULL, user TEXT NOT NULL) STRICT;
        CREATE INDEX removals_by_zone ON removals (owner, zone);

        """

    private static func removal(_ row: Row, of owner: String) throws -> StoredRemoval {
        try StoredRemoval(
            id: row.decode(forColumn: "id"), zone: .init(owner: owner, number: row.decode(forColumn: "zone")),
            kind: .init(rawValue: row.decode(forColumn: "kind")) ?? .dependents, target: row.decode(forColumn: "target"),
            change: row.decode(forColumn: "change"), user: row.decode(forColumn: "user"))
    }

    func add(_ removal: StoredRemoval) throws(CloudError) {
        try run {
            try statement("INSERT INTO removals (owner, zone, kind, target, change, user) VALUES (?, ?, ?, ?, ?, ?)").execute(
                arguments: [
                    number(writing: removal.zone.owner), removal.zone.number, removal.kind.rawValue, removal.target,
                    removal.change, removal.user,
                ])
        }
    }

    func nextRemoval(of owner: String) throws(CloudError) -> StoredRemoval? {
        try run {
            try Row.fetchOne(
                statement("SELECT * FROM removals WHERE owner = ? ORDER BY id LIMIT 1"), arguments: [number(of: owner)]
            ).map { try Self.removal($0, of: owner) }
        }
    }

    func ownerOfNextRemoval() throws(CloudError) -> String? {
        try run {
            let sql = "SELECT o.name FROM removals r JOIN owners o ON o.number = r.owner ORDER BY r.id LIMIT 1"
            return try String.fetchOne(statement(sql))
        }
    }

    func removals(in zone: StoredZone.ID) throws(CloudError) -> [StoredRemoval] {
        try run {
            try Row.fetchAll(
                statement("SELECT * FROM removals WHERE owner = ? AND zone = ? ORDER BY id"),
                arguments: [number(of: zone.owner), zone.number]
            ).map { try Self.removal($0, of: zone.owner) }
        }
    }

    func endRemoval(_ removal: StoredRemoval) throws(CloudError) {
        try run {
            try statement("DELETE FROM removals WHERE owner = ? AND id = ?")
                .execute(arguments: [number(writing: removal.zone.owner), removal.id])
        }
    }

    func dependents(
        of names: [String], in zone: StoredZone.ID, before change: Int64, limit: Int
    ) throws(CloudError) -> [String] {
        try run {
            let select = try statement(
                """
                SELECT r.name FROM dependencies d JOIN records r ON r.owner = d.owner AND r.id = d.record
                WHERE d.owner = ? AND d.zone = ? AND d.target = ? AND r.is_deleted = 0 AND coalesce(r.damaged, r.changed) < ?
                ORDER BY d.record LIMIT ?
                """)
            let owner = try number(of: zone.owner)
            var found: [String] = []
            for name in names where found.count < limit {
                found += try String.fetchAll(select, arguments: [owner, zone.number, name, change, limit - found.count])
            }
            return found
        }
    }

    func removeRecords(
        in zone: StoredZone.ID, limit: Int
    ) throws(CloudError) -> (count: Int, bytes: Int64, assets: Set<String>) {
        try run {
            let owner = try number(writing: zone.owner)
            let select = try statement("SELECT * FROM records WHERE owner = ? AND zone = ? ORDER BY changed LIMIT ?")
            let rows = try Row.fetchCursor(select, arguments: [owner, zone.number, limit])
            let (named, remove) = (
                try statement("SELECT digest FROM named WHERE owner = ? AND record = ?"),
                try statement("DELETE FROM records WHERE owner = ? AND id = ?")
            )
            var (ids, bytes, assets): ([Int64], Int64, Set<String>) = ([], 0, [])
            while let row = try rows.next() {
                ids.append(try row.decode(forColumn: "id"))
                bytes += StoredCloudRecord(row, of: select, zone.owner).size
            }
            for id in ids {
                assets.formUnion(try String.fetchSet(named, arguments: [owner, id]))
                try unlink(id, of: owner)
                try remove.execute(arguments: [owner, id])
            }
            return (ids.count, bytes, assets)
        }
    }
}
