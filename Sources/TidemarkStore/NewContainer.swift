import Foundation
import GRDB

/// The place of a container that is to be made, so that it can be removed again where what it was made for comes to nothing.
package struct NewContainer: Sendable {
    private let url: URL
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
        if missing.isEmpty, (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) != [] { return nil }
        self.missing = missing
    }

    /// Removes the container, and the folders that were made for it, unless something is in it: a record, a transaction, an account. What
    /// others have put there stays. What can't be removed stays, too.
    package func removeIfUnused() {
        try? remove()
    }

    private func remove() throws {
        if let container = try? ContainerDirectory(openingAt: url) {
            guard let locks = try? ContainerLocks(at: url, timeout: .seconds(1)) else { return }
            defer { locks.release() }
            try container.checkPlace()
            guard !container.hasStore(.shared), try isUnused(container) else { return }
            // Without it nobody opens the container; whoever has it open is told.
            try DurableFile.remove(ContainerContents.description, in: url)
            try ContainerContents.remove(from: url)
        }
        // Where there is no container, folders may have been made for it; those with anything in them stay.
        for folder in missing { try ContainerContents.removeIfEmpty(folder) }
    }

    private func isUnused(_ container: ContainerDirectory) throws -> Bool {
        guard container.hasStore(.private) else { return true }
        return try StoreReader(container: container).read { db in
            for table in ["tide_transactions", "tide_changes", "tide_sync", "tide_account"] {
                guard try Bool.fetchOne(db, sql: "SELECT NOT EXISTS (SELECT 1 FROM \(table))") ?? false else { return false }
            }
            return try StoredType.fetchAll(db).allSatisfy { type in
                try Bool.fetchOne(db, sql: "SELECT NOT EXISTS (SELECT 1 FROM \"\(type.table)\")") ?? false
            }
        }
    }
}
