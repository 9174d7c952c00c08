public import TidemarkModel
public import TidemarkSQLite
public import TidemarkStore
public import TidemarkSync

extension PersistentContainer {
    /// Ends the synchronisation with the account whose records are here.
    ///
    /// ```swift
    /// let setAside = try await journal.signOut()
    /// print("\(setAside?.records ?? 0) records set aside, \(setAside?.pending ?? 0) changes not in the cloud")
    /// ```
    ///
    /// A container that synchronises by itself stops: call ``startSyncing(with:configuration:environment:)`` for the next account. Where records
    /// go, observations see it, and history tokens from before expire.
    ///
    /// - Parameters:
    ///   - choice: What becomes of the account's records here: they are set aside, stay, or are deleted. Those that stay go on with the same
    ///     account where they were; another one gets none of them.
    ///   - reason: What `Quarantine.reason` says.
    /// - Returns: What was set aside of one's own records; what others share is set aside by itself, and is among ``quarantines()``. `nil` where
    ///   there was nothing, or `choice` is another.
    /// - Throws: `ContainerEvent.Failure` 134410 while another process synchronises the container, 134417 while this one does by hand;
    ///   ``StoreError``.
    @discardableResult
    public func signOut(
        _ choice: SignOutChoice = .quarantine, reason: String = "the account has signed out"
    ) async throws -> Quarantine? {
        // A synchronisation that is under way is not to go on with what is set aside.
        await stopSyncing()
        if let sync = syncing.sync {
            defer { changeBroadcaster.post(isOwn: true) }
            let quarantine = try await sync.privateEngine.signOut(choice, reason: reason)
            _ = try await sync.sharedEngine.signOut(choice, reason: reason)
            return quarantine
        }
        let lock = try SyncLock(directory)
        defer { lock.release() }
        defer { changeBroadcaster.post(isOwn: true) }
        let quarantine = try await privateStore.signOut(choice, reason: reason)
        _ = try await sharedStore.signOut(choice, reason: reason)
        return quarantine
    }

    /// What was set aside when an account went, or another one came; oldest first. What one has in it can be read in
    /// `Quarantine.container(in:)`.
    public nonisolated func quarantines() throws(StoreError) -> [Quarantine] { try directory.quarantines() }

    /// Brings back what was set aside: edits that no cloud had are merged with what is there by now. The next synchronisation sends them.
    ///
    /// - Parameters:
    ///   - options: More than that. Otherwise the same account has to be synchronised here again, and what was set aside is gone afterwards.
    ///   - policy: Resolves conflicts with what was changed here meanwhile, too; by default the container's.
    /// - Throws: ``StoreError`` `anotherAccount` when the records belong to another account; those of a save.
    @discardableResult
    public func restore(
        _ quarantine: Quarantine, options: QuarantineRestoration = [], policy: MergePolicy? = nil
    ) async throws -> SaveResult {
        let rule = policy ?? mergePolicy
        let store = quarantine.scope == .shared ? sharedStore : privateStore
        let outcome = try await store.restore(quarantine, options: options, author: author, policy: { _ in rule })
        changeBroadcaster.post(isOwn: true)
        var result = SaveResult()
        result.add(outcome, scope: store.scope)
        return result
    }

    /// Removes what was set aside, for good.
    public nonisolated func discard(_ quarantine: Quarantine) throws(StoreError) { try directory.discard(quarantine) }

    var privateStore: RecordStore { stores.private }
    var sharedStore: RecordStore { stores.shared }
}
