public import Foundation
import GRDB
import TidemarkModel
public import TidemarkSQLite
public import TidemarkStore

/// Makes a container from a backup, which stays as it is.
///
/// The backup is verified first, and the copy too. Tokens that were given out after the backup was made mean nothing to what is
/// restored: its stores get a new history identity, by which whoever has such a token can tell.
public struct ContainerRestoration: Sendable {
    private let backup: ContainerDirectory
    private let target: URL
    private let replaces: Bool
    private let lockTimeout: Duration
    /// Whether a backup with damaged records is restored all the same, with these as they are.
    public var allowsDamage = false
    /// For tests.
    package var hook: @Sendable (MoveStep) throws -> Void = { _ in }

    /// - Parameter replaces: Whether a container that is there may go, once the new one is whole. It has to be the same container,
    ///   of whatever time.
    public init(of backup: ContainerDirectory, to target: URL, replaces: Bool = false, lockTimeout: Duration = .seconds(30)) {
        self.backup = backup
        self.target = target
        self.replaces = replaces
        self.lockTimeout = lockTimeout
    }

    /// What was restored.
    public struct Summary: Hashable, Sendable, Encodable {
        /// Where the restored container is.
        public let path: String
        /// How many records both stores of the backup hold.
        public let records: Int
        /// How many assets were copied. Those of quarantined records are not counted.
        public let assets: Int
        /// Bytes of the databases and assets that were copied, those of quarantined records included.
        public let bytes: Int64
        /// Whether the restored container has replaced another at the target.
        public var hasReplaced = false
        /// How many damaged records were restored as they are.
        public var damaged = 0
        /// The folder that now has the files of the replaced container's folder which did not belong to the container.
        public var kept: String?
    }

    /// Verifies the backup, copies it and verifies the copy.
    ///
    /// - Throws: ``StoreError`` `corrupt` when the backup has a problem; `cannotMove` when something is there that may not go;
    ///   `diskFull`, `busy`, `io`. Then what was there is as it was.
    @discardableResult
    public func run(progress: (@Sendable (CopyProgress) -> Void)? = nil) throws(StoreError) -> Summary {
        do {
            let places = try MovePlaces(from: backup.url, to: target)
            let isThere = try checkTarget(places.target)
            guard isThere else { return try restore(places, replacing: false, progress: progress) }
            // What others would write meanwhile would be gone.
            let locks = try ContainerLocks(at: places.target, timeout: lockTimeout)
            defer { locks.release() }
            // It may have moved while this waited.
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

    /// Whether a container is there that is to be replaced.
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
            // One that is damaged may well be what is to be replaced.
        } catch let error as StoreError where error.code == .moved {
            guard let moved = try MovedNotice(in: url)?.moved, moved.container.identity == backup.description.identity,
                access(moved.to, F_OK) != 0, errno == ENOENT
            else { throw error }
            // It was lost where it had moved to.
        }
        return true
    }

    /// Puts the copy in the place of what is there, and removes that.
    private func replace(_ url: URL, by folder: borrowing UnfinishedFolder) throws -> String? {
        do {
            try folder.replace()
        } catch {
            // The caller gets the first error; what stays beside has a name of its own.
            try? folder.drop()
            throw error
        }
        // From here on what lies beside is the old one.
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
            // All of it into the file, durable there: the log would be one more thing to make durable.
            _ = try Row.fetchAll(db, sql: "PRAGMA wal_checkpoint(TRUNCATE)")
        }
        try queue.close()
    }
}
