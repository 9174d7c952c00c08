/// Why a sign-in with an identity provider has failed.
package struct OpenIDError: Error, Sendable, CustomStringConvertible {
    /// The kind of error.
    package enum Code: String, Sendable {
        /// The provider's options are invalid.
        case invalid
        /// The provider can't be reached, or does not answer like an identity provider. A later try may succeed.
        case unreachable
        /// The provider's configuration and the server's options do not fit together. An operator has to look at it.
        case misconfigured
        /// The provider refuses the code: it was used, or is too old.
        case refused
        /// The provider's answer can't be trusted.
        case untrusted
    }

    package let code: Code
    /// What is wrong, for operators: a sentence without a final period.
    package let message: String
    /// With `untrusted`: what is wrong with the ID token.
    package let defect: IDTokenDefect?

    init(_ code: Code, _ message: String) { (self.code, self.message, defect) = (code, message, nil) }

    init(_ defect: IDTokenDefect) {
        (code, message, self.defect) = (.untrusted, "the identity provider's ID token is refused: \(defect.rawValue)", defect)
    }

    package var description: String { message }

    /// Makes a provider's text fit for a message: short, one line, ASCII.
    static func shown(_ text: String) -> String {
        String(text.unicodeScalars.prefix(100).map { (0x20...0x7e).contains($0.value) ? Character($0) : "?" })
    }
}

/// What is wrong with an ID token. The raw value is for the server's log.
package enum IDTokenDefect: String, Error, Sendable {
    case malformed = "it is no JSON Web Token with the claims of an ID token"
    case algorithm = "it is signed by another algorithm than RS256 or ES256"
    case critical = "it has extensions that have to be understood"
    case unknownKey = "the provider has no such key"
    case signature = "its signature is not the provider's"
    case issuer = "it is of another issuer"
    case audience = "it is for another client"
    case authorizedParty = "it was issued to another client"
    case expired = "it has expired; are the clocks right?"
    case notYetValid = "it is of the future; are the clocks right?"
    case old = "it was issued too long ago; are the clocks right?"
    case nonce = "it is of another sign-in"
    case subject = "it names nobody"
    case authenticationTime = "it does not say that the person was asked to sign in just now"
}
