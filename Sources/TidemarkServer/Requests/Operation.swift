import HTTPTypes
import TidemarkModel

/// What clients can ask for: one of the ways to reach it, and what answers.
struct Operation: Sendable {
    /// What a request's body is read as.
    enum Body: Sendable, Hashable {
        /// Nothing is read.
        case none
        /// JSON, whatever the request calls it.
        case json
        /// Bytes, no more than so many.
        case bytes(most: Int)
        /// Whatever comes, a piece at a time.
        case stream
    }

    /// Who may send a larger body than others. The headers say it, before any of the body is read.
    struct LargerBody: Sendable {
        let most: Int
        let isAllowed: @Sendable (HTTPFields) async throws -> Bool
    }

    /// Names it in the description of the protocol, in logs and in figures, as `records.query`.
    let id: String
    let method: HTTPRequest.Method
    /// With what varies in braces: `/database/1/{container}/{environment}/{database}/records/query`.
    let path: String
    let body: Body
    /// A larger body than ``body`` says, for some requests.
    var largerBody: LargerBody?
    /// The databases that it is for; `nil` where the path names none.
    let scopes: Set<DatabaseScope>?
    /// Whether somebody has to be signed in, whatever the database.
    let needsUser: Bool
    /// Whether programs with a key of their own may ask for it.
    let isForKeys: Bool
    /// Whether nobody is asked who they are, though the path names a container: the path or the body says enough.
    let isOpen: Bool
    /// Whether it changes anything: what a program has signed for that is done once.
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
