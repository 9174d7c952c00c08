public import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// Copies a cloud's directory while others use it.
///
/// Each database is copied in its state at one moment, and then the assets that it names. Meanwhile no content of an asset is
/// removed. The copy appears at its place complete, verified and durable, or not at all. ``CloudRestoration`` puts it back.
///
/// ```swift
/// let summary = try CloudBackup(of: directory, to: URL(fileURLWithPath: "/backups/Monday")).run()
/// ```
public struct CloudBackup: Sendable {
    private let directory: CloudDirectory
    private let target: URL

    /// Describes a backup. ``run(progress:)`` makes it.
    ///
    /// - Parameters:
    ///   - directory: The cloud's directory.
    ///   - target: The place of the copy, outside of the cloud's directory, where nothing may be yet.
    public init(of directory: URL, to target: URL) {
        self.directory = CloudDirectory(url: directory)
        self.target = target
    }

    /// The content of a backup, as the file `backup.json` in it says.
    public struct Manifest: Hashable, Codable, Sendable {
        /// A database in a backup.
        public struct File: Hashable, Codable, Sendable {
            /// The path below the backup's folder.
            public let path: String
            /// The size of the file.
            public let bytes: Int64
            /// The SHA-256 of the file in hexadecimal digits. A restoration compares it.
            public let sha256: String
        }

        /// The name of the file.
        public static let name = "backup.json"
        /// The newest format of the file. A restoration refuses newer ones with `newerFormat`.
        public static let format = 1

        /// The format of this file.
        public var format = Self.format
        /// The time when the backup began, as RFC 3339 writes it, in UTC.
        public let createdAt: String
        /// The databases.
        public var files: [File] = []
        /// The number of containers.
        public var containers = 0
        /// The number of records in all containers, tombstones among them.
        public var records = 0
        /// The number of assets that the databases name, missing ones among them.
        public var assets = 0
        /// The bytes of databases and assets.
        public var bytes: Int64 = 0
        /// What was damaged or missing in the cloud when the backup was made.
        public var problems: [CloudVerification.Problem] = []
    }

    /// How far a backup or a restoration is.
    public struct Progress: Sendable {
        /// What a backup or a restoration does at the moment.
        public enum Phase: String, Sendable {
            /// First everything is copied, then the copy is verified.
            case copying, verifying
        }

        /// What is done at the moment.
        public let phase: Phase
        /// The container, and in the second phase its environment.
        public let place: String
        /// The number of assets that this phase has reached.
        public let assets: Int
    }

    /// Makes the backup, verifies it and puts it in its place. Others may use the cloud meanwhile; contents of assets stay until it
    /// ends. Blocks the calling thread.
    ///
    /// - Parameter progress: Called on the calling thread as each container and asset is reached. A `CancellationError` that it throws
    ///   ends the backup.
    /// - Returns: The backup's content. What was damaged or missing in the cloud is among its problems, and doesn't keep the rest from
    ///   being copied.
    /// - Throws: ``StoreError`` `cannotMove` where something is at the place, or the place is in the cloud's directory; `notFound`
    ///   where there is no cloud; `busy` while another backup is made; `diskFull`; `io`. Then nothing is left of the copy.
    public func run(progress: (Progress) throws -> Void = { _ in }) throws -> Manifest {
        guard EmbeddedCloud.exists(at: directory.url) else {
            throw StoreError(.notFound, "there is no cloud at \(directory.url.path)")
        }
        let (source, place) = (directory.url.resolvingSymlinksInPath().path, target.resolvingSymlinksInPath().path)
        guard place != source, !place.hasPrefix(source + "/") else {
            throw StoreError(.cannotMove, "\(target.path) lies in the cloud's directory; name a place outside of it")
        }
        guard access(target.path, F_OK) != 0 else {
            throw StoreError(.cannotMove, "\(target.path) is there already; name a place where nothing is")
        }
        let hold = try AssetHold(directory)
        let pending = try PendingDirectory(for: target)
        let manifest = try pending.fill { folder in try copyAll(to: folder, progress) }
        try pending.commit()
        withExtendedLifetime(hold) {}
        return manifest
    }

    /// Keeps contents of assets from being removed while it exists.
    private final class AssetHold {
        private let lock: StoreLock

        init(_ directory: CloudDirectory) throws {
            let lock = try StoreLock(at: directory.backupLock)
            try Self.acquire(lock, directory)
            self.lock = consume lock
        }

        private static func acquire(_ lock: borrowing StoreLock, _ directory: CloudDirectory) throws {
            do {
                try lock.acquire(shared: false, timeout: .seconds(10))
            } catch {
                guard error.code == .busy else { throw error }
                throw StoreError(
                    .busy, "another backup of \(directory.url.path) is being made; try again when it is done")
            }
        }
    }

    /// Copies everything into a folder, and verifies the copy.
    private func copyAll(to folder: URL, _ progress: (Progress) throws -> Void) throws -> Manifest {
        var manifest = Manifest(createdAt: Timestamp.text(microseconds: Int64((Date().timeIntervalSince1970 * 1e6).rounded())))
        for container in try directory.containers() {
            try progress(.init(phase: .copying, place: container.name, assets: manifest.assets))
            let file = try copy(container, to: folder)
            manifest.files.append(file)
            for (owner, asset) in try Self.assets(of: folder.appendingPathComponent(container.database)) {
                let source = directory.url.appendingPathComponent(container.path, isDirectory: true)
                let place = folder.appendingPathComponent(container.path, isDirectory: true)
                try Self.copyAsset(asset, owner: owner, from: source, to: place)
                manifest.assets += 1
                try progress(.init(phase: .copying, place: container.name, assets: manifest.assets))
            }
        }
        // The accounts come last: an account that was added meanwhile has nothing yet, but a missing one would leave records
        // without an owner.
        for name in CloudDirectory.databases {
            guard FileManager.default.fileExists(atPath: directory.url.appendingPathComponent(name).path) else { continue }
            manifest.files.append(try Self.copyDatabase(name, from: directory.url, to: folder))
        }
        let report = try CloudVerification(ofCopy: folder).run { state in
            try progress(.init(phase: .verifying, place: state.place, assets: state.assets))
        }
        manifest.containers = report.containers
        manifest.records = report.records
        manifest.assets = report.assets
        manifest.bytes = report.bytes + manifest.files.reduce(0) { $0 + $1.bytes }
        manifest.problems = report.problems
        try DatabaseFile.removeLogs(in: folder)
        try Self.write(manifest, to: folder)
        return manifest
    }

    private func copy(_ container: CloudDirectory.Container, to folder: URL) throws -> Manifest.File {
        try Folder.make(folder.appendingPathComponent(container.path, isDirectory: true), mode: 0o700)
        return try Self.copyDatabase(container.database, from: directory.url, to: folder)
    }

    /// Returns the assets that a database has, with their owners. Malformed entries are left out.
    static func assets(of database: URL) throws -> [(String, CloudAsset)] {
        do {
            return try DatabaseFile.reading(database) { db in
                // A backup may have an older format, in which the table has the owner's name.
                let format = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
                let sql =
                    format < 6
                    ? "SELECT owner, digest, size FROM assets"
                    : "SELECT o.name, a.digest, a.size FROM assets a JOIN owners o ON o.number = a.owner"
                return try Row.fetchAll(db, sql: sql).compactMap { row in
                    guard let owner = String.fromDatabaseValue(row[0]), let digest = String.fromDatabaseValue(row[1]),
                        let size = Int64.fromDatabaseValue(row[2]), CloudDirectory.isOwner(owner)
                    else { return nil }
                    let asset = CloudAsset(digest: digest, size: size)
                    // The verification reports malformed entries.
                    return (try? asset.check()) == nil ? nil : (owner, asset)
                }
            }
        } catch let error as StoreError where error.code == .corrupt {
            // The verification reports a list that can't be read.
            return []
        }
    }

    /// Links an asset's content, or copies it to another file system. The verification reports a missing content.
    static func copyAsset(_ asset: CloudAsset, owner: String, from source: URL, to target: URL) throws {
        let path = CloudDirectory.asset(asset.digest, owner: owner)
        let (old, new) = (source.appendingPathComponent(path), target.appendingPathComponent(path))
        try Folder.make(new.deletingLastPathComponent(), mode: 0o700)
        if link(old.path, new.path) == 0 { return }
        switch errno {
        case ENOENT, EEXIST: return
        case EXDEV, EPERM, EMLINK, ENOTSUP, ENOSYS: break
        default: throw CloudDirectory.failure("copy", old)
        }
        _ = try DatabaseFile.copy(old, to: new)
    }

    /// Copies a database in its state at one moment.
    private static func copyDatabase(_ path: String, from source: URL, to folder: URL) throws -> Manifest.File {
        do {
            return try copyingDatabase(path, from: source, to: folder)
        } catch let error as DatabaseError {
            throw StoreError(error, doing: "copy \(source.appendingPathComponent(path).path) to \(folder.path)")
        }
    }

    private static func copyingDatabase(_ path: String, from source: URL, to folder: URL) throws -> Manifest.File {
        let url = folder.appendingPathComponent(path)
        let queue = try SharedDatabase.watcher(of: source.appendingPathComponent(path))
        var configuration = Configuration()
        configuration.label = "tidemark.backup"
        configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF") }
        let target = try DatabaseQueue(path: url.path, configuration: configuration)
        chmod(url.path, 0o600)
        try queue.read { db in
            // The first read fixes the state.
            _ = try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master")
            try target.inDatabase { try db.backup(to: $0, pagesPerStep: 2_048) }
        }
        try target.close()
        try queue.close()
        try CloudDirectory.synchronize(url)
        let content = try CloudDirectory.content(of: url)
        return .init(path: path, bytes: content.size, sha256: content.digest)
    }

    private static func write(_ manifest: Manifest, to folder: URL) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let url = folder.appendingPathComponent(Manifest.name)
        try encoder.encode(manifest).write(to: url)
        try CloudDirectory.synchronize(url)
    }
}

/// Reads and copies database files that no other process has open.
enum DatabaseFile {
    static func reading<Result>(_ url: URL, _ body: (Database) throws -> Result) throws -> Result {
        var configuration = Configuration()
        configuration.readonly = true
        configuration.label = "tidemark.backup"
        return try opening(url, configuration, to: "read") { queue in try queue.read(body) }
    }

    /// Opens a file, and closes it afterwards.
    ///
    /// - Parameter what: What the body does with the file, for the message of an error.
    /// - Throws: ``StoreError`` with the file and the cause in place of an error of SQLite; what else the body throws.
    static func opening<Result>(
        _ url: URL, _ configuration: Configuration = Configuration(), to what: String, _ body: (DatabaseQueue) throws -> Result
    ) throws -> Result {
        do {
            let queue = try DatabaseQueue(path: url.path, configuration: configuration)
            let result = try body(queue)
            try queue.close()
            return result
        } catch let error as DatabaseError {
            throw StoreError(error, doing: "\(what) \(url.path)", with: url.path)
        }
    }

    /// Removes the logs that SQLite has left beside databases that no process has open. Their content is in the databases.
    static func removeLogs(in folder: URL) throws {
        for name in try FileManager.default.subpathsOfDirectory(atPath: folder.path) {
            guard name.hasSuffix(".sqlite-wal") || name.hasSuffix(".sqlite-shm") else { continue }
            try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
        }
    }

    /// Copies the content of a file. The copy is durable, except for its name.
    ///
    /// - Returns: What was copied.
    static func copy(_ old: URL, to new: URL) throws -> CloudAsset {
        let source = try Folder(at: old.deletingLastPathComponent()).openFile(old.lastPathComponent)
        let target = try Folder(at: new.deletingLastPathComponent()).makeFile(new.lastPathComponent, mode: 0o600)
        var digest = AssetDigest()
        while let data = try source.read(upToCount: 1 << 20), !data.isEmpty {
            digest.update(data)
            try DurableFile.write(data, to: target, path: new.path)
        }
        try DurableFile.synchronize(target, path: new.path)
        return digest.finish()
    }
}
