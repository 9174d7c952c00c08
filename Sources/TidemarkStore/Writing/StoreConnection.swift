import CTideCore
import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite

/// The connections to one database file, with the caches of the writing one. A ``RecordStore`` guards them.
final class StoreConnection {
    let container: ContainerDirectory
    let scope: StoreScope
    /// The connection that writes; with concurrent reads, also connections that read meanwhile.
    let database: any DatabaseWriter
    let identity: StoreIdentity
    /// The store on which a dry run is based; `nil` for a real store.
    let base: DryRunBase?

    private let lock: StoreLock
    private let lockTimeout: Duration
    private let checkpointer: WALCheckpointer

    private(set) var types: [StoredType] = []
    /// The indexes that the program has declared, by type. The store may not have all of these types yet.
    var programIndexes: [String: [FieldIndex]] = [:]
    private var schemaGeneration: Int64 = -1
    private var writers: [Int64: TableWriter] = [:]
    private var dataVersion: Int64 = -1

    init(
        container: ContainerDirectory, scope: StoreScope, lockTimeout: Duration, readsConcurrently: Bool, base: DryRunBase?
    ) throws(StoreError) {
        let path = container.store(scope).path
        var container = container
        let lock = try StoreLock(at: URL(fileURLWithPath: path + "-lock"))
        let checkpointer = WALCheckpointer(pageSize: StoreFormat.pageSize)
        do {
            if container.hasOlderFormat { container = try container.migrate(lockTimeout: lockTimeout) }
            do {
                (database, identity) = try Self.open(container, scope, lock, lockTimeout, readsConcurrently, base, checkpointer)
            } catch let error as StoreError where error.code == .olderFormat {
                // A store that was put back from a backup is older than the container's description.
                container = try container.migrate(lockTimeout: lockTimeout)
                (database, identity) = try Self.open(container, scope, lock, lockTimeout, readsConcurrently, base, checkpointer)
            }
        } catch {
            throw StoreError(error, doing: "open \(path)", with: path)
        }
        self.container = container
        self.scope = scope
        self.checkpointer = checkpointer
        self.lock = lock
        self.lockTimeout = lockTimeout
        self.base = base
    }

    /// Opens the database under the lock, or makes it if there is none. Its format is the newest.
    private static func open(
        _ container: ContainerDirectory, _ scope: StoreScope, _ lock: borrowing StoreLock, _ lockTimeout: Duration,
        _ readsConcurrently: Bool, _ base: DryRunBase?, _ checkpointer: WALCheckpointer
    ) throws -> (any DatabaseWriter, StoreIdentity) {
        let path = container.store(scope).path
        return try lock.withLock(timeout: lockTimeout) {
            // Checked before SQLite makes the file, and removes the log of an earlier one.
            try container.checkPlace()
            guard lock.isInPlace else {
                throw StoreError(
                    .moved, "the container that was at \(container.url.path) was removed, and another made; open that")
            }
            if !container.hasStore(scope) {
                try container.checkStoreMayBeMade(scope)
                try DatabaseCreation.make(at: container.store(scope), pageSize: StoreFormat.pageSize) {
                    try fill($0, container, seed: base?.digestSeed)
                }
            }
            try DatabaseFormat.checkBeforeWriting(path, applicationID: StoreFormat.applicationID) {
                try container.migrations.checkIsNewest(Int($0), of: path, remedy: container.migrationRemedy)
            }
            try LogExamination.checkBeforeWriting(path)
            let database = try open(path, of: container, readsConcurrently: readsConcurrently)
            let identity = try database.writeWithoutTransaction { db in
                // `DatabasePool` has set `synchronous` to NORMAL.
                try db.execute(sql: "PRAGMA synchronous = FULL")
                try checkpointer.watch(db)
                return try identify(db, container: container, scope: scope, seed: base?.digestSeed)
            }
            return (database, identity)
        }
    }

    private static func open(
        _ path: String, of container: ContainerDirectory, readsConcurrently: Bool
    ) throws -> any DatabaseWriter {
        var configuration = Configuration()
        configuration.label = "tidemark"
        configuration.busyMode = .timeout(10)
        configuration.prepareDatabase { db in
            // A late connection must not open the files of another container that has taken this one's place.
            try container.checkPlace()
            // This comes first: a refused connection must not checkpoint the log and remove it as it closes.
            let handle = try db.handle
            try checked { tide_connection_prepare(handle, &$0) }
            if try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master") ?? 0 > 0 {
                try StoreFormat.check(db, path: path, migrations: container.migrations, remedy: container.migrationRemedy)
            }
            if !db.configuration.readonly {
                try db.execute(sql: "PRAGMA page_size = \(StoreFormat.pageSize); PRAGMA cache_size = -16000")
                try DatabaseFormat.useLog(db, path: path)
            }
            SQLTrace.install(on: db)
        }
        // A pool writes to an empty log when it opens, so it is used only where concurrent reads are wanted.
        return readsConcurrently
            ? try DatabaseCreation.openPool(path, configuration)
            : try DatabaseQueue(path: path, configuration: configuration)
    }

    /// Returns the store's identity. Makes the tables in a file without any, which an interrupted earlier version has left.
    private static func identify(
        _ db: Database, container: ContainerDirectory, scope: StoreScope, seed: UInt64?
    ) throws -> StoreIdentity {
        if try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master") == 0 {
            try container.checkAssetsBelongToOthers(scope)
            try db.inTransaction(.immediate) {
                try fill(db, container, seed: seed)
                return .commit
            }
        }
        return try StoreIdentity(db, path: container.store(scope).path)
    }

    /// Makes the tables of a new store, within a transaction.
    private static func fill(_ db: Database, _ container: ContainerDirectory, seed: UInt64?) throws {
        try db.execute(sql: StoreFormat.tables)
        try StoreIdentity(digestSeed: seed ?? UInt64.random(in: 1...UInt64.max)).store(db)
        try db.execute(sql: "PRAGMA user_version = \(container.migrations.newest)")
        try db.execute(sql: "PRAGMA application_id = \(StoreFormat.applicationID)")
    }

    func read<Result>(_ what: String, _ body: (Database) throws -> Result) throws(StoreError) -> Result {
        do {
            return try database.writeWithoutTransaction { db in
                try db.tellingReadErrors(of: path) {
                    let result = Swift.Result { try body(db) }
                    // Checked afterwards: formats only grow, so everything that was read before had this format, too.
                    try container.checkFormat(db, of: scope)
                    return try result.get()
                }
            }
        } catch {
            throw StoreError(error, doing: what, with: path)
        }
    }

    // Writing

    /// Runs `body` in a transaction under the store's lock, durable when this returns; the log is moved into the database when it has
    /// grown long.
    ///
    /// - Parameter body: Returns whether to commit, too.
    func locked<Result>(
        _ what: String, _ body: (Database) throws -> (Result, Database.TransactionCompletion)
    ) throws(StoreError) -> Result {
        do {
            return try lock.withLock(timeout: lockTimeout) {
                // During the wait for the lock, the container may have moved. Writes to the old files would be lost.
                try container.checkPlace()
                let result = try database.writeWithoutTransaction { db in
                    var result: Result?
                    try db.tellingReadErrors(of: path) {
                        try db.inTransaction(base == nil ? .immediate : .deferred) {
                            try container.checkFormat(db, of: scope)
                            let completion: Database.TransactionCompletion
                            (result, completion) = try body(db)
                            if completion == .rollback { forget() } else { try TextIndex.replaceChanged(db, types) }
                            return completion
                        }
                    }
                    return result!
                }
                checkpointer.checkpointIfLong(database)
                return result
            }
        } catch {
            forget()
            throw container.naming(StoreError(error, doing: what, with: path))
        }
    }

    private var path: String { container.store(scope).path }

    /// Forgets what the core and the caches know of a transaction that was rolled back.
    private func forget() {
        for writer in writers.values { tide_writer_load_forget(writer.pointer) }
        schemaGeneration = -1
    }

    /// Closes the connections. Reads and writes throw ``StoreError`` `closed` afterwards.
    func close() throws(StoreError) {
        // The core's writers hold statements, and the connection can't close while these exist.
        writers = [:]
        do {
            try database.close()
        } catch {
            throw StoreError(error, doing: "close \(path)", with: path)
        }
    }

    func checkpoint() throws(StoreError) {
        do {
            try lock.withLock(timeout: lockTimeout) {
                try container.checkPlace()
                try WALCheckpointer.checkpoint(database, truncate: true)
            }
        } catch {
            throw container.naming(StoreError(error, doing: "checkpoint", with: path))
        }
    }

    // The schema, and the core's writers

    /// Updates the cached schema from the database, in the transaction that relies on it.
    func refreshSchema(_ db: Database) throws {
        let generation =
            try Int64.fetchOne(db.cachedStatement(sql: "SELECT value FROM tide_meta WHERE key = 'schema_generation'")) ?? 0
        guard generation != schemaGeneration else { return }
        types = try StoredType.fetchAll(db)
        try TextIndex.watch(db, types)
        schemaGeneration = generation
    }

    /// Returns the core's writer of a type's table, ready for the present transaction.
    func writer(_ db: Database, for type: StoredType) throws -> TableWriter {
        let siblings = types.filter { $0.id != type.id }.map(\.table)
        let writer: TableWriter
        if let existing = writers[type.id] {
            writer = existing
            try writer.update(type: type, siblings: siblings)
        } else {
            writer = try TableWriter(db, seed: identity.digestSeed, type: type, siblings: siblings)
            writers[type.id] = writer
        }
        // Another process has written since. The names that a load remembers are no longer complete.
        let version = try Int64.fetchOne(db.cachedStatement(sql: "PRAGMA data_version")) ?? 0
        if version != dataVersion {
            for writer in writers.values { tide_writer_load_forget(writer.pointer) }
            dataVersion = version
            try completeLoads(db, of: types.filter { $0.id != type.id })
        }
        return writer
    }

    /// Forgets the core's writers, because a table has changed under them. None of them may be loading.
    func forgetWriters() { writers = [:] }

    /// Forgets what the core knows of a type's table in a part of a transaction that was rolled back.
    ///
    /// - Parameter isNew: Whether the table came with that part.
    func forgetWriter(of type: Int64, isNew: Bool) {
        if let writer = writers[type] { tide_writer_load_forget(writer.pointer) }
        if isNew { writers[type] = nil }
        schemaGeneration = -1
    }

    /// Builds the indexes that an interrupted load of another process has left out: names are looked up in all types.
    private func completeLoads(_ db: Database, of types: [StoredType]) throws {
        for type in types { try type.buildIndexes(db) }
    }

    /// Builds the indexes that loads of this process have left out.
    func endLoads() throws {
        for type in types {
            guard let writer = writers[type.id], writer.isLoading else { continue }
            try checked { tide_writer_load_end(writer.pointer, &$0) }
        }
    }
}
