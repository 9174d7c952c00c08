import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite

/// Removes the leftovers of a process that died while it ingested files. The caller holds the ingest lock exclusively.
package struct IngestRecovery {
    let container: ContainerDirectory

    package init(container: ContainerDirectory) { self.container = container }

    /// - Throws: ``StoreError``; before anything is removed where the list of assets is missing or unreadable.
    /// - Complexity: A listing of `staging/`; after an interruption also one of `assets/` and a look-up per blob.
    func run() throws {
        let staging = try Folder(at: container.staging)
        let left = try staging.entries().filter { $0.name != "lock" && $0.kind != .folder }
        guard !left.isEmpty else { return }
        try AssetFiles.remove(strays(), in: container.assets)
        // The markers go last. After another interruption, the next process starts over.
        for entry in left { try staging.remove(entry.name) }
    }

    /// Returns the assets that no store of the container lists.
    func strays() throws -> [String] { try strays(among: AssetFiles(in: container.assets).ids) }

    package func strays(among ids: [String]) throws -> [String] {
        guard !ids.isEmpty else { return [] }
        // Without a list, every asset would count as unlisted.
        guard container.hasStore(.private) else { throw container.storeIsMissing(.private) }
        let scopes = ContainerDirectory.scopes.filter { FileManager.default.fileExists(atPath: container.store($0).path) }
        let registries = try scopes.map { try Registry(container, scope: $0) }
        return try ids.filter { id in try !registries.contains { try $0.has(id) } }
    }

    /// A store's list of the blobs that its records and history name.
    private struct Registry {
        let reader: StoreReader

        init(_ container: ContainerDirectory, scope: StoreScope) throws {
            reader = try StoreReader(container: container, scope: scope)
            try reader.read { db in
                // A damaged table may not find the rows that it has.
                let finding = try String.fetchOne(db, sql: "PRAGMA integrity_check(tide_assets)")
                guard finding == "ok" else {
                    throw StoreError(.corrupt, "\(container.store(scope).path) is damaged: \(finding ?? "tide_assets")")
                }
            }
        }

        func has(_ id: String) throws -> Bool {
            try reader.read { db in
                try Bool.fetchOne(
                    db.cachedStatement(sql: "SELECT 1 FROM tide_assets WHERE id = ?"), arguments: [id]) ?? false
            }
        }
    }
}
