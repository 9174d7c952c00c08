import GRDB
import TidemarkCloud
import TidemarkModel

extension SQLiteCloudTransaction {
    func unnamedAssets(of owner: String, after digest: String, limit: Int) throws(CloudError) -> [CloudAsset] {
        try run {
            let sql = """
                SELECT a.digest, a.size FROM assets a WHERE a.owner = ?1 AND a.digest > ?2 AND NOT EXISTS (
                    SELECT 1 FROM named n JOIN zones z ON z.id = n.zone WHERE n.digest = a.digest AND z.owner = ?1)
                ORDER BY a.digest LIMIT ?3
                """
            return try Row.fetchAll(statement(sql), arguments: [owner, digest, limit]).map {
                CloudAsset(digest: $0[0], size: $0[1])
            }
        }
    }
}
