public import Foundation
import GRDB
import TidemarkModel
public import TidemarkSQLite
public import TidemarkStore

/// Makes a container from a backup. The backup stays as it is.
///
/// The backup is verified first, and so is the copy. The restored stores get a new history identity. So history tokens from
/// before the restoration are recognised as expired.
public struct ContainerRestoration: Sendable {
    private let backup: ContainerDirectory
    private let target: URL
    private let replaces: Bool
    private let lockTimeout: Duration
    /// Whether a backup with damaged records is restored. The records are restored as they are.
    public var allowsDamage = false
    /// Called after each step. For tests.
    package var hook: @Sendable (MoveStep) throws -> Void = { _ in }

    /// Describes a restoration. Nothing is read before ``run(progress:)``.
    ///
    /// - Parameters:
    ///   - backup: The backup.
    ///   - target: The place of the restored container.
    ///   - replaces: Whether a container at the target may be replaced, once the new one is complete. It has to be a state of the
    ///     same container.
    ///   - lockTimeout: The longest wait for each lock.
    public init(of backup: ContainerDirectory, to target: URL, replaces: Bool = false, lockTimeout: Duration = .seconds(30)) {
        self.backup = backup
        self.target = target
        self.replaces = replaces
        self.lockTimeout = lockTimeout
    }

    /// The result of a restoration.
    public struct Summary: Hashable, Sendable, Encodable {
        /// The path of the restored container.
        public let path: String
        /// The number of records in both stores of the backup.
        public let records: Int
        /// The number of assets that were copied, without those of quarantined records.
        public let assets: Int
        /// Bytes of the databases and assets that were copied, those of quarantined records included.
        public let bytes: Int64
        /// Whether the restored container has replaced another at the target.
        public var hasReplaced = false
        /// The number of damaged records that were restored as they are.
        public var damaged = 0
        /// The path of a folder with the files that were in the replaced container's folder and did not belong to it; `nil` if
        /// there were none.
        public var kept: String?
    }

    /// Verifies the backup, copies it and verifies the copy.
    ///
    /// - Parameter progress: Called with the progress, from several threads.
    /// - Throws: ``StoreError`` `damaged` when the only problems of the backup are damaged records and ``allowsDamage`` is not
    ///   set; `corrupt` when it has another problem; `cannotMove` when the target has something that may not be replaced;
    ///   `diskFull`, `busy`, `io`. Then the target is unchanged.
    @discardableResult
    public func run(progress: (@Sendable (CopyProgress) -> Void)? = nil) throws(StoreError) -> Summary {
        do {
            let places = try MovePlaces(from: backup.url, to: target)
            let isThere = try checkTarget(places.target)
            guard isThere else { return try restore(places, replacing: false, progress: progress) }
            // Without the locks, changes that other processes write meanwhile would be lost.
            let locks = try ContainerLocks(at: places.target, timeout: lockTimeout)
            defer { locks.release() }
            // The container may have moved while this waited for the locks.
            _ = try checkTarget(places.target)
            return try restore(places, replacing: true, progress: progress)
        } catch {
            throw StoreError(error, doing: "restore \(target.path)")
        }
    }

    private func restore(
        _ places: MovePlaces, replacing: Bool, progress: (@Sendable (CopyProgress) -> Void)?
    ) throws -> Summary {
        let report = try StoreVerification(of: backup).run()
        let damaged = report.problems.filter { $0.kind == .record }
        if let problem = report.problems.first(where: { !allowsDamage || $0.kind != .record }) {
            let isOfRecords = damaged.count == report.problems.count
            throw StoreError(
                isOfRecords ? .damaged : .corrupt,
                "the backup \(backup.url.path) has \(report.problems.count == 1 ? "a problem" : "\(report.problems.count) problems"), and nothing was restored: \(problem.message)"
                    + (isOfRecords ? ". To restore it with what is damaged, say so (--allow-damage)" : "")
            )
        }
        let copy = try ContainerCopy(of: backup)
        try copy.checkRoom(at: places.target)
        let folder = try UnfinishedFolder(for: places.target)
        try folder.fill { folder in
            try copy.run(to: folder, hook: hook, progress: progress)
            try copy.verify(folder, progress: progress)
            for snapshot in copy.snapshots {
                try renewHistory(of: folder.appendingPathComponent("\(snapshot.scope.name).sqlite"))
            }
            var description = backup.description
            description.copy = UUID()
            try DurableFile.write(description, to: folder.appendingPathComponent(ContainerContents.description))
        }
        try hook(.described)
        var summary = Summary(path: places.target.path, records: report.records, assets: copy.assets.count, bytes: copy.bytes)
        summary.damaged = damaged.count
        if replacing {
            summary.kept = try replace(places.target, by: folder)
            summary.hasReplaced = true
        } else {
            try folder.commit()
        }
        return summary
    }

    /// Returns whether a container at the target is to be replaced.
    private func checkTarget(_ url: URL) throws -> Bool {
        var status = stat()
        guard lstat(url.path, &status) == 0 else { return false }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw StoreError(.cannotMove, "\(url.path) is a file") }
        let contents = try ContainerContents(of: url)
        let hasDescription = access(url.appendingPathComponent(ContainerContents.description).path, F_OK) == 0
        if !hasDescription {
            guard contents.others.isEmpty else {
                throw StoreError(.cannotMove, "\(url.path) is no container, and holds other files; name another place")
            }
            if contents.own.isEmpty { return false }
        }
        guard replaces else {
            throw StoreError(.cannotMove, "there is, or was, a container at \(url.path); to have it replaced, say so (--replace)")
        }
        do {
            guard try ContainerDirectory(openingAt: url).description.identity == backup.description.identity else {
                throw StoreError(
                    .cannotMove, "\(url.path) is another container than the one that was backed up; name another place")
            }
        } catch let error as StoreError where error.code == .notAStore || error.code == .corrupt {
            // A damaged container may be replaced.
        } catch let error as StoreError where error.code == .moved {
            guard let moved = try MovedNotice(in: url)?.moved, moved.container.identity == backup.description.identity,
                access(moved.to, F_OK) != 0, errno == ENOENT
            else { throw error }
            // The container has moved, and is missing at its new place. So its old folder may be replaced.
        }
        return true
    }

    /// Exchanges the old container for the copy, and removes the old one.
    private func replace(_ url: URL, by folder: borrowing UnfinishedFolder) throws -> String? {
        do {
            try folder.replace()
        } catch {
            // The caller gets the first error. A copy that stays beside the target is in nobody's way.
            try? folder.drop()
            throw error
        }
        // From here on the folder beside the target has the old container.
        try folder.synchronizePlace()
        try hook(.replaced)
        try DurableFile.remove(ContainerContents.description, in: folder.url)
        try ContainerContents.remove(from: folder.url)
        for journal in [MovedNotice.draft, MoveJournal.file] { try DurableFile.remove(journal, in: folder.url) }
        try ContainerContents.removeIfEmpty(folder.url)
        guard access(folder.url.path, F_OK) == 0 else { return nil }
        let kept = url.deletingLastPathComponent()
            .appendingPathComponent("\(url.lastPathComponent)-\(UUID().uuidString.prefix(8)).others")
        guard rename(folder.url.path, kept.path) == 0 else { throw Folder.failure("rename", folder.url.path) }
        return kept.path
    }

    /// Gives a store's history a new identity, if it has one.
    private func renewHistory(of url: URL) throws {
        let queue = try DatabaseQueue(path: url.path)
        try queue.inDatabase { db in
            try db.execute(
                sql: "UPDATE tide_meta SET value = ? WHERE key = 'history_identity'", arguments: [UUID().uuidString])
            // The checkpoint makes the change durable in the database file, and leaves no log that would have to be made durable,
            // too.
            _ = try Row.fetchAll(db, sql: "PRAGMA wal_checkpoint(TRUNCATE)")
        }
        try queue.close()
    }
}
