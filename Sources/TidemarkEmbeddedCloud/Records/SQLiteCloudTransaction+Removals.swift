import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// Removals that take more than one transaction.
extension SQLiteCloudTransaction {
    static let removalTables = """
        CREATE TABLE removals (id INTEGER PRIMARY KEY, zone INTEGER NOT NULL, kind INTEGER NOT NULL, target TEXT NOT NULL,
            change INTEGER NOT NULL, user TEXT NOT NULL) STRICT;
        CREATE INDEX removals_by_zone ON removals (zone);

        """

    private static func removal(_ row: Row) -> StoredRemoval {
        StoredRemoval(
            id: row["id"], zone: row["zone"], kind: .init(rawValue: row["kind"]) ?? .dependents, target: row["target"],
            change: row["change"], user: row["user"])
    }

    func add(_ removal: StoredRemoval) throws(CloudError) {
        try run {
            try statement("INSERT INTO removals (zone, kind, target, change, user) VALUES (?, ?, ?, ?, ?)").execute(
                arguments: [removal.zone, removal.kind.rawValue, removal.target, removal.change, removal.user])
        }
    }

    func nextRemoval() throws(CloudError) -> StoredRemoval? {
        try run { try Row.fetchOne(statement("SELECT * FROM removals ORDER BY id LIMIT 1")).map(Self.removal) }
    }

    func removals(in zone: Int64) throws(CloudError) -> [StoredRemoval] {
        try run {
            try Row.fetchAll(statement("SELECT * FROM removals WHERE zone = ? ORDER BY id"), arguments: [zone]).map(Self.removal)
        }
    }

    func endRemoval(_ id: Int64) throws(CloudError) {
        try run { try statement("DELETE FROM removals WHERE id = ?").execute(arguments: [id]) }
    }

    func dependents(
        of names: [String], in zone: Int64, before change: Int64, limit: Int
    ) throws(CloudError) -> [String] {
        try run {
            let select = try statement(
                """
                SELECT r.name FROM dependencies d JOIN records r ON r.id = d.record
                WHERE d.zone = ? AND d.target = ? AND r.is_deleted = 0 AND coalesce(r.damaged, r.changed) < ?
                ORDER BY d.record LIMIT ?
                """)
            var found: [String] = []
            for name in names where found.count < limit {
                found += try String.fetchAll(select, arguments: [zone, name, change, limit - found.count])
            }
            return found
        }
    }

    func removeRecords(
        in zone: Int64, limit: Int
    ) throws(CloudError) -> (count: Int, bytes: Int64, assets: Set<String>) {
        try run {
            let select = try statement("SELECT * FROM records WHERE zone = ? ORDER BY changed LIMIT ?")
            let rows = try Row.fetchCursor(select, arguments: [zone, limit])
            let (named, remove) = (
                try statement("SELECT digest FROM named WHERE record = ?"),
                try statement("DELETE FROM records WHERE id = ?")
            )
            var (ids, bytes, assets): ([Int64], Int64, Set<String>) = ([], 0, [])
            while let row = try rows.next() {
                ids.append(row["id"])
                bytes += StoredCloudRecord(row, of: select).size
            }
            for id in ids {
                assets.formUnion(try String.fetchSet(named, arguments: [id]))
                try unlink(id)
                try remove.execute(arguments: [id])
            }
            return (ids.count, bytes, assets)
        }
    }
}
