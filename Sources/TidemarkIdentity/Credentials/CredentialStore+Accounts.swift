import TidemarkCloudEngine

extension CredentialStore {
    /// Removes all that the credentials has of an account: its password, identities, sessions, known addresses, and keys of servers that act as it. The audit log
    /// keeps what was done, under the account's identifier, which leads to nobody once the account is gone.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    public func removeAccount(_ account: String) async throws(CredentialError) {
        try await stored { try await storage.removeAccount(account) }
    }

    /// Has what was removed be in no log of the storage, as far as nothing is in the way.
    package func emptyLog() async { await storage.emptyLog() }
}
