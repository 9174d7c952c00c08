import Foundation
import TidemarkModel
import TidemarkSQLite

/// The contents that come back from a quarantine. The container may have another content under the identifier of one of them:
/// both have the same XXH3-128, which does not prove that they are equal.
struct RestoredAssets {
    /// By identifier in the quarantine, the identifier of the content here, where the two differ.
    let names: [String: String]
    /// The contents that were ingested under another identifier.
    let ingested: [BlobStore.Blob]

    /// Ingests those of some contents whose identifiers belong to other contents here.
    ///
    /// - Parameters:
    ///   - ids: Contents of the quarantine that are not missing there.
    ///   - blobs: The assets of the container.
    /// - Complexity: Reads the contents whose identifiers are here already.
    init(_ ids: [String], from source: URL, into assets: URL, ingestingBy blobs: BlobStore) throws {
        var (names, ingested): ([String: String], [BlobStore.Blob]) = ([:], [])
        for id in try ids.filter({ try Self.isOfAnother($0, in: source, here: assets) }) {
            let workers = try IngestWorkers(store: blobs, root: source, count: 1)
            let blob = try workers.ingest(file: "\(id.prefix(2))/\(id)")
            names[id] = blob.id
            ingested.append(blob)
        }
        if !ingested.isEmpty { try blobs.sync() }
        (self.names, self.ingested) = (names, ingested)
    }

    /// Returns whether an identifier belongs to another content here. A damaged content does not count as another: copying
    /// replaces or reports it.
    private static func isOfAnother(_ id: String, in source: URL, here assets: URL) throws -> Bool {
        guard !AssetIdentifier.isOfDigest(id), AssetFiles.isHere(id, in: source), AssetFiles.isHere(id, in: assets) else {
            return false
        }
        if try areEqual(AssetFiles.url(of: id, in: source), AssetFiles.url(of: id, in: assets)) { return false }
        return AssetFiles.examine(id, in: source) == .whole && AssetFiles.examine(id, in: assets) == .whole
    }

    private static func areEqual(_ one: URL, _ other: URL) throws -> Bool {
        var (first, second) = (stat(), stat())
        if stat(one.path, &first) == 0, stat(other.path, &second) == 0, first.st_dev == second.st_dev,
            first.st_ino == second.st_ino
        {
            return true
        }
        let (file, otherFile) = (try FileHandle(forReadingFrom: one), try FileHandle(forReadingFrom: other))
        // The files were only read, so errors of closing don't matter.
        defer {
            try? file.close()
            try? otherFile.close()
        }
        while true {
            let (piece, otherPiece) = (try file.read(upToCount: 1 << 20), try otherFile.read(upToCount: 1 << 20))
            guard piece == otherPiece else { return false }
            if piece?.isEmpty ?? true { return true }
        }
    }

    /// Returns a value with the identifiers that its contents have here.
    func value(_ value: FieldValue) -> FieldValue {
        switch value {
        case .asset(let id): .asset(names[id] ?? id)
        case .list(let elements, of: .asset): .list(elements.map { self.value($0) }, of: .asset)
        case .string, .int64, .double, .timestamp, .bytes, .location, .reference, .list: value
        }
    }

    /// Returns the values of asset fields, in the form of ``RefusedSaves``, with the identifiers that their contents have here.
    func noted(_ text: String, _ fields: [String]) -> String {
        var text = text
        for field in fields {
            guard let start = text.range(of: "\"\(field)\":\"", options: .literal)?.upperBound else { continue }
            var end = start
            while end < text.endIndex, text[end] != "\"" {
                if text[end] == "\\", text.index(after: end) < text.endIndex { end = text.index(after: end) }
                end = text.index(after: end)
            }
            // In a list, each identifier is between escaped quotation marks.
            let parts = text[start..<end].components(separatedBy: "\\\"")
            text.replaceSubrange(start..<end, with: parts.map { names[$0] ?? $0 }.joined(separator: "\\\""))
        }
        return text
    }

    /// Returns the values of a record with the identifiers that their contents have here.
    func values(_ values: [String: FieldValue]) -> [String: FieldValue] { values.mapValues { value($0) } }
}
