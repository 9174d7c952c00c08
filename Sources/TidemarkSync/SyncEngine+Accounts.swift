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
    /// Nothing is sent or fetched for that account afterwards. The account that is signed in at the next ``sync(patience:isContinued:)``
    /// gets the container. To prevent that, return a signed-out state from ``SyncConfiguration/accountState``, or make another engine.
    ///
    /// - Parameters:
    ///   - choice: The treatment of the account's records here: they are set aside, stay, or are deleted. Records that stay go on with the
    ///     same account where they stopped; another account gets none of them.
    ///   - reason: The value of ``Quarantine/reason``.
    /// - Returns: The quarantine; `nil` if there was nothing to set aside, or `choice` does not set records aside.
    /// - Throws: ``ContainerEvent/Failure`` 134417 while it synchronises; ``StoreError``.
    @discardableResult
    public func signOut(
        _ choice: SignOutChoice = .quarantine, reason: String = "the account has signed out"
    ) async throws -> Quarantine? {
        try await alone { store in try await store.signOut(choice, reason: reason) }
    }

    /// Brings back records that were set aside: edits that no cloud has are merged with the present records. The next synchronisation sends
    /// them.
    ///
    /// ```swift
    /// for quarantine in try container.quarantines() { try await engine.restore(quarantine) }
    /// ```
    ///
    /// - Parameters:
    ///   - options: Further records, accounts and outcomes. Without options, the same account has to be synchronised here again, and the
    ///     quarantine is gone afterwards.
    ///   - policy: Also resolves conflicts with changes that were made here meanwhile; by default the configuration's policy.
    /// - Returns: Counts of the records that were changed.
    /// - Throws: ``StoreError`` `anotherAccount` when the records belong to another account, and those of a save;
    ///   ``ContainerEvent/Failure`` 134417 while it synchronises.
    @discardableResult
    public func restore(
        _ quarantine: Quarantine, options: QuarantineRestoration = [], policy: MergePolicy? = nil
    ) async throws -> ChangeCounts {
        let configured = configuration.policy
        return try await alone { store in
            try await store.restore(
                quarantine, options: options, author: "quarantine", role: .sync, policy: { policy ?? configured($0) }
            ).counts
        }
    }
}
