public import TidemarkCloud
public import TidemarkModel
import TidemarkWire

/// A container of a cloud that a server has, as one account sees it.
///
/// ```swift
/// let cloud = HTTPCloud(
///     try ServerAddress("https://sync.example.org"), container: "iCloud.org.example.journal",
///     session: SessionFile(at: journal.directory.session))
/// try await cloud.signIn(email: "anna@example.org", password: password)
/// let sync = try await journal.sync(with: cloud.databases)
/// ```
///
/// Its databases share connections, which close when nobody has any of them any more, or by ``shutdown()``. What only looks is sent again
/// when a connection breaks, twice at most; what changes something never is: that is for who knows whether it was done.
public final class HTTPCloud: Sendable {
    /// The address of the server.
    public let server: ServerAddress
    /// The name of the cloud container.
    public let container: String
    /// The environment of the cloud container.
    public let environment: StoreEnvironment
    /// Which authorities the server's certificate may be from.
    public let trustRoots: TrustRoots
    let transport: any HTTPTransport
    /// To where the server sends for contents. These are other servers, which speak another HTTP: their connections are counted apart.
    let contentTransports: (secure: any HTTPTransport, plain: any HTTPTransport)
    let timeouts: HTTPTimeouts
    let packer: BodyPacker
    private let store: any SessionStore
    /// What programs without an account ask with, where the server has given one out.
    private let apiToken: String?
    private let kept = LockedValue(Kept())

    private struct Kept {
        var isRead = false
        var session: CloudSession?
        /// Whose sessions are used: with that of somebody else one's changes would be theirs.
        var userRecordName: String?
        /// Whether databases were given out: then nobody else's session is ever used, not after signing out either. What was begun for
        /// one account must not end in another's cloud.
        var hasDatabases = false

        /// Whether it can become that of a user.
        func admits(_ user: String) -> Bool { !hasDatabases || userRecordName == nil || userRecordName == user }

        mutating func take(_ new: CloudSession?) {
            (isRead, session) = (true, new)
            if new != nil || !hasDatabases { userRecordName = new?.userRecordName }
        }
    }

    /// - Parameters:
    ///   - session: Where the session is kept, and is found when somebody has signed in before.
    ///   - apiToken: Names the program to the server: for the public database without an account.
    ///   - trustRoots: Which authorities the server's certificate may be from.
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

    /// Closes its connections; what is under way fails. Nothing can be asked for afterwards.
    public func shutdown() async {
        await transport.shutdown()
        await contentTransports.secure.shutdown()
        await contentTransports.plain.shutdown()
    }

    /// One of the account's databases.
    public func database(_ scope: DatabaseScope) -> HTTPDatabase {
        kept.withLock { $0.hasDatabases = true }
        return HTTPDatabase(scope: scope, cloud: self)
    }

    /// What the account has here.
    public var databases: CloudDatabases { CloudDatabases(private: database(.private), shared: database(.shared)) }
}

// Who asks
extension HTTPCloud {
    /// The server, the container and the environment, by which a session is known to be for them.
    package var name: String { "\(server) \(container) \(environment.rawValue)" }

    private var sessionPath: String {
        "/tidemark/1/\(PercentCoding.encoded(container))/\(environment.rawValue)/session"
    }

    /// Who is signed in; `nil` for nobody.
    ///
    /// - Throws: `CloudError` `notAuthenticated` when what was kept can't be trusted any more.
    public var userRecordName: String? {
        get throws(CloudError) { try session()?.userRecordName }
    }

    /// The identifier of the session that is signed in, 32 hexadecimal digits; `nil` for nobody, and for a session that has none.
    ///
    /// The server's lists of an account's sessions show its first four digits, so a person can tell which of them is this device. It is no secret:
    /// nobody can sign in with it. It changes with the next sign-in.
    ///
    /// - Throws: `CloudError` `notAuthenticated` when what was kept can't be trusted any more.
    public var sessionIdentifier: String? {
        get throws(CloudError) { try session()?.identifier }
    }

    /// Signs in with an account of the server, and keeps the session.
    ///
    /// An account may have a second factor. Then the sign-in needs a code of its app, or a recovery code, and the server says so once the
    /// password was right:
    ///
    /// ```swift
    /// do {
    ///     try await cloud.signIn(email: email, password: password)
    /// } catch where error.code == .secondFactorRequired {
    ///     try await cloud.signIn(email: email, password: password, code: await askForCode())
    /// }
    /// ```
    ///
    /// A code is good once, also where the sign-in fails afterwards. The session needs no code while it lasts.
    ///
    /// - Parameters:
    ///   - code: Of the second factor; an account without one signs in whatever it is.
    ///   - device: What lists of the account's sessions call this device, such as `Anna's laptop`; by default what they called it at the
    ///     account's last sign-in here, or else the machine's name. An empty text says nothing.
    ///   - system: What they say that it runs; by default the operating system and its version. An empty text says nothing.
    /// - Returns: The account's name in the cloud container.
    /// - Throws: `CloudError` `notAuthenticated` when the address or the password is not right, `secondFactorRequired` when they are and the
    ///   code is missing, wrong or was used already, `requestRateLimited` after too many tries, `invalidArguments` when it is another
    ///   account than before and there are databases of that one: make another `HTTPCloud`; and what every call can throw. Who was signed
    ///   in then still is.
    @discardableResult
    public func signIn(
        email: String, password: String, code: String? = nil, device: String? = nil,
        system: String = HTTPCloud.systemName
    ) async throws(CloudError) -> String {
        let name = name
        let before = store.device(for: name, email: email)
        // A name that somebody has chosen stays.
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
            // The caller gets why nobody uses the session. The server forgets it in time.
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
            // Where the other account's session can't be kept again, it signs in at the next start.
            if let other = kept.withLock({ $0.session }) { try? store.replace(made, by: other) } else { try? store.remove(made) }
            // As above.
            try? await end(made)
            throw CloudError(
                .invalidArguments, "another account has signed in here meanwhile; make another HTTPCloud for this one")
        }
        // Without it a sign-in may only wait longer.
        if let known { try? store.keep(known) }
        return made.userRecordName
    }

    /// Ends the session, here and on the server. It is gone here whatever the server says; nobody signed in is no error.
    ///
    /// - Throws: What every call can throw: then the server may know the session until it expires.
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
            // It may have been renewed meanwhile.
            let last = kept.session ?? known
            kept.take(nil)
            return last
        }
        // Whoever has signed in anew meanwhile stays signed in.
        if let last { try store.remove(last) }
        // One that the server knows no more has ended, too.
        if let refusal, refusal.code != .notAuthenticated { throw refusal }
    }

    /// Ends a session that nobody uses.
    private func end(_ session: CloudSession) async throws(CloudError) {
        let other = HTTPCloud(
            server, container: container, environment: environment, session: SessionMemory(session), apiToken: apiToken,
            trustRoots: trustRoots, timeouts: timeouts)
        try await other.signOut()
    }

    /// The session to ask with.
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
        // One for another server is not told to this one.
        guard let found = try store.session(), found.cloud == name else { return nil }
        return found
    }

    /// Another session than the one that was refused, where another process has signed in anew, or renewed it.
    func session(after refused: CloudSession?) -> CloudSession? {
        if let current = kept.withLock({ $0.session }), current != refused { return current }
        // Where none can be read, the refusal stands.
        guard let found = try? stored(), found != refused else { return nil }
        return kept.withLock { kept in
            guard kept.userRecordName == nil || kept.userRecordName == found.userRecordName else { return nil }
            kept.session = found
            kept.userRecordName = found.userRecordName
            return found
        }
    }

    /// Takes a token that the server has given out in the place of the one that it was asked with.
    func renew(_ used: CloudSession, _ token: String) {
        guard token != used.token, let new = used.renewed(token) else { return }
        let isCurrent = kept.withLock { kept in
            guard kept.session == used else { return false }
            kept.session = new
            return true
        }
        // One that can't be kept is used while the process runs; the older one is good for some time, too.
        if isCurrent { try? store.replace(used, by: new) }
    }

    /// What tells the server who asks.
    func authorization(_ session: CloudSession?) -> (String, String)? {
        session.map { ("Authorization", "Bearer \($0.token)") }
    }

    /// The query of a request that no account is signed in for.
    func signed(_ target: String, _ session: CloudSession?) -> String {
        guard session == nil, let apiToken else { return target }
        return "\(target)\(target.contains("?") ? "&" : "?")ckAPIToken=\(PercentCoding.encoded(apiToken))"
    }
}

extension [UInt8] {
    /// An empty JSON object.
    static var emptyObject: [UInt8] { Array("{}".utf8) }
}
