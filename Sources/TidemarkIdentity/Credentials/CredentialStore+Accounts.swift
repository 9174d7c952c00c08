import TidemarkCloudEngine

extension CredentialStore {
    /// Removes all credentials of an account: its password, second factor, identities, sessions, known addresses, role of an
    /// operator, and keys of servers that act as it; and its sync failures. The audit log keeps its entries, under the account's
    /// identifier, which names nobody once the account is gone.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    public func removeAccount(_ account: String) async throws(CredentialError) {
        try await stored { try await storage.removeAccount(account) }
    }

    /// Empties the storage's log, which may still have removed rows. It gives up after a while if a reader needs the log.
    package func emptyLog() async { await storage.emptyLog() }
}
