public import TidemarkModel
import TidemarkSQLite
public import TidemarkStore

extension SyncEngine {
    /// Ends the synchronisation with the account whose records are here.
    ///
    /// ```swift
    /// running.cancel()                                  // the task of run()
    /// let setAside = try await engine.signOut()
    /// ```
    ///
    /// Nothing is sent or fetched for it. Whoever is signed in with the cloud at the next ``sync(patience:isContinued:)`` gets the
    /// container: have ``SyncConfiguration/accountState`` say that nobody is, or make another engine.
    ///
    /// - Parameters:
    ///   - choice: What becomes of the account's records here: they are set aside, stay, or are deleted. Those that stay go on with the same
    ///     account where they were; another one gets none of them.
    ///   - reason: What ``Quarantine/reason`` says.
    /// - Returns: What was set aside; `nil` where there was nothing, or `choice` is another.
    /// - Throws: ``ContainerEvent/Failure`` 134417 while it synchronises; ``StoreError``.
    @discardableResult
    public func signOut(
        _ choice: SignOutChoice = .quarantine, reason: String = "the account has signed out"
    ) async throws -> Quarantine? {
        try await alone { store in try await store.signOut(choice, reason: reason) }
    }

    /// Brings back what was set aside: edits that no cloud had are merged with what is there by now. The next synchronisation sends them.
    ///
    /// ```swift
    /// for quarantine in try container.quarantines() { try await engine.restore(quarantine) }
    /// ```
    ///
    /// - Parameters:
    ///   - options: More than that. Otherwise the same account has to be synchronised here again, and what was set aside is gone afterwards.
    ///   - policy: Resolves conflicts with what was changed here meanwhile, too; by default that of the configuration.
    /// - Returns: What it has changed, in records.
    /// - Throws: ``StoreError`` `anotherAccount` when the records belong to another account, and those of a save;
    ///   ``ContainerEvent/Failure`` 134417 while it synchronises.
    @discardableResult
    public func restore(
        _ quarantine: Quarantine, options: QuarantineRestoration = [], policy: MergePolicy? = nil
    ) async throws -> ChangeCounts {
        let configured = configuration.mergePolicy
        return try await alone { store in
            try await store.restore(
                quarantine, options: options, author: "quarantine", role: .sync, policy: { policy ?? configured($0) }
            ).counts
        }
    }
}
