import GRDB
import TidemarkCloud
import TidemarkCloudEngine

/// Counts the rows of a container.
extension SQLiteCloudTransaction {
    func recordCounts(in zone: StoredZone.ID) throws(CloudError) -> [String: Int] {
        try run {
            let sql = "SELECT type, count(*) FROM records WHERE owner = ? AND zone = ? AND is_deleted = 0 GROUP BY type"
            let rows = try Row.fetchAll(statement(sql), arguments: [number(of: zone.owner), zone.number])
            return Dictionary(uniqueKeysWithValues: rows.map { ($0[0] as String, $0[1] as Int) })
        }
    }

    func totals() throws(CloudError) -> StoredTotals {
        try run {
            let records = try Int.fetchOne(db, sql: "SELECT count(*) FROM records WHERE is_deleted = 0") ?? 0
            let owners = try Int.fetchOne(db, sql: "SELECT count(DISTINCT owner) FROM zones") ?? 0
            guard let assets = try Row.fetchOne(db, sql: "SELECT count(*), coalesce(sum(size), 0) FROM assets") else {
                return StoredTotals(records: records, assets: 0, assetBytes: 0, owners: owners)
            }
            return StoredTotals(records: records, assets: assets[0], assetBytes: assets[1], owners: owners)
        }
    }
}
