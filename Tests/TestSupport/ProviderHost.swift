import Foundation
import TidemarkHTTP
import TidemarkModel

/// An identity provider on a port of this machine, with keys of its own. Every browser that comes to it is signed in as
/// ``person``.
///
/// It checks what a client sends as the specifications demand, and accepts each code once. A test makes it do one thing wrong by
/// ``Manners``.
package final class ProviderHost: Sendable {
    package struct Person: Sendable {
        package var subject: String
        package var email: String?
        package var isVerified: Bool?
        package var name: String?

        package init(_ subject: String, email: String? = nil, isVerified: Bool? = true, name: String? = nil) {
            (self.subject, self.email, self.isVerified, self.name) = (subject, email, isVerified, name)
        }
    }

    /// How the provider departs from the specifications.
    package struct Manners: Sendable {
        /// Replies in place of documents, by their paths.
        package var replies: [String: StubServer.Reply] = [:]
        /// The issuer that its configuration names.
        package var issuer: String?
        /// Other members of its configuration.
        package var configuration: [String: String] = [:]
        /// The issuer that answers name (RFC 9207); `nil` if they name none.
        package var answerIssuer: String?
        /// The error with which it sends browsers back.
        package var error: String?
        /// The header of its tokens, in place of the correct one.
        package var header: [String: String] = [:]
        /// Changes the claims of its tokens.
        package var claims: (@Sendable (inout [String: any Sendable]) -> Void)?
        /// Makes the signature of its tokens.
        package var signature: (@Sendable ([UInt8]) -> [UInt8])?
        /// Whether the ID token contains the person's address; otherwise the client has to ask for it.
        package var tellsEmailAtOnce = true
        /// Seconds since the person has signed in at the provider, unless the client asks for a new sign-in.
        package var age = 3_600

        package init() {}
    }

    package static let clientID = "tidemark-tests"
    /// Contains characters that have to be encoded.
    package static let clientSecret = "s&cr t/ä"
    package static let redirectURI = "https://cloud.example.org/account/callback"
    private static let rsaKey = ProviderKey(.rsa, id: "rsa-1")

    private struct Grant: Sendable {
        let challenge, nonce, redirectURI: String
        let person: Person
        let signedIn: Int
    }

    private struct State: Sendable {
        var person: Person
        var manners = Manners()
        var keys: [ProviderKey]
        var signsWith: ProviderKey
        var grants: [String: Grant] = [:]
        var accesses: [String: Person] = [:]
        var wrongs: [String] = []
    }

    /// What the server's threads share.
    private final class SharedState: Sendable {
        private let content: LockedValue<State>

        init(_ state: State) { content = LockedValue(state) }

        func withLock<Result>(_ body: (inout State) -> Result) -> Result { content.withLock { body(&$0) } }
    }

    private let state: SharedState
    private let server: StubServer

    /// - Parameter now: Seconds since 1970 UTC.
    package init(
        _ person: Person = Person("anna-1", email: "anna@example.net", name: "Anna Berg"), _ kind: ProviderKey.Kind = .rsa,
        now: @escaping @Sendable () -> Int = { Int(Timestamp.now() / 1_000_000) }
    ) throws {
        let key = kind == .rsa ? Self.rsaKey : ProviderKey(.p256, id: "ec-1")
        let state = SharedState(State(person: person, keys: [key], signsWith: key))
        let port = Shared(0)
        let server = try StubServer { request, _ in Self.answer(request, port.value, now(), state) }
        port.change { $0 = server.port }
        (self.state, self.server) = (state, server)
    }

    package var issuer: String { Self.issuer(server.port) }
    private static func issuer(_ port: Int) -> String { "http://127.0.0.1:\(port)" }

    /// The paths that were asked for so far.
    package var paths: [String] { server.requests.map { Self.path($0).path } }
    package func count(_ path: String) -> Int { paths.count { $0 == path } }
    /// What clients have done wrong.
    package var wrongs: [String] { state.withLock { $0.wrongs } }
    package func forms(_ path: String) -> [[String: String]] {
        server.requests.filter { Self.path($0).path == path }.map { Self.values($0.body) }
    }
    package func header(_ name: String, ofLast path: String) -> String? {
        server.requests.last { Self.path($0).path == path }?.header(name)
    }

    package func change(_ body: (inout Manners) -> Void) { state.withLock { body(&$0.manners) } }
    package func become(_ person: Person) { state.withLock { $0.person = person } }

    /// Signs with another key from now on.
    ///
    /// - Parameter isPublished: Whether it is among the keys that the provider gives out.
    package func rotate(to key: ProviderKey, isPublished: Bool = true) {
        state.withLock { state in
            state.signsWith = key
            if isPublished { state.keys = [key] }
        }
    }

    /// The key with which it signs.
    package var key: ProviderKey { state.withLock { $0.signsWith } }

    /// Goes to an address of the provider as a browser does.
    ///
    /// - Returns: The address to which it sends the browser, and the values of the query of that address.
    package func follow(_ address: String) async throws -> (address: String, query: [String: String]) {
        let transport = CurlTransport(trustRoots: .system, isSecure: false)
        let time = Duration.seconds(30)
        let answer = try await transport.send(
            HTTPRequest(
                lane: .calls, method: .get, url: address, answerSizeMax: 1 << 20,
                times: HTTPTimes(connecting: time, sendingSilence: time, receivingSilence: time, total: time)))
        await transport.shutdown()
        let location = answer.headers.first(name: "Location") ?? ""
        return (location, Self.values(String(location.drop { $0 != "?" }.dropFirst())))
    }

    // Answers

    private static func path(_ request: StubServer.Request) -> (path: String, query: [String: String]) {
        let target = request.line.split(separator: " ").dropFirst().first.map(String.init) ?? ""
        return (String(target.prefix { $0 != "?" }), values(String(target.drop { $0 != "?" }.dropFirst())))
    }

    private static func values(_ text: String) -> [String: String] {
        var values: [String: String] = [:]
        for pair in text.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            values[PercentCoding.decoded(parts[0], plusIsSpace: true) ?? ""] =
                parts.count == 2 ? PercentCoding.decoded(parts[1], plusIsSpace: true) : ""
        }
        return values
    }

    private static func json(_ object: Any, status: String = "200 OK") -> StubServer.Reply {
        let data = (try? JSONSerialization.data(withJSONObject: object)) ?? Data()
        return .json(String(decoding: data, as: UTF8.self), status: status)
    }

    private static func answer(
        _ request: StubServer.Request, _ port: Int, _ now: Int, _ state: SharedState
    ) -> StubServer.Reply {
        let (path, query) = path(request)
        let issuer = issuer(port)
        return state.withLock { state in
            if let reply = state.manners.replies[path] { return reply }
            switch path {
            case "/.well-known/openid-configuration":
                let configuration = [
                    "issuer": state.manners.issuer ?? issuer, "authorization_endpoint": "\(issuer)/authorize",
                    "token_endpoint": "\(issuer)/token", "jwks_uri": "\(issuer)/keys", "userinfo_endpoint": "\(issuer)/userinfo",
                ].merging(state.manners.configuration) { $1 }
                return json(
                    (configuration as [String: Any]).merging([
                        "authorization_response_iss_parameter_supported": state.manners.answerIssuer != nil
                    ]) { $1 })
            case "/keys": return json(["keys": state.keys.map(\.document)])
            case "/authorize": return authorize(query, now, &state)
            case "/token": return token(request, issuer, now, &state)
            case "/userinfo":
                let token = request.header("Authorization")?.replacing("Bearer ", with: "") ?? ""
                guard let person = state.accesses[token] else { return json(["error": "invalid_token"], status: "401 No") }
                return json(claims(of: person).merging(["sub": person.subject]) { $1 })
            default: return .page("404 Not Found")
            }
        }
    }

    private static func authorize(_ query: [String: String], _ now: Int, _ state: inout State) -> StubServer.Reply {
        func demand(_ isRight: Bool, _ what: String) { if !isRight { state.wrongs.append(what) } }
        demand(query["response_type"] == "code", "response_type")
        demand(query["client_id"] == clientID, "client_id")
        demand(query["scope"]?.split(separator: " ").contains("openid") ?? false, "scope")
        demand(query["code_challenge_method"] == "S256" && query["code_challenge"]?.count == 43, "code_challenge")
        demand(query["state"]?.count == 43 && query["nonce"]?.count == 43, "state or nonce")
        demand(query["redirect_uri"] == redirectURI, "redirect_uri")
        guard let redirect = query["redirect_uri"] else { return .page("400 Bad Request") }
        var values = ["state": query["state"] ?? ""]
        if let error = state.manners.error {
            (values["error"], values["error_description"]) = (error, "<script>alert(1)</script>")
        } else {
            let code = UUID().uuidString
            let asksAgain = query["prompt"] == "login" && query["max_age"] == "0"
            state.grants[code] = Grant(
                challenge: query["code_challenge"] ?? "", nonce: query["nonce"] ?? "", redirectURI: redirect,
                person: state.person, signedIn: asksAgain ? now : now - state.manners.age)
            values["code"] = code
        }
        if let issuer = state.manners.answerIssuer { values["iss"] = issuer }
        let text = values.sorted { $0.key < $1.key }.map { "\($0)=\(PercentCoding.encoded($1))" }.joined(separator: "&")
        return .page("302 Found", headers: ["Location: \(redirect)?\(text)"])
    }

    private static func token(
        _ request: StubServer.Request, _ issuer: String, _ now: Int, _ state: inout State
    ) -> StubServer.Reply {
        let form = values(request.body)
        let pair = "\(PercentCoding.encoded(clientID)):\(PercentCoding.encoded(clientSecret))"
        let isHeader = request.header("Authorization") == "Basic \(Data(pair.utf8).base64EncodedString())"
        let isForm = form["client_id"] == clientID && form["client_secret"] == clientSecret
        guard isHeader || isForm else { return json(["error": "invalid_client"], status: "401 Unauthorized") }
        // A code can be used once, whether the answer is a token or an error.
        guard form["grant_type"] == "authorization_code", let grant = state.grants.removeValue(forKey: form["code"] ?? ""),
            grant.redirectURI == form["redirect_uri"],
            Base64URL.text(ProviderKey.sha256(Array((form["code_verifier"] ?? "").utf8))) == grant.challenge
        else { return json(["error": "invalid_grant"], status: "400 Bad Request") }
        let access = UUID().uuidString
        state.accesses[access] = grant.person
        return json([
            "access_token": access, "token_type": "Bearer", "expires_in": 300, "id_token": idToken(grant, issuer, now, state),
        ])
    }

    private static func claims(of person: Person) -> [String: any Sendable] {
        var claims: [String: any Sendable] = [:]
        if let email = person.email { claims["email"] = email }
        if let isVerified = person.isVerified { claims["email_verified"] = isVerified }
        if let name = person.name { claims["name"] = name }
        return claims
    }

    private static func idToken(_ grant: Grant, _ issuer: String, _ now: Int, _ state: State) -> String {
        var claims: [String: any Sendable] = [
            "iss": issuer, "sub": grant.person.subject, "aud": clientID, "exp": now + 300, "iat": now, "nonce": grant.nonce,
            "auth_time": grant.signedIn,
        ]
        if state.manners.tellsEmailAtOnce { claims.merge(self.claims(of: grant.person)) { $1 } }
        state.manners.claims?(&claims)
        let key = state.signsWith
        let header = ["alg": key.kind.rawValue, "kid": key.id, "typ": "JWT"].merging(state.manners.header) { $1 }
            .filter { !$0.value.isEmpty }
        let parts = [header as Any, claims as Any].map { part in
            Base64URL.text([UInt8]((try? JSONSerialization.data(withJSONObject: part)) ?? Data()))
        }
        let bytes = Array(parts.joined(separator: ".").utf8)
        let signature = state.manners.signature?(bytes) ?? key.signature(of: bytes)
        return "\(parts.joined(separator: ".")).\(Base64URL.text(signature))"
    }
}
