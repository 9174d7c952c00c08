/// A request before it is sent.
struct HTTPCall: Sendable {
    /// The kind of request. It decides how long the request may take, and whether it may be sent again.
    enum Kind: Sendable {
        /// A request that only reads. It can be sent any number of times.
        case look
        /// A request that changes something. If its connection breaks, only the caller can find out whether it was done.
        case change
        case upload
        /// A download of a piece of `count` bytes.
        case download(count: Int)
        /// A long poll, which waits for changes.
        case poll
    }

    let kind: Kind
    var method = HTTPMethod.post
    /// The path after the server's own path, percent-encoded, with its query.
    let target: String
    var headers: [(String, String)] = []
    var body: [UInt8]?
    /// Whether the request is sent with the session of the account.
    var isSigned = true
    /// Whether the caller can request less if the answer is too large.
    var canAskForLess = false

    /// The bytes of the body, or of the piece to download. A request gets additional time for them.
    var byteCount: Int {
        if case .download(let count) = kind { return count }
        return body?.count ?? 0
    }

    /// The lane of connections that the request uses. Long polls and downloads have lanes of their own, so that other requests do
    /// not wait for them.
    var lane: HTTPRequest.Lane {
        switch kind {
        case .look, .change, .upload: .calls
        case .download: .downloads
        case .poll: .polls
        }
    }

    /// Whether the request can be sent again if it is not known whether it was done.
    var isRepeatable: Bool {
        switch kind {
        case .look, .download: true
        case .change, .upload, .poll: false
        }
    }

    /// The name of the request in errors: its path without the query.
    var name: String { String(target.prefix { $0 != "?" }) }
}
