package import TidemarkCloudEngine
package import TidemarkModel

/// Identities at identity providers. The caller has checked the provider's statement before it calls these functions.
extension CredentialStore {
    /// The most identities of an account.
    package static let identitiesMost = 10

    /// Returns the identifier of an identity's account; `nil` where the identity is connected with none.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func account(of key: IdentityKey) async throws(CredentialError) -> String? {
        guard key.isWellFormed else { return nil }
        return try await stored { try await storage.identity(key) }?.account
    }

    /// Returns an account's identities, in the order in which they were connected.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func identities(of account: String) async throws(CredentialError) -> [Identity] {
        try await stored { try await storage.identities(of: account) }.map { Identity($0) }
    }

    /// Whether an account has a password.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func hasPassword(_ account: String) async throws(CredentialError) -> Bool {
        try await stored { try await storage.password(of: account) } != nil
    }

    /// Connects an identity with an account: from then on the identity signs in to it.
    ///
    /// - Parameter label: The identity's name for the person, such as an address.
    /// - Throws: ``CredentialError`` `invalid` for an identity that can't be one; `storage`, `busy`.
    package func connect(
        _ key: IdentityKey, label: String, to account: String
    ) async throws(CredentialError) -> IdentityConnection {
        guard key.isWellFormed else { throw CredentialError(.invalid, "the provider names the person by what can be no name") }
        let row = StoredIdentity(key: key, account: account, label: Self.line(label), added: now())
        switch try await stored({ try await storage.add(row, most: Self.identitiesMost) }) {
        case .added: return .connected
        case .exists(let other): return other == account ? .isConnected : .isAnothers
        case .tooMany: return .tooMany
        }
    }

    /// Disconnects an identity from an account.
    ///
    /// - Parameters:
    ///   - id: The identity's ``Identity/id``.
    ///   - evenIfLast: Whether to disconnect it even if the account has no password and no other identity: then nobody can sign
    ///     in to it.
    /// - Returns: The identity.
    /// - Throws: ``CredentialError`` `notFound`; `invalid` where it is the last way to sign in and `evenIfLast` is false;
    ///   `storage`, `busy`.
    package func disconnect(
        _ id: String, from account: String, evenIfLast: Bool = false
    ) async throws(CredentialError) -> Identity {
        let missing = CredentialError(.notFound, "there is no such identity; it may be disconnected already")
        guard let identity = try await identities(of: account).first(where: { $0.id == id }) else { throw missing }
        switch try await stored({ try await storage.removeIdentity(identity.key, of: account, evenIfLast: evenIfLast) }) {
        case .removed: return identity
        case .notFound: throw missing
        case .isLast:
            throw CredentialError(.invalid, "nothing else lets you in to your account: set a password first, then disconnect it")
        }
    }

    // Sessions

    /// Signs a person in to their own pages with an identity that a provider has vouched for just now.
    ///
    /// The session counts as one without an entered password. A second factor is asked for as with a password.
    ///
    /// - Parameters:
    ///   - account: The account of the identity, by its identifier.
    ///   - code: The code of the second factor, if the account has one.
    ///   - device: The browser's description of itself.
    ///   - address: The client's address.
    /// - Throws: ``CredentialError`` `busy`, `storage`.
    package func signInToPages(
        with key: IdentityKey, account: String, code: String = "", device: String, address: String
    ) async throws(CredentialError) -> PageSignIn {
        var event = AuditEvent(
            .accountSignIn, account: account, address: address, subject: Self.line(device), after: "identity \(key.id)")
        if let refusal = try await refusal(ofCode: code, of: account, as: event) { return refusal.of() }
        let (secret, row) = newPageSession(.account, of: account, isConfirmed: false, device: device, address: address)
        (event.actor, event.outcome) = (account, "done")
        let entry = event.stored
        guard try await stored({ try await storage.add(row, ifIdentityIs: key, auditing: entry) }) == .added else {
            (event.actor, event.outcome) = ("", "the identity was disconnected meanwhile")
            try await audit(event)
            return .refused
        }
        return .signedIn(Base64URL.text(secret))
    }

    /// Signs an account in to a container with an identity that a provider has vouched for just now.
    ///
    /// - Parameters:
    ///   - account: The account of the identity, by its identifier.
    ///   - device: The device's name for itself.
    ///   - address: The client's address.
    /// - Returns: `nil` where the identity was disconnected meanwhile.
    /// - Throws: ``CredentialError`` `notFound` when the container is not served; `busy`, `storage`.
    package func signIn(
        with key: IdentityKey, account: String, container: String, environment: StoreEnvironment, kind: Session.Kind,
        device: String, address: String
    ) async throws(CredentialError) -> SessionToken? {
        let event = AuditEvent(
            .signIn, actor: account, account: account, address: address, container: container, outcome: "done",
            after: AuditEvent.text(ofSignInOn: Self.line(device), with: key))
        return try await makeSession(
            account: account, container: container, environment: environment, kind: kind, device: device, address: address
        ) { row, session throws(CredentialError) in
            var event = event
            event.subject = session
            let entry = event.stored
            return try await stored { try await storage.add(row, ifIdentityIs: key, auditing: entry) }
        }
    }

    /// Notes that a person has just signed in again at a provider, which confirms the session as an entered password does.
    ///
    /// - Returns: Whether the identity is of the session's account.
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func confirm(_ session: PersonSession, with key: IdentityKey) async throws(CredentialError) -> Bool {
        guard try await account(of: key) == session.account, let id = Hexadecimal.bytes(session.id) else { return false }
        let now = now()
        try await stored { try await storage.noteConsoleSession(id, used: now, confirmed: now) }
        return true
    }
}
