import Foundation
import TidemarkCloudEngine

/// Links by which people show that an address is theirs.
extension CredentialStore {
    /// The content of a link.
    package struct AddressLink: Hashable, Sendable {
        /// The account's identifier.
        package let account: String
        /// The address that the account has, and the one that it is to have.
        package let before, after: String

        package init(account: String, before: String, after: String) {
            (self.account, self.before, self.after) = (account, before, after)
        }
    }

    /// Makes the key of a link that gives an account another address. The key is valid for a day, but no longer than the
    /// account's password. Nothing is stored.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func addressLinkKey(_ link: AddressLink) async throws(CredentialError) -> String {
        let text = [link.account, link.before, link.after].joined(separator: "\0")
        return signedText(
            Data(try await mark(of: link.account) + Array(text.utf8)), for: "address", until: now() + Self.passwordLinkAge)
    }

    /// Returns the content of a link's key; `nil` where the key is no longer valid, or is none.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func address(ofLink key: String) async throws(CredentialError) -> AddressLink? {
        try await refresh()
        guard let payload = try open(key, for: "address"), payload.count > Self.markSize,
            let text = String(validating: payload.dropFirst(Self.markSize), as: UTF8.self)
        else { return nil }
        let parts = text.split(separator: "\0", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3, Digest.areEqual(payload.prefix(Self.markSize), try await mark(of: parts[0])) else { return nil }
        return AddressLink(account: parts[0], before: parts[1], after: parts[2])
    }
}
