import Foundation
import GRDB
import TidemarkModel
package import TidemarkSQLite

/// A content that a store can fetch from its cloud.
package struct RemoteAsset: Hashable, Sendable {
    /// The store's identifier.
    package let id: String
    /// SHA-256, 64 lower-case hexadecimal digits.
    package let sha256: String
    package let size: Int64
}

extension RecordStore {
    /// Registers contents that the cloud has and that are not fetched now.
    ///
    /// - Parameter contents: Their digests and sizes. Contents that the store knows keep their identifiers.
    /// - Returns: The store's identifiers, by digest. A content is left out if another content has its identifier, and it then
    ///   has to be fetched.
    package func registerAbsent(_ contents: [(sha256: String, size: Int64)]) throws(StoreError) -> [String: String] {
        guard !contents.isEmpty else { return [:] }
        listsDigestNames = true
        return try connection.locked("note assets that are in the cloud") { db in
            let add = try db.cachedStatement(
                sql:
                    "INSERT INTO tide_assets (id, size, media, sha256) VALUES (?, ?, \(StoredMedia.absent), ?) ON CONFLICT (id) DO NOTHING"
            )
            let find = try db.cachedStatement(sql: "SELECT sha256 FROM tide_assets WHERE id = ?")
            var ids: [String: String] = [:]
            for (sha256, size) in contents {
                let id = AssetIdentifier.ofDigest(sha256, size: size)
                try add.execute(arguments: [id, size, sha256])
                if try String.fetchOne(find, arguments: [id]) == sha256 { ids[sha256] = id }
            }
            return (ids, .commit)
        }
    }

    /// Whether the store lists contents under identifiers that are made of a SHA-256.
    ///
    /// - Complexity: O(n) in the assets, the first time.
    package func hasDigestNames() throws(StoreError) -> Bool {
        if listsDigestNames { return true }
        let lists = try connection.read("look for assets") { db in
            try Bool.fetchOne(
                db, sql: "SELECT EXISTS (SELECT 1 FROM tide_assets WHERE id LIKE '%-256' AND sha256 IS NOT NULL)") ?? false
        }
        listsDigestNames = lists
        return lists
    }

    /// Returns the identifier, made of a SHA-256, under which the store knows a content from its cloud.
    package func digestName(_ digest: String, size: Int64) throws(StoreError) -> String? {
        try connection.read("look for assets") { db in
            let select = try db.cachedStatement(sql: "SELECT id FROM tide_assets WHERE sha256 = ? AND size = ?")
            return try String.fetchAll(select, arguments: [digest, size]).first(where: AssetIdentifier.isOfDigest)
        }
    }

    /// Records that contents have arrived, with their kinds of images.
    ///
    /// - Parameter media: The kinds by identifier; 0 for a content that is no known image.
    package func notePresent(_ media: [String: Int]) throws(StoreError) {
        guard !media.isEmpty else { return }
        try connection.locked("note assets that have come") { db in
            let note = try db.cachedStatement(
                sql: "UPDATE tide_assets SET media = ? WHERE id = ? AND media >= \(StoredMedia.absent)")
            for (id, media) in media { try note.execute(arguments: [StoredMedia.kind(media), id]) }
            return ((), .commit)
        }
    }

    /// Marks contents as present that are marked as absent and are here.
    package func unmarkPresent(_ ids: Set<String>) throws(StoreError) {
        guard !ids.isEmpty else { return }
        let marked: [String] = try connection.read("look for assets") { db in
            let find = try db.cachedStatement(sql: "SELECT 1 FROM tide_assets WHERE id = ? AND media >= \(StoredMedia.absent)")
            return try ids.filter { try Int.fetchOne(find, arguments: [$0]) != nil }
        }
        guard !marked.isEmpty else { return }
        try connection.locked("note assets that are here") { db in
            let note = try db.cachedStatement(
                sql: "UPDATE tide_assets SET media = media & \(StoredMedia.absent - 1) WHERE id = ?")
            for id in marked { try note.execute(arguments: [id]) }
            return ((), .commit)
        }
    }

    /// Returns the assets of some sizes whose contents are here and whose SHA-256 is not known.
    ///
    /// - Complexity: O(n) in the assets.
    package func undigested(sizes: Set<Int64>) throws(StoreError) -> [String] {
        guard !sizes.isEmpty else { return [] }
        return try connection.read("look for assets") { db in
            let rows = try Row.fetchCursor(
                db, sql: "SELECT id, size FROM tide_assets WHERE sha256 IS NULL AND media < \(StoredMedia.absent)")
            var found: [String] = []
            while let row = try rows.next() {
                let size: Int64 = try row.decode(atIndex: 1)
                if sizes.contains(size) { found.append(try row.decode(atIndex: 0)) }
            }
            return found
        }
    }

    /// Returns those of some assets that the cloud knows by a digest.
    package func remoteAssets(_ ids: Set<String>) throws(StoreError) -> [RemoteAsset] {
        try connection.read("look for assets") { db in
            let select = try db.cachedStatement(sql: "SELECT sha256, size FROM tide_assets WHERE id = ? AND sha256 IS NOT NULL")
            return try ids.sorted().compactMap { id in
                try Row.fetchOne(select, arguments: [id]).map { row in
                    try RemoteAsset(
                        id: id, sha256: row.stored("sha256", of: "tide_assets"), size: row.stored("size", of: "tide_assets"))
                }
            }
        }
    }

    /// The zones in which records name assets that the cloud has.
    ///
    /// - Complexity: O(n) in the records of types with assets, where the store has several zones.
    package func zones(naming ids: Set<String>) throws(StoreError) -> [String: [StoreZone]] {
        try connection.read("look for the records of assets") { db in
            try connection.refreshSchema(db)
            let zones = try StoreZone.fetchAll(db).filter { scope == .private || $0.id != StoreFormat.defaultZone }
            if zones.count < 2 { return Dictionary(uniqueKeysWithValues: ids.map { ($0, zones) }) }
            let standings = try NamedAssets(db: db, types: connection.types).standings()
            return ids.reduce(into: [:]) { found, id in
                let named = zones.filter { standings[id]?.zones.contains($0.id) ?? false }
                // Only an unsent record or history may name it here, and the cloud may still have it in any zone.
                found[id] = named.isEmpty ? zones : named
            }
        }
    }

    /// Returns those of some assets that the store does not list.
    package func unregistered(_ ids: Set<String>) throws(StoreError) -> Set<String> {
        try connection.read("look for assets") { db in
            let select = try db.cachedStatement(sql: "SELECT 1 FROM tide_assets WHERE id = ?")
            return try ids.filter { try Int.fetchOne(select, arguments: [$0]) == nil }
        }
    }

    /// Returns assets as this store lists them, for another store of the container.
    package func blobs(_ ids: Set<String>) throws(StoreError) -> [BlobStore.Blob] {
        try connection.read("look for assets") { db in try ids.sorted().compactMap { try BlobStore.Blob(listed: $0, in: db) } }
    }
}

extension BlobStore.Blob {
    /// An asset as a store lists it; `nil` where it doesn't.
    init?(listed id: String, in db: Database) throws {
        let select = try db.cachedStatement(sql: "SELECT size, media, sha256 FROM tide_assets WHERE id = ?")
        guard let row = try Row.fetchOne(select, arguments: [id]) else { return nil }
        let table = "tide_assets"
        try self.init(
            id: id, size: row.stored("size", of: table), media: row.stored("media", of: table), isNew: false,
            sha256: row.stored("sha256", of: table))
    }

    /// Lists the asset in a store. If its content has arrived by now, the asset is listed as present.
    func register(_ db: Database) throws {
        try db.cachedStatement(
            sql: """
                INSERT INTO tide_assets (id, size, media, sha256) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO UPDATE
                SET media = CASE WHEN media < \(StoredMedia.absent) THEN media ELSE excluded.media END, sha256 = coalesce(sha256, excluded.sha256)
                WHERE media >= \(StoredMedia.absent) OR sha256 IS NULL AND excluded.sha256 IS NOT NULL
                """
        ).execute(arguments: [id, size, media, sha256])
    }
}
