import Foundation
import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Uploads and downloads assets, piece by piece. An interrupted transfer continues where it stopped.
///
/// It runs on a thread of its own, because reading, hashing and making durable block.
actor AssetTransfer {
    private nonisolated let executor = StoreExecutor(label: "tidemark.assets")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private let store: RecordStore
    private let database: any CloudDatabase
    private let policy: AssetDownloads
    /// The folder of unfinished downloads, which are named by their digests.
    private let folder: URL
    /// The number of uses of each folder. The two stores of a container download at once into one folder, and the last use
    /// removes it. Only one process synchronises a container.
    private static let folderUses = LockedValue<[String: Int]>([:])
    /// The largest piece that the way to the cloud accepts. It may be less than the cloud's own limit, as a proxy may have a limit, too.
    private var pieceMost = Int.max
    private static let pieceLeast = 64 << 10
    /// Opened when the first file has come.
    private var openAssets: (blobs: BlobStore, workers: IngestWorkers)?
    /// Digests of contents that are being fetched, with the tasks that wait for them.
    private var onTheirWay: [String: [CheckedContinuation<Void, Never>]] = [:]

    /// - Parameter policy: Which contents come with their records.
    init(store: RecordStore, database: any CloudDatabase, policy: AssetDownloads = .all) {
        self.store = store
        self.database = database
        self.policy = policy
        folder = store.container.url.appendingPathComponent(ContainerContents.downloads, isDirectory: true)
    }

    // Up

    /// The cloud's names of the assets that changes name; `nil` if a name is not known, or a file is gone.
    func names(in items: [ExportItem]) async throws -> [String: CloudAsset]? {
        let ids = Set(items.flatMap { $0.assets })
        guard !ids.isEmpty else { return [:] }
        let known = try await store.digests(of: ids)
        var assets: [String: CloudAsset] = [:]
        for id in ids {
            guard let digest = known[id] else { return nil }
            // Of a content that is not here, the cloud told the size.
            let size = store.file(of: id).flatMap(Self.size) ?? ExportItem.assetSize(id)
            assets[id] = CloudAsset(digest: digest, size: size)
        }
        return assets
    }

    /// Uploads the assets that changes name and that the cloud does not have.
    ///
    /// - Parameter progress: Called with the number of bytes that were uploaded.
    /// - Returns: The cloud's names of the assets, without those whose files are missing.
    func upload(
        _ items: [ExportItem], zone: CloudZoneID, limits: CloudLimits, progress: @Sendable (Int64) async -> Void
    ) async throws -> [String: CloudAsset] {
        let ids = Set(items.flatMap { $0.assets })
        guard !ids.isEmpty else { return [:] }
        let known = try await store.digests(of: ids)
        var (assets, new): ([String: CloudAsset], [SyncedAsset]) = ([:], [])
        for id in ids.sorted() {
            guard let file = store.file(of: id) else { continue }
            let size = Self.size(of: file)
            // A content that is not here need not go up: the cloud has it, or it is found missing below.
            if let digest = known[id], size == nil || size == ExportItem.assetSize(id) {
                assets[id] = CloudAsset(digest: digest, size: ExportItem.assetSize(id))
            } else if store.isWhole(id), let asset = try? Self.digest(of: file) {
                // Only content that matches its name is uploaded: damage must not spread. Records whose assets can't be read are refused.
                assets[id] = asset
                new.append(SyncedAsset(id: id, sha256: asset.digest, size: asset.size))
            }
        }
        try await store.note(new)
        let fresh = Set(new.map(\.id))
        let all = Array(Set(assets.values)).sorted { $0.digest < $1.digest }
        let files = Dictionary(assets.map { ($1, $0) }, uniquingKeysWith: { one, _ in one })
        for start in stride(from: 0, to: all.count, by: max(1, limits.operationsPerRequest)) {
            let some = Array(all[start..<min(all.count, start + limits.operationsPerRequest)])
            let missing = try await database.missingAssets(some, in: zone)
            for asset in some {
                guard let offset = missing[asset], var id = files[asset] else { continue }
                // The content may be here under another identifier.
                if !AssetFiles.isHere(id, in: store.container.assets) {
                    id = try await store.assets([asset.digest])[asset.digest] ?? id
                }
                guard let file = store.file(of: id) else { continue }
                // The file was whole when its digest was computed, which may be long ago. If it no longer is, only its records
                // are refused.
                guard fresh.contains(id) || store.isWhole(id) else {
                    for (id, other) in assets where other == asset { assets[id] = nil }
                    continue
                }
                do {
                    try await upload(file, as: asset, from: offset, zone: zone, limits: limits, progress: progress)
                } catch let error where Self.isOfOneAsset(error) && (error as? CloudError)?.code != .permissionFailure {
                    // Only the records of this asset are refused.
                    for (id, other) in assets where other == asset { assets[id] = nil }
                    try await store.forgetDigest(of: id)
                }
            }
        }
        return assets
    }

    private func upload(
        _ file: URL, as asset: CloudAsset, from offset: Int64, zone: CloudZoneID, limits: CloudLimits,
        progress: @Sendable (Int64) async -> Void
    ) async throws {
        guard asset.size <= limits.bytesPerAsset else {
            throw CloudError(
                .limitExceeded, "the asset has \(asset.size) bytes, and \(limits.bytesPerAsset) is the most that the cloud takes")
        }
        let handle = try FileHandle(forReadingFrom: file)
        defer { try? handle.close() }
        guard (0...asset.size).contains(offset) else {
            throw CloudError(
                .assetNotAvailable, "the cloud says that it has \(offset) bytes of the asset, which has \(asset.size)")
        }
        // The number of times that the device may ask again how many bytes the cloud has.
        var (there, questions) = (offset, 3)
        while true {
            try handle.seek(toOffset: UInt64(there))
            let most = min(pieceMost, max(1, limits.bytesPerAssetPiece))
            let piece = try handle.read(upToCount: most) ?? Data()
            // The cloud may have all bytes and not have checked them yet: an empty piece makes it check.
            guard !piece.isEmpty || there == asset.size else {
                throw CloudError(.assetNotAvailable, "the asset \(file.lastPathComponent) is shorter than it says")
            }
            let before = there
            do {
                there = try await database.upload(piece, of: asset, at: there, in: zone)
            } catch {
                if error.code == .invalidArguments, questions > 0 {
                    // The upload may have been removed, or become shorter, since the cloud was asked.
                    questions -= 1
                    let missing = try await database.missingAssets([asset], in: zone)
                    there = missing[asset] ?? asset.size
                    guard (0...asset.size).contains(there) else { throw error }
                    await progress(there - before)
                    if missing[asset] == nil { return }
                    continue
                }
                guard error.code == .limitExceeded, piece.count > Self.pieceLeast else { throw error }
                pieceMost = max(Self.pieceLeast, piece.count / 2)
                continue
            }
            // It may be more: an earlier piece, which had no answer, may have arrived after all.
            guard there >= before + Int64(piece.count), there <= asset.size else {
                throw CloudError(
                    .assetNotAvailable, "the cloud has \(there) bytes of the asset after \(piece.count) at \(before)")
            }
            await progress(there - before)
            if there == asset.size { return }
        }
    }

    /// Whether an error is about a single asset, and says nothing of others.
    private static func isOfOneAsset(_ error: any Error) -> Bool {
        guard let error = error as? CloudError else { return error is CocoaError }
        switch error.code {
        case .assetNotAvailable, .limitExceeded, .invalidArguments, .permissionFailure: return true
        default: return false
        }
    }

    private static func size(of file: URL) -> Int64? {
        var status = stat()
        return stat(file.path, &status) == 0 ? Int64(status.st_size) : nil
    }

    private static func digest(of file: URL) throws -> CloudAsset {
        let handle = try FileHandle(forReadingFrom: file)
        defer { try? handle.close() }
        let (digest, size) = try AssetFiles.digest(of: handle)
        return CloudAsset(digest: digest, size: size)
    }

    // Down, with records

    /// Downloads the assets that the store does not know, as far as they come with their records. The others get identifiers, and their
    /// contents stay in the cloud.
    ///
    /// - Parameter progress: Called with the number of bytes that were downloaded.
    /// - Returns: The store's names of the assets, and the errors of those that could not be downloaded.
    func download(
        _ assets: Set<CloudAsset>, zone: CloudZoneID, limits: CloudLimits, progress: @Sendable (Int64) async -> Void
    ) async throws -> DownloadedAssets {
        guard !assets.isEmpty else { return DownloadedAssets() }
        // Contents that are registered here and that no record names yet must not be removed before `close()`, which follows the
        // commit.
        try openBlobs()
        var known = try await store.assets(Set(assets.map(\.digest)))
        let sizes = Dictionary(grouping: assets, by: \.digest).mapValues(\.count)
        // A digest with two sizes fits neither content.
        var missing = assets.filter { known[$0.digest] == nil && sizes[$0.digest] == 1 }
        let absent = missing.filter { !policy.includes($0.size) && Self.isValid($0, limits) }
        known.merge(try await register(absent)) { one, _ in one }
        missing = missing.filter { known[$0.digest] == nil }
        guard !missing.isEmpty else { return DownloadedAssets(names: known) }
        let digests = missing.map(\.digest).sorted()
        for digest in digests { await begin(digest) }
        defer { for digest in digests { end(digest) } }
        // Another task may have fetched some meanwhile.
        known.merge(try await store.assets(Set(digests))) { one, _ in one }
        var fetched: [(asset: CloudAsset, file: URL)] = []
        var failures: [CloudAsset: CloudError] = [:]
        for asset in missing.sorted(by: { $0.digest < $1.digest }) where known[asset.digest] == nil {
            do {
                fetched.append((asset, try await fetch(asset, zone: zone, limits: limits, progress: progress)))
            } catch let error where Self.isOfOneAsset(error) {
                // The record that names the asset has changed meanwhile, and comes again; or the content is at an address that is not followed.
                // Until then the record is deferred, and tried again with each synchronisation. The others come.
                failures[asset] = error as? CloudError ?? CloudError(.assetNotAvailable, error.localizedDescription)
            }
        }
        for (digest, id) in try await ingest(fetched) { known[digest] = id }
        return DownloadedAssets(names: known, failures: failures)
    }

    /// Gives identifiers to contents that stay in the cloud.
    private func register(_ assets: Set<CloudAsset>) async throws -> [String: String] {
        guard !assets.isEmpty else { return [:] }
        // A file of the same content may be here whose digest was not computed yet.
        for id in try await store.undigested(sizes: Set(assets.map(\.size))) {
            guard let file = store.file(of: id), let asset = try? Self.digest(of: file), assets.contains(asset) else { continue }
            guard store.isWhole(id) else { continue }
            try await store.note([SyncedAsset(id: id, sha256: asset.digest, size: asset.size)])
        }
        let here = try await store.assets(Set(assets.map(\.digest)))
        let absent = assets.filter { here[$0.digest] == nil }.map { (sha256: $0.digest, size: $0.size) }
        return here.merging(try await store.registerAbsent(absent)) { one, _ in one }
    }

    private static func isValid(_ asset: CloudAsset, _ limits: CloudLimits) -> Bool {
        Hexadecimal.isText(asset.digest, ofBytes: 32) && (0...limits.bytesPerAsset).contains(asset.size)
    }

    // Down, on demand

    /// Brings a content that the store knows and does not have.
    ///
    /// - Parameters:
    ///   - zones: The zones whose records name the content. Each is tried.
    ///   - progress: Called with the number of bytes that are here by now.
    /// - Throws: `CloudError` `assetNotAvailable` where the cloud does not have it; `CancellationError`; ``StoreError``.
    func bring(
        _ content: RemoteAsset, zones: [CloudZoneID], limits: CloudLimits, progress: @escaping @Sendable (Int64) async -> Void
    ) async throws {
        await begin(content.sha256)
        defer { end(content.sha256) }
        guard !AssetFiles.isHere(content.id, in: store.container.assets) else {
            return try await store.notePresent([content.id: try media(of: content)])
        }
        try beginFolderUse()
        defer { endFolderUse() }
        let asset = CloudAsset(digest: content.sha256, size: content.size)
        for zone in zones {
            do {
                let file = try await fetch(asset, zone: zone, limits: limits, progress: { _ in }, there: progress)
                return try await place(file, as: content)
            } catch let error as CloudError where error.code == .assetNotAvailable || error.code == .zoneNotFound {
                try Task.checkCancellation()
                continue
            }
        }
        throw CloudError(
            .assetNotAvailable,
            "the cloud does not have the content of the asset \(content.id) any more. Another device may have it: save it there again"
        )
    }

    /// Gives a downloaded file its name. Its SHA-256 was compared, but another content may have the same XXH3-128, and so the
    /// same identifier. So the content is compared with its identifier before others can read it under that name.
    private func place(_ file: URL, as content: RemoteAsset) async throws {
        guard try AssetFiles.isContent(file, of: content) else {
            unlink(file.path)
            throw StoreError(.corrupt, "what came as the content of the asset \(content.id) is not what its identifier says")
        }
        let blobs = try BlobStore(container: store.container)
        if try !blobs.adopt(file, as: content.id, replaces: false) {
            // Another file has the name by now, or a damaged one had it before.
            let there = AssetFiles.url(of: content.id, in: store.container.assets)
            if (try? Self.digest(of: there)) == CloudAsset(digest: content.sha256, size: content.size) {
                unlink(file.path)
            } else {
                guard AssetFiles.examine(content.id, in: store.container.assets) != .whole else {
                    blobs.close()
                    throw StoreError(
                        .corrupt,
                        "another content is here under the identifier \(content.id) of the asset. Save the asset again on a device that has it"
                    )
                }
                _ = try blobs.adopt(file, as: content.id, replaces: true)
            }
        }
        try await store.notePresent([content.id: try media(of: content)])
        blobs.close()
    }

    private func media(of content: RemoteAsset) throws -> Int {
        let file = try FileHandle(forReadingFrom: AssetFiles.url(of: content.id, in: store.container.assets))
        defer { try? file.close() }
        return AssetFiles.media(of: file, size: content.size)
    }

    /// Waits until no task fetches a content. Then the caller fetches it.
    private func begin(_ digest: String) async {
        while onTheirWay[digest] != nil {
            await withCheckedContinuation { onTheirWay[digest]?.append($0) }
        }
        onTheirWay[digest] = []
    }

    private func end(_ digest: String) {
        for waiting in onTheirWay.removeValue(forKey: digest) ?? [] { waiting.resume() }
    }

    // Down

    /// - Parameters:
    ///   - progress: Called with the number of bytes of each piece.
    ///   - there: Called with the number of bytes that are here, for a content that a caller waits for.
    private func fetch(
        _ asset: CloudAsset, zone: CloudZoneID, limits: CloudLimits, progress: @Sendable (Int64) async -> Void,
        there report: (@Sendable (Int64) async -> Void)? = nil
    ) async throws -> URL {
        guard Hexadecimal.isText(asset.digest, ofBytes: 32) else {
            throw CloudError(.assetNotAvailable, "'\(asset.digest.prefix(100))' is no SHA-256 in hexadecimal digits")
        }
        guard (0...limits.bytesPerAsset).contains(asset.size) else {
            throw CloudError(
                .assetNotAvailable, "the asset \(asset.digest) has \(asset.size) bytes, which is more than a cloud takes")
        }
        let file = folder.appendingPathComponent(ContainerContents.download(of: asset.digest, for: store.scope))
        for isAgain in [false, true] {
            let descriptor = open(file.path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (isAgain ? O_TRUNC : 0), 0o600)
            guard descriptor >= 0 else { throw Folder.failure("open", file.path) }
            let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            var there = Int64(lseek(descriptor, 0, SEEK_END))
            guard there >= 0 else { throw Folder.failure("read", file.path) }
            while there < asset.size {
                // Only a download on demand is cancelled between pieces; a synchronisation ends between its steps.
                if report != nil { try Task.checkCancellation() }
                let piece = try await database.download(
                    asset, in: zone, from: there, count: min(limits.bytesPerAssetPiece, Int(asset.size - there)))
                guard !piece.isEmpty, Int64(piece.count) <= asset.size - there else {
                    throw CloudError(.assetNotAvailable, "the asset \(asset.digest) ends before its size")
                }
                // A full disk is no fault of the asset's: it ends the synchronisation.
                try DurableFile.write(piece, to: handle, path: file.path)
                there += Int64(piece.count)
                await progress(Int64(piece.count))
                await report?(there)
            }
            if try Self.digest(of: file) == asset { return file }
        }
        unlink(file.path)
        throw CloudError(.assetNotAvailable, "what came is not the content of the digest \(asset.digest)")
    }

    private func openBlobs() throws {
        guard openAssets == nil else { return }
        try beginFolderUse()
        do {
            let blobs = try BlobStore(container: store.container)
            openAssets = (blobs, try IngestWorkers(store: blobs, root: folder, count: 1))
        } catch {
            endFolderUse()
            throw error
        }
    }

    /// Makes the folder of half-fetched assets, which stays until the use ends.
    private func beginFolderUse() throws {
        let folder = folder
        try Self.folderUses.withLock { uses in
            try Folder.make(folder, mode: 0o700)
            uses[folder.path, default: 0] += 1
        }
    }

    /// Removes the folder after its last use, unless something is half fetched.
    private func endFolderUse() {
        let path = folder.path
        Self.folderUses.withLock { uses in
            let others = uses[path, default: 1] - 1
            uses[path] = others > 0 ? others : nil
            if others == 0 { rmdir(path) }
        }
    }

    /// Ingests files, which belong to the store from then on.
    private func ingest(_ files: [(asset: CloudAsset, file: URL)]) async throws -> [String: String] {
        guard !files.isEmpty else { return [:] }
        try openBlobs()
        guard let openAssets else { return [:] }
        var noted: [SyncedAsset] = []
        for (asset, file) in files {
            let blob = try openAssets.workers.ingest(file: file.lastPathComponent)
            noted.append(SyncedAsset(id: blob.id, sha256: asset.digest, size: blob.size, media: blob.media))
        }
        try openAssets.blobs.sync()
        try await store.note(noted)
        for (_, file) in files { unlink(file.path) }
        return Dictionary(noted.map { ($0.sha256, $0.id) }, uniquingKeysWith: { one, _ in one })
    }

    /// Closes the container's assets.
    func close() {
        guard let open = openAssets else { return }
        open.blobs.close()
        openAssets = nil
        endFolderUse()
    }
}
