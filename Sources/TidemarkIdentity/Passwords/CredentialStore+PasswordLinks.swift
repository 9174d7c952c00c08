import Foundation
import TidemarkCloudEngine

/// Links with which people set passwords that they have forgotten, or never had.
extension CredentialStore {
    /// For how long a link is good: microseconds, a day.
    package static let passwordLinkAge: Int64 = 24 * 60 * 60 * 1_000_000
    /// Bytes of the digest of the password that the account has.
    static let markSize = 16

    /// Makes the key of a link with which somebody sets an account's password. It is good for a day, and until the account has another
    /// password: once. Nothing is stored.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func passwordLinkKey(of account: String) async throws(CredentialError) -> String {
        let mark = try await mark(of: account)
        return signedText(Data(mark + Array(account.utf8)), for: "password", until: now() + Self.passwordLinkAge)
    }

    /// Returns the account whose password a key sets; `nil` where it is over, was used, or is none.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func account(ofPasswordLink key: String) async throws(CredentialError) -> String? {
        try await refresh()
        guard let payload = try open(key, for: "password"), payload.count > Self.markSize,
            let account = String(validating: payload.dropFirst(Self.markSize), as: UTF8.self)
        else { return nil }
        return Digest.areEqual(payload.prefix(Self.markSize), try await mark(of: account)) ? account : nil
    }

    /// A digest of what is stored of the account's password: another one after each change.
    func mark(of account: String) async throws(CredentialError) -> [UInt8] {
        let row = try await stored { try await storage.password(of: account) }
        let kept = row.map { $0.salt + $0.digest } ?? []
        return Array(Digest.sha256(Array("password link\0\(account)\0".utf8) + kept).prefix(Self.markSize))
    }
}
