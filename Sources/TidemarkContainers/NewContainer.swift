package import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite
package import TidemarkStore

/// Removes a container that was made for an operation, such as an import, if the operation fails or stores nothing.
package final class NewContainer: Sendable {
    private let url: URL
    /// The container that was made here, if any.
    private let made = LockedValue<ContainerDirectory?>(nil)
    /// The folders that did not exist: the container's first, then the folders above it.
    private let missing: [URL]

    /// Examines the place before the container is made.
    ///
    /// - Returns: `nil` when the place has anything but an empty folder.
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
        // A folder that can't be listed may have contents.
        if missing.isEmpty, (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) != [] { return nil }
        self.missing = missing
    }

    /// Records that this operation has made the container, and not another process meanwhile.
    package func note(_ container: ContainerDirectory) { made.withLock { $0 = container } }

    /// Removes the container and the folders that were made for it, unless it has a record, a transaction or an account. Files of
    /// others stay, and so does what can't be removed. It waits about a second for each lock, on a thread of its own.
    package func removeIfUnused() async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                // The caller reports the error that led here, and this one would hide it.
                try? self.remove()
                continuation.resume()
            }
        }
    }

    private func remove() throws {
        // A container that can't be opened or locked may be another process's, and stays.
        if let container = try? ContainerDirectory(openingAt: url) {
            guard let made = made.withLock({ $0 }), made.description == container.description,
                let locks = try? ContainerLocks(at: url, timeout: .seconds(1))
            else { return }
            defer { locks.release() }
            // A process that has the container open may be about to write. Under the locks no process opens it for writing.
            guard !ContainerDirectory.scopes.contains(where: { isOpenElsewhere(container.store($0)) }) else { return }
            try container.checkPlace()
            guard try ContainerDirectory.scopes.allSatisfy({ try isUnused($0, of: container) }) else { return }
            // Without the description no process opens the container, and processes that have it open get an error.
            try DurableFile.remove(ContainerContents.description, in: url)
            try ContainerContents.remove(from: url)
        }
        // Folders that were made for the container are removed if they are empty.
        for folder in missing { try ContainerContents.removeIfEmpty(folder) }
    }

    /// Whether another process has a store open: SQLite's connections hold a shared lock on the byte 128 of the index as long as they
    /// are open (sqlite.org/walformat.html, "WAL locks").
    private func isOpenElsewhere(_ store: URL) -> Bool {
        let descriptor = open(store.path + "-shm", O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return false }
        // Closing a file releases all locks that the process has on it. So it stays open if a connection of this process has it
        // open.
        defer { if !isOpenHere(descriptor) { close(descriptor) } }
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        lock.l_start = 128
        lock.l_len = 1
        return fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type != Int16(F_UNLCK)
    }

    /// Whether this process has, or may have, the file open by another descriptor.
    private func isOpenHere(_ descriptor: Int32) -> Bool {
        var (file, other) = (stat(), stat())
        // If the descriptors can't be listed, it may have.
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
            // The making of the store was interrupted, so the store is empty.
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
