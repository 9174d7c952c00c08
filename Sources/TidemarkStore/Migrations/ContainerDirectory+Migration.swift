import CTideCore
import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite

extension ContainerDirectory {
    /// Whether the container's description has an older format than the one that this version writes.
    ///
    /// A store may have an older one all the same, where it was put back from a backup.
    package var hasOlderFormat: Bool { description.format < Int(migrations.newest) }

    /// What migrates a container.
    var migrationRemedy: String { "To migrate it: `tidemark store migrate \(url.path)`; so does everything that writes to it" }

    /// Migrates the container to the newest format: first its stores, step by step, then its description. What an interrupted migration
    /// has done stays, and this goes on with the rest.
    ///
    /// Meanwhile it holds the locks of all stores. A process of an older version that has a store open can't write to it afterwards: it
    /// finds the newer format.
    ///
    /// - Returns: The container as it is now.
    /// - Throws: ``StoreError`` `busy`, `newerFormat` or `olderFormat` before anything is changed; `corrupt`, `diskFull`, `io`, `unreadable`.
    @discardableResult
    package func migrate(lockTimeout: Duration = .seconds(30)) throws(StoreError) -> ContainerDirectory {
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
            throw naming(StoreError(error, doing: "migrate \(url.path)"))
        }
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
