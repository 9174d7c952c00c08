package import Foundation
import GRDB
package import TidemarkSQLite

/// An asset of a store by the digest that clouds know it by.
package struct SyncedAsset: Hashable, Sendable {
    /// The store's identifier of the asset.
    package let id: String
    /// SHA-256, 64 lower-case hexadecimal digits.
    package let sha256: String
    package let size: Int64
    package let media: Int

    package init(id: String, sha256: String, size: Int64, media: Int = 0) {
        self.id = id
        self.sha256 = sha256
        self.size = size
        self.media = media
    }
}

extension RecordStore {
    /// The digests of assets, as far as they are known.
    package func digests(of ids: Set<String>) throws(StoreError) -> [String: String] {
        try connection.read("look for assets") { db in
            let select = try db.cachedStatement(sql: "SELECT sha256 FROM tide_assets WHERE id = ?")
            var found: [String: String] = [:]
            for id in ids { found[id] = try String.fetchOne(select, arguments: [id]) }
            return found
        }
    }

    /// Notes the digests of assets. An asset that the store does not have yet is registered, and its file has to be there.
    package func note(_ assets: [SyncedAsset]) throws(StoreError) {
        guard !assets.isEmpty else { return }
        try connection.locked("note the digests of assets") { db in
            let note = try db.cachedStatement(
                sql: """
                    INSERT INTO tide_assets (id, size, media, sha256) VALUES (?, ?, ?, ?)
                    ON CONFLICT (id) DO UPDATE SET sha256 = excluded.sha256,
                        media = CASE WHEN media < \(StoredMedia.absent) THEN media ELSE excluded.media END
                    """)
            for asset in assets { try note.execute(arguments: [asset.id, asset.size, asset.media, asset.sha256]) }
            return ((), .commit)
        }
    }

    /// The store's identifiers of contents, by digest and size, as far as it has them.
    package func assets(_ digests: Set<String>) throws(StoreError) -> [String: String] {
        try connection.read("look for assets") { db in
            let select = try db.cachedStatement(
                sql:
                    "SELECT id FROM tide_assets WHERE sha256 = ? ORDER BY media >= \(StoredMedia.absent), id NOT LIKE '%-256', id LIMIT 1"
            )
            var found: [String: String] = [:]
            for digest in digests { found[digest] = try String.fetchOne(select, arguments: [digest]) }
            return found
        }
    }

    /// Whether an asset's content matches its identifier.
    ///
    /// - Complexity: Reads the content.
    package nonisolated func isWhole(_ asset: String) -> Bool {
        AssetFiles.examine(asset, in: container.assets) == .whole
    }

    /// Makes an asset be checked again before it is sent.
    package func forgetDigest(of asset: String) throws(StoreError) {
        try connection.locked("forget the digest of an asset") { db in
            try db.execute(sql: "UPDATE tide_assets SET sha256 = NULL WHERE id = ?", arguments: [asset])
            return ((), .commit)
        }
    }

    /// The file of an asset's content.
    package nonisolated func file(of asset: String) -> URL? {
        guard AssetFiles.isIdentifier(asset) else { return nil }
        return AssetFiles.url(of: asset, in: container.assets)
    }
}
