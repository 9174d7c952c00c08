import TidemarkModel
package import TidemarkSQLite

/// Identifiers of assets, as fields hold them.
///
/// The identifier of a content that came into the store as a file is `<XXH3-128>-<size>`. A content that the store knows from the cloud
/// only, and does not have, has no such digest yet: its identifier is `<first 32 digits of the SHA-256>-<size>-256`. It keeps that
/// identifier when the content comes. The core gives numbers up to 63 at the end, so the two kinds are never equal.
package enum AssetIdentifier {
    /// What stands at the end of an identifier that is made of a SHA-256.
    private static let mark = "256"

    /// The identifier of a content that is known by its SHA-256.
    ///
    /// - Parameter sha256: 64 lower-case hexadecimal digits.
    package static func ofDigest(_ sha256: String, size: Int64) -> String { "\(sha256.prefix(32))-\(size)-\(mark)" }

    /// Whether an identifier is made of a SHA-256.
    package static func isOfDigest(_ id: String) -> Bool {
        let parts = id.split(separator: "-", omittingEmptySubsequences: false)
        return parts.count == 3 && parts[2] == mark
    }

    /// The size in bytes that an identifier tells; 0 where it is no identifier.
    package static func size(of id: String) -> Int64 {
        let parts = id.split(separator: "-")
        return parts.count > 1 ? Int64(parts[1]) ?? 0 : 0
    }
}

extension StoreError {
    /// The error of reading a content that is not here.
    package static func notDownloaded(_ id: String) -> StoreError {
        StoreError(
            .notDownloaded,
            "the content of the asset \(id) is in the cloud and not here. Download it first: PersistentContainer.download(_:), or 'tidemark assets download'",
            namesRemedy: true)
    }
}

/// `tide_assets.media`: the kind of image, and whether the content may be missing.
package enum StoredMedia {
    /// Added where the content is not here: it was evicted, or has never come.
    package static let absent = 256

    /// The kind of image alone.
    package static func kind(_ media: Int) -> Int { media & (absent - 1) }
}
