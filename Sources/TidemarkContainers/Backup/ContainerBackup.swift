public import Foundation
public import TidemarkSQLite
public import TidemarkStore

/// Makes a copy of a container, which is a container itself. Other processes can go on writing meanwhile.
///
/// The copy has the state of both stores at one moment. It appears at its place when it is complete, verified and durable.
///
/// ```swift
/// try ContainerBackup(of: container, to: URL(fileURLWithPath: "/backups/MyJournal.tidemark")).run()
/// ```
public struct ContainerBackup: Sendable {
    private let container: ContainerDirectory
    private let target: URL
    private let lockTimeout: Duration
    /// Whether a container with damaged records is backed up. The records are copied as they are, and the summary names them. If
    /// it is `false`, a damaged record ends the backup.
    public var allowsDamage = false
    /// Copies neither assets nor quarantined records: for a copy that is read once and deleted.
    package var isOfRecordsOnly = false
    /// Called after each step. For tests.
    package var hook: @Sendable (MoveStep) throws -> Void = { _ in }

    /// Describes a backup. Nothing is read before ``run(progress:)``.
    ///
    /// - Parameters:
    ///   - container: The container to copy.
    ///   - target: The copy's place, where nothing may exist; or an existing folder, in which the copy is named by the container
    ///     and the time.
    ///   - lockTimeout: The longest wait for each lock.
    public init(of container: ContainerDirectory, to target: URL, lockTimeout: Duration = .seconds(30)) {
        self.container = container
        self.target = target
        self.lockTimeout = lockTimeout
    }

    /// The result of a backup.
    public struct Summary: Hashable, Sendable, Encodable {
        /// The path of the copy.
        public let path: String
        /// The number of database files that were copied: one for each scope that has a store.
        public let stores: Int
        /// The number of assets that were copied, without those of quarantined records.
        public let assets: Int
        /// Bytes of the databases and assets that were copied, those of quarantined records included.
        public let bytes: Int64
        /// Damaged records of the container, copied as they are; empty unless ``ContainerBackup/allowsDamage`` is set.
        public let damaged: [DamagedRecord]
    }

    /// Makes the copy. Other processes can go on writing meanwhile.
    ///
    /// - Parameter progress: Called with the progress, from several threads.
    /// - Throws: ``StoreError`` `cannotMove` when something exists at the target; `diskFull`, `busy`, `io`; `damaged` when a
    ///   record is damaged, unless ``allowsDamage`` is set; `corrupt` when something else of the container is damaged or missing.
    ///   Then nothing is left of the copy.
    @discardableResult
    public func run(progress: (@Sendable (CopyProgress) -> Void)? = nil) throws(StoreError) -> Summary {
        // If a store has no index of its log, the first process that writes makes the read void. At the next try there is an
        // index.
        for _ in 0..<2 {
            do throws(StoreError) {
                return try copyOnce(progress)
            } catch {
                guard error.code == .changed else { throw error }
            }
        }
        return try copyOnce(progress)
    }

    private func copyOnce(_ progress: (@Sendable (CopyProgress) -> Void)?) throws(StoreError) -> Summary {
        do {
            let source = try MovePlaces.resolved(container.url)
            let place = try place()
            if MovePlaces.isInside(place, of: source) {
                throw StoreError(.cannotMove, "\(place.path) lies in \(source.path); name a place outside of the container")
            }
            try StoreReader.rollBackJournals(of: container)
            // Contents that are to be copied must not be evicted meanwhile.
            let ingestLock = isOfRecordsOnly ? nil : try IngestLock(sharing: container)
            defer { withExtendedLifetime(ingestLock) {} }
            let copy = try held()
            try copy.checkRoom(at: place)
            let damaged = isOfRecordsOnly ? [] : try copy.damage()
            guard allowsDamage || damaged.isEmpty else {
                throw StoreError.damaged(damaged, doing: "and \(container.url.path) was not backed up")
            }
            var description = container.description
            description.copy = UUID()
            let folder = try UnfinishedFolder(for: place)
            try folder.fill { folder in
                try copy.run(to: folder, hook: hook, progress: progress)
                try copy.verify(folder, progress: progress)
                try DurableFile.write(description, to: folder.appendingPathComponent(ContainerContents.description))
            }
            try hook(.described)
            try folder.commit()
            return Summary(
                path: place.path, stores: copy.snapshots.count, assets: copy.assets.count, bytes: copy.bytes, damaged: damaged)
        } catch {
            throw StoreError(error, doing: "back up \(container.url.path)")
        }
    }

    /// Opens both stores in their state at one moment.
    private func held() throws -> ContainerCopy {
        // If this process may not write to the folder, it can't take locks there.
        guard access(container.url.path, W_OK) == 0 else { return try copy() }
        let locks = try ContainerLocks(storesAt: container.url, timeout: lockTimeout)
        defer { locks.release() }
        try container.checkPlace()
        return try copy()
    }

    private func copy() throws -> ContainerCopy {
        try ContainerCopy(of: container, withSetAside: !isOfRecordsOnly, withAssets: !isOfRecordsOnly)
    }

    private func place() throws -> URL {
        let place = try MovePlaces.resolved(target)
        var status = stat()
        guard stat(place.path, &status) == 0 else { return place }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw StoreError(.cannotMove, "\(place.path) is there already") }
        let description = place.appendingPathComponent(ContainerContents.description)
        guard access(description.path, F_OK) != 0 else {
            throw StoreError(.cannotMove, "there is a container at \(place.path) already; name another place")
        }
        let time = Date.now.formatted(.iso8601.timeSeparator(.omitted).dateSeparator(.omitted))
        let name = container.url.deletingPathExtension().lastPathComponent
        try UnfinishedFolder.sweep(place, prefix: "\(name)-")
        let named = place.appendingPathComponent("\(name)-\(time).tidemark")
        guard access(named.path, F_OK) != 0 else { throw StoreError(.cannotMove, "\(named.path) is there already") }
        return named
    }
}
