package import TidemarkCloudEngine
package import TidemarkEmbeddedCloud
package import TidemarkIdentity
import TidemarkModel

/// Identities of identity providers.
extension PersonalAccount {
    /// Returns the account's identities, by when they were connected.
    package func identities() async throws(AdministrationError) -> [Identity] {
        try await wrapped { try await credentials.identities(of: account.id) }
    }

    /// Connects an identity with the account.
    ///
    /// - Parameter label: What the person knows the identity by.
    package func connect(_ key: IdentityKey, label: String) async throws(AdministrationError) -> IdentityConnection {
        let connection = try await wrapped { try await credentials.connect(key, label: label, to: account.id) }
        if connection == .connected {
            try await audit("identity.connect", subject: "identity \(key.id)", after: Self.text(key, label))
        }
        return connection
    }

    /// Disconnects an identity from the account.
    ///
    /// - Parameter id: The identity's `Identity.id`.
    /// - Throws: ``AdministrationError`` `notFound`; `invalid` if the person has no other way to sign in.
    package func disconnect(_ id: String) async throws(AdministrationError) {
        let identity = try await wrapped { try await credentials.disconnect(id, from: account.id) }
        try await audit("identity.disconnect", subject: "identity \(id)", before: Self.text(identity.key, identity.label))
    }

    /// Makes an account for an identity that has none. The provider has vouched for the person's address. The account has no
    /// password.
    ///
    /// An account that has the address already is never connected: the person with the address at the provider may be another
    /// than the account's owner.
    ///
    /// - Parameters:
    ///   - label: What the person knows the identity by.
    ///   - name: The name that participants of the person's shares see; `nil` for none.
    ///   - address: From where the person asks, for the audit log.
    /// - Returns: The account; `nil` where another one has the address.
    /// - Throws: ``AdministrationError`` `invalid` for an address that no account can have.
    package static func signUp(
        _ key: IdentityKey, label: String, email: String, name: String?, _ cloud: EmbeddedCloud, _ credentials: CredentialStore,
        from address: String
    ) async throws(AdministrationError) -> StoredAccount? {
        do {
            let person = PersonName(text: shortened(name ?? ""))
            guard
                let account = try await cloud.addNewAccount(
                    email, name: person.title.isEmpty ? nil : person, quota: StoredAccount.servedQuota)
            else { return nil }
            let connection: IdentityConnection?
            do {
                connection = try await credentials.connect(key, label: label, to: account.id)
            } catch {
                // The first error is thrown. An account that stays has no data.
                try? await cloud.removeIfUnused(account)
                throw error
            }
            guard connection == .connected else {
                // The same person, in another window, with another address.
                try await cloud.removeIfUnused(account)
                return nil
            }
            try await credentials.audit(
                AuditEvent(
                    .own("sign-up"), actor: account.id, account: account.id, address: address, subject: "identity \(key.id)",
                    after: text(key, label)))
            return account
        } catch {
            throw AdministrationError(error)
        }
    }

    /// The beginning of a name, as long as an account's name may be, in one line.
    private static func shortened(_ name: String) -> String {
        var shown = ""
        for scalar in name.unicodeScalars where scalar.properties.generalCategory != .control {
            guard shown.utf8.count + UTF8.width(scalar) <= 255 else { break }
            shown.unicodeScalars.append(scalar)
        }
        return shown
    }

    static func text(_ key: IdentityKey, _ label: String) -> String { "\(label) at \(key.issuer)" }
}
