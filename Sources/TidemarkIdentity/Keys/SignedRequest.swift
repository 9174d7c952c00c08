import Foundation

/// A request that a server has signed, as CloudKit Web Services defines it.
public struct SignedRequest: Sendable {
    /// The header `X-Apple-CloudKit-Request-ISO8601Date`.
    public var date: String
    /// The bytes of the request's body.
    public var body: [UInt8]
    /// The address's path from `/database/1/` on, as it was sent: without host and query.
    public var path: String
    /// The address's query, without the question mark: some clients sign it along with the path.
    public var query: String?
    /// The header `X-Apple-CloudKit-Request-SignatureV1`.
    public var signature: String

    /// Makes a signed request. `path` has no query.
    public init(date: String, body: [UInt8], path: String, query: String? = nil, signature: String) {
        self.date = date
        self.body = body
        self.path = path
        self.query = query
        self.signature = signature
    }

    /// The texts that may have been signed: with the digest of an empty body or without it, and with or without the query.
    var texts: [String] {
        let hashes = [Data(Digest.sha256(body)).base64EncodedString()] + (body.isEmpty ? [""] : [])
        let paths = [path] + (query.map { $0.isEmpty ? [] : ["\(path)?\($0)"] } ?? [])
        return paths.flatMap { path in hashes.map { "\(date):\($0):\(path)" } }
    }

    /// The date as seconds since 1970 UTC; `nil` unless it is one like `2026-11-21T08:00:00Z`.
    static func seconds(_ date: String) -> Int64? {
        let bytes = Array(date.utf8)
        guard bytes.count == 20 else { return nil }
        for (place, sign) in [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":"), (19, "Z")] {
            guard bytes[place] == sign.utf8.first else { return nil }
        }
        func number(_ range: Range<Int>) -> Int? {
            guard bytes[range].allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            return bytes[range].reduce(0) { $0 * 10 + Int($1 - 0x30) }
        }
        guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10), let hour = number(11..<13),
            let minute = number(14..<16), let second = number(17..<19), (1...12).contains(month), hour < 24, minute < 60,
            second < 60
        else { return nil }
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let days = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard (1...days[month - 1]).contains(day), year >= 1970 else { return nil }
        let before = (1970..<year).reduce(0) { $0 + ($1 % 4 == 0 && ($1 % 100 != 0 || $1 % 400 == 0) ? 366 : 365) }
        let whole = before + days[..<(month - 1)].reduce(0, +) + day - 1
        return Int64(((whole * 24 + hour) * 60 + minute) * 60 + second)
    }
}

/// Why a signed request is refused.
public enum SignatureFailure: String, Error, CaseIterable, Sendable {
    /// The date in the header can't be read, is too old, or too new; the signature can't be read, or is wrong.
    case malformedDate, tooOld, tooNew, malformedSignature, wrong
    /// A request that changes something has come with this signature already.
    case replayed
    /// The request can't be told from a replay any more: too many requests have come since it was signed.
    case forgotten
    /// The request changes something, and was signed before this server started, or in the same second: the server does not know
    /// which requests came before its start.
    case beforeStart

    /// What is wrong and what helps, for people.
    public var reason: String {
        switch self {
        case .malformedDate: "the request's date is no UTC time without a fraction, such as 2026-11-21T08:00:00Z"
        case .tooOld: "the request's date is over 10 minutes past: sign it again, with the present time"
        case .tooNew: "the request's date is over 10 minutes ahead: set the clock, and sign it again"
        case .malformedSignature: "the request's signature is not a DER-coded ECDSA signature in base64"
        case .wrong: "the signature is not the key's of this date, body and path"
        case .replayed: "a request with this signature has come already: sign each request again"
        case .forgotten: "too many signed requests have come since this one was signed: sign it again, with the present time"
        case .beforeStart:
            "the server has started since the second in which the request was signed: sign it again, a second later"
        }
    }
}

extension ServerKey {
    /// How many seconds a request's date may be from now.
    public static let tolerance: Int64 = 600

    /// Checks the date and the signature of a request. It does not find out whether the request has come before.
    ///
    /// - Parameter now: Microseconds since 1970 UTC.
    public func check(_ request: SignedRequest, at now: Int64) throws(SignatureFailure) { _ = try mark(of: request, at: now) }

    /// Checks a request. Returns the second in which it was signed, and a mark that its copies have too: the first half of the
    /// signature's `r`, which is as good as random.
    func mark(of request: SignedRequest, at now: Int64) throws(SignatureFailure) -> (second: Int64, mark: [UInt8]) {
        guard let second = SignedRequest.seconds(request.date) else { throw .malformedDate }
        guard second * 1_000_000 >= now - Self.tolerance * 1_000_000 else { throw .tooOld }
        guard second * 1_000_000 <= now + Self.tolerance * 1_000_000 else { throw .tooNew }
        // No signature of P-256 has more than 72 bytes.
        guard request.signature.utf8.count <= 100, let signature = Data(base64Encoded: request.signature).map(Array.init),
            let r = PublicKey.r(of: signature)
        else { throw .malformedSignature }
        guard request.texts.contains(where: { publicKey.verifies(signature, of: Array($0.utf8)) }) else { throw .wrong }
        return (second, Array(r[..<16]))
    }
}
