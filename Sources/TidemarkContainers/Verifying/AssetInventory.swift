import Foundation
import GRDB
public import TidemarkModel
public import TidemarkSQLite
public import TidemarkStore

/// The contents that a container's stores name: those on this device, and those in the cloud alone.
///
/// ```swift
/// let inventory = try AssetInventory(of: ContainerDirectory(openingAt: journal))
/// print("\(inventory.notDownloaded) contents are in the cloud alone")
/// ```
public struct AssetInventory: Sendable {
    /// The content of an asset.
    public struct Content: Hashable, Sendable {
        /// The identifier, as fields hold it.
        public let id: String
        /// The size in bytes.
        public let size: Int64
        /// The usual file name extension; `bin` for a content that is not an image, or was never on this device.
        public let pathExtension: String
        /// Whether the content is on this device.
        public let isDownloaded: Bool
        /// The records that name the content; empty if only history names it.
        public var records: [RecordName] = []
    }

    /// The contents, in the order of their identifiers.
    public let contents: [Content]
    /// The number of contents on this device.
    public var downloaded: Int { contents.count(where: \.isDownloaded) }
    /// The bytes of the contents on this device.
    public var downloadedBytes: Int64 { contents.reduce(0) { $0 + ($1.isDownloaded ? $1.size : 0) } }
    /// The number of contents that are in the cloud alone.
    public var notDownloaded: Int { contents.count - downloaded }
    /// The bytes of the contents that are in the cloud alone.
    public var notDownloadedBytes: Int64 { contents.reduce(0) { $0 + ($1.isDownloaded ? 0 : $1.size) } }

    /// Takes the inventory of a container.
    ///
    /// - Parameters:
    ///   - container: The container.
    ///   - findsRecords: Whether ``Content/records`` is filled.
    /// - Throws: ``StoreError`` as ``StoreReader`` does.
    /// - Complexity: Examines the file of each content; with `findsRecords`, O(n) in the records of types with assets.
    public init(of container: ContainerDirectory, findsRecords: Bool = false) throws(StoreError) {
        var contents: [String: Content] = [:]
        for scope in ContainerDirectory.scopes where scope == .private || container.hasStore(scope) {
            let reader = try StoreReader(container: container, scope: scope)
            for asset in try reader.listedAssets() where contents[asset.id] == nil {
                contents[asset.id] = Content(
                    id: asset.id, size: asset.size, pathExtension: asset.pathExtension,
                    isDownloaded: AssetFiles.isHere(asset.id, in: container.assets))
            }
            guard findsRecords else { continue }
            for (id, records) in try reader.recordsNamingAssets() { contents[id]?.records += records }
        }
        self.contents = contents.values.sorted { $0.id < $1.id }
    }
}
