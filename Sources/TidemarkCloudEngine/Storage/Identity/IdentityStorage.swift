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
    /// - Parameter most: How many an account has at the most.
    func add(_ identity: StoredIdentity, most: Int) async throws -> IdentityAddition
    /// Disconnects an identity from an account.
    ///
    /// - Parameter evenIfLast: Whether also where nothing else lets anybody in to the account.
    func removeIdentity(_ key: IdentityKey, of account: String, evenIfLast: Bool) async throws -> IdentityRemoval

    /// Adds a session of pages, and removes those that have expired. One of the console is of an operator.
    ///
    /// - Parameters:
    ///   - key: The identity that has to be the account's still.
    ///   - event: What the audit log gets in the same transaction.
    func add(
        _ session: StoredConsoleSession, ifIdentityIs key: IdentityKey, auditing event: StoredAuditEvent
    ) async throws -> ConsoleSessionAddition
    /// Adds a session, and removes those whose rows may go. Its address becomes a known one.
    ///
    /// - Parameters:
    ///   - key: The identity that has to be the account's still.
    ///   - event: What the audit log gets in the same transaction.
    func add(
        _ session: StoredSession, ifIdentityIs key: IdentityKey, auditing event: StoredAuditEvent
    ) async throws -> SessionAddition
}

extension IdentityStorage {
    /// Disconnects an identity from an account, unless nothing else would let anybody in to it.
    package func removeIdentity(_ key: IdentityKey, of account: String) async throws -> IdentityRemoval {
        try await removeIdentity(key, of: account, evenIfLast: false)
    }
}

/// What names a person at an identity provider.
package struct IdentityKey: Hashable, Sendable {
    /// The provider, by the address that it calls itself.
    package let issuer: String
    /// The person, as the provider names them: never another person's.
    package let subject: String

    package init(issuer: String, subject: String) { (self.issuer, self.subject) = (issuer, subject) }
}

/// A row of an identity.
package struct StoredIdentity: Hashable, Sendable {
    package let key: IdentityKey
    package let account: String
    /// What people know the identity by, such as an address; a line.
    package let label: String
    /// When it was connected: microseconds since 1970 UTC.
    package let added: Int64

    package init(key: IdentityKey, account: String, label: String, added: Int64) {
        (self.key, self.account, self.label, self.added) = (key, account, label, added)
    }
}

/// What became of an identity that was to be connected.
package enum IdentityAddition: Hashable, Sendable {
    case added
    /// It is the account's already, or another one's, which stays so.
    case exists(account: String)
    /// The account has as many as it may have.
    case tooMany
}

/// What became of an identity that was to be disconnected.
package enum IdentityRemoval: Hashable, Sendable {
    case removed
    case notFound
    /// The account has no password and no other identity; it stays.
    case isLast
}
