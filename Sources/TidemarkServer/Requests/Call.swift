import Hummingbird
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkIdentity
import TidemarkModel

/// Who asks.
struct Caller: Sendable {
    /// The account's identifier in the embedded cloud; `nil` for nobody.
    var account: String?
    /// The account, where it was looked up with the session.
    var holder: StoredAccount?
    /// Whether it is a program that signs with a key.
    var isKey = false
    /// The session that it came with.
    var session: String?
    /// What it has shown: what is given out for it ends with that. Empty for nothing.
    var credential = Credential.none
    /// Where somebody can sign in, for the answer to who has to.
    var signInURL: String?
}

/// A request for an operation: its address taken apart, its sender known.
///
/// An operation that waits for something ends at once when the server is told to: it waits in `cancelWhenGracefulShutdown` of
/// ServiceLifecycle.
struct Call: Sendable {
    let operation: Operation
    /// Names the request in answers and logs.
    let uuid: String
    let caller: Caller
    /// Where the request came from, for limits.
    let address: String
    /// One that is served; empty where the path names none.
    let container: String
    let environment: StoreEnvironment
    /// `nil` where the path names none.
    let scope: DatabaseScope?
    /// What else varies in the path, by its name: no slash, no NUL, neither `.` nor `..`, at most 1,024 bytes.
    let parameters: [String: String]
    let query: [String: String]
    /// Unpacked. Empty where the operation reads no body, or a stream.
    let body: [UInt8]
    /// The body, where the operation reads it a piece at a time.
    let stream: RequestBody?
    let headers: HTTPFields
    /// Whether members that only our clients know may be in the answer.
    let isExtended: Bool
    /// `https://host:port`, as the client has reached the server.
    let baseURL: String
    /// Whether only the head of the answer is wanted.
    var isHead = false
    /// Is called with an error of a part of the request, of whose reason clients are told less.
    var onInternalReason: (@Sendable (CloudError) -> Void)?
}

/// The reasons of errors that were logged for a request, whose parts may have failed alike.
final class LoggedReasons: Sendable {
    private let reasons = LockedValue<Set<String>>([])

    /// Returns whether a reason was not given before.
    func isNew(_ reason: String) -> Bool { reasons.withLock { $0.insert(reason).inserted } }
}

/// What is answered.
struct Reply: Sendable {
    enum Body: Sendable {
        case json([UInt8])
        case text(String, type: String)
        /// Writes what it has, and doesn't finish it: the shell does.
        case stream(type: String, count: Int64?, @Sendable (inout any ResponseBodyWriter) async throws -> Void)
        case none
    }

    var status: HTTPResponse.Status = .ok
    var headers: HTTPFields = [:]
    var body: Body
    /// What of the request has failed, for those who run the server.
    var failures: [Failure] = []

    /// A request that has failed, or parts of one that have failed alike.
    struct Failure: Sendable {
        /// As the protocol has it.
        let code: String
        let reason: String
        /// The record, its type and its zone; empty where it is none.
        var record = "", recordType = "", zone = ""
        /// The session that has ended, by its identifier; empty for none.
        var session = ""
        /// The account whose sign-in is refused, by its identifier; empty for none.
        var triedAccount = ""
        /// The device whose sign-in is refused, as the request names it; empty for none.
        var triedDevice = ""
        var count = 1
        /// What of the schema the record does not fit, as a `SchemaMismatch` has it; empty for nothing.
        var field = "", fieldType = ""
    }

    static func json(_ bytes: [UInt8]) -> Reply { Reply(body: .json(bytes)) }
}
