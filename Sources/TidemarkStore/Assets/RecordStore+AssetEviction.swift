import Foundation
import GRDB
import TidemarkModel
package import TidemarkSQLite

extension RecordStore {
    /// Returns the contents that are here and that the cloud should have: records name them that are in the cloud as they are
    /// here, and no change that has to be sent names them. Each has its digest, and the zones whose records name it.
    ///
    /// - Complexity: O(n) in the records of types with assets.
    package func evictable() throws(StoreError) -> [String: (asset: RemoteAsset, zones: Set<Int64>)] {
        try connection.read("look for assets that the cloud has") { db in
            try connection.refreshSchema(db)
            var found: [String: (asset: RemoteAsset, zones: Set<Int64>)] = [:]
            for (id, standing) in try NamedAssets(db: db, types: connection.types).standings() {
                guard !standing.isHeld, !standing.zones.isEmpty, let blob = try BlobStore.Blob(listed: id, in: db),
                    let sha256 = blob.sha256, Self.canComeAgain(id)
                else { continue }
                found[id] = (RemoteAsset(id: id, sha256: sha256, size: blob.size), standing.zones)
            }
            return found
        }
    }

    /// Returns whether a content gets the same identifier when it comes again. The second content of a digest does not, because
    /// its number depends on the first.
    private static func canComeAgain(_ id: String) -> Bool {
        AssetIdentifier.isOfDigest(id) || id.split(separator: "-").count == 2
    }

    /// Returns those of some assets that a change names which the cloud lacks or has refused.
    package func held(_ ids: Set<String>) throws(StoreError) -> Set<String> {
        try connection.read("look for assets that have to be sent") { db in
            try connection.refreshSchema(db)
            return try held(ids, db)
        }
    }

    private func held(_ ids: Set<String>, _ db: Database) throws -> Set<String> {
        let standings = try NamedAssets(db: db, types: connection.types).standings()
        return ids.filter { standings[$0]?.isHeld ?? false }
    }

    /// Marks contents as absent, before their files are removed. If the process is interrupted in between, contents are here and
    /// marked as absent, which does no harm.
    ///
    /// - Returns: The contents that may be removed: no change that the cloud lacks names them by now.
    package func markAbsent(_ ids: Set<String>) throws(StoreError) -> Set<String> {
        guard !ids.isEmpty else { return [] }
        return try connection.locked("evict assets") { db in
            try connection.refreshSchema(db)
            let gone = ids.subtracting(try held(ids, db))
            let mark = try db.cachedStatement(
                sql: "UPDATE tide_assets SET media = media + \(StoredMedia.absent) WHERE id = ? AND media < \(StoredMedia.absent)"
            )
            for id in gone { try mark.execute(arguments: [id]) }
            return (gone, .commit)
        }
    }
}
