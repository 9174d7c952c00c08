import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine

/// Counts the rows of a container.
extension SQLiteCloudTransaction {
    func recordCounts(in zone: StoredZone.ID) throws(CloudError) -> [String: Int] {
        try run {
            let sql = "SELECT type, count(*) FROM records WHERE owner = ? AND zone = ? AND is_deleted = 0 GROUP BY type"
            let rows = try Row.fetchAll(statement(sql), arguments: [number(of: zone.owner), zone.number])
            return try rows.reduce(into: [:]) { counts, row in
                try counts[row.decode(String.self, atIndex: 0), default: 0] += row.decode(Int.self, atIndex: 1)
            }
        }
    }

    func hasRecords(in zone: StoredZone.ID) throws(CloudError) -> Bool {
        try run {
            let sql = "SELECT EXISTS (SELECT 1 FROM records WHERE owner = ? AND zone = ? AND is_deleted = 0)"
            return try Bool.fetchOne(statement(sql), arguments: [number(of: zone.owner), zone.number]) ?? false
        }
    }

    func recordSpread(
        of type: String, where isCounted: (Data) throws(CloudError) -> Bool
    ) throws(CloudError) -> RecordSpread {
        try run {
            let publicOwner = try number(of: "")
            let rows = try Row.fetchCursor(
                statement("SELECT fields, owner FROM records WHERE type = ? AND is_deleted = 0"), arguments: [type])
            var counts: [Int64: Int] = [:]
            while let row = try rows.next() {
                guard try isCounted(row.decode(atIndex: 0)) else { continue }
                let owner: Int64 = try row.decode(atIndex: 1)
                counts[owner, default: 0] += 1
            }
            return RecordSpread(counts, publicOwner: publicOwner)
        }
    }

    func totals() throws(CloudError) -> StoredTotals {
        try run {
            let records = try Int.fetchOne(db, sql: "SELECT count(*) FROM records WHERE is_deleted = 0") ?? 0
            let owners = try Int.fetchOne(db, sql: "SELECT count(DISTINCT owner) FROM zones") ?? 0
            guard let assets = try Row.fetchOne(db, sql: "SELECT count(*), coalesce(sum(size), 0) FROM assets") else {
                return StoredTotals(records: records, assets: 0, assetBytes: 0, owners: owners)
            }
            return try StoredTotals(
                records: records, assets: assets.decode(atIndex: 0), assetBytes: assets.decode(atIndex: 1), owners: owners)
        }
    }
}
