import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

extension PostgresCloudTransaction {
    /// Whether a record of the owner names the asset. It goes through the owner's zones.
    private static let isNamed = """
        EXISTS (SELECT FROM tidemark_zones z JOIN tidemark_named n
            ON n.container = z.container AND n.owner = z.owner AND n.zone = z.number AND n.digest = a.digest
            WHERE z.container = $1 AND z.owner = $2)
        """

    func removeUnnamedAssets(
        _ digests: Set<String>, owner: String
    ) throws(CloudError) -> [(asset: CloudAsset, payer: String)] {
        try run {
            let key = try key(writing: owner)
            guard !digests.isEmpty else { return [] }
            try lock(digests, of: owner)
            let sql = """
                DELETE FROM tidemark_assets a WHERE a.container = $1 AND a.owner = $2 AND a.digest = ANY($3) AND NOT \(Self.isNamed)
                RETURNING a.digest, a.size, a.payer
                """
            let removed: [(asset: CloudAsset, payer: String)] = try db.query(sql, container, key, digests.map(\.key)).map {
                (CloudAsset(digest: try $0.text(0), size: try $0.value(1)), try $0.text(2))
            }
            if !removed.isEmpty {
                try db.enqueue(
                    "DELETE FROM tidemark_uploads WHERE container = $1 AND owner = $2 AND digest = ANY($3)", container, key,
                    removed.map(\.asset.digest.key))
            }
            return removed
        }
    }

    func unnamedAssets(
        of owner: String, after digest: String, limit: Int
    ) throws(CloudError) -> (unnamed: [CloudAsset], last: String?) {
        try run {
            let sql = """
                SELECT a.digest, a.size, \(Self.isNamed) FROM tidemark_assets a
                WHERE a.container = $1 AND a.owner = $2 AND a.digest > $3 ORDER BY a.digest LIMIT $4
                """
            var (unnamed, last): ([CloudAsset], String?) = ([], nil)
            for row in try db.query(sql, container, owner.key, digest.key, Int64(limit)) {
                let digest = try row.text(0)
                last = digest
                if try !row.value(2) { unnamed.append(CloudAsset(digest: digest, size: try row.value(1))) }
            }
            return (unnamed, last)
        }
    }
}
