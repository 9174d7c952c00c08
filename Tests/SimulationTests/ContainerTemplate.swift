import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Empty containers of devices, with identifiers that are always the same. Each run copies them.
struct ContainerTemplate: Sendable {
    private let folder: URL

    /// The folder for the files of runs: in memory if the system has a folder for that.
    static let scratch: URL = {
        let memory = URL(fileURLWithPath: "/dev/shm", isDirectory: true)
        let isThere = FileManager.default.isWritableFile(atPath: memory.path)
        return (isThere ? memory : FileManager.default.temporaryDirectory)
            .appendingPathComponent("tidemark-simulation-\(ProcessInfo.processInfo.processIdentifier)", isDirectory: true)
    }()

    /// - Parameter scopes: The stores of each container.
    init(devices: Int, scopes: [StoreScope] = [.private]) throws {
        folder = Self.scratch.appendingPathComponent("template-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for device in 0..<devices {
            let container = try ContainerDirectory(openingOrCreatingAt: folder.appendingPathComponent("\(device)"))
            for (number, scope) in scopes.enumerated() { try Self.make(device + number * devices, scope, in: container) }
        }
    }

    /// Makes a store whose identifiers follow from a number.
    private static func make(_ number: Int, _ scope: StoreScope, in container: ContainerDirectory) throws {
        _ = try RecordStore(container: container, scope: scope, notifier: nil, now: Timestamp.now)
        let queue = try DatabaseQueue(path: container.store(scope).path)
        try queue.write { db in
            for (key, value) in [
                ("device", "0000000\(number)-0000-4000-8000-000000000000".databaseValue),
                ("history_identity", "1000000\(number)-0000-4000-8000-000000000000".databaseValue),
                ("digest_seed", (number + 1).databaseValue),
            ] {
                try db.execute(sql: "UPDATE tide_meta SET value = ? WHERE key = ?", arguments: [value, key])
            }
        }
        try queue.close()
    }

    func remove() { try? FileManager.default.removeItem(at: folder) }

    /// Makes a fresh container for a device.
    func make(_ device: Int, at url: URL) throws { try Self.copy(folder.appendingPathComponent("\(device)"), to: url) }

    /// Copies a container as it is on disk, as a power cut would leave it.
    static func copy(_ source: URL, to target: URL) throws {
        try FileManager.default.createDirectory(at: target, withIntermediateDirectories: true)
        for name in ["container.json", "private.sqlite", "private.sqlite-wal", "shared.sqlite", "shared.sqlite-wal"] {
            let from = source.appendingPathComponent(name)
            guard FileManager.default.fileExists(atPath: from.path) else { continue }
            try Data(contentsOf: from).write(to: target.appendingPathComponent(name))
        }
        for name in ["assets", "staging", "downloads", "quarantine"] {
            let from = source.appendingPathComponent(name)
            guard FileManager.default.fileExists(atPath: from.path) else { continue }
            try FileManager.default.copyItem(at: from, to: target.appendingPathComponent(name))
        }
    }
}
