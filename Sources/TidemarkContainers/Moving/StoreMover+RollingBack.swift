import Foundation
public import TidemarkSQLite
import TidemarkStore

extension StoreMover {
    /// Undoes a move: the source is the container again, and the copy is removed.
    ///
    /// After the switch this is possible only while the old files are complete and nothing was written at the target.
    ///
    /// - Throws: ``StoreError`` `cannotMove` when there is nothing to undo, or when it can't be undone any more; `busy`, `io`.
    /// - Complexity: Before the switch, it removes the copied files. After the switch, it reads and compares both places.
    public func rollBack() throws(StoreError) {
        try reporting {
            let places = try MovePlaces(from: source, to: target)
            let notice = try MovedNotice(in: places.source)
            // The move was interrupted before its switch. The container may have moved elsewhere since.
            if let journal = try MoveJournal.read(in: places.target), journal.from == places.source.path,
                journal.move != notice?.moved.move
            {
                return try dropCopy(places, journal: journal)
            }
            guard let notice else { return try dropDraft(places) }
            let there = try currentTarget(notice, places)
            let locks = try ContainerLocks(at: places.source, timeout: lockTimeout)
            defer { locks.release() }
            let otherLocks = try ContainerLocks(at: places.target, timeout: lockTimeout)
            defer { otherLocks.release() }
            guard try MovedNotice(in: places.source) == notice, try currentTarget(notice, places).description == there.description
            else {
                throw StoreError(.cannotMove, "the container was moved again just now")
            }
            try checkUnchanged(since: notice, places, target: there)
            let journal = MoveJournal(
                move: notice.moved.move, identity: notice.moved.container.identity, from: places.source.path,
                to: places.target.path,
                began: notice.moved.began, madeFolder: true, step: .rollingBack)
            // From here on the target is the container only while the source has its notice. Processes that have it open check
            // again.
            try journal.write(in: places.target)
            try DurableFile.write(there.description, to: places.target.appendingPathComponent(ContainerContents.description))
            try hook(.recalled)
            try DurableFile.write(
                notice.moved.container, to: places.source.appendingPathComponent(ContainerContents.description))
            try hook(.switchedBack)
            try Self.removeCopy(at: places.target, journal: journal)
            try hook(.copyRemoved)
        }
    }

    /// Removes the copy of a move that was interrupted before the switch.
    private func dropCopy(_ places: MovePlaces, journal: MoveJournal) throws {
        let locks = try ContainerLocks(at: places.source, timeout: lockTimeout)
        defer { locks.release() }
        guard try MoveJournal.read(in: places.target) == journal, try MovedNotice(in: places.source)?.moved.move != journal.move
        else {
            throw StoreError(.cannotMove, "the move from \(places.source.path) to \(places.target.path) went on just now")
        }
        // The source's description must be durable before the copy is removed.
        try Folder(at: places.source).synchronize()
        try Self.removeCopy(at: places.target, journal: journal)
        try DurableFile.remove(MovedNotice.draft, in: places.source)
        try hook(.copyRemoved)
    }

    /// Removes the draft at the source, if a rollback was interrupted after it had removed the copy.
    private func dropDraft(_ places: MovePlaces) throws {
        let draft = places.source.appendingPathComponent(MovedNotice.draft)
        guard access(draft.path, F_OK) == 0 else {
            throw StoreError(
                .cannotMove, "there is no move from \(places.source.path) to \(places.target.path) that could be undone")
        }
        let locks = try ContainerLocks(at: places.source, timeout: lockTimeout)
        defer { locks.release() }
        if try MovedNotice(in: places.source) == nil { try DurableFile.remove(MovedNotice.draft, in: places.source) }
    }

    /// Opens the container at the target.
    private func currentTarget(_ notice: MovedNotice, _ places: MovePlaces) throws -> ContainerDirectory {
        _ = try moved(notice, to: places)
        if let next = try MovedNotice(in: places.target) {
            throw StoreError(
                .cannotMove, "the container has moved on from \(places.target.path) to \(next.moved.to); undo that first")
        }
        return try ContainerDirectory(openingAt: places.target)
    }

    /// Makes sure that the old files are complete and have the same contents as the target.
    private func checkUnchanged(since notice: MovedNotice, _ places: MovePlaces, target: ContainerDirectory) throws {
        let goingBack = "to have the container at \(places.source.path) again, move it back from \(places.target.path)"
        let old: ContainerCopy
        do {
            old = try ContainerCopy(of: ContainerDirectory(uncountedAt: places.source, description: notice.moved.container))
            guard try ContainerContents(of: places.source).isMore else { throw StoreError(.notFound, "they are deleted") }
            try AssetCopying(from: target.assets, to: old.source.assets, mayLink: false).verify(old.assets) { _ in }
        } catch {
            let error = StoreError(error, doing: "read them")
            throw StoreError(
                .cannotMove, "the old files at \(places.source.path) are not whole any more: \(error.message); \(goingBack)")
        }
        let new = try ContainerCopy(of: target)
        guard old.snapshots.map(\.scope) == new.snapshots.map(\.scope) else {
            throw StoreError(.cannotMove, "\(places.target.path) has got another store since the move; \(goingBack)")
        }
        for (before, after) in zip(old.snapshots, new.snapshots) {
            guard let difference = try before.digest().difference(to: after.digest()) else { continue }
            throw StoreError(
                .cannotMove,
                """
                \(places.target.path) was written to since the move (\(difference)), and undoing the move would lose that. Delete the old \
                files with --finish, then move the container back
                """)
        }
    }
}
