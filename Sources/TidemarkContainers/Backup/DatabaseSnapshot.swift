import CTideCore
import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// One state of a container's database file, for copying. It is held while other processes go on writing.
final class DatabaseSnapshot: Sendable {
    /// 4 MiB of pages.
    private static let pagesPerStep = CInt((4 << 20) / StoreFormat.pageSize)

    let scope: StoreScope
    let bytes: Int64
    /// The identifiers of the assets in the store's registry, with their sizes; without assets that are in the cloud alone.
    let assets: [String: Int64]
    private let path: String
    private let queue: DatabaseQueue
    /// A second connection in the same state, which computes the digest while the first one copies.
    private let digestQueue: DatabaseQueue

    /// Holds the present state of the database until the snapshot is released.
    ///
    /// - Throws: ``StoreError``, as when opening a store.
    init(of container: ContainerDirectory, scope: StoreScope) throws {
        let path = container.store(scope).path
        // These connections create no file beside the database: the source of a copy stays as it is.
        queue = try ReadOnlyDatabase.openQueue(container, scope, allowsUnsafeTransactions: true)
        digestQueue = try ReadOnlyDatabase.openQueue(container, scope, allowsUnsafeTransactions: true)
        (bytes, assets) = try queue.inDatabase { db in
            // Pages are copied as they are. An older format is migrated when the copy is opened.
            try StoreFormat.check(db, path: path, migrations: container.migrations, allowsOlder: true)
            try db.beginTransaction(.deferred)
            // The first read fixes the state of the transaction.
            let rows = try Row.fetchAll(db, sql: "SELECT id, size, media FROM tide_assets")
            let assets: [String: Int64] = try rows.reduce(into: [:]) { assets, row in
                let id: String = try row.stored("id", of: "tide_assets")
                guard AssetFiles.isIdentifier(id) else {
                    throw StoreError(.corrupt, "\(path) names an asset '\(id.prefix(100))', which is no identifier of one")
                }
                // An asset that is in the cloud alone is not copied. After an interruption the registry may say so of an asset
                // whose file is here; such an asset is copied.
                let media: Int = try row.stored("media", of: "tide_assets")
                if media >= StoredMedia.absent, !AssetFiles.isHere(id, in: container.assets) { return }
                assets[id] = try row.stored("size", of: "tide_assets")
            }
            let pages = try Int64.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            return (pages * (try Int64.fetchOne(db, sql: "PRAGMA page_size") ?? 0), assets)
        }
        try digestQueue.inDatabase { db in
            try db.beginTransaction(.deferred)
            // A program that ignores Tidemark's locks may have written since. The digests then differ, and the copy fails.
            _ = try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master")
        }
        self.scope = scope
        self.path = path
    }

    deinit {
        // The connections only read: nothing is lost if closing fails.
        try? queue.close()
        try? digestQueue.close()
    }

    /// Writes the state into a new database file in `folder`. Its contents are durable; its name is not yet.
    ///
    /// - Parameter progress: Called with the number of bytes done so far.
    func copy(to folder: URL, progress: @escaping (Int64) throws -> Void) throws {
        let name = "\(scope.name).sqlite"
        let there = try Folder(at: folder)
        for suffix in ["", "-wal", "-shm", "-journal"] {
            try there.remove("\(name)\(suffix)")
            try there.remove("\(name)\(ContainerContents.unfinishedCopy)\(suffix)")
        }
        let unfinished = folder.appendingPathComponent(name + ContainerContents.unfinishedCopy)
        var configuration = Configuration()
        configuration.label = "tidemark.copy"
        // An incomplete copy has no use, so it needs no journal. The complete copy is made durable at the end.
        configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF") }
        let target = try DatabaseQueue(path: unfinished.path, configuration: configuration)
        try queue.inDatabase { source in
            try target.inDatabase { target in
                try source.backup(to: target, pagesPerStep: Self.pagesPerStep) { state in
                    guard state.totalPageCount > 0 else { return }
                    let done = state.totalPageCount - state.remainingPageCount
                    try progress(self.bytes / Int64(state.totalPageCount) * Int64(done))
                }
            }
        }
        try target.close()
        try makeDurable(unfinished)
        tide_file_forget(unfinished.path)
        try there.rename(name + ContainerContents.unfinishedCopy, to: name)
    }

    private func makeDurable(_ url: URL) throws(StoreError) {
        let descriptor = open(url.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { throw Folder.failure("open", url.path) }
        defer { close(descriptor) }
        var status = stat()
        if stat(path, &status) == 0 { fchmod(descriptor, status.st_mode & 0o777) }
        guard DurableFile.flush(descriptor) else { throw Folder.failure("make durable", url.path) }
    }

    /// - Complexity: Reads the whole database.
    func digest() throws -> ContentDigest { try digestQueue.inDatabase { try ContentDigest(of: $0) } }

    /// The records whose values do not match their digests.
    ///
    /// - Complexity: Reads the whole database.
    func damage() throws -> [DamagedRecord] { try digestQueue.inDatabase { try DamageScan.records($0, scope: scope) } }

    /// The digest of a database file that no process writes to.
    static func digest(of url: URL) throws -> ContentDigest { try reading(url) { try ContentDigest(of: $0) } }

    /// Makes sure that SQLite's integrity check finds no damage. An index of values that does not match its table is allowed: it
    /// is copied as it is, and the next repair builds it again.
    ///
    /// - Throws: ``StoreError`` `corrupt`.
    static func checkIntegrity(of url: URL) throws {
        let findings = try reading(url) { try IntegrityFindings($0) }
        if let finding = findings.others.first { throw StoreError(.corrupt, "\(url.path) is damaged: \(finding)") }
    }

    private static func reading<Result>(_ url: URL, _ body: (Database) throws -> Result) throws -> Result {
        var configuration = Configuration()
        configuration.readonly = true
        configuration.label = "tidemark.copy"
        configuration.busyMode = .timeout(10)
        let queue = try DatabaseQueue(path: url.path, configuration: configuration)
        let result = try queue.read(body)
        try queue.close()
        return result
    }
}
