import HTTPTypes
import TidemarkCloud
import TidemarkIdentity
import TidemarkModel
import TidemarkWire

/// The refusal of a request as a whole.
struct Refusal: Error {
    var status: HTTPResponse.Status
    /// The protocol's code.
    var name: String
    /// The error behind it, as Tidemark's own clients know it.
    var error: CloudError
    /// The address where a person can sign in.
    var redirectURL: String?
    var headers: HTTPFields = [:]
    /// The reason for operators, in place of the one that the client gets.
    var reasonForOperators: String?
    /// The session that has ended, by its identifier.
    var endedSession = ""
    /// The account whose sign-in is refused, by its identifier; empty for none.
    var triedAccount = ""
    /// The device whose sign-in is refused, as the request names it; empty where it names none.
    var triedDevice = ""

    /// Makes a refusal of an operation's error.
    init(_ error: CloudError, redirectURL: String? = nil) {
        name = error.code.wire.name
        status = HTTPResponse.Status(code: error.code.wire.status)
        self.error = error
        self.redirectURL = error.code == .notAuthenticated ? redirectURL : nil
    }

    /// Makes a refusal of an error of the credential store.
    init(_ error: CredentialError) {
        self.init(CloudError(credentials: error))
    }

    private init(_ status: HTTPResponse.Status, _ name: String, _ error: CloudError) {
        (self.status, self.name, self.error) = (status, name, error)
    }

    static func badRequest(_ reason: String) -> Refusal { Refusal(CloudError(.invalidArguments, reason)) }

    /// Refuses invalid credentials, or those for something else. A caller without credentials learns no more from it.
    static func authenticationFailed(_ reason: String = "bad credentials: the API token, the session or the signature") -> Refusal
    {
        Refusal(.unauthorized, "AUTHENTICATION_FAILED", CloudError(.notAuthenticated, reason))
    }

    /// Names a session that was ended or has expired. The client learns no more than with other bad credentials, unless its
    /// account was removed.
    func of(_ session: String?, _ failure: SessionFailure) -> Refusal {
        guard let session else { return self }
        var refusal = self
        (refusal.endedSession, refusal.reasonForOperators) = (session, failure.reason)
        return refusal
    }

    /// Names the account whose sign-in is refused, for operators alone.
    ///
    /// - Parameters:
    ///   - account: Its identifier; `nil` where the cloud has no such account. The typed text is left out, since it may be a
    ///     password.
    ///   - device: The device's name in the request. It may be any text.
    func ofSignIn(to account: String?, on device: String) -> Refusal {
        var refusal = self
        refusal.triedDevice = CredentialStore.line(device)
        if let account { refusal.triedAccount = account } else { refusal.reasonForOperators = "no such account" }
        return refusal
    }

    /// Refuses a right password without a right code of the second factor.
    ///
    /// - Parameter isGiven: Whether there was a code.
    static func secondFactorRequired(isGiven: Bool) -> Refusal {
        let reason =
            isGiven
            ? "the code of the second factor is wrong, or was used already"
            : "the account has a second factor: give the code that its app shows, or a recovery code"
        return Refusal(CloudError(.secondFactorRequired, reason))
    }

    /// - Parameter wait: Seconds until the next attempt.
    static func tooManyCodes(_ wait: Int) -> Refusal {
        throttled(Double(wait), "too many codes of the second factor were wrong; a recovery code still counts")
    }

    static func authenticationRequired(redirectURL: String?) -> Refusal {
        Refusal(CloudError(.notAuthenticated, "request needs authorization"), redirectURL: redirectURL)
    }

    static func tooLarge(_ limit: Int) -> Refusal {
        Refusal(.contentTooLarge, "BAD_REQUEST", CloudError(.limitExceeded, "a request's body has at most \(limit) bytes"))
    }

    /// Refuses a request that is for another server, by its `Host`.
    static let otherHost = Refusal(
        .misdirectedRequest, "BAD_REQUEST",
        CloudError(.invalidArguments, "this server has another name: ask for it by its public URL"))

    static let noHandler = Refusal(
        .notFound, "NOT_FOUND", CloudError(.unknownItem, "could not find handler for endpoint", remedy: .checkAddress))

    static func otherMethods(_ methods: [HTTPRequest.Method]) -> Refusal {
        let names = methods.map(\.rawValue).joined(separator: ", ")
        var refusal = Refusal(
            .methodNotAllowed, "BAD_REQUEST", CloudError(.invalidArguments, "this endpoint is reached with \(names)"))
        refusal.headers[.allow] = names
        return refusal
    }

    /// - Parameter wait: Seconds until the next request.
    static func throttled(_ wait: Double, _ reason: String = "too many requests") -> Refusal {
        Refusal(CloudError(.requestRateLimited, reason, retryAfter: .seconds(max(1, Int64(wait.rounded(.up))))))
    }

    /// - Parameter reason: The reason for clients.
    static func busy(_ reason: String) -> Refusal {
        Refusal(CloudError(.serviceUnavailable, forClients: reason, retryAfter: .seconds(2)))
    }

    /// Makes the answer.
    func reply(uuid: String, isExtended: Bool) -> Reply {
        var reply = Reply.json(
            error.answer(uuid: uuid, name: name, redirectURL: redirectURL, WireDialect(isExtended: isExtended)))
        reply.status = status
        reply.headers = headers
        if headers[.retryAfter] == nil, let wait = error.retryAfter {
            reply.headers[.retryAfter] = String(max(1, wait.components.seconds))
        }
        return reply
    }
}
