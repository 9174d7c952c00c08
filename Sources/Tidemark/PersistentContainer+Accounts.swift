public import TidemarkModel
public import TidemarkSQLite
public import TidemarkStore
public import TidemarkSync

extension PersistentContainer {
    /// Ends the synchronisation with the account whose records the container has.
    ///
    /// ```swift
    /// let setAside = try await journal.signOut()
    /// print("\(setAside?.records ?? 0) records set aside, \(setAside?.pending ?? 0) changes not in the cloud")
    /// ```
    ///
    /// Automatic synchronisation stops: call ``startSyncing(with:configuration:environment:)`` for the next account. If records
    /// are removed, observations report it, and earlier history tokens expire.
    ///
    /// - Parameters:
    ///   - choice: The treatment of the account's records in the container: they are put into a quarantine, stay, or are deleted.
    ///     Records that stay continue to synchronise when the same account signs in again; another account gets none of them.
    ///   - reason: The value of `Quarantine.reason`.
    /// - Returns: The quarantine of the private store's records. The records that others share have a quarantine of their own,
    ///   which is among ``quarantines()``. `nil` if there were no records, or for another `choice`.
    /// - Throws: `ContainerEvent.Failure` 134410 while another process synchronises the container; 134417 during a
    ///   synchronisation that this process has started explicitly; ``StoreError``.
    @discardableResult
    public func signOut(
        _ choice: SignOutChoice = .quarantine, reason: String = "the account has signed out"
    ) async throws -> Quarantine? {
        // A running synchronisation must not continue with records that are put into a quarantine.
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

    /// The quarantines: records that were set aside when an account signed out or another signed in; the oldest first. The
    /// records of a quarantine are in `Quarantine.container(in:)`.
    public nonisolated func quarantines() throws(StoreError) -> [Quarantine] { try directory.quarantines() }

    /// Restores the records of a quarantine. Edits that no cloud had are merged with the present records, and the next
    /// synchronisation sends them.
    ///
    /// - Parameters:
    ///   - quarantine: The quarantine.
    ///   - options: Exceptions from the defaults: the same account has to synchronise the container again, and the quarantine is
    ///     removed afterwards.
    ///   - policy: The policy for conflicts with changes that were made meanwhile; by default the container's.
    /// - Throws: ``StoreError`` `anotherAccount` when the records belong to another account; the errors of a save.
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

    /// Removes a quarantine with its records permanently.
    public nonisolated func discard(_ quarantine: Quarantine) throws(StoreError) { try directory.discard(quarantine) }

    var privateStore: RecordStore { stores.private }
    var sharedStore: RecordStore { stores.shared }
}
