import CTideCore
import Foundation
import GRDB

/// An asset of a container.
public struct StoredAsset: Hashable, Sendable {
    public let id: String
    public let url: URL
    public let size: Int64
    /// The usual file name extension of its content: `jpg`, `png`, …; `bin` for what is no image.
    public let pathExtension: String
}

extension StoreReader {
    /// The asset of an identifier, as fields hold it.
    ///
    /// - Throws: ``StoreError`` `notFound` when no record of the store ever named it.
    public func asset(_ id: String) throws(StoreError) -> StoredAsset {
        do {
            // Within another read as well: an export looks assets up while it goes through records.
            return try database.unsafeReentrantRead { db in try asset(db, id: id) }
        } catch {
            throw StoreError(error, doing: "look up an asset")
        }
    }

    private func asset(_ db: Database, id: String) throws -> StoredAsset {
        let statement = try db.cachedStatement(sql: "SELECT size, media FROM tide_assets WHERE id = ?")
        guard let row = try Row.fetchOne(statement, arguments: [id]) else {
            throw StoreError(.notFound, "the store knows no asset '\(id)'")
        }
        let media = tide_media(rawValue: row["media"])
        return StoredAsset(
            id: id, url: container.assets.appendingPathComponent("\(id.prefix(2))/\(id)"), size: row["size"],
            pathExtension: String(cString: tide_media_extension(media)))
    }
}
