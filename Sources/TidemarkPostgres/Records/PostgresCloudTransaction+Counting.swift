import Foundation
import TidemarkCloud
import TidemarkCloudEngine

/// Counts the rows of a container.
extension PostgresCloudTransaction {
    func recordCounts(in zone: StoredZone.ID) throws(CloudError) -> [String: Int] {
        try run {
            let sql = """
                SELECT type, count(*) FROM tidemark_records
                WHERE container = $1 AND owner = $2 AND zone = $3 AND NOT is_deleted GROUP BY type
                """
            let rows = try db.query(sql, container, zone.owner.key, zone.number)
            return Dictionary(try rows.map { (try $0.text(0), Int(try $0.value(1) as Int64)) }) { $0 + $1 }
        }
    }

    func hasRecords(in zone: StoredZone.ID) throws(CloudError) -> Bool {
        try run {
            let sql = """
                SELECT EXISTS (SELECT FROM tidemark_records
                    WHERE container = $1 AND owner = $2 AND zone = $3 AND NOT is_deleted)
                """
            return try db.query(sql, container, zone.owner.key, zone.number)[0].value(0)
        }
    }

    func recordSpread(
        of type: String, where isCounted: (Data) throws(CloudError) -> Bool
    ) throws(CloudError) -> RecordSpread {
        try run {
            var counts: [Data: Int] = [:]
            try forEachPage(of: "r.fields", where: "r.type = $6 AND NOT r.is_deleted", type.key) { rows in
                for row in rows where try isCounted(try row.value(3)) {
                    let owner: Data = try row.value(0)
                    counts[owner, default: 0] += 1
                }
            }
            return RecordSpread(counts, publicOwner: "".key)
        }
    }

    func totals() throws(CloudError) -> StoredTotals {
        try run {
            let sql = """
                SELECT (SELECT count(*) FROM tidemark_records WHERE container = $1 AND NOT is_deleted),
                    (SELECT count(*) FROM tidemark_assets WHERE container = $1),
                    (SELECT coalesce(sum(size), 0)::int8 FROM tidemark_assets WHERE container = $1),
                    (SELECT count(DISTINCT owner) FROM tidemark_zones WHERE container = $1)
                """
            let row = try db.query(sql, container)[0]
            return StoredTotals(
                records: Int(try row.value(0) as Int64), assets: Int(try row.value(1) as Int64), assetBytes: try row.value(2),
                owners: Int(try row.value(3) as Int64))
        }
    }
}
