import Foundation
import GRDB
import TidemarkModel
package import TidemarkSQLite

extension RecordStore {
    /// Returns whether nothing was ever saved here.
    package func isUnused() throws(StoreError) -> Bool {
        try connection.read("look for changes") { db in
            try !(Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM tide_transactions)") ?? false)
        }
    }

    /// Returns whether the store has any record.
    package func hasRecords() throws(StoreError) -> Bool {
        try connection.read("look for records") { db in
            try connection.refreshSchema(db)
            for type in connection.types {
                if try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM \"\(type.table)\")") ?? false { return true }
            }
            return false
        }
    }

    /// Sets all records and refused saves aside, whole and durable, and empties the store.
    ///
    /// - Parameter copy: Makes the container of the quarantine. Nothing is committed to this store meanwhile.
    /// - Returns: `nil` when there was nothing to set aside.
    @discardableResult
    package func setAside(reason: String, copy: (Quarantine) throws -> Void) throws(StoreError) -> Quarantine? {
        let quarantine: Quarantine? = try connection.locked("set the records aside") { db in
            try connection.refreshSchema(db)
            try Outbox(db).ingestHistory()
            let pending = try OutboxSummary(db, types: connection.types).pending
            let hasRecords = try connection.types.contains { type in
                try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM \"\(type.table)\")") ?? false
            }
            guard try hasRecords || pending > 0 || RefusedSaves(db).count > 0 else {
                try empty(db)
                return (nil, .commit)
            }
            let quarantine = try copyAside(db, pending: pending, reason: reason, copy)
            try empty(db)
            return (quarantine, .commit)
        }
        try removeUnnamedAssets()
        return quarantine
    }

    /// Removes assets that no record names any more, unless a process ingests files. Then they stay, and a verification reports
    /// them. Also removes this store's unfinished downloads. The container's other store may be fetching its own.
    private func removeUnnamedAssets() throws(StoreError) {
        let downloads = container.url.appendingPathComponent(ContainerContents.downloads, isDirectory: true)
        if FileManager.default.fileExists(atPath: downloads.path) {
            let folder = try Folder(at: downloads)
            for entry in try folder.entries()
            where entry.kind == .file && ContainerContents.scope(ofDownload: entry.name) == scope {
                try folder.remove(entry.name)
            }
        }
        guard FileManager.default.fileExists(atPath: container.staging.path) else { return }
        let lock = try StoreLock(at: container.staging.appendingPathComponent("lock"))
        guard try lock.acquireIfFree() else { return }
        defer { lock.release() }
        do {
            try AssetFiles.remove(IngestRecovery(container: container).strays(), in: container.assets)
        } catch {
            throw StoreError(error, doing: "remove the assets of records that are gone")
        }
    }

    /// Deletes all records, their history, and what is known of the cloud. Only observers of this store hear of it.
    ///
    /// - Parameter change: Sets what is remembered of the cloud afterwards.
    package func wipe(_ change: (inout SyncState) -> Void = { _ in }) throws(StoreError) {
        try connection.locked("empty the store") { db in
            try connection.refreshSchema(db)
            try empty(db)
            var state = SyncState()
            change(&state)
            try state.store(db, insteadOf: SyncState(), zone: StoreFormat.defaultZone)
            return ((), .commit)
        }
        try removeUnnamedAssets()
    }

    /// Empties the store. If it has changes that no cloud has, it is set aside first, whole and durable, in the same transaction.
    ///
    /// - Parameters:
    ///   - copy: As in ``setAside(reason:copy:)``.
    ///   - change: Sets what is remembered of the cloud afterwards.
    /// - Returns: The number of unsent changes, and the quarantine that has them.
    package func setAsideUnsent(
        reason: String, copy: (Quarantine) throws -> Void, then change: (inout SyncState) -> Void
    ) throws(StoreError) -> (quarantine: Quarantine?, pending: Int) {
        let result: (quarantine: Quarantine?, pending: Int) = try connection.locked("set unsent changes aside") { db in
            try connection.refreshSchema(db)
            try Outbox(db).ingestHistory()
            let pending = try OutboxSummary(db, types: connection.types).pending
            let quarantine = pending > 0 ? try copyAside(db, pending: pending, reason: reason, copy) : nil
            try empty(db)
            var state = SyncState()
            change(&state)
            try state.store(db, insteadOf: SyncState(), zone: StoreFormat.defaultZone)
            return ((quarantine, pending), .commit)
        }
        try removeUnnamedAssets()
        return result
    }

    /// Copies the store into a quarantine.
    private func copyAside(
        _ db: Database, pending: Int, reason: String, _ copy: (Quarantine) throws -> Void
    ) throws -> Quarantine {
        let records = try connection.types.reduce(0) { sum, type in
            try sum + (Int.fetchOne(db, sql: "SELECT count(*) FROM \"\(type.table)\"") ?? 0)
        }
        let quarantine = Quarantine(
            id: UUID(), time: now(), user: try SyncState(db, zone: StoreFormat.defaultZone).user, reason: reason,
            records: records,
            pending: pending, refused: try RefusedSaves(db).count, scope: scope)
        try copy(quarantine)
        return quarantine
    }

    private func empty(_ db: Database) throws {
        for type in connection.types {
            try type.rebuildingIndexes(db, withNames: true) { try db.execute(sql: "DELETE FROM \"\(type.table)\"") }
        }
        for table in [
            "changes", "transactions", "conflicts", "outbox", "requests", "sync_issues", "deferred", "seen", "sync", "imports",
            "assets",
            "shares", "refused",
        ] {
            try db.execute(sql: "DELETE FROM tide_\(table)")
        }
        try db.execute(
            sql: """
                DELETE FROM tide_zones WHERE id <> \(StoreFormat.defaultZone);
                UPDATE tide_events SET reason = NULL;
                UPDATE tide_types SET forgotten_rows = 0;
                UPDATE tide_meta SET value = 1 WHERE key IN ('first_transaction', 'first_change', 'cleaned_change');
                UPDATE tide_meta SET value = value + 1 WHERE key = 'schema_generation'
                """)
        // The tokens of the former history expire.
        try db.execute(sql: "UPDATE tide_meta SET value = ? WHERE key = 'history_identity'", arguments: [UUID().uuidString])
        for type in connection.types { try db.notifyChanges(in: Table(type.table)) }
    }
}
