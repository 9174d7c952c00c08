import Foundation
import TidemarkCloudEngine
import TidemarkModel

extension CredentialStore {
    /// Returns whether somebody signed in to an account from an address before, or uses a session of it there.
    ///
    /// - Parameter address: The client's address as limits count it (``NetworkAddress/host``).
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    public func isKnown(_ address: String, to account: String) async throws(CredentialError) -> Bool {
        let now = now()
        return try await stored { try await storage.isKnown(address, to: account, at: now) }
    }

    /// Makes a token by which a device, or a browser, shows that somebody signed in to an account on it before.
    ///
    /// The token does not sign anybody in. A sign-in attempt with it does not wait for the attempts of strangers.
    public func deviceToken(of account: String) -> String {
        signedText(
            Data("\(account)\n\(Hexadecimal.text(random(8)))".utf8), for: "device", until: now() + CredentialLimits.knownAge)
    }

    /// Returns the name of a token's device; `nil` when the token is not this cloud's, has expired, or is for another account.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    public func device(_ token: String, of account: String) throws(CredentialError) -> String? {
        guard let payload = try open(token, for: "device"), let text = String(validating: payload, as: UTF8.self) else {
            return nil
        }
        let parts = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0] == account else { return nil }
        return String(parts[1])
    }
}
