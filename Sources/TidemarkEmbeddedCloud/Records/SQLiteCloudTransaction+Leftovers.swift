import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

extension SQLiteCloudTransaction {
    /// SQL that is true if a record of an owner names a digest. It walks the owner's zones, and not all owners that have the same
    /// content.
    private static func isNamed(_ digest: String, owner: String) -> String {
        """
        EXISTS (SELECT 1 FROM zones z CROSS JOIN named n ON n.owner = z.owner AND n.zone = z.id AND n.digest = \(digest)
            WHERE z.owner = \(owner))
        """
    }

    func removeUnnamedAssets(
        _ digests: Set<String>, owner: String
    ) throws(CloudError) -> [(asset: CloudAsset, payer: String)] {
        try run {
            let sql = """
                DELETE FROM assets WHERE owner = ?1 AND digest = ?2 AND NOT \(Self.isNamed("?2", owner: "?1"))
                RETURNING size, payer
                """
            let (remove, key) = (try statement(sql), try number(writing: owner))
            let removed: [(asset: CloudAsset, payer: String)] = try digests.compactMap { digest in
                try Row.fetchOne(remove, arguments: [key, digest]).map { row in
                    (CloudAsset(digest: digest, size: try row.decode(atIndex: 0)), try row.decode(String.self, atIndex: 1))
                }
            }
            for (asset, _) in removed {
                try statement("DELETE FROM uploads WHERE owner = ? AND digest = ?").execute(arguments: [key, asset.digest])
            }
            return removed
        }
    }

    func unnamedAssets(
        of owner: String, after digest: String, limit: Int
    ) throws(CloudError) -> (unnamed: [CloudAsset], last: String?) {
        try run {
            let sql = """
                SELECT a.digest, a.size, \(Self.isNamed("a.digest", owner: "?1")) FROM assets a
                WHERE a.owner = ?1 AND a.digest > ?2 ORDER BY a.digest LIMIT ?3
                """
            var (unnamed, last): ([CloudAsset], String?) = ([], nil)
            for row in try Row.fetchAll(statement(sql), arguments: [number(of: owner), digest, limit]) {
                let (digest, isNamed): (String, Bool) = (try row.decode(atIndex: 0), try row.decode(atIndex: 2))
                last = digest
                if !isNamed { unnamed.append(CloudAsset(digest: digest, size: try row.decode(atIndex: 1))) }
            }
            return (unnamed, last)
        }
    }
}
