public import Foundation
import TidemarkModel

/// A picture or another file that a record names. It is content-addressed and immutable, and it is stored once for all records
/// that name it.
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

    /// Makes an asset from a file, which is read when the record is saved.
    public init(fileURL: URL) { content = .file(fileURL) }

    /// Makes an asset from bytes.
    public init(data: Data) { content = .memory(data) }

    init(id: String, folder: URL) { content = .stored(id: id, folder: folder) }

    /// The identifier of the content in the store: `<32 hex digits>-<bytes>`, perhaps followed by a hyphen and a number. `nil`
    /// before the asset is saved.
    public var identifier: String? {
        if case .stored(let id, _) = content { return id }
        return nil
    }

    /// The digest of the content in hexadecimal digits: XXH3-128, or half of the SHA-256 if the cloud named the content before it
    /// was on this device. `nil` before the asset is saved. It identifies the content within one store. It is not cryptographic:
    /// different contents with the same digest are easy to make.
    public var digest: String? { identifier.map { String($0.prefix(32)) } }

    /// The size in bytes; `nil` if the file of an asset that is not saved yet can't be examined.
    public var size: Int? {
        switch content {
        case .stored(let id, _): id.split(separator: "-").dropFirst().first.flatMap { Int($0) }
        // Saving the asset reports what is wrong with the file.
        case .file(let url): (try? url.resourceValues(forKeys: [.fileSizeKey]))?.fileSize
        case .memory(let data): data.count
        }
    }

    /// The file with the content, which must only be read; `nil` for bytes that are not saved yet. If the content is not on this
    /// device, there is no file: check ``isDownloaded`` first.
    public var fileURL: URL? {
        switch content {
        case .stored(let id, let folder): folder.appendingPathComponent("\(id.prefix(2))/\(id)")
        case .file(let url): url
        case .memory: nil
        }
    }

    /// Returns the bytes. It does not download a content, and does not wait for the network.
    ///
    /// - Throws: ``StoreError`` `notDownloaded` if the content has to be downloaded first; errors of reading the file.
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
    /// Saved assets are compared by their identifiers, and assets of the same file are equal; no content is read. Other assets
    /// are equal if their sizes and their bytes are equal. The bytes are read only if the sizes are equal. A file that can't be
    /// read equals no other content.
    ///
    /// The identifier of a content from the cloud may be made of its SHA-256. If one of two saved assets has such an identifier
    /// and the other does not, their bytes are compared, provided that both contents are on this device.
    ///
    /// - Complexity: O(1) when both assets are saved with identifiers of the same kind, when they come from the same file, or
    ///   when their sizes differ; otherwise O(n) in the bytes.
    public static func == (left: Asset, right: Asset) -> Bool {
        if let one = left.identifier, let other = right.identifier { return one == other || isSameContent(left, right) }
        if left.content == right.content { return true }
        guard let size = left.size, size == right.size else { return false }
        // An asset whose content can't be read equals no other. Saving it reports the error.
        guard let one = try? left.data(), let other = try? right.data() else { return false }
        return one == other
    }

    /// Hashes the size, which is the same for assets of the same content. No content is read. The size of a file that is not saved
    /// yet is read from the file system, so the file must not change while its asset is in a set.
    public func hash(into hasher: inout Hasher) { hasher.combine(size) }
}

/// A container encodes and decodes a record's assets itself. Any other encoder, such as JSON's, gets the identifier, which can't
/// be decoded.
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
