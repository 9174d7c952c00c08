import Foundation

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
        return CloudAsset(digest: Self.hexadecimal(hash.finish()), size: size)
    }

    private static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// Of bytes that are all there.
    public static func asset(of data: some ContiguousBytes) -> CloudAsset {
        var digest = AssetDigest()
        digest.update(data)
        return digest.finish()
    }
}
