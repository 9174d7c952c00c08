import Foundation
import HTTPTypes
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

/// Admits or refuses callers by the credentials in their requests.
struct Admission: Sendable {
    /// The credentials of a request, as far as they can be read without its body.
    struct Credentials {
        enum Kind {
            /// An API token alone.
            case program
            case user(Session)
            /// The signature is checked when the body has arrived.
            case key(ServerKey, date: String, signature: String)
        }

        let kind: Kind
        let apiToken: APIToken?

        /// The account for limits and logs.
        var account: String? {
            switch kind {
            case .program: nil
            case .user(let session): session.account
            case .key(let key, _, _): key.account
            }
        }

        /// Returns whether all credentials are for the container and environment of the request.
        func areOf(_ place: Place) -> Bool {
            guard apiToken?.isOf(place.container, place.environment) ?? true else { return false }
            return switch kind {
            case .program: true
            case .user(let session): session.isOf(place.container, place.environment)
            case .key(let key, _, _): key.isOf(place.container, place.environment)
            }
        }
    }

    /// The operation and the container of a request.
    struct Place {
        let operation: Operation
        let container: String
        let environment: StoreEnvironment
        let scope: DatabaseScope?
    }

    let access: CredentialStore
    let cloud: EmbeddedCloud

    static let keyID = HTTPField.Name("X-Apple-CloudKit-Request-KeyID")!
    static let keyDate = HTTPField.Name("X-Apple-CloudKit-Request-ISO8601Date")!
    static let keySignature = HTTPField.Name("X-Apple-CloudKit-Request-SignatureV1")!

    /// - Parameter signInURL: Makes the address of the page where a person can sign in for an API token.
    func credentials(
        for place: Place, query: [String: String], headers: HTTPFields, signInURL: (APIToken) -> String
    ) async throws(Refusal) -> Credentials {
        let credentials = try await shown(query: query, headers: headers, signInURL: signInURL)
        // A caller with credentials for another container learns no more than one without credentials.
        guard credentials.areOf(place) else { throw .authenticationFailed() }
        guard try await read({ () throws(CredentialError) in try access.hasContainer(place.container) }) else {
            // The ID of a key is no secret, and the signature has not been checked yet.
            if case .key = credentials.kind { throw .authenticationFailed() }
            throw .notServed(place.container)
        }
        if case .key = credentials.kind {
            guard place.operation.isForKeys, place.scope == .public else {
                throw .authenticationFailed("a server-to-server key can't be used here: it is for records of the public database")
            }
        }
        let needsUser = place.operation.needsUser || (place.scope ?? .public) != .public
        if needsUser, credentials.account == nil {
            throw .authenticationRequired(redirectURL: credentials.apiToken.map(signInURL))
        }
        return credentials
    }

    private func shown(
        query: [String: String], headers: HTTPFields, signInURL: (APIToken) -> String
    ) async throws(Refusal) -> Credentials {
        let apiText = query["ckAPIToken"].flatMap { $0.isEmpty ? nil : $0 }
        let webText = query["ckWebAuthToken"].flatMap { $0.isEmpty ? nil : $0 }
        let key = (headers[Self.keyID], headers[Self.keyDate], headers[Self.keySignature])
        let bearer = try bearer(headers)
        var found: Result<Session, SessionFailure>?
        // From here on the stored credentials are up to date, whichever server has changed them.
        if let text = bearer ?? webText {
            found = try await read { () async throws(CredentialError) in try await access.session(text) }
        } else {
            try await read { () async throws(CredentialError) in try await access.refresh() }
        }
        if key.0 != nil || key.1 != nil || key.2 != nil {
            guard apiText == nil, webText == nil, bearer == nil else {
                throw .authenticationFailed("a server-to-server key and a token exclude each other")
            }
            guard let id = key.0, let date = key.1, let signature = key.2,
                let known = try await read({ () throws(CredentialError) in try access.key(id) })
            else { throw .authenticationFailed() }
            return Credentials(kind: .key(known, date: date, signature: signature), apiToken: nil)
        }
        var apiToken: APIToken?
        if let apiText {
            apiToken = try await read { () throws(CredentialError) in try access.apiToken(apiText) }
            guard apiToken != nil else { throw .authenticationFailed() }
        }
        if bearer != nil {
            guard webText == nil else { throw .authenticationFailed("two sessions exclude each other") }
            guard case .success(let session) = found else {
                throw try await refused(.authenticationFailed(), bearer, found)
            }
            guard session.kind == .device || apiToken != nil else { throw .authenticationFailed() }
            return Credentials(kind: .user(session), apiToken: apiToken)
        }
        guard let apiToken else { throw .authenticationFailed("no auth method found") }
        switch found {
        case nil: return Credentials(kind: .program, apiToken: apiToken)
        case .success(let session): return Credentials(kind: .user(session), apiToken: apiToken)
        // A person whose session has ended can sign in again.
        case .failure(.expired), .failure(.revoked):
            throw try await refused(.authenticationRequired(redirectURL: signInURL(apiToken)), webText, found)
        case .failure: throw .authenticationFailed()
        }
    }

    /// Returns a refusal that names the session, if the token is of a session of this cloud that has ended.
    private func refused(
        _ refusal: Refusal, _ token: String?, _ found: Result<Session, SessionFailure>?
    ) async throws(Refusal) -> Refusal {
        guard let token, case .failure(let failure) = found, failure == .expired || failure == .revoked else { return refusal }
        let session = try await read { () throws(CredentialError) in try access.sessionID(of: token) }
        var refusal = refusal
        // A client with the token was signed in to the account, and may know that the account was removed.
        if failure == .revoked, refusal.name == Refusal.authenticationFailed().name, let session,
            let account = try await read({ () async throws(CredentialError) in try await access.account(ofSession: session) }),
            await isGone(account)
        {
            refusal = .authenticationFailed("the account of the session does not exist any more")
        }
        return refusal.of(session, failure)
    }

    /// Returns whether an account was removed; `false` where that can't be found out now.
    private func isGone(_ account: String) async -> Bool {
        do throws(CloudError) {
            return try await cloud.account(id: account) == nil
        } catch {
            return false
        }
    }

    /// Checks the signature of a request, which needs its body.
    func check(_ request: SignedRequest, by key: ServerKey, of operation: Operation) async throws(Refusal) {
        let result = try await read { () async throws(CredentialError) in
            try await access.check(request, by: key, isChanging: operation.isChanging)
        }
        if case .failure(let failure) = result { throw .authenticationFailed(failure.reason) }
    }

    private func read<Value>(_ body: () async throws(CredentialError) -> Value) async throws(Refusal) -> Value {
        do throws(CredentialError) {
            return try await body()
        } catch {
            throw Refusal(error)
        }
    }

    private func bearer(_ headers: HTTPFields) throws(Refusal) -> String? {
        guard let value = headers[.authorization] else { return nil }
        let parts = value.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { throw .authenticationFailed() }
        return String(parts[1])
    }
}

extension Refusal {
    /// The refusal for callers with credentials of the container, or with an account's password. Other callers don't learn which
    /// containers exist.
    static func notServed(_ container: String) -> Refusal {
        var refusal = Refusal.authenticationFailed(
            "the container '\(container.prefix(255))' is not served here: the server's administrator adds it, "
                + "by 'tidemark admin container add'")
        refusal.error.containerIsServed = false
        return refusal
    }
}
