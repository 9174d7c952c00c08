import Foundation
import TidemarkModel
import TidemarkSQLite
public import TidemarkStore
public import TidemarkSync

extension PersistentContainer {
    // Downloading

    /// Downloads the content of an asset, and returns when it is on this device. Returns at once if it is already.
    ///
    /// ```swift
    /// if let image = destination.image {
    ///     try await journal.download(image)
    ///     show(try image.data())
    /// }
    /// ```
    ///
    /// A download that was cancelled or has failed continues where it stopped the next time. Several calls for one content share
    /// one transfer.
    ///
    /// - Parameters:
    ///   - asset: An asset of a record that was fetched.
    ///   - priority: Downloads with `userInitiated` or a higher priority go before others, and never wait for prefetches.
    ///   - progress: Called when bytes have arrived, from any thread.
    /// - Throws: ``StoreError`` `notDownloaded` if the container is not synchronised; `CloudError`, such as `networkUnavailable`
    ///   and `assetNotAvailable`; `ContainerEvent.Failure` if no account is signed in; `CancellationError`.
    public nonisolated func download(
        _ asset: Asset, priority: TaskPriority = .userInitiated, progress: (@Sendable (AssetProgress) -> Void)? = nil
    ) async throws {
        try await downloadAssets([asset], priority: priority, progress: progress)
    }

    /// Downloads the contents of assets. If the cloud no longer has one of them, the others are downloaded all the same, and the
    /// error is thrown at the end.
    ///
    /// - Parameters:
    ///   - assets: Assets of records that were fetched.
    ///   - priority: The priority. Use `utility` for contents that a person may want to see later.
    ///   - progress: Called when bytes have arrived, from any thread.
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

    /// Returns a stream of the assets whose contents ``download(_:priority:progress:)`` and similar functions have downloaded.
    /// Each call returns a separate stream.
    ///
    /// A stream ends when the container is closed or deallocated, or when its task is cancelled.
    public nonisolated func downloadedAssets() -> AsyncStream<Asset> { syncing.downloads.stream() }

    // Removing

    /// Evicts the contents of assets from this device. The records stay, and the contents can be downloaded again. As
    /// `FileManager.evictUbiquitousItem(at:)`.
    ///
    /// Only contents that the cloud confirms to have are evicted. A content that an unsent change or a refused save names stays.
    ///
    /// - Parameter assets: Assets of records that were fetched.
    /// - Returns: The evicted contents, and the number of contents that have stayed.
    /// - Throws: `CloudError` if the cloud can't be asked; `ContainerEvent.Failure` if no account is signed in; ``StoreError``
    ///   `busy` while another process ingests files, `notDownloaded` if the container is not synchronised.
    @discardableResult
    public nonisolated func evict(_ assets: some Sequence<Asset>) async throws -> AssetRemoval {
        try await assetAccess.evict(Set(assets.compactMap(\.identifier)))
    }

    /// Evicts contents, the least recently used first, until the contents on this device have at most `limit` bytes; see
    /// ``evict(_:)``.
    ///
    /// `SyncConfiguration.assetLimit` does this after each synchronisation.
    ///
    /// - Parameter limit: The most bytes of contents that may stay; 0 evicts all contents that the cloud has.
    /// - Returns: The evicted contents. Contents that have to stay may still exceed the limit.
    /// - Throws: As ``evict(_:)``.
    @discardableResult
    public nonisolated func evict(to limit: Int64) async throws -> AssetRemoval {
        try await assetAccess.evict(to: limit)
    }

    /// Removes the contents that no record and no history names any more. ``purgeHistory(olderThan:keepingAtLeast:)`` and a
    /// synchronisation do this, too.
    ///
    /// - Parameter isDryRun: Whether the contents are only found, and not removed.
    /// - Returns: The contents that were removed, or would be.
    /// - Throws: ``StoreError`` `busy` while another process ingests files.
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
    /// The identifiers of the saved assets in the value.
    fileprivate var storedAssets: [String] {
        switch self {
        case .value(let value): value.assetIDs
        case .asset: []
        case .list(let elements, _): elements.flatMap(\.storedAssets)
        }
    }
}

/// Distributes the assets whose contents were downloaded to streams.
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
