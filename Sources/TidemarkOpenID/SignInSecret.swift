import TidemarkModel

/// The secret that binds a sign-in at a provider to the browser in which it began: 32 random bytes, which only that browser has.
///
/// Three values are derived from them: the state, which the provider's answer has to bring back; the nonce, which the ID token
/// has to contain; and the verifier, without which nobody can use the code (RFC 7636). None of the three reveals another.
package struct SignInSecret: Hashable, Sendable {
    /// 32 bytes.
    package let bytes: [UInt8]

    package static let size = 32

    /// Makes a random secret.
    package init() {
        var generator = SystemRandomNumberGenerator()
        bytes = (0..<Self.size).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }

    /// - Returns: `nil` where there are not 32 bytes.
    package init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.size else { return nil }
        self.bytes = Array(bytes)
    }

    /// The value that the provider's answer has to bring back.
    package var state: String { derived("state") }
    /// The value that the ID token has to contain.
    package var nonce: String { derived("nonce") }
    /// The value that proves that the code was made for this server.
    package var verifier: String { derived("verifier") }
    /// The digest of the verifier, for the address to which the browser is sent.
    package var challenge: String { Base64URL.text(Self.sha256(Array(verifier.utf8))) }

    private func derived(_ name: String) -> String { Base64URL.text(Self.sha256(Array("\(name)\0".utf8) + bytes)) }

    private static func sha256(_ bytes: [UInt8]) -> [UInt8] {
        var context = SHA256Context()
        bytes.withUnsafeBytes { context.update($0) }
        return context.finish()
    }
}
