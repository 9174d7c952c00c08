import Foundation
import TidemarkModel

/// Signs people in with an identity provider: OpenID Connect with the authorisation code flow, PKCE, state and nonce.
///
/// ```swift
/// let client = OpenIDClient(provider)
/// let secret = SignInSecret()
/// let address = try await client.authorizationAddress(secret, redirectURI: "https://cloud.example.org/account/callback")
/// // The browser goes there, and comes back with a code.
/// let identity = try await client.identity(code: code, secret, redirectURI: "https://cloud.example.org/account/callback")
/// ```
///
/// Nothing that the provider sends is trusted before it is checked: sizes, times, addresses, and each claim of the ID token.
package final class OpenIDClient: Sendable {
    /// An identity that the provider vouches for.
    package struct Identity: Hashable, Sendable {
        package let issuer, subject: String
        /// The person's e-mail address; `nil` where the provider does not say that it has verified the address.
        package let verifiedEmail: String?
        package let name: String?
        /// The identity's name for people.
        package let label: String
    }

    package let provider: OpenIDProvider
    private let connection: ProviderConnection
    private let metadata: KeptDocument<ProviderMetadata>
    private let keys: KeptDocument<JSONWebKeySet>
    /// Microseconds since 1970 UTC.
    private let now: @Sendable () -> Int64

    /// - Parameters:
    ///   - now: Microseconds since 1970 UTC; a parameter for tests.
    ///   - patience: The time within which the provider has to answer; a parameter for tests.
    package init(
        _ provider: OpenIDProvider, now: @escaping @Sendable () -> Int64 = Timestamp.now,
        patience: Duration = .seconds(10)
    ) {
        let connection = ProviderConnection(provider, patience: patience)
        let metadata = KeptDocument(now: now) { () async throws(OpenIDError) in
            try ProviderMetadata(try await connection.document(provider.configurationAddress), of: provider)
        }
        keys = KeptDocument(now: now) { () async throws(OpenIDError) in
            try JSONWebKeySet(try await connection.document(try await metadata.document().keys.text))
        }
        (self.provider, self.connection, self.metadata, self.now) = (provider, connection, metadata, now)
    }

    /// Returns the address to which a browser is sent.
    ///
    /// - Parameters:
    ///   - redirectURI: Where the provider sends the browser afterwards, as it is registered there.
    ///   - asksAgain: Whether the person is to sign in there although they are signed in.
    /// - Throws: ``OpenIDError`` `unreachable`, `misconfigured`.
    package func authorizationAddress(
        _ secret: SignInSecret, redirectURI: String, asksAgain: Bool = false
    ) async throws(OpenIDError) -> String {
        var values = [
            ("response_type", "code"), ("client_id", provider.clientID), ("redirect_uri", redirectURI),
            ("scope", "openid email profile"), ("state", secret.state), ("nonce", secret.nonce),
            ("code_challenge", secret.challenge), ("code_challenge_method", "S256"),
        ]
        if asksAgain { values += [("prompt", "login"), ("max_age", "0")] }
        return try await metadata.document().authorization.with(values)
    }

    /// Checks that an answer is from this provider (RFC 9207). An answer without an issuer passes, unless this provider always
    /// names itself.
    ///
    /// - Parameter issuer: The parameter `iss` of the answer.
    /// - Throws: ``OpenIDError`` `untrusted`, `unreachable`, `misconfigured`.
    package func check(answerOf issuer: String?) async throws(OpenIDError) {
        let isNamed = try await metadata.document().namesItself
        guard issuer.map({ IDToken.areSame($0, provider.issuer) }) ?? !isNamed else {
            throw OpenIDError(.untrusted, "an answer to a sign-in is of another identity provider")
        }
    }

    /// Exchanges a code for an identity.
    ///
    /// - Parameters:
    ///   - code: The code that the browser brought back.
    ///   - redirectURI: The address that the browser was sent with.
    ///   - since: The earliest time at which the person may have signed in at the provider: microseconds since 1970 UTC; `nil`
    ///     for any.
    ///   - asksForEmail: Whether to ask for the person's e-mail address where the ID token has none.
    /// - Throws: ``OpenIDError``.
    package func identity(
        code: String, _ secret: SignInSecret, redirectURI: String, signedInSince since: Int64? = nil, asksForEmail: Bool = false
    ) async throws(OpenIDError) -> Identity {
        let metadata = try await metadata.document()
        let answer = try await exchange(code, secret, redirectURI, metadata)
        var expected = IDToken.Expectation(
            issuer: provider.issuer, clientID: provider.clientID, nonce: secret.nonce, now: Double(now()) / 1_000_000)
        expected.signedInSince = since.map { Double($0) / 1_000_000 }
        var profile = Profile(try await claims(of: answer.idToken, expected))
        if asksForEmail, profile.email == nil, let address = metadata.userInfo, let access = answer.accessToken {
            profile = try await userInfo(at: address, access, of: profile)
        }
        return Identity(
            issuer: provider.issuer, subject: profile.subject, verifiedEmail: profile.isVerified ? profile.email : nil,
            name: profile.name, label: profile.email ?? profile.userName ?? profile.name ?? profile.subject)
    }

    // The code

    private struct TokenAnswer: Decodable {
        let idToken: String
        let accessToken: String?

        enum CodingKeys: String, CodingKey {
            case idToken = "id_token"
            case accessToken = "access_token"
        }
    }

    private struct TokenError: Decodable {
        let error: String
    }

    private func exchange(
        _ code: String, _ secret: SignInSecret, _ redirectURI: String, _ metadata: ProviderMetadata
    ) async throws(OpenIDError) -> TokenAnswer {
        var form = [
            ("grant_type", "authorization_code"), ("code", code), ("redirect_uri", redirectURI),
            ("code_verifier", secret.verifier),
        ]
        var headers: [(String, String)] = []
        switch (provider.clientSecret, metadata.authentication) {
        case (nil, _): form.append(("client_id", provider.clientID))
        case (let clientSecret?, .post): form += [("client_id", provider.clientID), ("client_secret", clientSecret)]
        case (let clientSecret?, .basic):
            // Each part is encoded first (RFC 6749, section 2.3.1).
            let pair = "\(PercentCoding.encoded(provider.clientID)):\(PercentCoding.encoded(clientSecret))"
            headers.append(("Authorization", "Basic \(Data(pair.utf8).base64EncodedString())"))
        }
        let (status, body) = try await connection.post(form, headers, to: metadata.token)
        guard status == 200 else {
            let error = (try? JSONDecoder().decode(TokenError.self, from: Data(body)))?.error ?? ""
            let shown = OpenIDError.shown(error)
            switch error {
            case "invalid_grant":
                throw OpenIDError(.refused, "the identity provider does not take a code: it was used, or is too old")
            case "invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_request":
                throw OpenIDError(
                    .misconfigured,
                    "the identity provider does not take this server for its client ('\(shown)'): are the client and its secret right?"
                )
            default: throw OpenIDError(.unreachable, "the identity provider answers to a code with status \(status) '\(shown)'")
            }
        }
        guard let answer = try? JSONDecoder().decode(TokenAnswer.self, from: Data(body)) else {
            throw OpenIDError(.unreachable, "the identity provider has answered to a code without an ID token")
        }
        return answer
    }

    /// Returns a token's claims. An unknown key may be new: then the keys are fetched again, once.
    private func claims(of text: String, _ expected: IDToken.Expectation) async throws(OpenIDError) -> IDToken.Claims {
        var keys = try await keys.document()
        do throws(IDTokenDefect) {
            let token = try IDToken(text)
            do throws(IDTokenDefect) {
                return try token.checked(expected, with: keys)
            } catch {
                guard error == .unknownKey || error == .signature && token.keyID == nil else { throw error }
            }
        } catch {
            throw OpenIDError(error)
        }
        keys = try await self.keys.document(isLacking: true)
        do throws(IDTokenDefect) {
            return try IDToken(text).checked(expected, with: keys)
        } catch {
            throw OpenIDError(error)
        }
    }

    // The person

    private struct Profile {
        let subject: String
        var email, name, userName: String?
        var isVerified = false

        init(_ claims: IDToken.Claims) {
            subject = claims.subject
            (email, name, userName) = (claims.email, claims.name, claims.userName)
            isVerified = claims.isEmailVerified?.isTrue ?? false
        }
    }

    private struct UserInfo: Decodable {
        let subject: String
        let email, name, userName: String?
        let isEmailVerified: IDToken.Flag?

        enum CodingKeys: String, CodingKey {
            case subject = "sub"
            case userName = "preferred_username"
            case isEmailVerified = "email_verified"
            case email, name
        }
    }

    /// Fetches the claims that the ID token lacks (OpenID Connect Core 1.0, section 5.3).
    private func userInfo(
        at address: ProviderAddress, _ access: String, of profile: Profile
    ) async throws(OpenIDError) -> Profile {
        guard (1...16_384).contains(access.utf8.count), access.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
            throw OpenIDError(.unreachable, "the identity provider has given out an access token that is none")
        }
        let body = try await connection.document(address.text, headers: [("Authorization", "Bearer \(access)")])
        guard let info = try? JSONDecoder().decode(UserInfo.self, from: Data(body)) else {
            throw OpenIDError(.unreachable, "what the identity provider tells of a person can't be read")
        }
        guard IDToken.areSame(info.subject, profile.subject) else {
            throw OpenIDError(.untrusted, "the identity provider tells of another person than the one who has signed in")
        }
        var profile = profile
        (profile.email, profile.isVerified) = (info.email, info.isEmailVerified?.isTrue ?? false)
        profile.name = profile.name ?? info.name
        profile.userName = profile.userName ?? info.userName
        return profile
    }
}
