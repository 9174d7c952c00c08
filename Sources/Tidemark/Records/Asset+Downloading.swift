import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

extension Asset {
    /// Whether the content is on this device. For an asset that is not saved yet, it is `true`.
    ///
    /// A content that is not on this device is in the cloud; ``PersistentContainer/download(_:priority:progress:)`` downloads it.
    /// The file is examined each time. So the answer is right even if the asset was fetched before its content was downloaded.
    ///
    /// - Complexity: Examines the file without reading it.
    public var isDownloaded: Bool {
        if case .stored(let id, let folder) = content { AssetFiles.isHere(id, in: folder) } else { true }
    }

    /// Marks the content as used now, so that ``PersistentContainer/evict(to:)`` evicts other contents first. ``data()`` does
    /// this. Call it if you open ``fileURL`` yourself.
    public func markUsed() {
        if case .stored(let id, let folder) = content { AssetFiles.noteUse(of: AssetFiles.url(of: id, in: folder)) }
    }

    /// Makes sure that the content is on this device.
    ///
    /// - Throws: ``StoreError`` `notDownloaded`.
    func requireContent() throws(StoreError) {
        guard case .stored(let id, _) = content, !isDownloaded else { return }
        throw StoreError.notDownloaded(id)
    }

    /// Returns whether two saved assets with different identifiers have the same content. A content from the cloud may have
    /// another identifier than the same content from a file. Contents that are not on this device count as different.
    static func isSameContent(_ one: Asset, _ other: Asset) -> Bool {
        guard let first = one.identifier, let second = other.identifier,
            AssetIdentifier.isOfDigest(first) != AssetIdentifier.isOfDigest(second), one.size == other.size, one.isDownloaded,
            other.isDownloaded
        else { return false }
        // A content that was evicted meanwhile counts as different, too.
        guard let bytes = try? one.data(), let others = try? other.data() else { return false }
        return bytes == others
    }
}
