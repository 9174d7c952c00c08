import COpenSSL
import Foundation

/// SHA-256 of a content as it comes, by which clouds know assets.
///
/// ```swift
/// var digest = AssetDigest()
/// digest.update(data)
/// let asset = digest.finish()       // its digest and size
/// ```
public struct AssetDigest: ~Copyable {
    private let context: OpaquePointer
    private var size: Int64 = 0

    public init() {
        // It fails only without memory.
        context = EVP_MD_CTX_new()!
        EVP_DigestInit_ex(context, EVP_sha256(), nil)
    }

    deinit { EVP_MD_CTX_free(context) }

    public mutating func update(_ data: some ContiguousBytes) {
        data.withUnsafeBytes { bytes in
            _ = EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
            size += Int64(bytes.count)
        }
    }

    /// What has come until now, as an asset.
    public consuming func finish() -> CloudAsset {
        var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        EVP_DigestFinal_ex(context, &bytes, &count)
        return CloudAsset(digest: Self.hexadecimal(bytes.prefix(Int(count))), size: size)
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
