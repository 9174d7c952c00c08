public import Foundation
import TidemarkModel

/// Computes the SHA-256 digest of a content that arrives in parts. Clouds identify assets by this digest.
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

    /// Ends the digest, and returns the asset of all bytes that were added.
    public consuming func finish() -> CloudAsset {
        let size = size
        return CloudAsset(digest: Hexadecimal.text(hash.finish()), size: size)
    }

    /// Returns the asset of bytes that are all in memory. O(n) in their count.
    public static func asset(of data: some ContiguousBytes) -> CloudAsset {
        var digest = AssetDigest()
        digest.update(data)
        return digest.finish()
    }
}
