public import Foundation
import TidemarkModel

/// SHA-256 of a content as it comes, by which clouds know assets.
///
/// ```swift
/// var digest = AssetDigest()
/// digest.update(data)
/// let asset = digest.finish()       // its digest and size
/// ```
public struct AssetDigest: ~Copyable {
    private var hash = SHA256Context()
    private var size: Int64 = 0

    /// Makes a digest of no bytes.
    public init() {}

    /// Adds the next bytes of the content. O(n) in their count.
    ///
    /// - Parameter data: The bytes that follow those of the calls before.
    public mutating func update(_ data: some ContiguousBytes) {
        data.withUnsafeBytes { bytes in
            hash.update(bytes)
            size += Int64(bytes.count)
        }
    }

    /// What has come until now, as an asset.
    public consuming func finish() -> CloudAsset {
        let size = size
        return CloudAsset(digest: Hexadecimal.text(hash.finish()), size: size)
    }

    /// Of bytes that are all there.
    public static func asset(of data: some ContiguousBytes) -> CloudAsset {
        var digest = AssetDigest()
        digest.update(data)
        return digest.finish()
    }
}
