public import Foundation
public import TidemarkSQLite
public import TidemarkStore

/// Moves a container to another place: every record, blob, pending change and token, under the same identity.
///
/// It copies the databases through SQLite and the assets file by file, makes the copy durable, reads it again and compares. Then
/// it renames one file: this *switch* makes the copy the container, and closes the old one. At last the old files are deleted. At
/// every moment exactly one of the two can be opened. A move that was interrupted, by a kill or a power cut too, continues when
/// it is run again. It can be rolled back until the old files are deleted. Running a finished move again does nothing.
///
/// From the copying to the switch, the mover holds the locks of both stores and of ingesting files. Writers wait, and are refused
/// afterwards. Readers are not disturbed. A container of this process that ingests files has to be closed before the move.
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
    /// Whether the old files stay until ``finish()``. They can't be opened as a container meanwhile.
    public var keepsSource: Bool
    /// The longest wait for each lock.
    public var lockTimeout: Duration
    /// Called after each step. For tests.
    package var hook: @Sendable (MoveStep) throws -> Void = { _ in }

    /// Describes a move. Nothing is read or changed before ``plan()`` or ``run(progress:)``.
    ///
    /// - Parameters:
    ///   - source: The container's folder before the move.
    ///   - target: The container's folder after the move.
    ///   - keepsSource: Whether the old files stay until ``finish()``; see ``keepsSource``.
    ///   - lockTimeout: The longest wait for each lock. The move then fails with `busy`.
    public init(from source: URL, to target: URL, keepsSource: Bool = false, lockTimeout: Duration = .seconds(30)) {
        self.source = source
        self.target = target
        self.keepsSource = keepsSource
        self.lockTimeout = lockTimeout
    }

    /// The result of a move.
    public struct Summary: Hashable, Sendable, Encodable {
        /// The path of the container's folder before the move.
        public let from: String
        /// The path of the container's folder after the move.
        public let to: String
        /// Whether the container was at the target before this call, with nothing left to do.
        public var alreadyMoved = false
        /// The number of database files that this run has moved; 0 when the container was at the target before.
        public var stores = 0
        /// The number of assets that this run has moved; 0 when the container was at the target before.
        public var assets = 0
        /// The bytes of the databases and assets that this run has moved, including assets that only got a hard link.
        public var bytes: Int64 = 0
        /// Whether the old files are deleted.
        public var sourceIsDeleted = false
        /// The damaged records, which were moved as they are; empty when the container was at the target before.
        public var damaged: [DamagedRecord] = []
        /// The names of files in the old folder that are not the container's, and stay there.
        public var staying: [String] = []
    }

    /// Returns the target of the move of a container, finished or not; `nil` when no move was begun.
    ///
    /// - Throws: ``StoreError`` `io` or `unreadable`.
    public static func target(ofMoveFrom source: URL) throws(StoreError) -> URL? {
        var notice = try MovedNotice(in: source)
        if notice == nil { notice = try MovedNotice(in: source, file: MovedNotice.draft) }
        return notice.map { URL(fileURLWithPath: $0.moved.to, isDirectory: true) }
    }

    /// Returns what ``run(progress:)`` would do. Nothing is changed.
    ///
    /// - Throws: ``StoreError`` `notFound`; `cannotMove` when the two places are the same or one is inside the other; and the
    ///   errors of opening a store. The plan has all other reasons against the move.
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

    /// Moves the container, or continues a move that was interrupted.
    ///
    /// - Parameter progress: Called with the progress, from several threads.
    /// - Throws: ``StoreError`` `cannotMove` or `diskFull` with the first reason against the move; `busy`; `corrupt` when a part
    ///   of the source is damaged or missing; `io`. Unless the message says otherwise, the container is usable at the source, and
    ///   nothing is left of the copy.
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
            // If the records can't be read at all, copying fails and reports it.
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
                // The rename may have taken effect although it failed. The source shows which place is the container, if it can
                // be read.
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
    /// If the source's folder is gone, as after the loss of its disk, a copy that was complete by then becomes the container.
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

    /// Writes the journal that marks the target as a copy that can't be opened yet.
    private func claim(_ places: MovePlaces, there: MoveTarget, identity: UUID) throws -> MoveJournal {
        if case .begun(var journal) = there {
            // The copy may be under another path by now.
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
            // The caller gets the first error. A folder that stays is empty.
            if madeFolder { try? ContainerContents.removeIfEmpty(places.target) }
            throw error
        }
        // Another process may have made a container there just now. Processes that come later see the journal.
        if case .vacated = there { return journal }
        let contents = try ContainerContents(of: places.target)
        let description = places.target.appendingPathComponent(ContainerContents.description)
        guard !contents.own.contains(where: { $0.hasSuffix(".sqlite") }), access(description.path, F_OK) != 0 else {
            try journal.remove(in: places.target)
            throw StoreError(.cannotMove, "a container was made at \(places.target.path) just now; name a place where nothing is")
        }
        return journal
    }

    /// Makes the copy, up to the point at which a single rename makes it the container.
    private func make(
        _ copy: ContainerCopy, _ places: MovePlaces, journal: inout MoveJournal, notice: MovedNotice,
        progress: (@Sendable (CopyProgress) -> Void)?
    ) throws {
        try ContainerContents.removeUnfinished(from: places.target)
        journal.step = .copying
        try journal.write(in: places.target)
        try hook(.claimed)
        // It is written now, so that the switch needs no space: the disk may be full by then.
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

    /// Removes an incomplete copy, and throws the error that ended the move.
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

    /// Removes a copy that is not the container; its journal comes last.
    static func removeCopy(at target: URL, journal: MoveJournal) throws {
        // A notice of an earlier move from here stays.
        if try MovedNotice(in: target) == nil { try DurableFile.remove(ContainerContents.description, in: target) }
        try ContainerContents.remove(from: target)
        try journal.remove(in: target)
        if journal.madeFolder { try ContainerContents.removeIfEmpty(target) }
    }
}
