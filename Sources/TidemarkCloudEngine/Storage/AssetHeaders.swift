/// Headers of every answer with a content, whoever gives it: the server, or the bucket to which it sends.
package enum AssetHeaders {
    /// What a content is, nobody has looked at: a browser is not to run it as a page of the origin that it comes from.
    package static let contentType = "application/octet-stream"
    package static let contentDisposition = "attachment"
    /// A content never changes.
    package static let cacheControl = "private, max-age=3600, immutable"
}
