import CTideCore
public import Foundation
import GRDB
package import TidemarkModel
public import TidemarkSQLite

/// An asset of a container.
public struct StoredAsset: Hashable, Sendable {
    /// The asset's identifier, as fields hold it.
    public let id: String
    /// The asset's file in the container. Open it for reading only: records that have the same content share it.
    public let url: URL
    /// Bytes of the content.
    public let size: Int64
    /// The usual file name extension of its content: `jpg`, `png`, …; `bin` for what is no image.
    public let pathExtension: String
    /// Whether the content is in the cloud alone, as far as the store knows.
    package let isAbsent: Bool
}

extension StoreReader {
    /// The asset of an identifier, as fields hold it.
    ///
    /// - Throws: ``StoreError`` `notFound` when no record of the store ever named it, `corrupt` when it is no identifier.
    public func asset(_ id: String) throws(StoreError) -> StoredAsset {
        do {
            // Within another read as well: an export looks assets up while it goes through records.
            return try container.lookingForFiles {
                try database.unsafeReentrantRead { db in
                    try container.checkFormat(db, of: scope)
                    return try asset(db, id: id)
                }
            }
        } catch {
            throw StoreError(error, doing: "look up an asset")
        }
    }

    /// Opens an asset's content for reading: nothing but a file in its place in the container.
    ///
    /// - Throws: ``StoreError`` `notFound`, `io`, or `corrupt` when it has not the size that it was ingested with.
    package func open(_ asset: StoredAsset) throws(StoreError) -> FileHandle {
        guard AssetFiles.isIdentifier(asset.id) else { throw Self.noIdentifier(asset.id) }
        let file: FileHandle
        do {
            file = try Folder(at: container.assets).folder(String(asset.id.prefix(2))).openFile(asset.id)
        } catch {
            try container.checkPlace()
            if error.code == .notFound, asset.isAbsent { throw .notDownloaded(asset.id) }
            throw error
        }
        var status = stat()
        guard fstat(file.fileDescriptor, &status) == 0, Int64(status.st_size) == asset.size else {
            throw StoreError(.corrupt, "the asset \(asset.id) is damaged: it has not \(asset.size) bytes")
        }
        return file
    }

    private static func noIdentifier(_ id: String) -> StoreError {
        StoreError(.corrupt, "'\(id.prefix(100))' is no identifier of an asset")
    }

    private func asset(_ db: Database, id: String) throws -> StoredAsset {
        guard AssetFiles.isIdentifier(id) else { throw Self.noIdentifier(id) }
        let statement = try db.cachedStatement(sql: "SELECT size, media FROM tide_assets WHERE id = ?")
        guard let row = try Row.fetchOne(statement, arguments: [id]) else {
            throw StoreError(.notFound, "the store knows no asset '\(id)'")
        }
        let media: UInt32 = try row.stored("media", of: "tide_assets")
        return StoredAsset(
            id: id, url: container.assets.appendingPathComponent("\(id.prefix(2))/\(id)"),
            size: try row.stored("size", of: "tide_assets"),
            pathExtension: String(cString: tide_media_extension(tide_media(rawValue: UInt32(StoredMedia.kind(Int(media)))))),
            isAbsent: Int(media) >= StoredMedia.absent)
    }
}

extension StoreReader {
    /// All assets that the store lists, in the order of their identifiers.
    package func listedAssets() throws(StoreError) -> [StoredAsset] {
        try read("list the assets") { db in
            try String.fetchAll(db, sql: "SELECT id FROM tide_assets ORDER BY id").map { try asset(db, id: $0) }
        }
    }

    /// The records that name each asset.
    ///
    /// - Complexity: O(n) in the records of types with assets.
    package func recordsNamingAssets() throws(StoreError) -> [String: [RecordName]] {
        try read("look for the records of assets") { db in
            var names: [String: [RecordName]] = [:]
            for type in try StoredType.fetchAll(db) {
                for field in type.fields where field.type.scalar == .asset {
                    let column = "\"\(field.column)\""
                    let rows = try Row.fetchCursor(
                        db, sql: "SELECT \(column), _key FROM \"\(type.table)\" WHERE \(column) IS NOT NULL ORDER BY _id")
                    while let row = try rows.next() {
                        guard let key = RecordKey.fromDatabaseValue(row[1]) else { continue }
                        let record = RecordName(type: type.name, name: key.name)
                        NamedAssets.forEach(namedIn: row[0] as DatabaseValue) { id in
                            if names[id]?.last != record { names[id, default: []].append(record) }
                        }
                    }
                }
            }
            return names
        }
    }
}
