import Foundation
import TestSupport
import Testing
import TidemarkModel

@testable import TidemarkOpenID

/// Goal: the client returns the person whom a provider has signed in, and checks everything that the provider sends. Method: a
/// provider on a port of this machine, which does one thing wrong at a time.
@Suite(.timeLimit(.minutes(30))) struct OpenIDClientTests {
    private static let redirectURI = ProviderHost.redirectURI

    private func client(
        _ host: ProviderHost, secret: String? = ProviderHost.clientSecret, patience: Duration = .seconds(10),
        now: @escaping @Sendable () -> Int64 = Timestamp.now
    ) throws -> OpenIDClient {
        OpenIDClient(
            try OpenIDProvider(host.issuer, clientID: ProviderHost.clientID, clientSecret: secret), now: now, patience: patience)
    }

    /// Signs in as a browser and a server do together.
    private func signIn(
        _ client: OpenIDClient, _ host: ProviderHost, since: Int64? = nil, asksForEmail: Bool = false
    ) async throws -> OpenIDClient.Identity {
        let secret = SignInSecret()
        let address = try await client.authorizationAddress(secret, redirectURI: Self.redirectURI, asksAgain: since != nil)
        let back = try await host.follow(address)
        #expect(back.query["state"] == secret.state)
        try await client.check(answerOf: back.query["iss"])
        return try await client.identity(
            code: try #require(back.query["code"]), secret, redirectURI: Self.redirectURI, signedInSince: since,
            asksForEmail: asksForEmail)
    }

    private func defect(
        _ host: ProviderHost, since: Int64? = nil, _ change: (inout ProviderHost.Manners) -> Void
    ) async throws -> IDTokenDefect? {
        host.change(change)
        do {
            _ = try await signIn(try client(host), host, since: since)
            return nil
        } catch let error as OpenIDError {
            #expect(error.code == .untrusted, "\(error)")
            return error.defect
        }
    }

    @Test(arguments: [ProviderKey.Kind.rsa, .p256])
    func `a sign-in returns the person, with each algorithm`(_ kind: ProviderKey.Kind) async throws {
        let host = try ProviderHost(.init("anna-1", email: "anna@example.net", name: "Anna Berg"), kind)
        let client = try client(host)
        let identity = try await signIn(client, host)
        #expect(identity.issuer == host.issuer && identity.subject == "anna-1")
        #expect(identity.verifiedEmail == "anna@example.net" && identity.name == "Anna Berg")
        #expect(identity.label == "anna@example.net")
        host.become(.init("ben-2", email: "ben@example.net", isVerified: false))
        let other = try await signIn(client, host)
        #expect(other.subject == "ben-2" && other.verifiedEmail == nil && other.label == "ben@example.net")
        #expect(host.wrongs.isEmpty, "\(host.wrongs)")
        // The documents are cached.
        #expect(host.count("/.well-known/openid-configuration") == 1 && host.count("/keys") == 1)
    }

    @Test
    func `the client's secret is sent in the header, or in the form if the provider does not accept the header`() async throws {
        let host = try ProviderHost()
        _ = try await signIn(try client(host), host)
        #expect(host.header("Authorization", ofLast: "/token")?.hasPrefix("Basic ") == true)
        #expect(host.forms("/token").last?["client_secret"] == nil)
        let reply = """
            {"issuer":"\(host.issuer)","authorization_endpoint":"\(host.issuer)/authorize","token_endpoint":"\(host.issuer)/token",
            "jwks_uri":"\(host.issuer)/keys","token_endpoint_auth_methods_supported":["client_secret_post"]}
            """
        host.change { $0.replies["/.well-known/openid-configuration"] = .json(reply) }
        _ = try await signIn(try client(host), host)
        #expect(host.forms("/token").last?["client_secret"] == ProviderHost.clientSecret)
        await #expect(throws: OpenIDError.self) { _ = try await signIn(try client(host, secret: "wrong"), host) }
    }

    private typealias Change = @Sendable (inout [String: any Sendable]) -> Void

    @Test func `an ID token with any wrong claim is refused`() async throws {
        let host = try ProviderHost()
        // The current time for each token, because a busy machine is slow.
        @Sendable func now() -> Int { Int(Timestamp.now() / 1_000_000) }
        let changes: [(IDTokenDefect?, Change)] = [
            (.issuer, { $0["iss"] = "https://id.example.org" }), (.malformed, { $0["iss"] = nil }),
            (.issuer, { $0["iss"] = "\($0["iss"] ?? "")/" }),
            (.audience, { $0["aud"] = "another" }), (.audience, { $0["aud"] = ["one", "another"] }),
            (.malformed, { $0["aud"] = nil }),
            (.authorizedParty, { $0["aud"] = [ProviderHost.clientID, "another"] }),
            (.authorizedParty, { $0["azp"] = "another" }),
            (nil, { ($0["aud"], $0["azp"]) = ([ProviderHost.clientID, "another"], ProviderHost.clientID) }),
            (nil, { $0["aud"] = [ProviderHost.clientID] }),
            (.expired, { $0["exp"] = now() - 120 }), (nil, { $0["exp"] = now() - 30 }), (.malformed, { $0["exp"] = nil }),
            (.malformed, { $0["exp"] = "soon" }),
            (.notYetValid, { $0["iat"] = now() + 120 }), (.old, { $0["iat"] = now() - 1_200 }),
            (.malformed, { $0["iat"] = nil }),
            (.nonce, { $0["nonce"] = "another" }), (.nonce, { $0["nonce"] = nil }),
            (.subject, { $0["sub"] = "" }), (.subject, { $0["sub"] = String(repeating: "a", count: 256) }),
            (.subject, { $0["sub"] = "a\0b" }), (.malformed, { $0["sub"] = nil }),
        ]
        for (number, (expected, change)) in changes.enumerated() {
            #expect(try await defect(host) { $0.claims = change } == expected, "change \(number)")
        }
    }

    @Test func `an ID token with a wrong signature or algorithm is refused`() async throws {
        let host = try ProviderHost()
        let pem = host.key.publicPEM
        func with(
            _ header: [String: String], _ signature: (@Sendable ([UInt8]) -> [UInt8])? = nil
        ) async throws -> IDTokenDefect? {
            try await defect(host) { ($0.header, $0.signature) = (header, signature) }
        }
        #expect(try await with(["alg": "none"]) { _ in [] } == .algorithm)
        #expect(try await with(["alg": "None"]) { _ in [] } == .algorithm)
        // The public key is used as the secret of an HMAC.
        #expect(try await with(["alg": "HS256"]) { ProviderKey.hmac(of: $0, key: pem) } == .algorithm)
        for algorithm in ["HS384", "RS384", "RS512", "PS256", "ES384", "ES256K", "EdDSA", "rs256", ""] {
            #expect(try await with(["alg": algorithm]) != nil, "\(algorithm)")
        }
        #expect(try await with(["alg": "ES256"]) == .unknownKey)
        #expect(try await with([:]) { _ in [] } == .signature)
        #expect(try await with([:]) { _ in [UInt8](repeating: 0, count: 256) } == .signature)
        let stranger = ProviderKey(.rsa, id: "rsa-1")
        #expect(try await with([:]) { stranger.signature(of: $0) } == .signature)
        #expect(try await with([:]) == nil)
        // A token without a key's name needs a provider with only one key.
        #expect(try await with(["kid": ""]) == nil)
        #expect(try await with(["kid": ""]) { stranger.signature(of: $0) } == .signature)
    }

    @Test func `an ECDSA signature must have two numbers, and may not be empty`() async throws {
        let host = try ProviderHost(.init("anna-1"), .p256)
        for count in [0, 63, 64, 65, 128] {
            #expect(
                try await defect(host) { $0.signature = { _ in [UInt8](repeating: 0, count: count) } } == .signature, "\(count)")
        }
        #expect(try await defect(host) { $0.signature = nil } == nil)
    }

    @Test func `a new key of the provider is fetched once`() async throws {
        let host = try ProviderHost()
        let time = Shared(Timestamp.now())
        let client = try client(host, now: { time.value })
        _ = try await signIn(client, host)
        host.rotate(to: ProviderKey(.p256, id: "ec-2"))
        // The keys were fetched just now: a token with an unknown key does not fetch them again.
        await #expect(throws: OpenIDError.self) { _ = try await signIn(client, host) }
        #expect(host.count("/keys") == 1)
        time.change { $0 += 31_000_000 }
        #expect(try await signIn(client, host).subject == "anna-1")
        #expect(host.count("/keys") == 2)
        host.rotate(to: ProviderKey(.p256, id: "ec-3"), isPublished: false)
        time.change { $0 += 31_000_000 }
        for _ in 0..<3 { await #expect(throws: OpenIDError.self) { _ = try await signIn(client, host) } }
        #expect(host.count("/keys") == 3)
    }

    @Test func `weak keys and keys for other uses are ignored`() throws {
        func keys(_ documents: [[String: String]]) throws -> Int {
            try JSONWebKeySet(Array(JSONSerialization.data(withJSONObject: ["keys": documents]))).keys.count
        }
        let (rsa, ec) = (ProviderKey(.rsa, id: "1").document, ProviderKey(.p256, id: "2").document)
        #expect(try keys([rsa, ec]) == 2)
        #expect(try keys([ProviderKey(.rsa, id: "1", bits: 1_024).document]) == 0)
        for (name, value) in [("use", "enc"), ("alg", "RS512"), ("kty", "oct"), ("n", ""), ("e", ""), ("n", "AQAB"), ("n", "!")] {
            #expect(try keys([rsa.merging([name: value]) { $1 }]) == 0, "\(name) \(value)")
        }
        // A point that is not on the curve, and another curve.
        for (name, value) in [("x", ec["y"] ?? ""), ("crv", "P-384"), ("y", "AA"), ("alg", "RS256")] {
            #expect(try keys([ec.merging([name: value]) { $1 }]) == 0, "\(name)")
        }
        // An invalid key does not affect the others.
        #expect(try JSONWebKeySet(Array("{\"keys\":[1,{\"kty\":2},{\"kty\":\"OKP\"}]}".utf8)).keys.isEmpty)
        for text in ["", "{}", "[]", "{\"keys\":1}"] {
            #expect(throws: OpenIDError.self) { _ = try JSONWebKeySet(Array(text.utf8)) }
        }
    }

    private func code(_ host: ProviderHost, patience: Duration = .seconds(10)) async -> OpenIDError.Code? {
        do {
            _ = try await signIn(try client(host, patience: patience), host)
            return nil
        } catch {
            return (error as? OpenIDError)?.code
        }
    }

    @Test func `a provider with invalid answers is told apart from one that is down`() async throws {
        let host = try ProviderHost()
        let huge = StubServer.Reply.endless(
            start: Array("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n".utf8),
            [UInt8](repeating: UInt8(ascii: " "), count: 1 << 16))
        for path in ["/.well-known/openid-configuration", "/keys", "/token"] {
            for reply in [
                huge, .broken, .silence, .page("500 Internal Server Error"), .page("200 OK"), .json("{}"), .json("[]"),
                .page("302 Found", headers: ["Location: \(host.issuer)/elsewhere"]),
            ] as [StubServer.Reply] {
                host.change { $0.replies = [path: reply] }
                #expect(await code(host, patience: .milliseconds(700)) == .unreachable, "\(path)")
            }
        }
        host.change { $0.replies = [:] }
        #expect(await code(host) == nil)
        let nobody = try ReservedPort()
        let provider = try OpenIDProvider("http://127.0.0.1:\(nobody.number)", clientID: "a")
        await #expect(throws: OpenIDError.self) {
            _ = try await OpenIDClient(provider).authorizationAddress(SignInSecret(), redirectURI: Self.redirectURI)
        }
        #expect(!host.paths.contains("/elsewhere"))
    }

    @Test func `a provider with another issuer, or invalid addresses, is refused`() async throws {
        for issuer in ["https://id.example.org", "http://127.0.0.1/", ""] {
            let host = try ProviderHost()
            host.change { $0.issuer = issuer }
            #expect(await code(host) == .misconfigured, "\(issuer)")
        }
        let host = try ProviderHost()
        host.change { $0.issuer = host.issuer + "/" }
        #expect(await code(host) == .misconfigured)
        for name in ["authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"] {
            for address in [
                "http://id.example.org/a", "javascript:alert(1)", "https://a\"b.example.org/", "https://u:p@id.example.org/", "",
                "https://id.example.org/#a", "file:///etc/passwd", "https://id.example.org/\r\nX: y",
            ] {
                let host = try ProviderHost()
                host.change { $0.configuration[name] = address }
                #expect(await code(host) == .misconfigured, "\(name) \(address)")
            }
        }
    }

    @Test func `a provider that is down is not asked at each request, and cached documents stay in use`() async throws {
        let host = try ProviderHost()
        let time = Shared(Timestamp.now())
        let client = try client(host, now: { time.value })
        let path = "/.well-known/openid-configuration"
        host.change { $0.replies[path] = .page("503 Service Unavailable") }
        for _ in 0..<5 {
            await #expect(throws: OpenIDError.self) {
                _ = try await client.authorizationAddress(SignInSecret(), redirectURI: Self.redirectURI)
            }
        }
        #expect(host.count(path) == 1)
        time.change { $0 += 6_000_000 }
        host.change { $0.replies[path] = nil }
        // Requests during a fetch wait for it.
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    _ = try await client.authorizationAddress(SignInSecret(), redirectURI: Self.redirectURI)
                }
            }
            try await group.waitForAll()
        }
        #expect(host.count(path) == 2)
        host.change { $0.replies[path] = .page("503 Service Unavailable") }
        time.change { $0 += 2 * 3_600_000_000 }
        _ = try await client.authorizationAddress(SignInSecret(), redirectURI: Self.redirectURI)
        #expect(host.count(path) == 3)
        time.change { $0 += 24 * 3_600_000_000 }
        await #expect(throws: OpenIDError.self) {
            _ = try await client.authorizationAddress(SignInSecret(), redirectURI: Self.redirectURI)
        }
    }

    @Test func `a code is accepted once, only for the sign-in that began, and for the same address`() async throws {
        let host = try ProviderHost()
        let client = try client(host)
        func refused(_ code: String, _ secret: SignInSecret, _ redirectURI: String = Self.redirectURI) async -> Bool {
            do {
                _ = try await client.identity(code: code, secret, redirectURI: redirectURI)
                return false
            } catch {
                return error.code == .refused
            }
        }
        func begin(_ secret: SignInSecret) async throws -> String {
            let address = try await client.authorizationAddress(secret, redirectURI: Self.redirectURI)
            return try #require(try await host.follow(address).query["code"])
        }
        let secret = SignInSecret()
        let used = try await begin(secret)
        #expect(await !refused(used, secret))
        #expect(await refused(used, secret))
        #expect(await refused(try await begin(secret), SignInSecret()))
        #expect(await refused(try await begin(secret), secret, "https://evil.example.org/"))
        #expect(await refused("a&b=c", secret))
    }

    @Test func `an answer that names another provider is refused`() async throws {
        let host = try ProviderHost()
        let client = try client(host)
        try await client.check(answerOf: nil)
        try await client.check(answerOf: host.issuer)
        await #expect(throws: OpenIDError.self) { try await client.check(answerOf: "https://evil.example.org") }
        host.change { $0.answerIssuer = host.issuer }
        let strict = try self.client(host)
        _ = try await signIn(strict, host)
        // If a provider always names itself, an answer without a name is refused.
        await #expect(throws: OpenIDError.self) { try await strict.check(answerOf: nil) }
    }

    @Test func `a repeated sign-in must be recent`() async throws {
        let host = try ProviderHost()
        let now = Timestamp.now()
        #expect(try await signIn(try client(host), host, since: now).subject == "anna-1")
        for change in [{ $0["auth_time"] = nil }, { $0["auth_time"] = Int(now / 1_000_000) - 300 }] as [Change] {
            #expect(try await defect(host, since: now) { $0.claims = change } == .authenticationTime)
        }
        #expect(
            try await defect(host, since: now) { $0.claims = { $0["auth_time"] = Int(now / 1_000_000) + 300 } }
                == .authenticationTime)
    }

    @Test func `an address that is not in the ID token is requested, and must be of the same person`() async throws {
        let host = try ProviderHost()
        host.change { $0.tellsEmailAtOnce = false }
        #expect(try await signIn(try client(host), host).verifiedEmail == nil)
        #expect(host.count("/userinfo") == 0)
        let identity = try await signIn(try client(host), host, asksForEmail: true)
        #expect(identity.verifiedEmail == "anna@example.net" && identity.name == "Anna Berg")
        host.change { $0.replies["/userinfo"] = .json("{\"sub\":\"ben-2\",\"email\":\"a@example.org\",\"email_verified\":true}") }
        await #expect(throws: OpenIDError.self) { _ = try await signIn(try client(host), host, asksForEmail: true) }
        // As some providers write it.
        host.change {
            $0.replies["/userinfo"] = .json("{\"sub\":\"anna-1\",\"email\":\"a@example.org\",\"email_verified\":\"true\"}")
        }
        #expect(try await signIn(try client(host), host, asksForEmail: true).verifiedEmail == "a@example.org")
        host.change { $0.replies["/userinfo"] = .json("{\"sub\":\"anna-1\",\"email\":\"a@example.org\",\"emailVerified\":true}") }
        #expect(try await signIn(try client(host), host, asksForEmail: true).verifiedEmail == nil)
    }

    @Test func `subjects that only look alike are two persons`() async throws {
        let host = try ProviderHost()
        host.change {
            $0.tellsEmailAtOnce = false
            $0.claims = { $0["sub"] = "caf\u{e9}" }
            $0.replies["/userinfo"] = .json("{\"sub\":\"cafe\\u0301\",\"email\":\"a@example.org\",\"email_verified\":true}")
        }
        await #expect(throws: OpenIDError.self) { _ = try await signIn(try client(host), host, asksForEmail: true) }
        host.change {
            $0.replies["/userinfo"] = .json("{\"sub\":\"caf\\u00e9\",\"email\":\"a@example.org\",\"email_verified\":true}")
        }
        #expect(try await signIn(try client(host), host, asksForEmail: true).verifiedEmail == "a@example.org")
    }

    @Test func `a provider's address must be https, or on this machine`() throws {
        for issuer in [
            "http://id.example.org", "id.example.org", "ftp://id.example.org", "https://id.example.org/?a=b", "https://",
            "https://id.example.org/#a", "https://u:p@id.example.org", "http://127.0.0.1.example.org", "http://127.1",
            "http://localhost.example.org", "https://id.example.org/\n", "",
        ] {
            #expect(throws: OpenIDError.self, "\(issuer)") { _ = try OpenIDProvider(issuer, clientID: "a") }
        }
        for issuer in [
            "https://id.example.org", "https://id.example.org/", "https://id.example.org:8443/realms/a", "http://localhost:8080",
            "http://127.0.0.1:8080", "http://[::1]:8080/a",
        ] {
            #expect(throws: Never.self, "\(issuer)") { _ = try OpenIDProvider(issuer, clientID: "a") }
        }
        let provider = try OpenIDProvider("https://id.example.org/realms/a/", clientID: "a")
        #expect(provider.name == "id.example.org")
        #expect(provider.configurationAddress == "https://id.example.org/realms/a/.well-known/openid-configuration")
        for (client, name) in [("", nil), ("a\nb", nil), ("a", ""), ("a", "b\n")] as [(String, String?)] {
            #expect(throws: OpenIDError.self) { _ = try OpenIDProvider("https://a.example", clientID: client, name: name) }
        }
    }

    @Test func `the values that are sent to the provider do not disclose the stored secrets`() {
        let (one, other) = (SignInSecret(), SignInSecret())
        #expect(Set([one.state, one.nonce, one.verifier, one.challenge, other.state, other.nonce]).count == 6)
        #expect(SignInSecret(one.bytes)?.verifier == one.verifier && SignInSecret([1, 2]) == nil)
        // RFC 7636 allows 43 to 128 of these.
        #expect(one.verifier.wholeMatch(of: /[A-Za-z0-9\-_]{43}/) != nil)
    }
}
