public import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// Puts a backup of a cloud in its place.
///
/// Each database begins another incarnation: devices compare their records with the cloud's, and send those that it has lost.
///
/// ```swift
/// try CloudRestoration(of: URL(fileURLWithPath: "/backups/Monday"), to: directory).run()
/// ```
public struct CloudRestoration: Sendable {
    private let source: URL
    private let directory: CloudDirectory
    private let replaces: Bool
    private let acceptsDamage: Bool

    /// Describes a restoration. ``run(progress:)`` does it.
    ///
    /// - Parameters:
    ///   - backup: The folder of the backup.
    ///   - directory: The place of the cloud.
    ///   - replaces: Whether a cloud may be at the place already. It is kept beside the new one: see ``Summary/replaced``.
    ///   - acceptsDamage: Whether to restore a backup of which something is missing or damaged, as far as it is whole.
    public init(of backup: URL, to directory: URL, replaces: Bool = false, acceptsDamage: Bool = false) {
        source = backup
        self.directory = CloudDirectory(url: directory)
        self.replaces = replaces
        self.acceptsDamage = acceptsDamage
    }

    /// The result of a restoration.
    public struct Summary: Hashable, Codable, Sendable {
        /// The path of the cloud's directory.
        public let path: String
        /// The time when the backup began, as RFC 3339 writes it, in UTC.
        public let createdAt: String
        /// The number of containers.
        public let containers: Int
        /// The number of records in all containers, tombstones among them.
        public let records: Int
        /// The number of assets that the databases name, missing ones among them.
        public let assets: Int
        /// The bytes of databases and assets.
        public let bytes: Int64
        /// What is damaged or missing; empty unless damage was accepted.
        public let problems: [CloudVerification.Problem]
        /// The path of the cloud that was at the place before; `nil` where none was.
        public let replaced: String?
    }

    /// Restores the backup into a folder of its own, verifies that, and puts it in its place. Blocks the calling thread.
    ///
    /// - Parameter progress: Called on the calling thread as each asset is reached. A `CancellationError` that it throws ends the
    ///   restoration.
    /// - Throws: ``StoreError`` `notFound` where there is no backup; `corrupt` where it is not what was written; `cannotMove` where a
    ///   cloud is at the place and may not be replaced; `busy` while that cloud is in use; `newerFormat`; `diskFull`; `io`. Then the
    ///   place is as it was.
    public func run(progress: (CloudBackup.Progress) throws -> Void = { _ in }) throws -> Summary {
        let manifest = try manifest()
        let old = try held()
        let pending = try PendingDirectory(for: directory.url)
        let report = try pending.fill { folder in
            for file in manifest.files { try restore(file, to: folder) }
            let made = CloudDirectory(url: folder)
            var assets = 0
            for container in try made.containers() {
                let from = source.appendingPathComponent(container.path, isDirectory: true)
                let to = folder.appendingPathComponent(container.path, isDirectory: true)
                for (owner, asset) in try CloudBackup.assets(of: folder.appendingPathComponent(container.database)) {
                    try CloudBackup.copyAsset(asset, owner: owner, from: from, to: to)
                    assets += 1
                    try progress(.init(phase: .copying, place: container.name, assets: assets))
                }
                try Self.beginIncarnation(folder.appendingPathComponent(container.database))
            }
            let report = try CloudVerification(ofCopy: folder).run { state in
                try progress(.init(phase: .verifying, place: state.place, assets: state.assets))
            }
            guard report.isOK || acceptsDamage else {
                throw StoreError(
                    .corrupt,
                    "the backup \(source.path) is damaged: \(report.problems[0].message)"
                        + (report.problems.count > 1 ? " (and \(report.problems.count - 1) more)" : "")
                        + ". Take another backup, or restore what is whole of this one with --accept-damage")
            }
            // The examination leaves logs that nothing needs.
            try DatabaseFile.removeLogs(in: folder)
            return report
        }
        var replaced: URL?
        if old != nil {
            let aside = try Self.aside(directory.url)
            guard rename(directory.url.path, aside.path) == 0 else { throw CloudDirectory.failure("replace", directory.url) }
            replaced = aside
        }
        do {
            try pending.commit()
        } catch {
            if let replaced { rename(replaced.path, directory.url.path) }
            throw error
        }
        // Until here no process could open the old cloud.
        withExtendedLifetime(old) {}
        return Summary(
            path: directory.url.path, createdAt: manifest.createdAt, containers: report.containers, records: report.records,
            assets: report.assets, bytes: report.bytes + manifest.files.reduce(0) { $0 + $1.bytes }, problems: report.problems,
            replaced: replaced?.path)
    }

    /// Locks the cloud at the place, so that no process uses it; `nil` if there is none.
    private func held() throws -> HeldCloud? {
        var status = stat()
        guard lstat(directory.url.path, &status) == 0 else { return nil }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw StoreError(.cannotMove, "\(directory.url.path) is not a directory; name another place")
        }
        guard try !FileManager.default.contentsOfDirectory(atPath: directory.url.path).isEmpty else { return nil }
        guard EmbeddedCloud.exists(at: directory.url) else {
            throw StoreError(.cannotMove, "\(directory.url.path) holds other files than a cloud's; name another place")
        }
        guard replaces else {
            throw StoreError(
                .cannotMove, "there is a cloud at \(directory.url.path) already; name another place, or replace it with --replace"
            )
        }
        return try HeldCloud(directory)
    }

    /// A cloud that no other process has open.
    private final class HeldCloud {
        private let lock: StoreLock

        init(_ directory: CloudDirectory) throws {
            let lock = try StoreLock(at: directory.useLock)
            guard try lock.acquireIfFree() else {
                throw StoreError(
                    .busy, "\(directory.url.path) is in use; stop 'tidemark serve', and what else has it open, first")
            }
            self.lock = consume lock
        }
    }

    private static func aside(_ url: URL) throws -> URL {
        let time = Date.now.formatted(.iso8601.timeSeparator(.omitted).dateSeparator(.omitted))
        for number in 0..<100 {
            let suffix = number == 0 ? "" : "-\(number)"
            let aside = url.deletingLastPathComponent()
                .appendingPathComponent("\(url.lastPathComponent).replaced-\(time)\(suffix)", isDirectory: true)
            if access(aside.path, F_OK) != 0 { return aside }
        }
        throw StoreError(.cannotMove, "there are too many replaced clouds beside \(url.path); move some elsewhere")
    }

    /// The most bytes of a manifest: far more than any list of databases needs.
    private static let manifestMost = 16 << 20

    private func manifest() throws -> CloudBackup.Manifest {
        let url = source.appendingPathComponent(CloudBackup.Manifest.name)
        guard access(url.path, F_OK) == 0 else {
            throw StoreError(.notFound, "there is no backup of a cloud at \(source.path): it has no \(CloudBackup.Manifest.name)")
        }
        let file = try Folder(at: source, followsLink: true).openFile(CloudBackup.Manifest.name)
        let data = try file.read(upToCount: Self.manifestMost + 1) ?? Data()
        guard data.count <= Self.manifestMost else { throw StoreError(.corrupt, "\(url.path) is longer than it can be") }
        struct Format: Decodable { let format: Int }
        let manifest: CloudBackup.Manifest
        do {
            let format = try JSONDecoder().decode(Format.self, from: data).format
            guard format <= CloudBackup.Manifest.format else {
                throw StoreError(.newerFormat, "\(url.path) has format \(format); update Tidemark to restore it")
            }
            manifest = try JSONDecoder().decode(CloudBackup.Manifest.self, from: data)
        } catch let error as DecodingError {
            throw StoreError(.corrupt, "\(url.path) has a wrong form: \(error)")
        }
        for file in manifest.files where !Self.isDatabase(file.path) {
            throw StoreError(.corrupt, "\(url.path) names '\(file.path.prefix(200))', which is no database of a cloud")
        }
        guard manifest.files.contains(where: { $0.path == CloudDirectory.databases[0] }) else {
            throw StoreError(.corrupt, "\(url.path) lacks \(CloudDirectory.databases[0])")
        }
        return manifest
    }

    private static func isDatabase(_ path: String) -> Bool {
        if CloudDirectory.databases.contains(path) { return true }
        let parts = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        return parts.count == 4 && parts[0] == "containers" && CloudDirectory.isContainer(parts[1])
            && StoreEnvironment(rawValue: parts[2]) != nil && parts[3] == "records.sqlite"
    }

    private func restore(_ file: CloudBackup.Manifest.File, to folder: URL) throws {
        let (old, new) = (source.appendingPathComponent(file.path), folder.appendingPathComponent(file.path))
        try Folder.make(new.deletingLastPathComponent(), mode: 0o700)
        let content = try DatabaseFile.copy(old, to: new)
        guard content == CloudAsset(digest: file.sha256, size: file.bytes) || acceptsDamage else {
            throw StoreError(
                .corrupt,
                "\(old.path) is not what was backed up. Take another backup, or restore what is whole of this one with --accept-damage"
            )
        }
    }

    /// Begins another incarnation in a database that no process has open.
    private static func beginIncarnation(_ url: URL) throws {
        try DatabaseFile.opening(url, to: "begin another incarnation in") { queue in
            // A backup of an older format stays as it is. Its copy is migrated.
            try queue.writeWithoutTransaction { db in _ = try SQLiteCloudStorage.migrations.migrate(db, path: url.path) }
            try queue.write { db in
                let rows = SQLiteCloudTransaction(
                    db,
                    SQLiteCloudContext(
                        path: url.path, writer: Data(EmbeddedCloud.systemRandom(8)),
                        commonChanges: try SQLiteCloudStorage.commonChanges(db)))
                let more = EmbeddedCloud.systemRandom(4).reduce(0 as Int64) { $0 << 8 | Int64($1) }
                try rows.beginIncarnation(
                    Data(EmbeddedCloud.systemRandom(16)), at: try rows.highestChange() + CloudEngine.leap + more)
            }
            // The log may be removed afterwards, so all of it goes into the file, durably.
            try queue.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
        }
    }
}
