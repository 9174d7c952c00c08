/// Sends requests and receives their answers, over connections that it keeps.
///
/// `CurlTransport` does so by libcurl. A platform without libcurl needs another conformer and nothing else.
package protocol HTTPTransport: Sendable {
    /// Sends a request, once, and receives its whole answer. A task that is cancelled ends it.
    func send(_ request: HTTPRequest) async throws(TransportFailure) -> HTTPAnswer

    /// Closes the connections; requests under way fail with `closed`, and so does every later one.
    func shutdown() async
}

/// A request as it is sent.
package struct HTTPRequest: Sendable {
    /// Requests of one kind share so many connections, and never wait for those of another kind.
    package enum Lane: Int, Sendable, CaseIterable {
        case calls, downloads, polls

        /// Requests at the same time, where a connection has room for one.
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
    /// Without line ends, `Content-Length` and `Accept-Encoding`.
    package var headers: [(String, String)]
    package var body: [UInt8]?
    /// Whether the answer may come packed by gzip. It is unpacked.
    package var acceptsPacked: Bool
    /// Bytes of the answer's body, unpacked.
    package var answerSizeMax: Int
    package var times: HTTPTimes
    /// By what it is signed, where a server of AWS's protocols is asked.
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

/// With what libcurl signs a request, in AWS's fourth version.
package struct AWSSignature: Hashable, Sendable {
    package let keyID, secret, region, service: String

    package init(keyID: String, secret: String, region: String, service: String) {
        (self.keyID, self.secret, self.region, self.service) = (keyID, secret, region, service)
    }
}

/// How long a request may take.
package struct HTTPTimes: Sendable {
    /// Until there is a connection, with its name found and TLS agreed on.
    package var connecting: Duration
    /// Without a byte of the request's body on its way.
    package var sendingSilence: Duration
    /// Without a byte of the answer.
    package var receivingSilence: Duration
    /// In all.
    package var total: Duration

    package init(connecting: Duration, sendingSilence: Duration, receivingSilence: Duration, total: Duration) {
        (self.connecting, self.sendingSilence) = (connecting, sendingSilence)
        (self.receivingSilence, self.total) = (receivingSilence, total)
    }
}

/// An answer that has come whole.
package struct HTTPAnswer: Sendable {
    package let status: HTTPStatus
    package let headers: HTTPFields
    package let body: [UInt8]
    /// Whether its request's body was packed.
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

/// The header of an answer.
package struct HTTPFields: Sendable {
    private(set) var fields: [(name: String, value: String)] = []

    mutating func append(_ name: String, _ value: String) { fields.append((name.lowercased(), value)) }

    /// The value of the first field of a name, in any case of letters.
    package func first(name: String) -> String? {
        let name = name.lowercased()
        return fields.first { $0.name == name }?.value
    }
}

/// Why a request has no answer.
package enum TransportFailure: Error, Hashable {
    /// Why a certificate is not trusted.
    package enum Distrust: Hashable {
        case authority, expired, notYetValid, otherHost
        /// The machine has no list of authorities.
        case noAuthorities
    }

    // Nothing was sent.

    /// The transport was shut down before.
    case closed
    case unknownHost
    /// With `errno`, where it is known.
    case refused(Int32)
    /// There was no connection in time.
    case connectTimeout
    /// There was a connection, and TLS was not agreed on in time.
    case handshakeTimeout
    case untrusted(Distrust)
    /// The server speaks no TLS.
    case noTLS
    /// The server speaks no TLS from 1.2 on.
    case oldTLS
    /// The handshake has failed for another reason.
    case handshakeFailed
    /// All connections of the lane were in use for too long.
    case noConnection

    // It may have been done.

    case cancelled
    /// It was not done in the time that it may take in all.
    case late
    /// Nothing moved for so long.
    case silent(Duration)
    case broken
    /// What has come is no HTTP.
    case malformed
    /// The answer can't be unpacked.
    case notUnpackable
    case tooLarge
    case outOfMemory
    /// What libcurl calls it.
    case other(String)
}
