/// Sends requests and receives their answers, over connections that it keeps open.
///
/// `CurlTransport` uses libcurl. A platform without libcurl only needs another conformer.
package protocol HTTPTransport: Sendable {
    /// Sends a request once, and receives its whole answer. Cancelling the task ends it.
    func send(_ request: HTTPRequest) async throws(TransportFailure) -> HTTPAnswer

    /// Closes the connections. Running requests fail with `closed`, and so does every later one.
    func shutdown() async
}

/// A request in the form in which it is sent.
package struct HTTPRequest: Sendable {
    /// The kind of a request. Requests of one kind share a number of connections, and never wait for requests of another kind.
    package enum Lane: Int, Sendable, CaseIterable {
        case calls, downloads, polls

        /// The most requests at the same time, if a connection can carry only one at a time.
        var limit: Int {
            switch self {
            case .calls, .downloads: 8
            case .polls: 256
            }
        }
    }

    package let lane: Lane
    package var method: HTTPMethod
    package var url: String
    /// The headers, without line ends, `Content-Length` and `Accept-Encoding`.
    package var headers: [(String, String)]
    package var body: [UInt8]?
    /// Whether the answer may be compressed with gzip. The transport decompresses it.
    package var acceptsPacked: Bool
    /// The most bytes of the answer's body after decompression.
    package var answerSizeMax: Int
    package var times: HTTPTimes
    /// The signature of a request to a server of AWS's protocols; `nil` for other servers.
    package var signature: AWSSignature?

    package init(
        lane: Lane, method: HTTPMethod, url: String, headers: [(String, String)] = [], body: [UInt8]? = nil,
        acceptsPacked: Bool = false, answerSizeMax: Int, times: HTTPTimes, signature: AWSSignature? = nil
    ) {
        (self.lane, self.method, self.url, self.headers, self.body) = (lane, method, url, headers, body)
        (self.acceptsPacked, self.answerSizeMax, self.times) = (acceptsPacked, answerSizeMax, times)
        self.signature = signature
    }
}

package enum HTTPMethod: Sendable {
    case get, post, put, head, delete
}

/// The values with which libcurl signs a request, by AWS Signature Version 4.
package struct AWSSignature: Hashable, Sendable {
    package let keyID, secret, region, service: String

    package init(keyID: String, secret: String, region: String, service: String) {
        (self.keyID, self.secret, self.region, self.service) = (keyID, secret, region, service)
    }
}

/// The timeouts of a request.
package struct HTTPTimes: Sendable {
    /// The longest time to connect, including the name look-up and the TLS handshake.
    package var connecting: Duration
    /// The longest time without sending a byte of the request's body.
    package var sendingSilence: Duration
    /// The longest time without receiving a byte of the answer.
    package var receivingSilence: Duration
    /// The longest time for the whole request.
    package var total: Duration

    package init(connecting: Duration, sendingSilence: Duration, receivingSilence: Duration, total: Duration) {
        (self.connecting, self.sendingSilence) = (connecting, sendingSilence)
        (self.receivingSilence, self.total) = (receivingSilence, total)
    }
}

/// A complete answer.
package struct HTTPAnswer: Sendable {
    package let status: HTTPStatus
    package let headers: HTTPFields
    package let body: [UInt8]
    /// Whether the body of the request was compressed.
    var wasPacked = false

    package init(status: HTTPStatus, headers: HTTPFields, body: [UInt8]) {
        (self.status, self.headers, self.body) = (status, headers, body)
    }
}

/// The status of an answer.
package struct HTTPStatus: Hashable, Sendable {
    package let code: Int

    static let ok = HTTPStatus(code: 200)
    static let partialContent = HTTPStatus(code: 206)
    static let temporaryRedirect = HTTPStatus(code: 307)
    static let notFound = HTTPStatus(code: 404)
    static let unsupportedMediaType = HTTPStatus(code: 415)
    static let rangeNotSatisfiable = HTTPStatus(code: 416)
}

/// The header fields of an answer.
package struct HTTPFields: Sendable {
    private(set) var fields: [(name: String, value: String)] = []

    mutating func append(_ name: String, _ value: String) { fields.append((name.lowercased(), value)) }

    /// The value of the first field of a name, in any case of letters.
    package func first(name: String) -> String? {
        let name = name.lowercased()
        return fields.first { $0.name == name }?.value
    }
}

/// The reason why a request has no answer.
package enum TransportFailure: Error, Hashable {
    /// The reason why a certificate is not trusted.
    package enum Distrust: Hashable {
        case authority, expired, notYetValid, otherHost
        /// The machine has no list of authorities.
        case noAuthorities
    }

    // In these cases nothing was sent.

    /// The transport was shut down before.
    case closed
    case unknownHost
    /// The connection was refused; with `errno`, or 0 if it is not known.
    case refused(Int32)
    /// There was no connection in time.
    case connectTimeout
    /// There was a connection, but the TLS handshake did not end in time.
    case handshakeTimeout
    case untrusted(Distrust)
    /// The server does not use TLS.
    case noTLS
    /// The server has no TLS of version 1.2 or newer.
    case oldTLS
    /// The handshake has failed for another reason.
    case handshakeFailed
    /// All connections of the lane were in use for too long.
    case noConnection

    // In these cases the request may have been done.

    case cancelled
    /// The request took longer than its whole time.
    case late
    /// No byte was sent or received for this time.
    case silent(Duration)
    case broken
    /// The answer is not HTTP.
    case malformed
    /// The answer can't be decompressed.
    case notUnpackable
    case tooLarge
    case outOfMemory
    /// Another failure, with libcurl's description.
    case other(String)
}
