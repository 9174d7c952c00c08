import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

extension SQLiteCloudTransaction {
    /// Whether a record of an owner names a digest. It goes through the owner's zones and not through all who have the same content.
    private static func isNamed(_ digest: String, owner: String, scope: String) -> String {
        """
        EXISTS (SELECT 1 FROM zones z CROSS JOIN named n ON n.digest = \(digest) AND n.zone = z.id
            WHERE z.scope = \(scope) AND z.owner = \(owner))
        """
    }

    /// Where an owner's records lie: what is shared lies in its owner's private database.
    private func scope(of owner: String) -> Int { (owner.isEmpty ? DatabaseScope.public : .private).rawValue }

    func removeUnnamedAssets(
        _ digests: Set<String>, owner: String
    ) throws(CloudError) -> [(asset: CloudAsset, payer: String)] {
        try run {
            let sql = """
                DELETE FROM assets WHERE owner = ?1 AND digest = ?2 AND NOT \(Self.isNamed("?2", owner: "?1", scope: "?3"))
                RETURNING size, payer
                """
            let (remove, scope) = (try statement(sql), scope(of: owner))
            let removed: [(asset: CloudAsset, payer: String)] = try digests.compactMap { digest in
                try Row.fetchOne(remove, arguments: [owner, digest, scope]).map {
                    (CloudAsset(digest: digest, size: $0[0]), $0[1])
                }
            }
            for (asset, _) in removed {
                try statement("DELETE FROM uploads WHERE owner = ? AND digest = ?").execute(arguments: [owner, asset.digest])
            }
            return removed
        }
    }

    func unnamedAssets(
        of owner: String, after digest: String, limit: Int
    ) throws(CloudError) -> (unnamed: [CloudAsset], last: String?) {
        try run {
            let sql = """
                SELECT a.digest, a.size, \(Self.isNamed("a.digest", owner: "?1", scope: "?4")) FROM assets a
                WHERE a.owner = ?1 AND a.digest > ?2 ORDER BY a.digest LIMIT ?3
                """
            var (unnamed, last): ([CloudAsset], String?) = ([], nil)
            for row in try Row.fetchAll(statement(sql), arguments: [owner, digest, limit, scope(of: owner)]) {
                let (digest, isNamed): (String, Bool) = (row[0], row[2])
                last = digest
                if !isNamed { unnamed.append(CloudAsset(digest: digest, size: row[1])) }
            }
            return (unnamed, last)
        }
    }
}
