import TidemarkModel
package import TidemarkSQLite

/// Identifiers of assets, as fields hold them.
///
/// A content that came into the store as a file has the identifier `<XXH3-128>-<size>`. A content that the store knows only from
/// the cloud has no such digest yet. Its identifier is `<first 32 digits of the SHA-256>-<size>-256`, and it keeps that when the
/// content arrives. The core appends only numbers up to 63, so the two kinds are never equal.
package enum AssetIdentifier {
    /// The end of an identifier that is made of a SHA-256.
    private static let mark = "256"

    /// Makes the identifier of a content that is known by its SHA-256.
    ///
    /// - Parameter sha256: 64 lower-case hexadecimal digits.
    package static func ofDigest(_ sha256: String, size: Int64) -> String { "\(sha256.prefix(32))-\(size)-\(mark)" }

    /// Whether an identifier is made of a SHA-256.
    package static func isOfDigest(_ id: String) -> Bool {
        let parts = id.split(separator: "-", omittingEmptySubsequences: false)
        return parts.count == 3 && parts[2] == mark
    }

    /// Returns the size in bytes that an identifier has; 0 for a text that is no identifier.
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
    /// Added for a content that is not here: it was evicted, or never downloaded.
    package static let absent = 256

    /// The kind of image alone.
    package static func kind(_ media: Int) -> Int { media & (absent - 1) }
}
