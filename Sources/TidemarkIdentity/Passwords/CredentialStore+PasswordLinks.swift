import Foundation
import TidemarkCloudEngine

/// Links with which people set passwords that they have forgotten, or never had.
extension CredentialStore {
    /// How long a link is valid: microseconds, a day.
    package static let passwordLinkAge: Int64 = 24 * 60 * 60 * 1_000_000
    /// Bytes of the digest that shows whether the account's password has changed since a link was made.
    static let markSize = 16

    /// Makes the key of a link with which a person sets an account's password. The key is valid for a day, and until the
    /// account's password is set or removed, so it works once. Nothing is stored.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func passwordLinkKey(of account: String) async throws(CredentialError) -> String {
        let mark = try await mark(of: account)
        return signedText(Data(mark + Array(account.utf8)), for: "password", until: now() + Self.passwordLinkAge)
    }

    /// Returns the account whose password a key sets; `nil` where the key has expired, was used, or is none.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func account(ofPasswordLink key: String) async throws(CredentialError) -> String? {
        try await refresh()
        guard let account = Self.account(in: try open(key, for: "password")) else { return nil }
        let version = try await stored { try await storage.passwordVersion(of: account) }
        return try self.account(ofPasswordLink: key, atVersion: version)
    }

    private static func account(in payload: Data?) -> String? {
        guard let payload, payload.count > markSize else { return nil }
        return String(validating: payload.dropFirst(markSize), as: UTF8.self)
    }

    /// Sets the password of a link's account. Only the first call with the link succeeds.
    ///
    /// - Returns: The account; `nil` where the link has expired, was used, or is none. Nothing is changed then.
    /// - Throws: ``CredentialError`` `invalid`, `storage`, `busy`.
    package func setPassword(_ password: String, byLink key: String) async throws(CredentialError) -> String? {
        try await refresh()
        guard let named = Self.account(in: try open(key, for: "password")) else { return nil }
        let version = try await stored { try await storage.passwordVersion(of: named) }
        guard let account = try account(ofPasswordLink: key, atVersion: version),
            try await setPassword(password, of: account, ifVersionIs: version)
        else { return nil }
        return account
    }

    private func account(ofPasswordLink key: String, atVersion version: Int64) throws(CredentialError) -> String? {
        guard let payload = try open(key, for: "password"), let account = Self.account(in: payload) else { return nil }
        return Digest.areEqual(payload.prefix(Self.markSize), Self.mark(of: account, atVersion: version)) ? account : nil
    }

    /// A digest that changes whenever the account's password is set or removed.
    func mark(of account: String) async throws(CredentialError) -> [UInt8] {
        Self.mark(of: account, atVersion: try await stored { try await storage.passwordVersion(of: account) })
    }

    private static func mark(of account: String, atVersion version: Int64) -> [UInt8] {
        Array(Digest.sha256(Array("password link\0\(account)\0\(version)".utf8)).prefix(markSize))
    }
}
