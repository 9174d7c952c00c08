package import TidemarkCloudEngine
import TidemarkEmbeddedCloud
package import TidemarkIdentity
import TidemarkModel

/// Identities of identity providers that sign in to accounts.
extension Administration {
    /// The ways to sign in to an account.
    package struct WaysIn: Sendable {
        package let account: StoredAccount
        /// The identities, in the order in which they were connected.
        package let identities: [Identity]
        package let hasPassword: Bool

        /// Whether nobody can sign in to the account once an identity is disconnected.
        package func isLast(_ id: String) -> Bool { !hasPassword && identities.allSatisfy { $0.id == id } }

        /// Describes in a sentence how to sign in once an identity is disconnected, and what to do if no way is left.
        package func whatIsLeft(without id: String) -> String {
            let others = identities.filter { $0.id != id }.map { "\($0.label) at \($0.key.issuer)" }
            let other = others.isEmpty ? "" : "sign in as \(others.joined(separator: " or as "))"
            switch (hasPassword, others.isEmpty) {
            case (true, true): return "The account has a password, which still signs in."
            case (true, false): return "The account has a password, which still signs in; so does who can \(other)."
            case (false, false): return "The account has no password; who can \(other) comes in."
            case (false, true):
                return
                    "The account has no password and no other identity: nobody can sign in to it until the person sets a password with a link."
            }
        }
    }

    /// Returns the ways to sign in to an account.
    ///
    /// - Parameter name: The account's address or identifier.
    package func waysIn(to name: String) async throws(AdministrationError) -> WaysIn {
        try demandOperator("the identities of an account")
        let account = try await account(name)
        return try await wrapped {
            WaysIn(
                account: account, identities: try await credentials.identities(of: account.id),
                hasPassword: try await credentials.hasPassword(account.id))
        }
    }

    /// Disconnects an identity from an account: it signs in to the account no longer. Sessions go on until they are ended.
    ///
    /// - Parameters:
    ///   - id: The identity's `Identity.id`.
    ///   - name: The account's address or identifier.
    ///   - evenIfLast: Whether to disconnect it even if nobody can sign in to the account then. The caller has warned the person.
    /// - Throws: ``AdministrationError`` `notFound`; `invalid` for the last way to sign in, unless `evenIfLast` is set.
    package func disconnectIdentity(
        _ id: String, of name: String, evenIfLast: Bool
    ) async throws(AdministrationError) -> Identity {
        try demandOperator("disconnecting an identity")
        let account = try await account(name)
        let identity: Identity
        do throws(CredentialError) {
            identity = try await credentials.disconnect(id, from: account.id, evenIfLast: evenIfLast)
        } catch {
            guard error.code == .invalid else { throw AdministrationError(error) }
            throw AdministrationError(
                .invalid, "the account has no password and no other identity any more: look at it again, then disconnect it")
        }
        try await audit(
            "account.identity-disconnect", account: account.id, subject: "identity \(id)",
            before: PersonalAccount.text(identity.key, identity.label))
        return identity
    }
}

extension Administration.AccountDetails {
    /// The ways to sign in to the account.
    package var waysIn: Administration.WaysIn {
        Administration.WaysIn(account: account, identities: identities, hasPassword: hasPassword)
    }
}
