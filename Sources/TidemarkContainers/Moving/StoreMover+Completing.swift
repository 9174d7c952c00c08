import Foundation
import TidemarkSQLite
import TidemarkStore

extension StoreMover {
    /// Makes sure that a container which has moved is at the target.
    ///
    /// - Returns: The target's journal, if it still has one.
    func moved(_ notice: MovedNotice, to places: MovePlaces) throws(StoreError) -> MoveJournal? {
        let identity = notice.moved.container.identity
        // The container may have moved on from the target.
        if let next = try MovedNotice(in: places.target), next.moved.container.identity == identity { return nil }
        let there: ContainerDirectory
        do {
            there = try ContainerDirectory(openingAt: places.target)
        } catch {
            guard error.code == .notFound || error.code == .notAStore else { throw error }
            let place =
                places.target.path == notice.moved.to
                ? "\(notice.moved.to), and is not there now" : "\(notice.moved.to), not to \(places.target.path)"
            throw StoreError(.cannotMove, "the container has moved from \(places.source.path) to \(place)")
        }
        guard there.description.identity == identity else {
            throw StoreError(
                .cannotMove,
                "the container has moved from \(places.source.path) to \(notice.moved.to); at \(places.target.path) is another")
        }
        return try MoveJournal.read(in: places.target)
    }

    /// Completes a move after the switch, and takes the source's locks if anything is left to do.
    func complete(_ notice: MovedNotice, _ places: MovePlaces, explicitly: Bool) throws -> Summary {
        var summary = Summary(from: places.source.path, to: places.target.path, alreadyMoved: true)
        let isReleased = try moved(notice, to: places) == nil
        let contents = try ContainerContents(of: places.source)
        // `own` includes lock files, which a process may have made again after they were removed.
        guard !isReleased || !contents.own.isEmpty && (explicitly || !notice.moved.keepsSource) else {
            summary.sourceIsDeleted = !contents.isMore
            summary.staying = contents.others
            return summary
        }
        let locks = try ContainerLocks(at: places.source, timeout: lockTimeout)
        defer { locks.release() }
        return try complete(notice, places, explicitly: explicitly, holding: locks)
    }

    /// Completes a move after the switch, under locks that the caller holds.
    func complete(
        _ notice: MovedNotice, _ places: MovePlaces, explicitly: Bool, holding locks: borrowing ContainerLocks
    ) throws -> Summary {
        var summary = Summary(from: places.source.path, to: places.target.path, alreadyMoved: true)
        // Another process may have rolled the move back while this one waited for the locks.
        guard try MovedNotice(in: places.source) == notice else {
            throw StoreError(.cannotMove, "the move from \(places.source.path) to \(places.target.path) was undone just now")
        }
        // The switch may not be durable yet, and the next steps rely on it.
        do throws(StoreError) {
            try Folder(at: places.source).synchronize()
        } catch {
            throw StoreError(
                error.code,
                "the container is at \(places.target.path), but a power cut may undo that (\(error.message)): run the move again")
        }
        if let journal = try moved(notice, to: places) {
            guard journal.move == notice.moved.move else {
                throw StoreError(.cannotMove, "\(places.target.path) is the copy of another move, from \(journal.from)")
            }
            try journal.remove(in: places.target)
            summary.alreadyMoved = false
        }
        try hook(.released)
        if explicitly || !notice.moved.keepsSource {
            if try ContainerContents(of: places.source).isMore { summary.alreadyMoved = false }
            try deleteOld(places)
        }
        let contents = try ContainerContents(of: places.source)
        summary.sourceIsDeleted = !contents.isMore
        summary.staying = contents.others
        return summary
    }

    /// Makes the copy the container, after its source was lost.
    func adopt() throws -> Summary {
        let (from, to) = (try MovePlaces.resolved(source), try MovePlaces.resolved(target))
        guard let journal = try MoveJournal.read(in: to), journal.from == from.path, journal.step == .verified else {
            throw StoreError(.notFound, "there is no container at \(from.path), and no whole copy of it at \(to.path)")
        }
        try journal.remove(in: to)
        return Summary(from: from.path, to: to.path, sourceIsDeleted: true)
    }

    private func deleteOld(_ places: MovePlaces) throws {
        do {
            try ContainerContents.remove(from: places.source) { step in
                switch step {
                case .databases: try hook(.oldDatabasesRemoved)
                case .assets: try hook(.oldAssetsRemoved)
                case .locks: try hook(.oldLocksRemoved)
                }
            }
            for journal in [MovedNotice.draft, MoveJournal.file] { try DurableFile.remove(journal, in: places.source) }
        } catch {
            let error = StoreError(error, doing: "delete the old files")
            throw StoreError(
                error.code,
                """
                the container is at \(places.target.path) now, but its old files could not all be deleted: \(error.message). To go on: \
                `tidemark store move \(places.source.path) \(places.target.path) --finish`
                """)
        }
    }
}
