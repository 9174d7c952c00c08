import Foundation
import TidemarkModel
import TidemarkSQLite

/// Contents that were removed from a container, or would be.
public struct AssetRemoval: Hashable, Sendable, Codable {
    /// The number of contents.
    public var assets = 0
    /// Their bytes in all.
    public var bytes: Int64 = 0
    /// The number of contents that have to stay although the limit is exceeded: a change that the cloud lacks names them, or
    /// another process ingests files.
    public var kept = 0

    /// A removal of nothing.
    public init() {}
}

/// Removes contents from a container: those that no record and no history names, and those that the cloud has.
///
/// It holds the container's ingest lock exclusively. So no process ingests a file, or copies the container, while contents are
/// removed.
package struct AssetCleaning: Sendable {
    private let container: ContainerDirectory
    /// The container's stores. All of them are asked, because they share the contents.
    private let stores: [RecordStore]

    package init(_ container: ContainerDirectory, stores: [RecordStore]) { (self.container, self.stores) = (container, stores) }

    /// Called between the steps, for tests that kill the process there.
    package typealias Hook = @Sendable (Step) -> Void

    /// The steps of a removal.
    package enum Step: String, Sendable, CaseIterable { case found, unlisted, fileRemoved, filesRemoved }

    /// Removes the contents that no record and no history names, if history was purged since the last time.
    ///
    /// - Returns: `nil` where nothing was to be done, or a process ingests files: then it is done the next time.
    package func removeUnnamedIfDue() async throws -> AssetRemoval? {
        var isDue = false
        for store in stores where try await store.assetCleaningIsDue() { isDue = true }
        guard isDue else { return nil }
        do {
            return try await removeUnnamed()
        } catch let error as StoreError where error.code == .busy {
            return nil
        }
    }

    /// Removes the contents that no record and no history names.
    ///
    /// - Parameter isDryRun: Whether nothing is removed.
    /// - Throws: ``StoreError`` `busy` while a process ingests files.
    /// - Complexity: O(n) in the records of types with assets, in the history, and in the contents.
    package func removeUnnamed(isDryRun: Bool = false, hook: @escaping Hook = { _ in }) async throws -> AssetRemoval {
        try requireAllStores()
        guard FileManager.default.fileExists(atPath: container.staging.path) else { return AssetRemoval() }
        if isDryRun { return try await stores[0].inOneJob { AssetRemoval(of: try unnamed()) } }
        return try await locked { try removeUnnamed(hook) }
    }

    private func removeUnnamed(_ hook: Hook) throws -> AssetRemoval {
        let oldest = try stores.map { store in try ask(store) { try $0.oldestChange() } }
        let found = try unnamed()
        hook(.found)
        guard !found.isEmpty else {
            try noteCleaned(oldest)
            return AssetRemoval()
        }
        // After an interruption, the next opening of the assets removes what no store lists.
        let marker = try makeMarker()
        // The lists come first, so that a store never lists a content that is gone.
        for store in stores { _ = try ask(store) { try $0.unregisterUnnamedAssets(Set(found.keys)) } }
        hook(.unlisted)
        var removed = AssetRemoval()
        for id in try IngestRecovery(container: container).strays(among: Array(found.keys)).sorted() {
            // A content that is not here has no file.
            if AssetFiles.isHere(id, in: container.assets) {
                removed.assets += 1
                removed.bytes += AssetIdentifier.size(of: id)
            }
            try AssetFiles.remove([id], in: container.assets)
            hook(.fileRemoved)
        }
        hook(.filesRemoved)
        try FileManager.default.removeItem(at: marker)
        try noteCleaned(oldest)
        return removed
    }

    private func noteCleaned(_ oldest: [Int64]) throws {
        for (store, change) in zip(stores, oldest) {
            try ask(store) { if try $0.assetCleaningIsDue() { try $0.noteAssetsCleaned(change) } }
        }
    }

    /// Removes contents that the cloud has, as the caller has checked.
    ///
    /// - Returns: The removed contents, and the number of those that stay: no record in the cloud names them any more, or a
    ///   change that the cloud lacks names them by now.
    /// - Throws: ``StoreError`` `busy` while a process ingests files.
    package func evict(_ ids: Set<String>, hook: @escaping Hook = { _ in }) async throws -> AssetRemoval {
        try requireAllStores()
        guard !ids.isEmpty else { return AssetRemoval() }
        return try await locked { try evict(ids, hook) }
    }

    private func evict(_ ids: Set<String>, _ hook: Hook) throws -> AssetRemoval {
        hook(.found)
        var clean: Set<String> = []
        for store in stores { clean.formUnion(try ask(store) { try Set($0.evictable().keys) }) }
        var gone = ids.intersection(clean)
        for store in stores { gone.subtract(try ask(store) { [gone] in try $0.held(gone) }) }
        for store in stores { gone = try ask(store) { [gone] in try $0.markAbsent(gone) } }
        hook(.unlisted)
        var removed = AssetRemoval()
        removed.kept = ids.count - gone.count
        for id in gone.sorted() where AssetFiles.isHere(id, in: container.assets) {
            try AssetFiles.remove([id], in: container.assets)
            removed.assets += 1
            removed.bytes += AssetIdentifier.size(of: id)
            hook(.fileRemoved)
        }
        hook(.filesRemoved)
        return removed
    }

    /// Returns the contents that nothing names, whether a store lists them or none does, with their sizes.
    private func unnamed() throws -> [String: Int64] {
        let perStore = try stores.map { store in
            try ask(store) { (all: try $0.listedAssets(), unnamed: try $0.unnamedAssets()) }
        }
        let listed = perStore.reduce(into: Set<String>()) { $0.formUnion($1.all) }
        var unnamed: [String: Int64] = [:]
        for store in perStore {
            for (id, size) in store.unnamed {
                // Another store may list it with a record that names it.
                let isNamed = perStore.contains { $0.all.contains(id) && $0.unnamed[id] == nil }
                if !isNamed { unnamed[id] = size }
            }
        }
        for id in try AssetFiles(in: container.assets).ids where !listed.contains(id) {
            unnamed[id] = AssetIdentifier.size(of: id)
        }
        return unnamed
    }

    /// Calls a store from within the job of ``locked(_:)``, which runs on the executor of the first store. All stores of a
    /// `PersistentContainer` share that executor.
    private func ask<Result: Sendable>(
        _ store: RecordStore, _ body: @Sendable (isolated RecordStore) throws -> Result
    ) rethrows -> Result {
        if store.executor === stores[0].executor { return try store.assumeIsolated(body) }
        return try store.executor.sync { try store.assumeIsolated(body) }
    }

    /// Runs `body` with the ingest lock, in one job of the first store. A save that waited for the lock on that executor would
    /// keep the removal from ending.
    private func locked<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
        try Folder.make(container.staging, mode: 0o700)
        // Saves hold the lock for a moment, and imports and copies for long.
        for _ in 0..<20 {
            let result: Result? = try await stores[0].inOneJob { [container] in
                let lock = try StoreLock(at: container.staging.appendingPathComponent("lock"))
                guard try lock.acquireIfFree() else { return nil }
                defer { lock.release() }
                return try body()
            }
            if let result { return result }
            try await Task.sleep(for: .milliseconds(50))
        }
        throw StoreError(
            .busy, "others take files into \(container.url.path), or copy it; no content is removed meanwhile. Try again later")
    }

    private func requireAllStores() throws(StoreError) {
        // A content that a missing store names, or one that was not asked, must not count as unnamed.
        guard container.hasStore(.private) else { throw container.storeIsMissing(.private) }
        for scope in ContainerDirectory.scopes where container.hasStore(scope) && !stores.contains(where: { $0.scope == scope }) {
            throw StoreError(.core, "the \(scope.name) store of \(container.url.path) was not asked which assets it names")
        }
    }

    private func makeMarker() throws(StoreError) -> URL {
        let marker = container.staging.appendingPathComponent(
            "\(ProcessInfo.processInfo.processIdentifier)-\(UUID().uuidString).open")
        guard FileManager.default.createFile(atPath: marker.path, contents: nil) else {
            throw StoreError(.io, "cannot make the file \(marker.path)")
        }
        try Folder(at: container.staging).synchronize()
        return marker
    }
}

extension AssetRemoval {
    init(of sizes: [String: Int64]) {
        self.init()
        assets = sizes.count
        bytes = sizes.values.reduce(0, +)
    }
}
