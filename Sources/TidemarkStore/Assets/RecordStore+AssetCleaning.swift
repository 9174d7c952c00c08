import Foundation
import GRDB
import TidemarkModel
package import TidemarkSQLite

extension RecordStore {
    /// The assets that no record and no history of this store names, with their sizes.
    ///
    /// - Complexity: O(n) in the records of types with assets, and in the history where assets are left that no record names.
    package func unnamedAssets() throws(StoreError) -> [String: Int64] {
        try connection.read("look for assets that nothing names") { db in
            try connection.refreshSchema(db)
            return try unnamedAssets(db)
        }
    }

    private func unnamedAssets(_ db: Database) throws -> [String: Int64] {
        let rows = try Row.fetchAll(db, sql: "SELECT id, size FROM tide_assets")
        let sizes: [String: Int64] = try rows.reduce(into: [:]) { sizes, row in
            try sizes[row.decode(String.self, atIndex: 0)] = row.decode(Int64.self, atIndex: 1)
        }
        var ids = Set(sizes.keys)
        let named = NamedAssets(db: db, types: connection.types)
        try named.removeNamedByRecords(from: &ids)
        try named.removeNamedByHistory(from: &ids)
        return sizes.filter { ids.contains($0.key) }
    }

    /// Removes assets from the store's list that no record and no history names any more.
    ///
    /// - Parameter names: The assets that were found before. They are checked again, because a record may name them by now.
    /// - Returns: The assets that the store lists no more.
    package func unregisterUnnamedAssets(_ names: Set<String>) throws(StoreError) -> Set<String> {
        guard !names.isEmpty else { return [] }
        return try connection.locked("remove assets that nothing names") { db in
            try connection.refreshSchema(db)
            let ids = Set(try unnamedAssets(db).keys).intersection(names)
            let delete = try db.cachedStatement(sql: "DELETE FROM tide_assets WHERE id = ?")
            for id in ids { try delete.execute(arguments: [id]) }
            return (ids, .commit)
        }
    }
}

extension RecordStore {
    /// Runs `body` as one job of the store, without suspension.
    func inOneJob<Result: Sendable>(_ body: @Sendable () throws -> Result) throws -> Result { try body() }

    private static let cleanedKey = "cleaned_change"

    /// Returns whether history was purged since unnamed contents were last removed. Only a purge takes the last name from a
    /// content.
    package func assetCleaningIsDue() throws(StoreError) -> Bool {
        try connection.read("read the history") { db in
            let cleaned =
                try Int64.fetchOne(db, sql: "SELECT value FROM tide_meta WHERE key = ?", arguments: [Self.cleanedKey]) ?? 1
            return try HistoryFloor(db).change > cleaned
        }
    }

    /// Returns the number of the oldest change in history.
    package func oldestChange() throws(StoreError) -> Int64 {
        try connection.read("read the history") { db in try HistoryFloor(db).change }
    }

    /// Records that unnamed contents were removed.
    ///
    /// - Parameter change: The oldest change in history at that time.
    package func noteAssetsCleaned(_ change: Int64) throws(StoreError) {
        try connection.locked("note that assets were removed") { db in
            try db.execute(
                sql: "INSERT OR REPLACE INTO tide_meta (key, value) VALUES (?, ?)", arguments: [Self.cleanedKey, change])
            return ((), .commit)
        }
    }

    /// All assets that the store lists.
    package func listedAssets() throws(StoreError) -> Set<String> {
        try connection.read("list the assets") { db in try String.fetchSet(db, sql: "SELECT id FROM tide_assets") }
    }

    /// Bytes of the contents that the store lists as being here.
    ///
    /// - Complexity: O(n) in the assets.
    package func presentBytes() throws(StoreError) -> Int64 {
        try connection.read("measure the assets") { db in
            try Int64.fetchOne(db, sql: "SELECT coalesce(sum(size), 0) FROM tide_assets WHERE media < \(StoredMedia.absent)") ?? 0
        }
    }
}
