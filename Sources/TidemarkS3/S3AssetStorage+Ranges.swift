import Foundation
package import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// Parts of contents.
///
/// A part can't be compared with a digest. So a content that is not too large is read once as a whole, and compared, before a
/// part of it is handed out. The tag that the bucket gave with it is remembered: a part with the same tag is of the same content.
extension S3AssetStorage {
    /// How many bytes one request reads of a content that is compared.
    private static let blockSize: Int64 = 8 << 20

    /// Reads a part of a content.
    ///
    /// - Returns: `nil` where there is no content.
    func part(_ range: Range<Int64>, of asset: CloudAsset, _ key: String) async throws(CloudError) -> [UInt8]? {
        guard asset.size <= configuration.comparedSizeMax else { return try await client.get(key, range, of: asset.size) }
        let known = compared.tag(of: key)
        if let known {
            guard let answer = try await client.read(key, range, of: asset.size) else { return nil }
            if answer.tag == known { return answer.bytes }
        }
        // One request compares the content. Requests that come meanwhile wait, and then only compare the tag.
        await comparisons.lock(key)
        defer { comparisons.unlock(key) }
        if let tag = compared.tag(of: key), tag != known, let answer = try await client.read(key, range, of: asset.size),
            answer.tag == tag
        {
            return answer.bytes
        }
        return try await comparedPart(range, of: asset, key)
    }

    /// Reads a content as a whole, compares it with its digest, and returns a part of it.
    private func comparedPart(_ range: Range<Int64>, of asset: CloudAsset, _ key: String) async throws(CloudError) -> [UInt8]? {
        let isOneBlock = asset.size <= Self.blockSize
        var digest = AssetDigest()
        var (tag, part): (String?, [UInt8]) = (nil, [])
        for begin in stride(from: 0, to: asset.size, by: Int(Self.blockSize)) {
            let block = begin..<min(begin + Self.blockSize, asset.size)
            // A content of one block that was damaged on its way is requested again.
            let answer = try await client.read(key, block, of: asset.size) { !isOneBlock || AssetDigest.asset(of: $0) == asset }
            guard let answer else { return nil }
            guard begin == 0 || answer.tag == tag else { throw otherContent(asset) }
            tag = answer.tag
            digest.update(answer.bytes)
            let wanted = range.clamped(to: block)
            if !wanted.isEmpty { part += answer.bytes[Int(wanted.lowerBound - begin)..<Int(wanted.upperBound - begin)] }
        }
        guard digest.finish() == asset else { throw otherContent(asset) }
        if let tag { compared.remember(tag, of: key) }
        return part
    }

    package func isDamaged(_ asset: CloudAsset, owner: String) async -> Bool {
        guard (try? asset.check()) != nil else { return false }
        let key = key(asset, owner: owner)
        do throws(CloudError) {
            guard let head = try await client.head(key) else { return false }
            guard head.size == asset.size else { return true }
            // Larger contents are never compared.
            guard asset.size <= configuration.comparedSizeMax else { return false }
            // Damage on the way differs each time, so two equal reads tell of damage in the bucket.
            guard let first = try await whole(asset, key), first.content != asset else { return false }
            return try await whole(asset, key).map { $0 == first } ?? false
        } catch {
            // Without the bucket's answer nothing is known.
            return false
        }
    }

    /// Reads a content as a whole.
    ///
    /// - Returns: The content that was read, and its tag; `nil` if it is missing, or was replaced meanwhile.
    private func whole(_ asset: CloudAsset, _ key: String) async throws(CloudError) -> (content: CloudAsset, tag: String?)? {
        var digest = AssetDigest()
        var tag: String?
        for begin in stride(from: 0, to: asset.size, by: Int(Self.blockSize)) {
            let block = begin..<min(begin + Self.blockSize, asset.size)
            guard let answer = try await client.read(key, block, of: asset.size) else { return nil }
            guard begin == 0 || answer.tag == tag else { return nil }
            tag = answer.tag
            digest.update(answer.bytes)
        }
        return (digest.finish(), tag)
    }

    private func otherContent(_ asset: CloudAsset) -> CloudError {
        var error = CloudError(
            .serviceUnavailable, "the \(configuration.name) has another content than that of the digest \(asset.digest)",
            retryAfter: .seconds(60))
        error.isOtherContent = true
        return error
    }
}

/// Tags of objects whose contents were compared with their digests. The oldest ones are forgotten.
final class ComparedTags: Sendable {
    private struct Tags {
        /// The tags that were remembered last. When there are enough, the tags from before are forgotten.
        var new: [String: String] = [:]
        var before: [String: String] = [:]
    }

    private let tags = LockedValue(Tags())
    /// How many of the newest tags are remembered at the least.
    private static let most = 20_000

    func tag(of key: String) -> String? { tags.withLock { $0.new[key] ?? $0.before[key] } }

    func remember(_ tag: String, of key: String) {
        tags.withLock { tags in
            if tags.new.count >= Self.most {
                tags.before = tags.new
                tags.new = [:]
            }
            tags.new[key] = tag
        }
    }
}
