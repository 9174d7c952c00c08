public import TidemarkCloud
public import TidemarkModel
import TidemarkWire

/// A client of a server's cloud container, for one account.
///
/// ```swift
/// let cloud = HTTPCloud(
///     try ServerAddress("https://sync.example.org"), container: "iCloud.org.example.journal",
///     session: SessionFile(at: journal.directory.session))
/// try await cloud.signIn(email: "anna@example.org", password: password)
/// let sync = try await journal.sync(with: cloud.databases)
/// ```
///
/// The databases share connections. The connections are closed when the client and its databases are released, or by
/// ``shutdown()``. If a connection breaks, a request that only reads is sent again, at most twice. A request that changes
/// something is never sent again: the caller has to find out whether it was done.
public final class HTTPCloud: Sendable {
    /// The address of the server.
    public let server: ServerAddress
    /// The name of the cloud container.
    public let container: String
    /// The environment of the cloud container.
    public let environment: StoreEnvironment
    /// The authorities that may have issued the server's certificate.
    public let trustRoots: TrustRoots
    let transport: any HTTPTransport
    /// The transports for the addresses to which the server redirects for contents, by https and by http. They are other servers,
    /// with connections of their own.
    let contentTransports: (secure: any HTTPTransport, plain: any HTTPTransport)
    let timeouts: HTTPTimeouts
    let packer: BodyPacker
    private let store: any SessionStore
    /// The API token for requests without an account, if the server has issued one.
    private let apiToken: String?
    private let kept = LockedValue(Kept())

    private struct Kept {
        var isRead = false
        var session: CloudSession?
        /// The account whose sessions are used. With another account's session, changes would become that account's.
        var userRecordName: String?
        /// Whether a database was returned. From then on no other account's session is used, not even after signing out: an
        /// operation that was begun for one account must not end in another's database.
        var hasDatabases = false

        /// Whether the client may use a session of a user.
        func admits(_ user: String) -> Bool { !hasDatabases || userRecordName == nil || userRecordName == user }

        mutating func take(_ new: CloudSession?) {
            (isRead, session) = (true, new)
            if new != nil || !hasDatabases { userRecordName = new?.userRecordName }
        }
    }

    /// Makes a client. Nothing is sent before the first request.
    ///
    /// - Parameters:
    ///   - server: The address of the server.
    ///   - container: The name of the cloud container.
    ///   - environment: The environment of the cloud container.
    ///   - session: The place that keeps the session. It may have a session from an earlier sign-in.
    ///   - apiToken: The token that identifies the program to the server, for the public database without an account.
    ///   - trustRoots: The authorities that may have issued the server's certificate.
    public convenience init(
        _ server: ServerAddress, container: String, environment: StoreEnvironment = .development,
        session: any SessionStore = SessionMemory(), apiToken: String? = nil, trustRoots: TrustRoots = .system
    ) {
        self.init(
            server, container: container, environment: environment, session: session, apiToken: apiToken,
            trustRoots: trustRoots, timeouts: HTTPTimeouts())
    }

    /// - Parameter timeouts: For tests.
    package init(
        _ server: ServerAddress, container: String, environment: StoreEnvironment, session: any SessionStore,
        apiToken: String? = nil, trustRoots: TrustRoots = .system, timeouts: HTTPTimeouts
    ) {
        (self.server, self.container, self.environment) = (server, container, environment)
        (store, self.apiToken, self.trustRoots, self.timeouts) = (session, apiToken, trustRoots, timeouts)
        packer = BodyPacker(server, timeouts)
        transport = CurlTransport(trustRoots: trustRoots, isSecure: server.isSecure)
        contentTransports = (
            CurlTransport(trustRoots: trustRoots, isSecure: true), CurlTransport(trustRoots: trustRoots, isSecure: false)
        )
    }

    /// Closes the connections. Running requests fail, and so do later ones.
    public func shutdown() async {
        await transport.shutdown()
        await contentTransports.secure.shutdown()
        await contentTransports.plain.shutdown()
    }

    /// Returns one of the account's databases.
    public func database(_ scope: DatabaseScope) -> HTTPDatabase {
        kept.withLock { $0.hasDatabases = true }
        return HTTPDatabase(scope: scope, cloud: self)
    }

    /// The private and the shared database of the account.
    public var databases: CloudDatabases { CloudDatabases(private: database(.private), shared: database(.shared)) }
}

// Sessions
extension HTTPCloud {
    /// The text that names the server, the container and the environment in a session.
    package var name: String { "\(server) \(container) \(environment.rawValue)" }

    private var sessionPath: String {
        "/tidemark/1/\(PercentCoding.encoded(container))/\(environment.rawValue)/session"
    }

    /// The name of the account that is signed in; `nil` for none.
    ///
    /// - Throws: `CloudError` `notAuthenticated` when the stored session can't be trusted any more.
    public var userRecordName: String? {
        get throws(CloudError) { try session()?.userRecordName }
    }

    /// The identifier of the present session, 32 hexadecimal digits; `nil` without a session, and for a session without an
    /// identifier.
    ///
    /// The server's lists of an account's sessions show its first four digits, so that a person recognises this device. It is not
    /// secret: nobody can sign in with it. It changes with the next sign-in.
    ///
    /// - Throws: `CloudError` `notAuthenticated` when the stored session can't be trusted any more.
    public var sessionIdentifier: String? {
        get throws(CloudError) { try session()?.identifier }
    }

    /// Signs in with an account of the server, and keeps the session.
    ///
    /// If an account has a second factor, the sign-in needs a code of the authenticator app, or a recovery code. The server
    /// reports this after the password was right:
    ///
    /// ```swift
    /// do {
    ///     try await cloud.signIn(email: email, password: password)
    /// } catch where error.code == .secondFactorRequired {
    ///     try await cloud.signIn(email: email, password: password, code: await askForCode())
    /// }
    /// ```
    ///
    /// A code can be used once, even if the sign-in fails afterwards. The session itself needs no further code.
    ///
    /// - Parameters:
    ///   - email: The account's email address.
    ///   - password: The account's password.
    ///   - code: The code of the second factor. It is ignored for an account without one.
    ///   - device: The name of this device in lists of the account's sessions, such as `Anna's laptop`. By default it is the name
    ///     of the account's last sign-in here, otherwise the machine's name. An empty text sends no name.
    ///   - system: The system in these lists; by default the operating system and its version. An empty text sends none.
    /// - Returns: The account's name in the cloud container.
    /// - Throws: `CloudError` `notAuthenticated` when the address or the password is wrong; `secondFactorRequired` when they are
    ///   right and the code is missing, wrong or was used already; `requestRateLimited` after too many tries; `invalidArguments`
    ///   when it is another account than before and databases of that account are in use: make another `HTTPCloud`; and the
    ///   errors that every call can throw. After an error the account that was signed in before still is.
    @discardableResult
    public func signIn(
        email: String, password: String, code: String? = nil, device: String? = nil,
        system: String = HTTPCloud.systemName
    ) async throws(CloudError) -> String {
        let name = name
        let before = store.device(for: name, email: email)
        // A name that the user has chosen stays.
        let chosen = device ?? before?.name
        let called = chosen ?? HTTPCloud.deviceName
        var json = JSONWriter()
        json.object {
            $0.member("email", email)
            $0.member("password", password)
            $0.member("code", code)
            $0.member("device", called.isEmpty ? nil : called)
            $0.member("system", system.isEmpty ? nil : system)
            $0.member("deviceToken", before?.token)
        }
        let call = HTTPCall(kind: .change, target: sessionPath, body: json.bytes, isSigned: false)
        let (made, known) = try await value(call) { node throws(CloudError) in
            let session = try CloudSession(
                cloud: name, userRecordName: try node.required("userRecordName").asString(),
                token: try node.required("token").asString())
            let known = try node.string("deviceToken").flatMap { token in
                CloudDevice(cloud: name, email: email, token: token, name: chosen)
            }
            return (session, known)
        }
        guard kept.withLock({ $0.admits(made.userRecordName) }) else {
            // The caller gets the error below. If ending the unused session fails, it expires on the server.
            try? await end(made)
            throw CloudError(
                .invalidArguments,
                "another account is signed in here, and its databases are in use; make another HTTPCloud for this one")
        }
        try store.keep(made)
        let isTaken = kept.withLock { kept in
            guard kept.admits(made.userRecordName) else { return false }
            kept.take(made)
            return true
        }
        guard isTaken else {
            // If the other account's session can't be stored again, that account has to sign in at the next start.
            if let other = kept.withLock({ $0.session }) { try? store.replace(made, by: other) } else { try? store.remove(made) }
            // If ending the unused session fails, it expires on the server.
            try? await end(made)
            throw CloudError(
                .invalidArguments, "another account has signed in here meanwhile; make another HTTPCloud for this one")
        }
        // Without the proof, a later sign-in may only wait longer.
        if let known { try? store.keep(known) }
        return made.userRecordName
    }

    /// Ends the session, here and on the server. The session is removed here even if the server reports an error. It is no error
    /// if no account is signed in.
    ///
    /// - Throws: The errors that every call can throw. The session may then be valid on the server until it expires.
    public func signOut() async throws(CloudError) {
        let (known, unreadable): (CloudSession?, CloudError?)
        do throws(CloudError) { (known, unreadable) = (try session(), nil) } catch { (known, unreadable) = (nil, error) }
        guard known != nil else {
            try store.remove()
            if let unreadable { throw unreadable }
            return
        }
        let refusal: CloudError?
        do throws(CloudError) {
            try await value(HTTPCall(kind: .change, target: sessionPath + "/end", body: .emptyObject)) { _ in }
            refusal = nil
        } catch { refusal = error }
        let last = kept.withLock { kept in
            // The session may have been renewed meanwhile.
            let last = kept.session ?? known
            kept.take(nil)
            return last
        }
        // A session of another sign-in meanwhile stays.
        if let last { try store.remove(last) }
        // A session that the server no longer knows has ended, too.
        if let refusal, refusal.code != .notAuthenticated { throw refusal }
    }

    /// Ends an unused session on the server.
    private func end(_ session: CloudSession) async throws(CloudError) {
        let other = HTTPCloud(
            server, container: container, environment: environment, session: SessionMemory(session), apiToken: apiToken,
            trustRoots: trustRoots, timeouts: timeouts)
        try await other.signOut()
    }

    /// Returns the session for requests; `nil` without one.
    func session() throws(CloudError) -> CloudSession? {
        let known = kept.withLock { $0.isRead ? $0 : nil }
        if let known { return known.session }
        let found = try stored()
        return kept.withLock { kept in
            if !kept.isRead { kept.take(found) }
            return kept.session
        }
    }

    private func stored() throws(CloudError) -> CloudSession? {
        // A session of another server is not sent to this one.
        guard let found = try store.session(), found.cloud == name else { return nil }
        return found
    }

    /// Returns another session than the refused one, if another process has signed in again or renewed the session; otherwise
    /// `nil`.
    func session(after refused: CloudSession?) -> CloudSession? {
        if let current = kept.withLock({ $0.session }), current != refused { return current }
        // If no stored session can be read, the refusal stands.
        guard let found = try? stored(), found != refused else { return nil }
        return kept.withLock { kept in
            guard kept.userRecordName == nil || kept.userRecordName == found.userRecordName else { return nil }
            kept.session = found
            kept.userRecordName = found.userRecordName
            return found
        }
    }

    /// Replaces the token of a session by a new one that the server has issued.
    func renew(_ used: CloudSession, _ token: String) {
        guard token != used.token, let new = used.renewed(token) else { return }
        let isCurrent = kept.withLock { kept in
            guard kept.session == used else { return false }
            kept.session = new
            return true
        }
        // If the new token can't be stored, the process still uses it. The stored token is valid for some time, too.
        if isCurrent { try? store.replace(used, by: new) }
    }

    /// The header that authenticates a request; `nil` without a session.
    func authorization(_ session: CloudSession?) -> (String, String)? {
        session.map { ("Authorization", "Bearer \($0.token)") }
    }

    /// Returns the target of a request. Without a session, it has the API token in its query.
    func signed(_ target: String, _ session: CloudSession?) -> String {
        guard session == nil, let apiToken else { return target }
        return "\(target)\(target.contains("?") ? "&" : "?")ckAPIToken=\(PercentCoding.encoded(apiToken))"
    }
}

extension [UInt8] {
    /// An empty JSON object.
    static var emptyObject: [UInt8] { Array("{}".utf8) }
}
