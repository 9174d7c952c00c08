import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

extension PostgresCloudTransaction {
    /// SQL that tells whether a record of the owner names an asset. It goes through the owner's zones.
    ///
    /// - Parameter digest: The asset's digest, as SQL.
    private static func isNamed(_ digest: String) -> String {
        """
        EXISTS (SELECT FROM tidemark_zones z CROSS JOIN LATERAL (SELECT FROM tidemark_named n
                WHERE n.container = $1 AND n.owner = $2 AND n.zone = z.number AND n.digest = \(digest)
                    AND n.\(PostgresCloudTables.hasDigest) LIMIT 1) x
            WHERE z.container = $1 AND z.owner = $2)
        """
    }

    func removeUnnamedAssets(
        _ digests: Set<String>, owner: String
    ) throws(CloudError) -> [(asset: CloudAsset, payer: String)] {
        try run {
            let key = try key(writing: owner)
            guard !digests.isEmpty else { return [] }
            try lock(digests, of: owner)
            let places = """
                SELECT x.* FROM unnest($3) AS n (digest) CROSS JOIN LATERAL (SELECT a.ctid FROM tidemark_assets a
                    WHERE a.container = $1 AND a.owner = $2 AND a.digest = n.digest OFFSET 0) x
                """
            let sql = """
                \(Self.deletion(from: "tidemark_assets", places)) AND NOT \(Self.isNamed("d.digest"))
                RETURNING d.digest, d.size, d.payer
                """
            let removed: [(asset: CloudAsset, payer: String)] = try db.query(sql, container, key, digests.map(\.key)).map {
                (CloudAsset(digest: try $0.text(0), size: try $0.value(1)), try $0.text(2))
            }
            if !removed.isEmpty {
                let uploads = """
                    SELECT x.* FROM unnest($3) AS n (digest) CROSS JOIN LATERAL (SELECT u.ctid FROM tidemark_uploads u
                        WHERE u.container = $1 AND u.owner = $2 AND u.digest = n.digest OFFSET 0) x
                    """
                try db.enqueue(
                    Self.deletion(from: "tidemark_uploads", uploads), container, key, removed.map(\.asset.digest.key))
            }
            return removed
        }
    }

    func unnamedAssets(
        of owner: String, after digest: String, limit: Int
    ) throws(CloudError) -> (unnamed: [CloudAsset], last: String?) {
        try run {
            let sql = """
                SELECT a.digest, a.size, \(Self.isNamed("a.digest")) FROM tidemark_assets a
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
