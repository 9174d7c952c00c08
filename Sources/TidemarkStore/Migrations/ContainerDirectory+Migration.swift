import CTideCore
import Foundation
package import GRDB
package import TidemarkModel
package import TidemarkSQLite

extension ContainerDirectory {
    /// Whether the container's description has an older format than the one that this version writes.
    ///
    /// A store may have an older one all the same, where it was put back from a backup.
    package var hasOlderFormat: Bool { description.format < Int(migrations.newest) }

    /// What migrates a container, or a copy of one where nothing may be written.
    var migrationRemedy: String {
        guard let refusal = writingRefusal else {
            return "To migrate it: `tidemark store migrate \(url.path)`; so does everything that writes to it"
        }
        return """
            It can't be migrated where it is: \(refusal). To migrate a copy: `tidemark store backup \(url.path) Copy.tidemark`, then \
            `tidemark store migrate Copy.tidemark`
            """
    }

    /// Makes sure that what a transaction reads of a store has the format that this version knows: a newer one may have migrated it since it was
    /// opened. At the transaction's beginning.
    ///
    /// - Throws: ``StoreError`` `newerFormat`, `olderFormat`.
    package func checkFormat(_ db: Database, of scope: StoreScope) throws {
        try migrations.checkIsUnchanged(db, path: store(scope).path)
    }

    /// Why this process may not write to the container; `nil` where it may.
    private var writingRefusal: String? {
        let files = [url] + Self.scopes.filter(hasStore).map(store)
        for file in files where access(file.path, W_OK) != 0 {
            return "\(file.path) may not be written (\(String(cString: strerror(errno))))"
        }
        return nil
    }

    /// This container, of which nothing has to be migrated. Takes no lock, and changes nothing.
    private func checkedToBeNewest() throws(StoreError) -> ContainerDirectory {
        do {
            let remedy = migrationRemedy
            for path in Self.scopes.filter(hasStore).map({ store($0).path }) {
                try DatabaseFormat.checkBeforeWriting(path, applicationID: StoreFormat.applicationID) { format in
                    try migrations.checkIsNewest(Int(format), of: path, remedy: remedy)
                }
            }
            try migrations.checkIsNewest(description.format, of: url.path, remedy: remedy)
            return self
        } catch {
            throw StoreError(error, doing: "look at \(url.path)")
        }
    }

    /// Migrates the container to the newest format: first its stores, step by step, then its description. What an interrupted migration
    /// has done stays, and this goes on with the rest.
    ///
    /// Meanwhile it holds the locks of all stores. A process of an older version that has a store open can't write to it afterwards: it
    /// finds the newer format.
    ///
    /// - Returns: The container as it is now.
    /// - Throws: ``StoreError`` `busy`, `newerFormat` or `olderFormat` before anything is changed, the last one also where nothing may be
    ///   written; `corrupt`, `diskFull`, `io`, `unreadable`.
    @discardableResult
    package func migrate(lockTimeout: Duration = .seconds(30)) throws(StoreError) -> ContainerDirectory {
        // No lock can be had there either.
        guard writingRefusal == nil else { return try checkedToBeNewest() }
        do {
            let locks = try ContainerLocks(storesAt: url, timeout: lockTimeout)
            defer { locks.release() }
            try checkPlace()
            // Another process may have done it meanwhile.
            let now = try ContainerDirectory(openingAt: url, migrations: migrations)
            let stores = Self.scopes.filter(now.hasStore).map { now.store($0).path }
            for path in stores {
                try DatabaseFormat.checkBeforeWriting(path, applicationID: StoreFormat.applicationID) {
                    try migrations.checkIsKnown(Int($0), of: path)
                }
            }
            for path in stores { try now.migrateStore(path) }
            if now.hasOlderFormat {
                try migrations.hook(.storesMigrated)
                var description = now.description
                description.format = Int(migrations.newest)
                try DurableFile.write(description, to: url.appendingPathComponent(ContainerContents.description))
            }
            try migrations.hook(.described)
            return try ContainerDirectory(openingAt: url, migrations: migrations)
        } catch {
            throw naming(addingRemedy(StoreError(error, doing: "migrate \(url.path)")))
        }
    }

    private func addingRemedy(_ error: StoreError) -> StoreError {
        guard error.code == .diskFull, !error.namesRemedy else { return error }
        return StoreError(
            .diskFull,
            "cannot migrate \(url.path): \(error.message). Free space on its disk; the next opening goes on with the migration")
    }

    private func migrateStore(_ path: String) throws {
        try LogExamination.checkBeforeWriting(path)
        var configuration = Configuration()
        configuration.label = "tidemark.migration"
        configuration.busyMode = .timeout(10)
        configuration.prepareDatabase { db in
            // First: a connection that is refused must not move the log as it closes, and remove it.
            let handle = try db.handle
            try checked { tide_connection_prepare(handle, &$0) }
            // A rollback journal, which nobody could look behind before, is rolled back now.
            try StoreFormat.check(db, path: path, migrations: migrations, allowsOlder: true)
            try db.execute(sql: "PRAGMA cache_size = -16000")
            try DatabaseFormat.useLog(db, path: path)
            try db.execute(sql: "PRAGMA synchronous = FULL")
        }
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        try queue.writeWithoutTransaction { db in _ = try migrations.migrate(db, path: path) }
        try queue.close()
    }
}
