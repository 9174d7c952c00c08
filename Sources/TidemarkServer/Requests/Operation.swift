import HTTPTypes
import TidemarkModel

/// An operation that clients can call: its path, its requirements and its implementation.
struct Operation: Sendable {
    /// The way in which a request's body is read.
    enum Body: Sendable, Hashable {
        /// The body is not read.
        case none
        /// JSON, whatever `Content-Type` says.
        case json
        /// Bytes, no more than so many.
        case bytes(most: Int)
        /// A stream of any length, read in pieces.
        case stream
    }

    /// Allows a larger body to some callers. The headers decide, before any of the body is read.
    struct LargerBody: Sendable {
        let most: Int
        let isAllowed: @Sendable (HTTPFields) async throws -> Bool
    }

    /// The name in the description of the protocol, in logs and in metrics, such as `records.query`.
    let id: String
    let method: HTTPRequest.Method
    /// The path with its parameters in braces: `/database/1/{container}/{environment}/{database}/records/query`.
    let path: String
    let body: Body
    /// A larger body than ``body`` says, for some requests.
    var largerBody: LargerBody?
    /// The databases that it is for; `nil` where the path names none.
    let scopes: Set<DatabaseScope>?
    /// Whether the caller has to be signed in, whatever the database.
    let needsUser: Bool
    /// Whether programs with a server key may call it.
    let isForKeys: Bool
    /// Whether no credentials are needed although the path names a container: the path or the body is the permission.
    let isOpen: Bool
    /// Whether it changes anything. A signed request for such an operation is accepted only once.
    let isChanging: Bool
    let answer: @Sendable (Call) async throws -> Reply

    init(
        _ id: String, _ method: HTTPRequest.Method, _ path: String, body: Body = .json, scopes: Set<DatabaseScope>? = nil,
        needsUser: Bool = false, isForKeys: Bool = false, isOpen: Bool = false,
        isChanging: Bool = false, answer: @escaping @Sendable (Call) async throws -> Reply
    ) {
        (self.id, self.method, self.path, self.body, self.scopes) = (id, method, path, body, scopes)
        (self.needsUser, self.isForKeys, self.isOpen, self.isChanging) = (needsUser, isForKeys, isOpen, isChanging)
        self.answer = answer
    }
}
