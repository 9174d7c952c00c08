public import Foundation
import TidemarkModel

/// A picture or another file that a record names: content-addressed, immutable, stored once however many records name it.
///
/// ```swift
/// destination.image = Asset(fileURL: photo)          // ingested when the record is saved
/// let data = try destination.image?.data()           // of a record that was fetched
/// ```
public struct Asset: Sendable {
    enum Content: Hashable, Sendable {
        case stored(id: String, folder: URL)
        case file(URL)
        case memory(Data)
    }

    let content: Content

    /// The content of a file, which is read when the record is saved.
    public init(fileURL: URL) { content = .file(fileURL) }

    /// Some bytes.
    public init(data: Data) { content = .memory(data) }

    init(id: String, folder: URL) { content = .stored(id: id, folder: folder) }

    /// The digest and size by which the store knows the content: `<32 hex digits>-<bytes>`, perhaps with a hyphen and a number behind. `nil` before it is saved.
    public var identifier: String? {
        if case .stored(let id, _) = content { return id }
        return nil
    }

    /// The digest of the content in hexadecimal digits: XXH3-128, or half of the SHA-256 where the content was known from the cloud before it
    /// was here; `nil` before it is saved. It identifies the content within one
    /// store, and nothing between people: contents of equal digest are easy to make.
    public var digest: String? { identifier.map { String($0.prefix(32)) } }

    /// Bytes; `nil` where a file that is yet to be ingested can't be examined.
    public var size: Int? {
        switch content {
        case .stored(let id, _): id.split(separator: "-").dropFirst().first.flatMap { Int($0) }
        // What is wrong with the file, saving it tells.
        case .file(let url): (try? url.resourceValues(forKeys: [.fileSizeKey]))?.fileSize
        case .memory(let data): data.count
        }
    }

    /// Where the content lies as a file, to be read only; `nil` for bytes that are not saved yet. A content that is not on this device has no
    /// file there: ask ``isDownloaded`` first.
    public var fileURL: URL? {
        switch content {
        case .stored(let id, let folder): folder.appendingPathComponent("\(id.prefix(2))/\(id)")
        case .file(let url): url
        case .memory: nil
        }
    }

    /// The bytes. Where the content is not on this device, they are not fetched, and nothing waits.
    ///
    /// - Throws: ``StoreError`` `notDownloaded` where the content has to be downloaded first; errors of reading the file.
    public func data() throws -> Data {
        if case .memory(let data) = content { return data }
        try requireContent()
        markUsed()
        return try Data(contentsOf: fileURL!, options: .mappedIfSafe)
    }
}

extension Asset: Hashable {
    /// Returns whether two assets have the same content. An asset of a file or of bytes equals the asset that a fetch returns after
    /// the save.
    ///
    /// Saved assets are compared by their identifiers, and assets of the same file are equal; no content is read. Other assets are
    /// equal when their sizes and their bytes are equal; the bytes are read only if the sizes are equal. A file that can't be read
    /// equals no other content. The bytes are compared, too, of two saved assets of which one has come from the cloud by its digest and the other from a file,
    /// if both contents are here.
    ///
    /// - Complexity: O(1) when both assets are saved and neither or both have come from the cloud by their digests, when they come from
    ///   the same file, or have different sizes; otherwise O(n) in the bytes up to the first difference.
    public static func == (left: Asset, right: Asset) -> Bool {
        if let one = left.identifier, let other = right.identifier { return one == other || isSameContent(left, right) }
        if left.content == right.content { return true }
        guard let size = left.size, size == right.size else { return false }
        // An asset whose content can't be read is equal to no other. Saving it gives the error.
        guard let one = try? left.data(), let other = try? right.data() else { return false }
        return one == other
    }

    /// Hashes the size, which is the same for assets of the same content. No content is read. The size of a file that is not saved
    /// yet is read from the file system, so the file must not change while its asset is in a set.
    public func hash(into hasher: inout Hasher) { hasher.combine(size) }
}

/// A record's asset is encoded by the container. In any other coder, such as JSON, it is its identifier, which can't be decoded there.
extension Asset: Codable {
    public init(from decoder: any Decoder) throws {
        throw DecodingError.dataCorrupted(
            .init(codingPath: decoder.codingPath, debugDescription: "an asset can be decoded from its container only"))
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(identifier)
    }
}

extension Asset: FieldConvertible {
    static var fieldType: FieldType { .asset }

    func fieldContent() -> FieldContent {
        if let identifier { .value(.asset(identifier)) } else { .asset(self) }
    }

    init(_ stored: StoredField) throws {
        let id = try stored.text(as: .asset)
        self = stored.assets.pending[id] ?? Asset(id: id, folder: stored.assets.folder)
    }
}
