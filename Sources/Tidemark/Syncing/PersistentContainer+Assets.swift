import Foundation
import TidemarkModel
import TidemarkSQLite
public import TidemarkStore
public import TidemarkSync

extension PersistentContainer {
    // Downloading

    /// Downloads the content of an asset, and returns when it is here. An asset whose content is here is left alone.
    ///
    /// ```swift
    /// if let image = destination.image {
    ///     try await journal.download(image)
    ///     show(try image.data())
    /// }
    /// ```
    ///
    /// A download that was cancelled, or failed, goes on where it stopped the next time. Several calls for one content share one transfer.
    ///
    /// - Parameters:
    ///   - asset: An asset of a record that was fetched.
    ///   - priority: `userInitiated` and above go before others, and are never kept waiting by prefetches.
    ///   - progress: Called as bytes come, from any thread.
    /// - Throws: ``StoreError`` `notDownloaded` where nothing synchronises the container; `CloudError`, such as `networkUnavailable` and
    ///   `assetNotAvailable`; `ContainerEvent.Failure` where no account is signed in; `CancellationError`.
    public nonisolated func download(
        _ asset: Asset, priority: TaskPriority = .userInitiated, progress: (@Sendable (AssetProgress) -> Void)? = nil
    ) async throws {
        try await downloadAssets([asset], priority: priority, progress: progress)
    }

    /// Downloads the contents of assets. A content that the cloud does not have any more does not keep the others from coming; its error is
    /// thrown at the end.
    ///
    /// - Parameters:
    ///   - assets: Assets of records that were fetched.
    ///   - priority: `utility` is right for what a person may want to see later.
    ///   - progress: Called as bytes come, from any thread.
    /// - Throws: As ``download(_:priority:progress:)``.
    public nonisolated func downloadAssets(
        _ assets: some Sequence<Asset>, priority: TaskPriority = .userInitiated,
        progress: (@Sendable (AssetProgress) -> Void)? = nil
    ) async throws {
        let ids = Set(assets.filter { !$0.isDownloaded }.compactMap(\.identifier))
        guard !ids.isEmpty else { return }
        let (folder, downloads) = (directory.assets, syncing.downloads)
        try await assetAccess.download(
            ids, priority: priority, progress: progress, arrived: { downloads.post(Asset(id: $0, folder: folder)) })
    }

    /// Downloads the contents that records name, as a prefetch.
    ///
    /// ```swift
    /// try await journal.downloadAssets(of: journal.fetchAll(Destination.self, limit: 50))
    /// ```
    ///
    /// - Parameters:
    ///   - records: Records that were fetched.
    ///   - priority: By default it keeps nobody waiting who wants to see something.
    ///   - progress: Called as bytes come, from any thread.
    /// - Throws: As ``download(_:priority:progress:)``; `EncodingError`.
    public nonisolated func downloadAssets<R: Record>(
        of records: some Sequence<R>, priority: TaskPriority = .utility,
        progress: (@Sendable (AssetProgress) -> Void)? = nil
    ) async throws {
        var assets: [Asset] = []
        for record in records {
            for field in try RecordEncoder().encode(record).fields {
                assets += field.content?.storedAssets.map { Asset(id: $0, folder: directory.assets) } ?? []
            }
        }
        try await downloadAssets(assets, priority: priority, progress: progress)
    }

    /// The assets whose contents come by ``download(_:priority:progress:)`` and the like, as they come: a stream of its own for each call.
    ///
    /// A stream ends when the container is closed or deallocated, or its task is cancelled.
    public nonisolated func downloadedAssets() -> AsyncStream<Asset> { syncing.downloads.stream() }

    // Removing

    /// Evicts the content of assets from this device: the records stay, and the contents can be downloaded again. As
    /// `FileManager.evictUbiquitousItem(at:)`.
    ///
    /// Only contents go that the cloud says it has. A content stays that something names which is yet to be sent, or was refused.
    ///
    /// - Parameter assets: Assets of records that were fetched.
    /// - Returns: What has gone, and how many contents have stayed.
    /// - Throws: `CloudError` where the cloud can't be asked; `ContainerEvent.Failure` where no account is signed in; ``StoreError`` `busy`
    ///   while others take files in, `notDownloaded` where nothing synchronises the container.
    @discardableResult
    public nonisolated func evict(_ assets: some Sequence<Asset>) async throws -> AssetRemoval {
        try await assetAccess.evict(Set(assets.compactMap(\.identifier)))
    }

    /// Evicts contents until those that are here have at most so many bytes, the least recently used first; see ``evict(_:)``.
    ///
    /// To have it done after each synchronisation, set `SyncConfiguration.assetLimit`.
    ///
    /// - Parameter limit: How many bytes of contents may stay; 0 evicts all that the cloud has.
    /// - Returns: What has gone. The limit may still be exceeded by contents that have to stay.
    /// - Throws: As ``evict(_:)``.
    @discardableResult
    public nonisolated func evict(to limit: Int64) async throws -> AssetRemoval {
        try await assetAccess.evict(to: limit)
    }

    /// Removes the contents that no record and no history names any more. ``purgeHistory(olderThan:keepingAtLeast:)`` and a synchronisation
    /// do it by themselves.
    ///
    /// - Parameter isDryRun: Whether nothing is removed.
    /// - Returns: What has gone, or would.
    /// - Throws: ``StoreError`` `busy` while others take files in.
    /// - Complexity: O(n) in the records with assets, in the history, and in the contents.
    @discardableResult
    public nonisolated func removeUnusedAssets(isDryRun: Bool = false) async throws -> AssetRemoval {
        try await AssetCleaning(directory, stores: stores.all).removeUnnamed(isDryRun: isDryRun)
    }

    private nonisolated var assetAccess: AssetAccess {
        AssetAccess(directory, engines: syncing.engines, stores: stores.all)
    }
}

extension FieldContent {
    /// The identifiers of the saved assets that it names.
    fileprivate var storedAssets: [String] {
        switch self {
        case .value(let value): value.assetIDs
        case .asset: []
        case .list(let elements, _): elements.flatMap(\.storedAssets)
        }
    }
}

/// Tells of the assets whose contents have come.
final class AssetArrivals: Sendable {
    private struct State {
        var next = 0
        var streams: [Int: AsyncStream<Asset>.Continuation] = [:]
        var isFinished = false
    }

    private let state = LockedValue(State())

    func post(_ asset: Asset) {
        for stream in state.withLock({ Array($0.streams.values) }) { stream.yield(asset) }
    }

    func stream() -> AsyncStream<Asset> {
        let (stream, continuation) = AsyncStream.makeStream(of: Asset.self)
        let number = state.withLock { state -> Int? in
            guard !state.isFinished else { return nil }
            state.next += 1
            state.streams[state.next] = continuation
            return state.next
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in self?.state.withLock { $0.streams[number] = nil } }
        return stream
    }

    func finish() {
        let streams = state.withLock { state in
            state.isFinished = true
            return Array(state.streams.values)
        }
        for stream in streams { stream.finish() }
    }

    deinit { finish() }
}
