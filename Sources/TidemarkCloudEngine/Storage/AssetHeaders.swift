/// Headers of every response with the content of an asset, from the server or from a bucket.
package enum AssetHeaders {
    /// Nobody has checked what a content is. A browser must not run it as a page of its origin.
    package static let contentType = "application/octet-stream"
    package static let contentDisposition = "attachment"
    /// A content never changes.
    package static let cacheControl = "private, max-age=3600, immutable"
}
