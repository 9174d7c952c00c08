import Foundation
import TidemarkModel

/// An ID token (OpenID Connect Core 1.0, section 2): a provider's signed statement about the person who has signed in.
struct IDToken: Sendable {
    /// The values that a token has to match.
    struct Expectation: Sendable {
        let issuer, clientID, nonce: String
        /// The present time: seconds since 1970 UTC.
        let now: Double
        /// The earliest time at which the person may have signed in at the provider: seconds since 1970 UTC; `nil` for any.
        var signedInSince: Double?
    }

    private struct Header: Decodable {
        let algorithm: String
        let keyID: String?
        /// The extensions that a reader has to understand. None is known here.
        let extensions: [String]?

        enum CodingKeys: String, CodingKey {
            case algorithm = "alg"
            case keyID = "kid"
            case extensions = "crit"
        }
    }

    struct Claims: Decodable, Sendable {
        let issuer, subject: String
        let audience: Audience
        let authorizedParty, nonce: String?
        /// Seconds since 1970 UTC, as are all times.
        let expires, issued: Double
        /// When the person signed in at the provider.
        let signedIn: Double?
        let email, name, userName: String?
        let isEmailVerified: Flag?

        enum CodingKeys: String, CodingKey {
            case issuer = "iss"
            case subject = "sub"
            case audience = "aud"
            case authorizedParty = "azp"
            case expires = "exp"
            case issued = "iat"
            case signedIn = "auth_time"
            case userName = "preferred_username"
            case isEmailVerified = "email_verified"
            case nonce, email, name
        }
    }

    /// One client, or several.
    struct Audience: Decodable, Sendable {
        let clients: [String]

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            // Only a try shows which of the two it is.
            if let one = try? container.decode(String.self) {
                clients = [one]
            } else {
                clients = try container.decode([String].self)
            }
        }
    }

    /// A truth value, which some providers write as a text.
    struct Flag: Decodable, Sendable {
        let isTrue: Bool

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            // Only a try shows which of the two it is.
            if let flag = try? container.decode(Bool.self) {
                isTrue = flag
            } else {
                isTrue = try container.decode(String.self) == "true"
            }
        }
    }

    let algorithm: SigningAlgorithm
    let keyID: String?
    private let claims: Claims
    private let signedBytes, signature: [UInt8]

    /// The most bytes of a token. A provider's tokens have some thousand.
    private static let sizeMax = 64 << 10
    /// The seconds by which the clocks of two machines may differ.
    static let leeway: Double = 60
    /// The greatest age of a token in seconds. It comes from the provider directly, and so is new.
    private static let ageMax: Double = 10 * 60

    /// Decodes a token. Nothing in it can be trusted before ``checked(_:with:)``.
    init(_ text: String) throws(IDTokenDefect) {
        let parts = text.utf8.count <= Self.sizeMax ? text.split(separator: ".", omittingEmptySubsequences: false) : []
        guard parts.count == 3, let header = Base64URL.bytes(parts[0]), let content = Base64URL.bytes(parts[1]),
            let signature = Base64URL.bytes(parts[2]),
            let head = try? JSONDecoder().decode(Header.self, from: Data(header))
        else { throw .malformed }
        guard let algorithm = SigningAlgorithm(rawValue: head.algorithm) else { throw .algorithm }
        guard head.extensions == nil else { throw .critical }
        guard let claims = try? JSONDecoder().decode(Claims.self, from: Data(content)) else { throw .malformed }
        (self.algorithm, keyID, self.claims, self.signature) = (algorithm, head.keyID, claims, signature)
        signedBytes = Array("\(parts[0]).\(parts[1])".utf8)
    }

    /// Whether two texts have the same bytes. `==` treats canonically equivalent texts as equal.
    static func areSame(_ left: String, _ right: String) -> Bool { left.utf8.elementsEqual(right.utf8) }

    /// Checks all of a token.
    ///
    /// - Returns: The token's claims.
    func checked(_ expected: Expectation, with keys: JSONWebKeySet) throws(IDTokenDefect) -> Claims {
        guard let key = keys.key(keyID, for: algorithm) else { throw .unknownKey }
        guard key.verifies(signature, of: signedBytes) else { throw .signature }
        guard Self.areSame(claims.issuer, expected.issuer) else { throw .issuer }
        let isAlone = claims.audience.clients.count == 1
        guard claims.audience.clients.contains(where: { Self.areSame($0, expected.clientID) }) else { throw .audience }
        // A token for several clients says to which of them it was issued.
        guard claims.authorizedParty.map({ Self.areSame($0, expected.clientID) }) ?? isAlone else { throw .authorizedParty }
        guard claims.expires > expected.now - Self.leeway else { throw .expired }
        guard claims.issued < expected.now + Self.leeway else { throw .notYetValid }
        guard claims.issued > expected.now - Self.ageMax else { throw .old }
        guard let nonce = claims.nonce, Self.areSame(nonce, expected.nonce) else { throw .nonce }
        guard (1...255).contains(claims.subject.utf8.count),
            claims.subject.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
        else { throw .subject }
        if let since = expected.signedInSince {
            guard let time = claims.signedIn, time > since - Self.leeway, time < expected.now + Self.leeway else {
                throw .authenticationTime
            }
        }
        return claims
    }
}
