import Foundation
import TidemarkModel
public import TidemarkSQLite

/// Identifies the `container.json` at a container's path when it was opened, so that one `stat` tells whether it is still there.
///
/// Moving or replacing a container, or finishing its copy, puts another `container.json` in place of the earlier one. A file with
/// another inode, or another time of change, is another file.
struct ContainerPlace: Hashable, Sendable {
    private let path: String
    private let device: UInt64
    private let file: UInt64
    private let seconds: Int64
    private let nanoseconds: Int64
    /// Whether the container was, or may have been, in the middle of a move. Then one `stat` is not enough.
    private let isMoving: Bool

    /// - Parameter description: The container's `container.json`. It need not be there.
    init(of description: URL) {
        let now = ContainerPlace(path: description.path)
        let journal = description.deletingLastPathComponent().appendingPathComponent(MoveJournal.file)
        self.init(now, isMoving: access(journal.path, F_OK) == 0)
    }

    private init(_ other: ContainerPlace, isMoving: Bool) {
        path = other.path
        (device, file, seconds, nanoseconds) = (other.device, other.file, other.seconds, other.nanoseconds)
        self.isMoving = isMoving
    }

    private init(path: String) {
        self.path = path
        var status = stat()
        let isThere = stat(path, &status) == 0
        #if canImport(Darwin)
            let changed = status.st_ctimespec
        #else
            let changed = status.st_ctim
        #endif
        device = isThere ? UInt64(truncatingIfNeeded: status.st_dev) : 0
        file = isThere ? UInt64(status.st_ino) : 0
        seconds = isThere ? Int64(changed.tv_sec) : 0
        nanoseconds = isThere ? Int64(changed.tv_nsec) : 0
        isMoving = false
    }

    /// - Complexity: One stat(2).
    var isUnchanged: Bool { !isMoving && ContainerPlace(path: path) == self }
}

extension ContainerDirectory {
    /// Checks that the container at this path is still the one that was opened.
    ///
    /// Call it after taking a lock of a store, before writing: during the wait, the container may have been moved or replaced,
    /// and the open files may be unreachable. A reader calls it to know whether it still reads the store.
    ///
    /// - Throws: ``StoreError`` `moved` when the container is at another place, gone, or another copy has come to its place;
    ///   `incompleteCopy` when a move to here was rolled back; and those of opening a container.
    /// - Complexity: One stat(2), unless something has happened.
    public func checkPlace() throws(StoreError) {
        guard !place.isUnchanged else { return }
        let now: ContainerDirectory
        do {
            now = try ContainerDirectory(openingAt: url, migrations: migrations)
        } catch {
            guard error.code == .notFound else { throw error }
            throw StoreError(.moved, "the container that was at \(url.path) is gone; open it where it is now")
        }
        guard now.description.identity == description.identity, now.description.copy == description.copy else {
            throw StoreError(
                .moved, "another container has come to the place of the one that was opened at \(url.path); open that")
        }
        guard now.description.environment == description.environment else {
            throw StoreError(
                .changed, "\(url.path) has become a \(now.description.environment.rawValue) container; open it again")
        }
    }

    /// Calls `body`, which uses the container's files. If it fails because they have gone meanwhile, the error says where the
    /// container is now.
    ///
    /// - Throws: ``StoreError`` as of ``checkPlace()``; else what `body` throws.
    package func lookingForFiles<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch {
            try checkPlace()
            throw error
        }
    }

    /// Whether the container at this path is still the one that was opened, or may be.
    package var isInPlace: Bool {
        do {
            try checkPlace()
            return true
        } catch {
            return false
        }
    }

    /// Returns the error of a store that could not be locked, with the move that may hold the lock.
    package func naming(_ error: StoreError) -> StoreError {
        guard error.code == .busy, let draft = try? MovedNotice(in: url, file: MovedNotice.draft) else { return error }
        return StoreError(
            .busy,
            """
            the store is in use: a move of \(url.path) to \(draft.moved.to) has begun. When it is done, open the container there; if it \
            was interrupted, `tidemark store move` goes on with it, and with --rollback undoes it
            """)
    }
}
