/// A request before it is sent.
struct HTTPCall: Sendable {
    /// What it does, and so how long it may take and whether it may be sent again.
    enum Kind: Sendable {
        /// Reads, or finds out: it can be sent any number of times.
        case look
        /// Changes something: what became of one that broke off, only the caller can find out.
        case change
        case upload
        /// A piece of so many bytes.
        case download(count: Int)
        /// Waits for news.
        case poll
    }

    let kind: Kind
    var method = HTTPMethod.post
    /// From the server's own path on, percent-encoded, with its query.
    let target: String
    var headers: [(String, String)] = []
    var body: [UInt8]?
    /// Whether it is sent as whoever is signed in.
    var isSigned = true
    /// Whether less can be asked for where the answer is more than is read.
    var canAskForLess = false

    /// Bytes that go up, or may come down, as a request's own: what moves has time for them.
    var byteCount: Int {
        if case .download(let count) = kind { return count }
        return body?.count ?? 0
    }

    /// The connections that it may use. Those who wait for news have their own, so that nothing else waits for them; and so do pieces of
    /// assets.
    var lane: HTTPRequest.Lane {
        switch kind {
        case .look, .change, .upload: .calls
        case .download: .downloads
        case .poll: .polls
        }
    }

    /// Whether it can be sent again when nobody knows what became of it.
    var isRepeatable: Bool {
        switch kind {
        case .look, .download: true
        case .change, .upload, .poll: false
        }
    }

    /// What it is called in errors: its path alone.
    var name: String { String(target.prefix { $0 != "?" }) }
}
