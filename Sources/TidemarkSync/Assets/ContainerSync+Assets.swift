import Logging
public import TidemarkStore

extension ContainerSync {
    /// The contents of the container, and the clouds that have them.
    package var assets: AssetAccess {
        AssetAccess(
            privateEngine.store.container, engines: [privateEngine, sharedEngine],
            stores: [privateEngine.store, sharedEngine.store])
    }

    /// Downloads contents that are not here; see `PersistentContainer.download(_:priority:progress:)`.
    ///
    /// - Parameters:
    ///   - ids: Identifiers of assets, as fields hold them.
    ///   - priority: `userInitiated` and above go before others.
    ///   - progress: Called as bytes come, from any thread.
    /// - Throws: ``StoreError`` `notFound`, `notDownloaded`; `CloudError`; ``ContainerEvent/Failure`` where no account is signed in;
    ///   `CancellationError`.
    public func download(
        _ ids: some Sequence<String>, priority: TaskPriority = .userInitiated,
        progress: (@Sendable (AssetProgress) -> Void)? = nil
    ) async throws {
        try await assets.download(Set(ids), priority: priority, progress: progress)
    }

    /// Evicts contents that the cloud has, the least recently used first.
    ///
    /// - Parameters:
    ///   - ids: Identifiers of assets; `nil` for all.
    ///   - limit: How many bytes of contents may stay; not used where `ids` are given.
    ///   - isDryRun: Whether nothing is removed.
    /// - Throws: `CloudError` where the cloud can't be asked; ``ContainerEvent/Failure`` where no account is signed in; ``StoreError`` `busy`
    ///   while others take files in.
    @discardableResult
    public func evict(
        _ ids: [String]? = nil, to limit: Int64 = 0, isDryRun: Bool = false
    ) async throws -> AssetRemoval {
        try await assets.evict(ids.map { Set($0) }, to: limit, isDryRun: isDryRun)
    }

    /// Removes contents that nothing names any more, and keeps the container within its limit. What can't be removed now is removed the next
    /// time.
    func tidyAssets(_ limit: Int64?) async {
        do {
            _ = try await AssetCleaning(
                privateEngine.store.container, stores: [privateEngine.store, sharedEngine.store]
            ).removeUnnamedIfDue()
            if let limit { try await assets.keepWithin(limit) }
        } catch {
            privateEngine.log.warning("contents of assets can't be removed now", metadata: ["error": "\(error)"])
        }
    }
}
