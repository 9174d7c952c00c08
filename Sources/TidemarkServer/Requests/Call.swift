import Hummingbird
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkIdentity
import TidemarkModel

/// The caller of an operation.
struct Caller: Sendable {
    /// The account's identifier in the embedded cloud; `nil` for a caller who is not signed in.
    var account: String?
    /// The account, if it was read with the session.
    var holder: StoredAccount?
    /// Whether the caller is a program that signs with a key.
    var isKey = false
    /// The session of the request.
    var session: String?
    /// The credential of the request. Addresses that are made for the caller end with it. Empty for none.
    var credential = Credential.none
    /// The address where a person can sign in, for the answer to a caller who has to.
    var signInURL: String?
}

/// A request for an operation, with its address taken apart and its caller known.
///
/// An operation that waits ends at once when the server is shutting down: it waits in ServiceLifecycle's
/// `cancelWhenGracefulShutdown`.
struct Call: Sendable {
    let operation: Operation
    /// Names the request in answers and logs.
    let uuid: String
    let caller: Caller
    /// The address of the client, for limits.
    let address: String
    /// The container, which is served; empty where the path names none.
    let container: String
    let environment: StoreEnvironment
    /// `nil` where the path names none.
    let scope: DatabaseScope?
    /// The other parameters of the path, by name: no slash, no NUL, neither `.` nor `..`, at most 1,024 bytes.
    let parameters: [String: String]
    let query: [String: String]
    /// The decompressed body. Empty where the operation reads none, or reads a stream.
    let body: [UInt8]
    /// The body, if the operation reads it in pieces.
    let stream: RequestBody?
    let headers: HTTPFields
    /// Whether the answer may have members that only Tidemark's own clients know.
    let isExtended: Bool
    /// `https://host:port`, as the client has reached the server.
    let baseURL: String
    /// Whether only the head of the answer is wanted.
    var isHead = false
    /// Called with an error of a part of the request, if clients are told less than its reason.
    var onInternalReason: (@Sendable (CloudError) -> Void)?
}

/// The logged reasons of a request's errors. Several parts of a request may fail for the same reason.
final class LoggedReasons: Sendable {
    private let reasons = LockedValue<Set<String>>([])

    /// Returns whether a reason is new.
    func isNew(_ reason: String) -> Bool { reasons.withLock { $0.insert(reason).inserted } }
}

/// The answer to a call.
struct Reply: Sendable {
    enum Body: Sendable {
        case json([UInt8])
        case text(String, type: String)
        /// Writes the content, and does not finish it: the responder does.
        case stream(type: String, count: Int64?, @Sendable (inout any ResponseBodyWriter) async throws -> Void)
        case none
    }

    var status: HTTPResponse.Status = .ok
    var headers: HTTPFields = [:]
    var body: Body
    /// The failures of the request, for administrators.
    var failures: [Failure] = []

    /// A request that has failed, or parts of one that have failed alike.
    struct Failure: Sendable {
        /// The protocol's code.
        let code: String
        let reason: String
        /// The record, its type and its zone; empty where the failure is of no record.
        var record = "", recordType = "", zone = ""
        /// The session that has ended, by its identifier; empty for none.
        var session = ""
        /// The account whose sign-in is refused, by its identifier; empty for none.
        var triedAccount = ""
        /// The device whose sign-in is refused, as the request names it; empty for none.
        var triedDevice = ""
        var count = 1
        /// The field and type that a record has and the schema lacks, as in `SchemaMismatch`; empty for another failure.
        var field = "", fieldType = ""
    }

    static func json(_ bytes: [UInt8]) -> Reply { Reply(body: .json(bytes)) }
}
