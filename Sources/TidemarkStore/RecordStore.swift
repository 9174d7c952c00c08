import CTideCore
import Foundation
import GRDB
import TidemarkModel

/// One database file of a container, open for writing.
///
/// Every write and every checkpoint goes under a lock that all processes share. Work runs on the store's own queue.
///
/// ```swift
/// let container = try ContainerDirectory(openingOrCreatingAt: URL(fileURLWithPath: "MyJournal.tidemark"))
/// let store = try RecordStore(container: container)
/// let types = try await store.types()
/// ```
public actor RecordStore {
    package nonisolated let executor = StoreExecutor(label: "tidemark.store")
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    public nonisolated let container: ContainerDirectory
    public nonisolated let scope: DatabaseScope
    /// Seeds the digests of rows; secret to the store.
    package nonisolated let digestSeed: UInt64
    let queue: DatabaseQueue
    let lock: StoreLock
    let lockTimeout: Duration
    /// The store that a dry run looks through to; `nil` for a real store.
    let base: DryRunBase?

    var storedTypes: [StoredType] = []
    var schemaGeneration: Int64 = -1
    var writers: [Int64: TableWriter] = [:]
    var dataVersion: Int64 = -1
    private let log: LogLength

    /// Pages in the write-ahead log from which on it is moved into the database: 64 MiB.
    private static let checkpointThreshold = (64 << 20) / StoreFormat.pageSize

    /// Opens a store of a container, making it if the container has neither assets nor a log that one must have left.
    ///
    /// - Parameter lockTimeout: How long a write waits for other processes' writes.
    /// - Throws: ``StoreError`` `notFound` when a store was there and is missing, `notAStore`, `newerFormat`, `cannotCreate`, `busy`, `corrupt` or `io`.
    public init(
        container: ContainerDirectory, scope: DatabaseScope = .private, lockTimeout: Duration = .seconds(30)
    ) throws(StoreError) {
        try self.init(container: container, scope: scope, lockTimeout: lockTimeout, base: nil)
    }

    init(container: ContainerDirectory, scope: DatabaseScope, lockTimeout: Duration, base: DryRunBase?) throws(StoreError) {
        let path = container.store(scope).path
        let lock = try StoreLock(at: URL(fileURLWithPath: path + "-lock"))
        do {
            let seed = base?.digestSeed ?? UInt64.random(in: 1...UInt64.max)
            (queue, digestSeed) = try lock.withLock(timeout: lockTimeout) {
                // Before SQLite makes the file, and removes a log that belonged to another.
                if !container.hasStore(scope) { try container.checkStoreMayBeMade(scope) }
                return try Self.open(container, scope: scope, seed: seed)
            }
        } catch {
            throw StoreError(error, doing: "open \(path)")
        }
        let log = LogLength()
        do {
            try queue.inDatabase { db in tide_connection_watch_log(try db.handle, log.frames) }
        } catch {
            throw StoreError(error, doing: "open \(path)")
        }
        self.log = log
        self.container = container
        self.scope = scope
        self.lock = lock
        self.lockTimeout = lockTimeout
        self.base = base
    }

    private static func open(
        _ container: ContainerDirectory, scope: DatabaseScope, seed: UInt64
    ) throws -> (DatabaseQueue, UInt64) {
        let path = container.store(scope).path
        var configuration = Configuration()
        configuration.label = "tidemark"
        configuration.busyMode = .timeout(10)
        configuration.prepareDatabase { db in
            // Before anything is set: what is not ours stays as it is.
            if try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master") ?? 0 > 0 { try StoreFormat.check(db, path: path) }
            try db.execute(sql: "PRAGMA page_size = \(StoreFormat.pageSize); PRAGMA cache_size = -16000")
            try StoreFormat.useLog(db, path: path)
            let handle = try db.handle
            try checked { tide_connection_prepare(handle, &$0) }
        }
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        let stored = try queue.inDatabase { db in
            if try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master") == 0 {
                try container.checkAssetsBelongToOthers(scope)
                try db.inTransaction(.immediate) {
                    try db.execute(sql: StoreFormat.tables)
                    try db.execute(
                        sql: "INSERT INTO tide_meta (key, value) VALUES ('digest_seed', ?)", arguments: [Int64(bitPattern: seed)])
                    try db.execute(sql: "PRAGMA user_version = \(ContainerDirectory.format)")
                    try db.execute(sql: "PRAGMA application_id = \(StoreFormat.applicationID)")
                    return .commit
                }
            }
            return try Int64.fetchOne(db, sql: "SELECT value FROM tide_meta WHERE key = 'digest_seed'")
        }
        guard let stored else { throw StoreError(.corrupt, "\(path) lacks its digest seed") }
        return (queue, UInt64(bitPattern: stored))
    }

    /// The record types of the store, with their fields.
    public func types() throws(StoreError) -> [RecordTypeSchema] {
        try read("read the schema") { db in try StoredType.fetchAll(db).map(\.schema) }
    }

    /// Moves the write-ahead log into the database and empties it, unless a reader of another process needs it.
    public func checkpoint() throws(StoreError) {
        try locked("checkpoint") { try self.checkpointLocked(truncate: true) }
    }

    func read<Result>(_ what: String, _ body: (Database) throws -> Result) throws(StoreError) -> Result {
        do {
            return try queue.inDatabase(body)
        } catch {
            throw StoreError(error, doing: what)
        }
    }

    func locked<Result>(_ what: String, _ body: () throws -> Result) throws(StoreError) -> Result {
        do {
            return try lock.withLock(timeout: lockTimeout, body)
        } catch {
            throw StoreError(error, doing: what)
        }
    }

    func checkpointLocked(truncate: Bool) throws {
        try queue.inDatabase { db in
            var remaining: Int32 = 0
            // Emptying the log waits for readers; it is not worth waiting for.
            let connection = try db.handle
            try db.execute(sql: "PRAGMA busy_timeout = 0")
            let outcome = Result { try checked { tide_connection_checkpoint(connection, truncate, &remaining, &$0) } }
            try db.execute(sql: "PRAGMA busy_timeout = 10000")
            try outcome.get()
        }
    }

    func checkpointIfLong() throws {
        if log.frames.pointee >= Self.checkpointThreshold { try checkpointLocked(truncate: false) }
    }

    /// Brings the cached schema up to what the database says. Runs in the transaction that relies on it.
    func refreshSchema(_ db: Database) throws {
        let generation = try Int64.fetchOne(db, sql: "SELECT value FROM tide_meta WHERE key = 'schema_generation'") ?? 0
        guard generation != schemaGeneration else { return }
        storedTypes = try StoredType.fetchAll(db)
        schemaGeneration = generation
    }
}

/// The number that the core writes after each commit; the store keeps it for as long as its connection lives.
///
/// `@unchecked Sendable`: written and read on the store's connection only.
private final class LogLength: @unchecked Sendable {
    let frames: UnsafeMutablePointer<Int32>

    init() {
        frames = .allocate(capacity: 1)
        frames.initialize(to: 0)
    }

    deinit { frames.deallocate() }
}

extension RecordStore {
    /// Checks that a text can name a type or a field.
    package static func checkIdentifier(_ name: String, what: String) throws(StoreError) {
        do {
            try StoredType.checkIdentifier(name, what: what)
        } catch {
            throw StoreError(error, doing: "use the name")
        }
    }
}
