import CTideCore
package import Foundation
import TidemarkSQLite

/// A hidden folder beside a container's place. The container is made in it, and moves to its place as a whole.
package struct UnfinishedFolder: ~Copyable {
    package let url: URL
    private let place: URL
    /// Held while the container is made. It is the lock of the container's own store, so that the folder gets no other file.
    private let lock: StoreLock

    /// Makes the folder, and removes the leftovers of an interrupted attempt for the same place.
    ///
    /// - Throws: ``StoreError`` `busy` while another process makes one for the same place.
    package init(for place: URL) throws {
        let parent = place.deletingLastPathComponent()
        try Folder.make(parent, mode: 0o777)
        let url = parent.appendingPathComponent(".\(place.lastPathComponent)\(Self.suffix)", isDirectory: true)
        try Self.recover(url, place)
        try Folder.make(url, mode: 0o700)
        let lock = try StoreLock(at: url.appendingPathComponent("private.sqlite-lock"))
        guard try lock.acquireIfFree() else {
            throw StoreError(.busy, "another copy is just being made for \(place.path); try again when it is done")
        }
        try Self.empty(url)
        (self.url, self.place) = (url, place)
        self.lock = consume lock
    }

    /// Removes leftovers of interrupted attempts beside a place, for all places whose names have a prefix.
    package static func sweep(_ parent: URL, prefix: String) throws {
        for entry in try Folder(at: parent, followsLink: true).entries() {
            guard entry.kind == .folder, entry.name.hasPrefix(".\(prefix)"), entry.name.hasSuffix(Self.suffix) else { continue }
            let url = parent.appendingPathComponent(entry.name, isDirectory: true)
            let lock = try StoreLock(at: url.appendingPathComponent("private.sqlite-lock"))
            guard try lock.acquireIfFree() else { continue }
            try drop(url)
        }
    }

    private static let suffix = ".unfinished"

    /// Runs `body`, and removes everything if it fails.
    package borrowing func fill(_ body: (URL) throws -> Void) throws {
        do {
            try body(url)
        } catch {
            // The caller gets the first error. A folder that can't be removed stays under its hidden name.
            try? drop()
            throw error
        }
    }

    /// Moves the folder to its place, where nothing but an empty folder may be.
    package borrowing func commit() throws {
        // An empty folder is replaced, one that holds anything is not.
        guard rename(url.path, place.path) == 0 else {
            let failure = Folder.failure("make", place.path)
            let isThere = errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR
            // As above.
            try? drop()
            throw isThere ? StoreError(.cannotMove, "\(place.path) is there already") : failure
        }
        do {
            try synchronizePlace()
        } catch {
            // The container goes back, so that the next attempt finds the place free.
            guard rename(place.path, url.path) != 0, let error = error as? StoreError else { throw error }
            throw StoreError(error.code, "\(error.message). \(place.path) is whole, but a power cut may take it away")
        }
    }

    /// Exchanges the folder with the one at its place. The exchange is durable after ``synchronizePlace()``.
    ///
    /// - Throws: ``StoreError``; then nothing was exchanged.
    package borrowing func replace() throws { try Self.exchange(url, place) }

    package borrowing func synchronizePlace() throws { try Folder(at: place.deletingLastPathComponent()).synchronize() }

    private static func exchange(_ copy: URL, _ place: URL) throws {
        do throws(StoreError) {
            try checked { tide_folders_exchange(copy.path, place.path, &$0) }
        } catch {
            guard error.code == .schema else { throw error }
            // The file system can't exchange them. In two steps, the old folder stays aside until the new one is in its place.
            let aside = Self.aside(copy)
            guard rename(place.path, aside.path) == 0 else { throw Folder.failure("replace", place.path) }
            guard rename(copy.path, place.path) == 0 else {
                let failure = Folder.failure("replace", place.path)
                rename(aside.path, place.path)
                throw failure
            }
            // If this fails, the old folder stays aside, and the next attempt recovers it.
            rename(aside.path, copy.path)
        }
    }

    private static func aside(_ copy: URL) -> URL { copy.appendingPathExtension("old") }

    /// Puts back what an interrupted exchange in two steps has set aside.
    private static func recover(_ copy: URL, _ place: URL) throws {
        let aside = aside(copy)
        guard access(aside.path, F_OK) == 0 else { return }
        if access(place.path, F_OK) != 0, errno == ENOENT, rename(aside.path, place.path) == 0 { return }
        throw StoreError(
            .cannotMove,
            "\(aside.path) is what was at \(place.path) before a replacement that was interrupted; remove it, or move it elsewhere"
        )
    }

    package borrowing func drop() throws { try Self.drop(url) }

    private static func drop(_ url: URL) throws {
        try Self.empty(url)
        try DurableFile.remove("private.sqlite-lock", in: url)
        try ContainerContents.removeIfEmpty(url)
    }

    /// Removes a container's files except the lock.
    private static func empty(_ url: URL) throws {
        try DurableFile.remove(ContainerContents.description, in: url)
        try ContainerContents.remove(from: url, keepsLocks: true)
    }
}
