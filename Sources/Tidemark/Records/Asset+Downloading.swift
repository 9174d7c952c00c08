import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

extension Asset {
    /// Whether the content is on this device. An asset that is not saved yet is.
    ///
    /// A content that is not here is in the cloud; ``PersistentContainer/download(_:priority:progress:)`` brings it. The answer
    /// is looked up each time: an asset that was fetched before its content came tells of it, too.
    ///
    /// - Complexity: A look at the file, without reading it.
    public var isDownloaded: Bool {
        if case .stored(let id, let folder) = content { AssetFiles.isHere(id, in: folder) } else { true }
    }

    /// Notes that the content is used now, so that ``PersistentContainer/evict(to:)`` evicts others first. ``data()`` does it by itself; call
    /// it where you open ``fileURL`` yourself.
    public func markUsed() {
        if case .stored(let id, let folder) = content { AssetFiles.noteUse(of: AssetFiles.url(of: id, in: folder)) }
    }

    /// Makes sure that the content is here.
    ///
    /// - Throws: ``StoreError`` `notDownloaded`.
    func requireContent() throws(StoreError) {
        guard case .stored(let id, _) = content, !isDownloaded else { return }
        throw StoreError.notDownloaded(id)
    }

    /// Returns whether two saved assets with different identifiers have the same content: a content that came from the cloud may have another
    /// identifier than the same content that came from a file. Contents that are not here are different.
    static func isSameContent(_ one: Asset, _ other: Asset) -> Bool {
        guard let first = one.identifier, let second = other.identifier,
            AssetIdentifier.isOfDigest(first) != AssetIdentifier.isOfDigest(second), one.size == other.size, one.isDownloaded,
            other.isDownloaded
        else { return false }
        // A content that was evicted meanwhile is not here, either.
        guard let bytes = try? one.data(), let others = try? other.data() else { return false }
        return bytes == others
    }
}
