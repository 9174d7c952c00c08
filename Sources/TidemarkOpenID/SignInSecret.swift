import TidemarkModel

/// What binds a sign-in at a provider to the browser in which it has begun: 32 random bytes, which only that browser has.
///
/// From them follow the state, by which the provider's answer is known again; the nonce, by which its ID token is; and the verifier, without
/// which nobody can use the code (RFC 7636). None of the three tells another.
package struct SignInSecret: Hashable, Sendable {
    /// 32 bytes.
    package let bytes: [UInt8]

    package static let size = 32

    /// Makes one by chance.
    package init() {
        var generator = SystemRandomNumberGenerator()
        bytes = (0..<Self.size).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }

    /// - Returns: `nil` where there are not 32 bytes.
    package init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.size else { return nil }
        self.bytes = Array(bytes)
    }

    /// What the provider's answer has to bring along.
    package var state: String { derived("state") }
    /// What the ID token has to have.
    package var nonce: String { derived("nonce") }
    /// What shows that the code is this server's.
    package var verifier: String { derived("verifier") }
    /// The digest of the verifier, for the address that the browser is sent to.
    package var challenge: String { Base64URL.text(Self.sha256(Array(verifier.utf8))) }

    private func derived(_ name: String) -> String { Base64URL.text(Self.sha256(Array("\(name)\0".utf8) + bytes)) }

    private static func sha256(_ bytes: [UInt8]) -> [UInt8] {
        var context = SHA256Context()
        bytes.withUnsafeBytes { context.update($0) }
        return context.finish()
    }
}
