import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// The progress of a move, a backup or a restoration.
public struct CopyProgress: Sendable {
    /// The steps of the work. Only a move deletes; it reports that once, with 0 of 0 bytes.
    public enum Phase: String, Sendable { case copying, verifying, deleting }

    /// The step that `bytes` and `total` count.
    public let phase: Phase
    /// The bytes that this phase has processed; at most `total`.
    public let bytes: Int64
    /// The bytes of the databases and assets that this phase has to process.
    public let total: Int64
}

/// A container's stores and the assets that they name, to be copied into a folder that no process has open.
///
/// Read transactions hold the state of each store from the beginning, so other processes may write while the copy is made.
final class ContainerCopy: Sendable {
    let source: ContainerDirectory
    let snapshots: [DatabaseSnapshot]
    /// The identifiers of the assets, in order.
    let assets: [String]
    private let sizes: [String: Int64]
    private let mayLink: Bool
    /// The quarantines. Each is a container of its own.
    private let setAside: [(quarantine: Quarantine, copy: ContainerCopy)]
    /// The digests of the stores' contents, known when they are copied.
    private let digests = LockedValue<[StoreScope: ContentDigest]>([:])

    /// Opens the stores, and begins the read transactions.
    ///
    /// - Parameters:
    ///   - mayLink: Whether assets may get hard links in place of copies on the same file system. That is safe, as assets never
    ///     change.
    ///   - withSetAside: Whether quarantines are copied, too.
    ///   - withAssets: Whether assets are copied.
    /// - Throws: ``StoreError`` `notFound` when the container has lost its private store; `corrupt` when a log has lost commits;
    ///   and the errors of opening a store.
    init(of source: ContainerDirectory, mayLink: Bool = false, withSetAside: Bool = true, withAssets: Bool = true) throws {
        for scope in ContainerDirectory.scopes where !source.hasStore(scope) { try source.checkStoreMayBeMade(scope) }
        for scope in ContainerDirectory.scopes where source.hasStore(scope) {
            try LogExamination.checkBeforeCopying(source.store(scope).path)
        }
        snapshots = try ContainerDirectory.scopes.filter(source.hasStore).map { try DatabaseSnapshot(of: source, scope: $0) }
        sizes = withAssets ? snapshots.reduce(into: [:]) { $0.merge($1.assets) { one, _ in one } } : [:]
        assets = sizes.keys.sorted()
        (self.source, self.mayLink) = (source, mayLink)
        setAside = try (withSetAside ? source.quarantines() : []).map { quarantine in
            (quarantine, try ContainerCopy(of: quarantine.container(in: source), mayLink: mayLink, withSetAside: false))
        }
        // Assets that no store names would not be copied. If the private store is lost, they may be all that is left of it.
        guard try source.hasStore(.private) || AssetFiles(in: source.assets).ids.allSatisfy({ sizes[$0] != nil }) else {
            throw source.storeIsMissing(.private)
        }
    }

    var databaseBytes: Int64 { setAside.reduce(snapshots.reduce(0) { $0 + $1.bytes }) { $0 + $1.copy.databaseBytes } }
    var assetBytes: Int64 { setAside.reduce(sizes.values.reduce(0, +)) { $0 + $1.copy.assetBytes } }
    var bytes: Int64 { databaseBytes + assetBytes }

    /// Makes sure that a full copy, without hard links, has room at a place.
    ///
    /// - Throws: ``StoreError`` `diskFull`.
    func checkRoom(at url: URL) throws(StoreError) {
        let free = MovePlaces.freeBytes(at: url)
        guard free < bytes else { return }
        throw StoreError(
            .diskFull,
            "\(MovePlaces.nearest(url).path) has \(free) bytes free, and the container needs \(bytes); make room there")
    }

    /// The damaged records of the stores and of the quarantines.
    ///
    /// - Complexity: Reads the databases.
    func damage() throws -> [DamagedRecord] {
        try snapshots.flatMap { try $0.damage() } + setAside.flatMap { try $0.copy.damage() }
    }

    /// A hook between the steps of the work, for tests.
    typealias Hook = @Sendable (MoveStep) throws -> Void

    /// Copies everything, and makes it durable. Complete assets that the folder has already are kept.
    func run(to folder: URL, hook: @escaping Hook, progress: (@Sendable (CopyProgress) -> Void)?) throws {
        let target = AssetCopying(from: source.assets, to: folder.appendingPathComponent("assets"), mayLink: mayLink)
        let counter = Counter(.copying, total: bytes, report: progress)
        try concurrently([
            { [self] in
                for snapshot in snapshots {
                    let before = LockedValue<Int64>(0)
                    try snapshot.copy(to: folder) { done in
                        counter.add(
                            before.withLock { last in
                                defer { last = done }
                                return done - last
                            })
                    }
                    try hook(.databaseCopied)
                }
            },
            { [self] in
                try target.copy(assets) { id in
                    counter.add(self.sizes[id] ?? 0)
                    try hook(.assetCopied)
                }
            },
            { [self] in
                for snapshot in snapshots {
                    let digest = try snapshot.digest()
                    digests.withLock { $0[snapshot.scope] = digest }
                }
            },
        ])
        if !assets.isEmpty { try target.synchronize() }
        try removeStrays(in: folder.appendingPathComponent("assets"))
        for (quarantine, copy) in setAside {
            let place = try quarantine.makePlace(below: folder)
            let records = place.appendingPathComponent(Quarantine.records, isDirectory: true)
            try Folder.make(records, mode: 0o700)
            try copy.run(to: records, hook: { _ in }, progress: nil)
            try DurableFile.write(copy.source.description, to: records.appendingPathComponent(ContainerContents.description))
            try DurableFile.write(quarantine, to: place.appendingPathComponent(Quarantine.description))
        }
        try Folder(at: folder).synchronize()
    }

    /// Reads the copy again, and compares it with the source.
    ///
    /// - Throws: ``StoreError`` `corrupt`.
    func verify(_ folder: URL, progress: (@Sendable (CopyProgress) -> Void)?) throws {
        let target = AssetCopying(from: source.assets, to: folder.appendingPathComponent("assets"), mayLink: mayLink)
        let counter = Counter(.verifying, total: bytes, report: progress)
        let files = snapshots.map { ($0, folder.appendingPathComponent("\($0.scope.name).sqlite")) }
        try concurrently(
            files.flatMap { snapshot, file -> [@Sendable () throws -> Void] in
                [
                    { try DatabaseSnapshot.checkIntegrity(of: file) },
                    { [self] in
                        let copied = try DatabaseSnapshot.digest(of: file)
                        let held = digests.withLock { $0[snapshot.scope] }
                        guard let held else { throw StoreError(.core, "\(file.path) was not copied") }
                        if let difference = held.difference(to: copied) {
                            throw StoreError(.corrupt, "\(file.path) is not what was copied: it differs in \(difference)")
                        }
                        counter.add(snapshot.bytes)
                    },
                ]
            } + [{ [self] in try target.verify(assets) { counter.add(self.sizes[$0] ?? 0) } }])
        for (quarantine, copy) in setAside {
            let records = quarantine.place(below: folder).appendingPathComponent(Quarantine.records, isDirectory: true)
            try copy.verify(records, progress: nil)
        }
    }

    /// Removes assets that an earlier attempt has copied and that no store names any more.
    private func removeStrays(in url: URL) throws {
        try AssetFiles.remove(AssetFiles(in: url).ids.filter { sizes[$0] == nil }, in: url)
    }

    /// Counts the bytes done, from several threads.
    private final class Counter: Sendable {
        private let phase: CopyProgress.Phase
        private let total: Int64
        private let report: (@Sendable (CopyProgress) -> Void)?
        private let done = LockedValue<Int64>(0)

        init(_ phase: CopyProgress.Phase, total: Int64, report: (@Sendable (CopyProgress) -> Void)?) {
            (self.phase, self.total, self.report) = (phase, total, report)
        }

        func add(_ bytes: Int64) {
            guard let report else { return }
            let sum = done.withLock { done in
                done += bytes
                return done
            }
            report(CopyProgress(phase: phase, bytes: min(sum, total), total: total))
        }
    }
}

/// Runs jobs in parallel. After an error no further job begins, and the first error is thrown when the running ones have ended.
func concurrently(_ jobs: [@Sendable () throws -> Void]) throws {
    let failure = LockedValue<(any Error)?>(nil)
    DispatchQueue.concurrentPerform(iterations: jobs.count) { index in
        guard failure.withLock({ $0 == nil }) else { return }
        do {
            try jobs[index]()
        } catch {
            failure.withLock { if $0 == nil { $0 = error } }
        }
    }
    if let error = failure.withLock({ $0 }) { throw error }
}
