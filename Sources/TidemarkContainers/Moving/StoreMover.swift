public import Foundation
public import TidemarkSQLite
public import TidemarkStore

/// Moves a container to another place: every record, blob, pending change and token, under the same identity.
///
/// It copies the databases through SQLite and the assets file by file, makes the copy durable, reads it again and compares. Then
/// the renaming of one file makes the copy count and the old one not, and the old files are deleted. At every moment exactly one
/// of the two can be opened. A move that is interrupted, by a kill or a power cut too, goes on when it is run again, and can be
/// rolled back until the old files are deleted. Repeated after that, it does nothing.
///
/// From the copying to the switch the mover holds the locks of both stores and of ingesting files. Writers wait, and are refused
/// afterwards; readers are not disturbed. Every container of this process that ingests files has to be closed before.
///
/// ```swift
/// let mover = StoreMover(from: old, to: shared.appendingPathComponent("MyJournal.tidemark"))
/// for reason in try mover.plan().reasonsAgainst { print(reason) }
/// try mover.run()
/// ```
public struct StoreMover: Sendable {
    /// The container's folder before the move.
    public let source: URL
    /// The container's folder after the move.
    public let target: URL
    /// The old files stay, and can't be opened, until ``finish()``.
    public var keepsSource: Bool
    /// How long each lock is waited for.
    public var lockTimeout: Duration
    /// For tests.
    package var hook: @Sendable (MoveStep) throws -> Void = { _ in }

    /// Describes a move. Nothing is read or changed before ``plan()`` or ``run(progress:)``.
    ///
    /// - Parameters:
    ///   - keepsSource: Whether the old files stay until ``finish()``; see ``keepsSource``.
    ///   - lockTimeout: How long each lock is waited for before the move fails with `busy`.
    public init(from source: URL, to target: URL, keepsSource: Bool = false, lockTimeout: Duration = .seconds(30)) {
        self.source = source
        self.target = target
        self.keepsSource = keepsSource
        self.lockTimeout = lockTimeout
    }

    /// What a move did.
    public struct Summary: Hashable, Sendable, Encodable {
        /// The path of the container's folder before the move.
        public let from: String
        /// The path of the container's folder after the move.
        public let to: String
        /// Whether the container was at the target before this call, with nothing left to do.
        public var alreadyMoved = false
        /// How many database files have moved; 0 when an earlier run had copied them.
        public var stores = 0
        /// How many assets have moved; 0 when an earlier run had copied them.
        public var assets = 0
        /// Bytes of the databases and assets that have moved, those of assets that only got a second name included.
        public var bytes: Int64 = 0
        /// Whether the old files are deleted.
        public var sourceIsDeleted = false
        /// Records that are damaged, and have moved as they are; not known of a move that was finished before.
        public var damaged: [DamagedRecord] = []
        /// Names of files in the old folder that are not the container's, and stay there.
        public var staying: [String] = []
    }

    /// Where the move of a container has gone, or was to go; `nil` when none was begun.
    ///
    /// - Throws: ``StoreError`` `io` or `unreadable`.
    public static func target(ofMoveFrom source: URL) throws(StoreError) -> URL? {
        var notice = try MovedNotice(in: source)
        if notice == nil { notice = try MovedNotice(in: source, file: MovedNotice.draft) }
        return notice.map { URL(fileURLWithPath: $0.moved.to, isDirectory: true) }
    }

    /// Says what ``run(progress:)`` would do. Nothing is changed.
    ///
    /// - Throws: ``StoreError`` `notFound`, `cannotMove` when the two places are one or one lies in the other, and those of
    ///   opening a store. What else speaks against the move is in the plan.
    public func plan() throws(StoreError) -> MovePlan {
        try reporting {
            let places = try MovePlaces(from: source, to: target)
            if let notice = try MovedNotice(in: places.source) {
                _ = try moved(notice, to: places)
                return try MovePlan(places, notice: notice)
            }
            let container = try ContainerDirectory(openingAt: places.source)
            try StoreReader.rollBackJournals(of: container)
            return try MovePlan(
                places, copy: ContainerCopy(of: container), target: MoveTarget(places, identity: container.description.identity))
        }
    }

    /// Moves the container, or goes on with a move that was interrupted.
    ///
    /// - Throws: ``StoreError`` `cannotMove` or `diskFull` with the first reason against it; `busy`; `corrupt` when something of
    ///   the source is damaged or missing; `io`. Unless the message says otherwise the container is where it was, usable, and
    ///   nothing of the copy is left.
    /// - Complexity: Reads and writes everything once, and reads it once more.
    @discardableResult
    public func run(progress: (@Sendable (CopyProgress) -> Void)? = nil) throws(StoreError) -> Summary {
        try reporting {
            let places = try MovePlaces(from: source, to: target)
            if let notice = try MovedNotice(in: places.source) { return try complete(notice, places, explicitly: false) }
            try StoreReader.rollBackJournals(of: ContainerDirectory(openingAt: places.source))
            let locks = try ContainerLocks(at: places.source, timeout: lockTimeout)
            defer { locks.release() }
            // Another mover may have been at work while this one waited.
            if let notice = try MovedNotice(in: places.source) {
                return try complete(notice, places, explicitly: false, holding: locks)
            }
            let container = try ContainerDirectory(openingAt: places.source)
            let copy = try ContainerCopy(of: container, mayLink: true)
            // What can't be read at all, the copy itself finds.
            let damaged = (try? copy.damage()) ?? []
            let there = try MoveTarget(places, identity: container.description.identity)
            try MovePlan(places, copy: copy, target: there).check()
            var journal = try claim(places, there: there, identity: container.description.identity)
            let notice = MovedNotice(
                .init(
                    move: journal.move, to: journal.to, began: journal.began, keepsSource: keepsSource,
                    container: container.description))
            do {
                try make(copy, places, journal: &journal, notice: notice, progress: progress)
                // Completing the move makes it durable, before anything relies on it.
                try Folder(at: places.source, followsLink: true).rename(MovedNotice.draft, to: ContainerContents.description)
            } catch {
                // The last step may have failed after it was done; what can't be read now may say so.
                do {
                    guard try MovedNotice(in: places.source) == nil, try ContainerDirectory(openingAt: places.source).isInPlace
                    else { throw error }
                } catch let unread {
                    throw StoreError(
                        StoreError(error, doing: "move").code,
                        """
                        \(StoreError(error, doing: "move \(places.source.path)").message); which of the two places counts has to be read \
                        again (\(StoreError(unread, doing: "read").message)): run the move again
                        """)
                }
                try abandon(places, journal: journal, because: error)
            }
            try hook(.switched)
            progress?(CopyProgress(phase: .deleting, bytes: 0, total: 0))
            var summary = try complete(notice, places, explicitly: false, holding: locks)
            summary.alreadyMoved = false
            summary.damaged = damaged
            (summary.stores, summary.assets, summary.bytes) = (copy.snapshots.count, copy.assets.count, copy.bytes)
            return summary
        }
    }

    /// Deletes the old files of a move that has happened.
    ///
    /// Where the source is gone altogether with the disk that it was on, a copy that was whole by then counts from now on.
    ///
    /// - Throws: ``StoreError`` `cannotMove` when the container has not moved to the target, or is not there; `busy`, `io`.
    @discardableResult
    public func finish() throws(StoreError) -> Summary {
        try reporting {
            guard access(source.path, F_OK) == 0 || errno != ENOENT else { return try adopt() }
            let places = try MovePlaces(from: source, to: target)
            guard let notice = try MovedNotice(in: places.source) else {
                throw StoreError(.cannotMove, "the container at \(places.source.path) has not moved: there is nothing to finish")
            }
            return try complete(notice, places, explicitly: true)
        }
    }

    func reporting<Result>(_ body: () throws -> Result) throws(StoreError) -> Result {
        do {
            return try body()
        } catch {
            let error = StoreError(error, doing: "move \(source.path) to \(target.path)")
            // A container that can't be opened adds nothing to the error.
            throw (try? ContainerDirectory(openingAt: source))?.naming(error) ?? error
        }
    }

    /// Says at the target that what will be there is a copy that does not count.
    private func claim(_ places: MovePlaces, there: MoveTarget, identity: UUID) throws -> MoveJournal {
        if case .begun(var journal) = there {
            // It may lie under another path by now.
            journal.to = places.target.path
            return journal
        }
        var madeFolder = false
        if case .absent = there {
            try Folder.make(places.target, mode: 0o700)
            madeFolder = true
        } else {
            guard chmod(places.target.path, 0o700) == 0 else {
                throw Folder.failure("change the permissions of", places.target.path)
            }
        }
        let journal = MoveJournal(
            move: UUID(), identity: identity, from: places.source.path, to: places.target.path,
            began: Date.now.formatted(.iso8601), madeFolder: madeFolder, step: .copying)
        do {
            try journal.write(in: places.target, replaces: false)
        } catch {
            // The caller gets the first error; a folder that stays is empty.
            if madeFolder { try? ContainerContents.removeIfEmpty(places.target) }
            throw error
        }
        // Somebody may have made a container there just now; whoever comes later sees the journal.
        if case .vacated = there { return journal }
        let contents = try ContainerContents(of: places.target)
        let description = places.target.appendingPathComponent(ContainerContents.description)
        guard !contents.own.contains(where: { $0.hasSuffix(".sqlite") }), access(description.path, F_OK) != 0 else {
            try journal.remove(in: places.target)
            throw StoreError(.cannotMove, "a container was made at \(places.target.path) just now; name a place where nothing is")
        }
        return journal
    }

    /// Makes the copy, up to where one renaming makes it count.
    private func make(
        _ copy: ContainerCopy, _ places: MovePlaces, journal: inout MoveJournal, notice: MovedNotice,
        progress: (@Sendable (CopyProgress) -> Void)?
    ) throws {
        try ContainerContents.removeUnfinished(from: places.target)
        journal.step = .copying
        try journal.write(in: places.target)
        try hook(.claimed)
        // Written now, it needs no space at the switch, when the disk may be full.
        try DurableFile.write(notice, to: places.source.appendingPathComponent(MovedNotice.draft))
        try hook(.drafted)
        try copy.run(to: places.target, hook: hook, progress: progress)
        try ContainerContents.copySession(from: places.source, to: places.target)
        journal.step = .copied
        try journal.write(in: places.target)
        try hook(.copied)
        try copy.verify(places.target, progress: progress)
        try hook(.verified)
        var description = notice.moved.container
        description.copy = notice.moved.move
        try DurableFile.write(description, to: places.target.appendingPathComponent(ContainerContents.description))
        journal.step = .verified
        try journal.write(in: places.target)
        try hook(.described)
    }

    /// Removes what there is of a copy, and says why.
    private func abandon(_ places: MovePlaces, journal: MoveJournal, because error: any Error) throws -> Never {
        let error = StoreError(error, doing: "move \(source.path) to \(target.path)")
        do {
            try Self.removeCopy(at: places.target, journal: journal)
            try DurableFile.remove(MovedNotice.draft, in: places.source)
        } catch let failure {
            throw StoreError(
                error.code,
                """
                \(error.message); the container stays at \(places.source.path). What was copied could not be removed \
                (\(StoreError(failure, doing: "remove it").message)): do it with `tidemark store move` and --rollback
                """)
        }
        throw StoreError(error.code, "\(error.message); nothing was moved, the container stays at \(places.source.path)")
    }

    /// Removes a copy that does not count, its journal last.
    static func removeCopy(at target: URL, journal: MoveJournal) throws {
        // A notice of an earlier move from here stays.
        if try MovedNotice(in: target) == nil { try DurableFile.remove(ContainerContents.description, in: target) }
        try ContainerContents.remove(from: target)
        try journal.remove(in: target)
        if journal.madeFolder { try ContainerContents.removeIfEmpty(target) }
    }
}
