import Foundation
import TidemarkCloud
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
package import TidemarkStore

/// How far a download is.
public struct AssetProgress: Hashable, Sendable {
    /// How many contents have come.
    public var assets = 0
    /// How many contents are to come.
    public var totalAssets = 0
    /// How many bytes have come.
    public var bytes: Int64 = 0
    /// How many bytes are to come.
    public var totalBytes: Int64 = 0

    /// The progress of a download of nothing.
    public init() {}
}

/// Fetches and removes contents of a container whose records are synchronised.
package struct AssetAccess: Sendable {
    private let container: ContainerDirectory
    /// The engines that synchronise the stores. Contents of a store without an engine can't be fetched.
    private let engines: [SyncEngine]
    /// All stores of the container.
    private let stores: [RecordStore]

    package init(_ container: ContainerDirectory, engines: [SyncEngine], stores: [RecordStore]) {
        (self.container, self.engines, self.stores) = (container, engines, stores)
    }

    /// The number of downloads that are handed to a queue at once.
    private static let atOnce = 64

    /// Downloads contents that are not here. A content that no cloud has any more does not keep the others from coming; its error
    /// is thrown at the end.
    ///
    /// - Parameter arrived: Called with each content that has come.
    ///
    /// - Throws: ``StoreError`` `notFound` for an asset that no store knows, `notDownloaded` where nothing can fetch it; `CloudError`;
    ///   ``ContainerEvent/Failure`` where no account is signed in; `CancellationError`.
    package func download(
        _ ids: Set<String>, priority: TaskPriority, progress: (@Sendable (AssetProgress) -> Void)?,
        arrived: @escaping @Sendable (String) -> Void = { _ in }
    ) async throws {
        var missing = ids.filter { !AssetFiles.isHere($0, in: container.assets) }
        for store in stores { try await store.unmarkPresent(ids.subtracting(missing)) }
        guard !missing.isEmpty else { return }
        // A content may be in both stores: the second cloud is asked where the first one does not have it.
        var sources: [String: [AssetSource]] = [:]
        for engine in engines {
            for source in try await engine.sources(of: missing) { sources[source.content.id, default: []].append(source) }
        }
        // A content that no cloud can have does not keep the others from coming.
        let unknown = missing.subtracting(sources.keys).min()
        missing.formIntersection(sources.keys)
        let meter = ProgressMeter(
            missing.count, bytes: missing.reduce(0) { $0 + AssetIdentifier.size(of: $1) }, progress, arrived)
        var gone: CloudError?
        try await withThrowingTaskGroup(of: CloudError?.self) { group in
            var rest = sources.sorted { $0.key < $1.key }.map(\.value)[...]
            for sources in rest.prefix(Self.atOnce) { group.addTask { try await Self.download(sources, priority, meter) } }
            rest = rest.dropFirst(Self.atOnce)
            while let error = try await group.next() {
                gone = gone ?? error
                if let next = rest.popFirst() { group.addTask { try await Self.download(next, priority, meter) } }
            }
        }
        // Both stores may list a content.
        for store in stores {
            try await store.unmarkPresent(missing.filter { AssetFiles.isHere($0, in: container.assets) })
        }
        if let gone { throw gone }
        if let unknown { throw try await unavailable(unknown) }
    }

    /// Returns the error of a content that no cloud has any more; other errors are thrown.
    private static func download(
        _ sources: [AssetSource], _ priority: TaskPriority, _ meter: ProgressMeter
    ) async throws -> CloudError? {
        var gone: CloudError?
        for source in sources {
            do {
                let id = source.content.id
                try await source.engine.download(source, priority: priority) { meter.report($0, of: id) }
                meter.end(source.content)
                return nil
            } catch let error as CloudError where error.code == .assetNotAvailable {
                gone = error
            }
        }
        return gone
    }

    private func unavailable(_ id: String) async throws -> StoreError {
        for store in stores where try await store.unregistered([id]).isEmpty {
            if engines.contains(where: { $0.store.scope == store.scope }) {
                return StoreError(
                    .notDownloaded,
                    "the content of the asset \(id) is not here, and it was never in a cloud. To have it back, import its source again, or restore a backup"
                )
            }
            return StoreError(
                .notDownloaded,
                "the content of the asset \(id) is not here, and nothing synchronises the \(store.scope.name) store in this process. Call startSyncing(with:), then try again"
            )
        }
        return StoreError(.notFound, "the container knows no asset '\(id.prefix(100))'")
    }

    // Removing

    /// Evicts contents, the least recently used first. Only contents that the cloud confirms are evicted, and only if no record
    /// or change that the cloud lacks names them.
    ///
    /// - Parameters:
    ///   - ids: The contents; `nil` for all.
    ///   - limit: How many bytes of contents may stay here; 0 evicts all that can go.
    ///   - isDryRun: Whether nothing is removed.
    ///   - hook: For tests.
    /// - Throws: `CloudError` where the cloud can't be asked; ``ContainerEvent/Failure`` where no account is signed in; ``StoreError`` `busy`
    ///   while others take files in.
    package func evict(
        _ ids: Set<String>? = nil, to limit: Int64 = 0, isDryRun: Bool = false, hook: @escaping AssetCleaning.Hook = { _ in }
    ) async throws -> AssetRemoval {
        let here = try AssetFiles(in: container.assets).ids
        var excess =
            ids.map { ids in here.filter(ids.contains).reduce(0) { $0 + AssetIdentifier.size(of: $1) } }
            ?? here.reduce(0) { $0 + AssetIdentifier.size(of: $1) } - limit
        guard excess > 0 || ids != nil else { return AssetRemoval() }
        guard !engines.isEmpty else {
            throw StoreError(
                .notDownloaded,
                "nothing synchronises \(container.url.path) in this process, so that no content can be evicted: the cloud is asked whether it has it. Call startSyncing(with:), then try again"
            )
        }
        var perEngine: [(engine: SyncEngine, contents: [String: (asset: RemoteAsset, zones: Set<Int64>)])] = []
        for engine in engines { perEngine.append((engine, try await engine.evictable())) }
        var candidates = Set(perEngine.flatMap(\.contents.keys)).intersection(here)
        if let ids { candidates.formIntersection(ids) }
        for store in stores { candidates.subtract(try await store.held(candidates)) }
        let ordered = candidates.map { (id: $0, used: AssetFiles.lastUse(of: $0, in: container.assets) ?? 0) }
            .sorted { ($0.used, $0.id) < ($1.used, $1.id) }
        var (chosen, rest): (Set<String>, ArraySlice<(id: String, used: Int64)>) = ([], ordered[...])
        while excess > 0 || ids != nil, !rest.isEmpty {
            var some: Set<String> = []
            var bytes: Int64 = 0
            while let next = rest.first, bytes < excess || ids != nil, some.count < 1000 {
                some.insert(next.id)
                bytes += AssetIdentifier.size(of: next.id)
                rest.removeFirst()
            }
            for (engine, contents) in perEngine {
                let asked = contents.filter { some.contains($0.key) }
                some.subtract(Set(asked.keys).subtracting(try await engine.confirmed(asked)))
            }
            chosen.formUnion(some)
            excess -= some.reduce(0) { $0 + AssetIdentifier.size(of: $1) }
        }
        var removal: AssetRemoval
        if isDryRun {
            removal = AssetRemoval()
            removal.assets = chosen.count
            removal.bytes = chosen.reduce(0) { $0 + AssetIdentifier.size(of: $1) }
        } else {
            removal = try await AssetCleaning(container, stores: stores).evict(chosen, hook: hook)
        }
        if let ids { removal.kept = Set(here).intersection(ids).count - removal.assets }
        return removal
    }

    /// Keeps the container within a limit; where that can't be done now, it is done the next time.
    ///
    /// - Throws: ``StoreError``.
    package func keepWithin(_ limit: Int64) async throws {
        var bytes: Int64 = 0
        for store in stores { bytes += try await store.presentBytes() }
        // Contents that both stores list are counted twice: the files decide.
        guard bytes > limit else { return }
        do {
            _ = try await evict(to: limit)
        } catch let error as StoreError where error.code == .busy {
            return
        } catch is CloudError {
            return
        } catch is ContainerEvent.Failure {
            return
        }
    }

    /// Adds up the progress of several downloads.
    private final class ProgressMeter: Sendable {
        private struct State {
            var progress = AssetProgress()
            var parts: [String: Int64] = [:]
        }

        private let state: LockedValue<State>
        private let report: (@Sendable (AssetProgress) -> Void)?
        private let arrived: @Sendable (String) -> Void

        init(
            _ assets: Int, bytes: Int64, _ report: (@Sendable (AssetProgress) -> Void)?,
            _ arrived: @escaping @Sendable (String) -> Void
        ) {
            var state = State()
            (state.progress.totalAssets, state.progress.totalBytes) = (assets, bytes)
            self.state = LockedValue(state)
            (self.report, self.arrived) = (report, arrived)
        }

        func report(_ bytes: Int64, of id: String) {
            guard let report else { return }
            report(
                state.withLock { state in
                    state.progress.bytes += bytes - (state.parts[id] ?? 0)
                    state.parts[id] = bytes
                    return state.progress
                })
        }

        func end(_ content: RemoteAsset) {
            let progress = state.withLock { state in
                state.progress.assets += 1
                state.progress.bytes += content.size - (state.parts[content.id] ?? 0)
                state.parts[content.id] = content.size
                return state.progress
            }
            report?(progress)
            arrived(content.id)
        }
    }
}
