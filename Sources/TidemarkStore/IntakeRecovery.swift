import Foundation
import GRDB

/// Removes what a process has left that died while it took files in. The caller holds the intake lock exclusively.
struct IntakeRecovery {
    let container: ContainerDirectory

    /// - Complexity: A listing of `staging/`; after an interruption also one of `assets/` and a look-up per blob.
    func run() throws {
        let files = FileManager.default
        let left = try files.contentsOfDirectory(atPath: container.staging.path).filter { $0 != "lock" }
        guard !left.isEmpty else { return }
        for stray in try strays() { try files.removeItem(at: stray.url) }
        // The markers go last: interrupted again, the next one starts over.
        for name in left { try files.removeItem(at: container.staging.appendingPathComponent(name)) }
    }

    /// Blobs that no store of the container has in its registry.
    func strays() throws -> [Blob] {
        let registries = try openRegistries()
        return try Self.blobs(in: container.assets).filter { blob in
            try !registries.contains { try $0.has(blob.id) }
        }
    }

    struct Blob {
        let id: String
        let url: URL
    }

    /// Every file below `assets/`.
    static func blobs(in assets: URL) throws -> [Blob] {
        let files = FileManager.default
        guard files.fileExists(atPath: assets.path) else { return [] }
        return try files.contentsOfDirectory(atPath: assets.path).sorted().flatMap { folder -> [Blob] in
            let url = assets.appendingPathComponent(folder)
            var isDirectory: ObjCBool = false
            guard files.fileExists(atPath: url.path, isDirectory: &isDirectory), isDirectory.boolValue else {
                return [Blob(id: folder, url: url)]
            }
            return try files.contentsOfDirectory(atPath: url.path).sorted().map {
                Blob(id: $0, url: url.appendingPathComponent($0))
            }
        }
    }

    private func openRegistries() throws -> [Registry] {
        try container.stores.filter { FileManager.default.fileExists(atPath: $0.path) }.map { try Registry(at: $0) }
    }

    /// One store's list of the blobs that its records, or their history, name.
    private struct Registry {
        let queue: DatabaseQueue

        init(at url: URL) throws {
            var configuration = Configuration()
            configuration.readonly = true
            configuration.busyMode = .timeout(10)
            queue = try DatabaseQueue(path: url.path, configuration: configuration)
        }

        func has(_ id: String) throws -> Bool {
            try queue.read { db in
                try Bool.fetchOne(
                    db.cachedStatement(sql: "SELECT 1 FROM tide_assets WHERE id = ?"), arguments: [id]) ?? false
            }
        }
    }
}
