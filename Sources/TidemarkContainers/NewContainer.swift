package import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite
package import TidemarkStore

/// The place of a container that is to be made, so that it can be removed again where what it was made for comes to nothing.
package final class NewContainer: Sendable {
    private let url: URL
    /// The container that was made here, if any.
    private let made = LockedValue<ContainerDirectory?>(nil)
    /// The folders that were not there, the container's first, then those that it is in.
    private let missing: [URL]

    /// - Returns: `nil` when something is there that was not made for it: anything but an empty folder.
    package init?(at url: URL) {
        var missing: [URL] = []
        var folder = url.standardizedFileURL
        self.url = folder
        var status = stat()
        while stat(folder.path, &status) != 0 {
            guard errno == ENOENT, folder.path != "/" else { return nil }
            missing.append(folder)
            folder = folder.deletingLastPathComponent()
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { return nil }
        // What can't be listed may have something in it.
        if missing.isEmpty, (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) != [] { return nil }
        self.missing = missing
    }

    /// Notes that the container was made here, and not by another process meanwhile.
    package func note(_ container: ContainerDirectory) { made.withLock { $0 = container } }

    /// Removes the container, and the folders that were made for it, unless something is in it: a record, a transaction, an account. What
    /// others have put there stays. What can't be removed stays, too. It waits for locks up to 3 s, on a thread of its own.
    package func removeIfUnused() async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                // The error that led here is told; this one would hide it.
                try? self.remove()
                continuation.resume()
            }
        }
    }

    private func remove() throws {
        // One that can't be opened or locked may be another process's, and stays.
        if let container = try? ContainerDirectory(openingAt: url) {
            guard let made = made.withLock({ $0 }), made.description == container.description,
                let locks = try? ContainerLocks(at: url, timeout: .seconds(1))
            else { return }
            defer { locks.release() }
            // Another process that has it open is about to put something into it; none opens it to write from here on.
            guard !ContainerDirectory.scopes.contains(where: { isOpenElsewhere(container.store($0)) }) else { return }
            try container.checkPlace()
            guard try ContainerDirectory.scopes.allSatisfy({ try isUnused($0, of: container) }) else { return }
            // Without it nobody opens the container; whoever has it open is told.
            try DurableFile.remove(ContainerContents.description, in: url)
            try ContainerContents.remove(from: url)
        }
        // Where there is no container, folders may have been made for it; those with anything in them stay.
        for folder in missing { try ContainerContents.removeIfEmpty(folder) }
    }

    /// Whether another process has a store open: SQLite's connections hold a shared lock on the byte 128 of the index as long as they
    /// are open (sqlite.org/walformat.html, "WAL locks").
    private func isOpenElsewhere(_ store: URL) -> Bool {
        let descriptor = open(store.path + "-shm", O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return false }
        // Closing a file lets go of all locks that the process has on it: it stays open where a connection of ours has it still.
        defer { if !isOpenHere(descriptor) { close(descriptor) } }
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        lock.l_start = 128
        lock.l_len = 1
        return fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type != Int16(F_UNLCK)
    }

    /// Whether the process has a file open by another descriptor, too, or may have.
    private func isOpenHere(_ descriptor: Int32) -> Bool {
        var (file, other) = (stat(), stat())
        // Where the descriptors can't be listed, it may have.
        guard fstat(descriptor, &file) == 0,
            let descriptors = try? FileManager.default.contentsOfDirectory(atPath: "/dev/fd")
        else { return true }
        return descriptors.compactMap { Int32($0) }.contains {
            $0 != descriptor && fstat($0, &other) == 0 && other.st_dev == file.st_dev && other.st_ino == file.st_ino
        }
    }

    private func isUnused(_ scope: StoreScope, of container: ContainerDirectory) throws -> Bool {
        guard container.hasStore(scope) else { return true }
        let reader: StoreReader
        do {
            reader = try StoreReader(container: container, scope: scope)
        } catch {
            // A store whose making was cut short has nothing in it.
            guard error.code == .notFound else { throw error }
            return true
        }
        return try reader.read { db in
            for table in ["tide_transactions", "tide_changes", "tide_sync", "tide_account"] {
                guard try Bool.fetchOne(db, sql: "SELECT NOT EXISTS (SELECT 1 FROM \(table))") ?? false else { return false }
            }
            return try StoredType.fetchAll(db).allSatisfy { type in
                try Bool.fetchOne(db, sql: "SELECT NOT EXISTS (SELECT 1 FROM \"\(type.table)\")") ?? false
            }
        }
    }
}
