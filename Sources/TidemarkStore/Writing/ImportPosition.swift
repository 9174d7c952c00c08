import Foundation
import GRDB
package import TidemarkModel
import TidemarkSQLite

/// The place from which an interrupted import continues, stored in the transaction of its last batch.
package struct ImportPosition: Codable, Sendable, Equatable {
    /// Identifies the source and the options of the import, so that only the same import continues from here.
    package var source: String
    /// Bytes of the source (of a folder: files) that are done, and the digest of these.
    package var offset: UInt64
    package var line: UInt64
    package var digest: [UInt8]
    /// Of a JSON array: where in it.
    package var state: UInt8
    package var counts: ChangeCounts
    package var read: Int
    package var rejected: Int
    /// Length of the rejects file.
    package var rejectsLength: UInt64
    package var assets: AssetCounts
    /// `nil` where pictures are not scaled.
    package var pictures: PictureCounts?

    package init(
        source: String, offset: UInt64 = 0, line: UInt64 = 0, digest: [UInt8] = [], state: UInt8 = 0,
        counts: ChangeCounts = ChangeCounts(),
        read: Int = 0, rejected: Int = 0, rejectsLength: UInt64 = 0, assets: AssetCounts = AssetCounts(),
        pictures: PictureCounts? = nil
    ) {
        self.source = source
        self.offset = offset
        self.line = line
        self.digest = digest
        self.state = state
        self.counts = counts
        self.read = read
        self.rejected = rejected
        self.rejectsLength = rejectsLength
        self.assets = assets
        self.pictures = pictures
    }

    static func fetch(_ db: Database, source: String) throws -> ImportPosition? {
        let state = try String.fetchOne(db, sql: "SELECT state FROM tide_imports WHERE source = ?", arguments: [source])
        // A position that can't be read counts as missing. The import then begins again, which does no harm.
        return state.flatMap { try? JSONDecoder().decode(ImportPosition.self, from: Data($0.utf8)) }.flatMap {
            $0.canBe ? $0 : nil
        }
    }

    /// Returns whether the numbers can be those of an import. Counting on from them must not overflow.
    private var canBe: Bool {
        let numbers =
            [counts.inserted, counts.updated, counts.unchanged, counts.repaired, read, rejected]
            + [assets.referenced, assets.stored, assets.bytes]
            + (pictures.map {
                [$0.scaled, $0.untouched, $0.thumbnails, $0.bytesBefore, $0.bytesAfter, $0.thumbnailBytes]
            } ?? [])
        return numbers.allSatisfy { (0...1 << 53).contains($0) } && [offset, line, rejectsLength].allSatisfy { $0 <= 1 << 53 }
    }

    func store(_ db: Database) throws {
        let state = String(decoding: try JSONEncoder().encode(self), as: UTF8.self)
        try db.execute(
            sql:
                "INSERT INTO tide_imports (source, state) VALUES (?, ?) ON CONFLICT (source) DO UPDATE SET state = excluded.state",
            arguments: [source, state])
    }

    static func delete(_ db: Database, source: String) throws {
        try db.execute(sql: "DELETE FROM tide_imports WHERE source = ?", arguments: [source])
    }
}
