/// Stores which identities of identity providers sign in to which accounts, as rows.
///
/// An identity is an issuer and a subject, and leads to one account. An account may have several.
package protocol IdentityStorage: Sendable {
    /// Returns an identity's row; `nil` where it is connected with no account.
    func identity(_ key: IdentityKey) async throws -> StoredIdentity?
    /// Returns an account's identities, by when they were connected.
    func identities(of account: String) async throws -> [StoredIdentity]
    /// Connects an identity with an account.
    ///
    /// - Parameter most: The most identities that an account may have.
    func add(_ identity: StoredIdentity, most: Int) async throws -> IdentityAddition
    /// Disconnects an identity from an account.
    ///
    /// - Parameter evenIfLast: Whether to remove the identity although nothing else lets the person sign in.
    func removeIdentity(_ key: IdentityKey, of account: String, evenIfLast: Bool) async throws -> IdentityRemoval

    /// Adds a session of web pages, and removes expired ones. A console session needs an operator's account.
    ///
    /// - Parameters:
    ///   - key: The identity that must still belong to the account.
    ///   - event: The entry that the audit log gets in the same transaction.
    func add(
        _ session: StoredConsoleSession, ifIdentityIs key: IdentityKey, auditing event: StoredAuditEvent
    ) async throws -> ConsoleSessionAddition
    /// Adds a session, and removes sessions whose rows may go. Its address becomes a known one.
    ///
    /// - Parameters:
    ///   - key: The identity that must still belong to the account.
    ///   - event: The entry that the audit log gets in the same transaction.
    func add(
        _ session: StoredSession, ifIdentityIs key: IdentityKey, auditing event: StoredAuditEvent
    ) async throws -> SessionAddition
}

extension IdentityStorage {
    /// Disconnects an identity from an account, unless nothing else lets the person sign in.
    package func removeIdentity(_ key: IdentityKey, of account: String) async throws -> IdentityRemoval {
        try await removeIdentity(key, of: account, evenIfLast: false)
    }
}

/// Identifies a person at an identity provider.
package struct IdentityKey: Hashable, Sendable {
    /// The provider, by the address that it gives itself.
    package let issuer: String
    /// The person, by the provider's name for them. No other person ever gets it.
    package let subject: String

    package init(issuer: String, subject: String) { (self.issuer, self.subject) = (issuer, subject) }
}

/// A row of an identity.
package struct StoredIdentity: Hashable, Sendable {
    package let key: IdentityKey
    package let account: String
    /// The identity's name for people, such as an address; one line.
    package let label: String
    /// When it was connected: microseconds since 1970 UTC.
    package let added: Int64

    package init(key: IdentityKey, account: String, label: String, added: Int64) {
        (self.key, self.account, self.label, self.added) = (key, account, label, added)
    }
}

/// The result of connecting an identity.
package enum IdentityAddition: Hashable, Sendable {
    case added
    /// The identity is connected already, with this account or another, and stays so.
    case exists(account: String)
    /// The account has as many identities as it may have.
    case tooMany
}

/// The result of disconnecting an identity.
package enum IdentityRemoval: Hashable, Sendable {
    case removed
    case notFound
    /// The account has no password and no other identity; it stays.
    case isLast
}
