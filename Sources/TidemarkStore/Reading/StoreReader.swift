import Foundation
package import GRDB
public import TidemarkModel
public import TidemarkSQLite

/// A store of a container, open for reading only: queries, exports, history.
/// It can't change a byte of the container, whatever the process may do: SQLite has every file open for reading only, and makes,
/// locks for writing or removes no file. It reads while others write, makes no writer wait, and needs no right to write. A long
/// read transaction, above all a snapshot, only keeps the log from being emptied.
///
/// ```swift
/// let reader = try StoreReader(container: container)
/// let newest = try reader.read { db in
///     try String.fetchAll(db, sql: "SELECT caption FROM Destination ORDER BY createdAt DESC LIMIT 10")
/// }
/// ```
public struct StoreReader: Sendable {
    /// The container that the store belongs to.
    public let container: ContainerDirectory
    /// Which of the container's stores is read.
    public let scope: StoreScope
    /// GRDB's reader, for any SQL.
    ///
    /// Where the store has no `-shm` file, as a copy may lack it, nothing holds a writer off. If one comes during a read, the
    /// read fails with `SQLITE_BUSY_SNAPSHOT`, and may begin again; ``read(_:)`` does that.
    package let database: any DatabaseReader
    /// The schema as its reads of history have found it.
    let schema = SchemaCache()

    /// - Throws: ``StoreError`` `notFound`, `notAStore`, `newerFormat`, `olderFormat`, `unreadable`, `corrupt` or `io`.
    public init(container: ContainerDirectory, scope: StoreScope = .private) throws(StoreError) {
        let path = container.store(scope).path
        guard container.hasStore(scope) else {
            // Where the container has moved, its store is not missing.
            try container.checkPlace()
            try container.checkStoreMayBeMade(scope)
            throw StoreError(.notFound, "\(container.url.path) has no \(scope.name) store yet")
        }
        do {
            self.init(container: container, scope: scope, database: try Self.open(container, scope))
        } catch let error as DatabaseError where error.resultCode == .SQLITE_NOTADB {
            throw StoreError(.notAStore, "\(path) is no SQLite database")
        } catch {
            throw StoreError(error, doing: "open \(path)")
        }
    }

    /// Whether a reader may open its store for writing once, if a process has left a rollback journal, which no reader can roll
    /// back. For programs that own the container, such as the command-line tool.
    @TaskLocal package static var rollsBackJournals = false

    private static func open(_ container: ContainerDirectory, _ scope: StoreScope) throws -> DatabasePool {
        func open() throws -> DatabasePool {
            try ReadOnlyDatabase.reading(nil) {
                let database = try ReadOnlyDatabase.open(container, scope)
                try database.read { db in
                    try StoreFormat.check(
                        db, path: container.store(scope).path, migrations: container.migrations, remedy: container.migrationRemedy
                    )
                }
                return database
            }
        }
        do {
            return try open()
        } catch let error as DatabaseError where error.extendedResultCode == .SQLITE_READONLY_ROLLBACK && rollsBackJournals {
            // SQLite rolls the journal back as the store is opened for writing.
            _ = try RecordStore(container: container, scope: scope)
            return try open()
        } catch let error as DatabaseError {
            // The container may have moved meanwhile.
            try container.checkPlace()
            throw error
        }
    }

    /// Rolls back transactions that a process has broken off and left a journal of, where ``rollsBackJournals`` says that this program may.
    ///
    /// Without locks: opening a store for writing takes them.
    package static func rollBackJournals(of container: ContainerDirectory) throws(StoreError) {
        guard rollsBackJournals else { return }
        for scope in ContainerDirectory.scopes where container.hasStore(scope) {
            guard access(container.store(scope).path + "-journal", F_OK) == 0 else { continue }
            _ = try StoreReader(container: container, scope: scope)
        }
    }

    init(container: ContainerDirectory, scope: StoreScope, database: any DatabaseReader) {
        self.container = container
        self.scope = scope
        self.database = database
    }

    /// Reads with any SQL, in one transaction: all of it sees one state of the store.
    ///
    /// - Parameter body: May be called again from its beginning, when a writer has invalidated what it read. Its errors are
    ///   thrown.
    /// - Throws: ``StoreError`` `moved` when the container has moved away, or was replaced, since it was opened, and `newerFormat` when a
    ///   newer version has migrated it; a snapshot goes on reading what it has pinned, and throws `changed` when that is gone. `busy` or
    ///   `io` when the store's files keep it from being read.
    package func read<Result>(_ body: (Database) throws -> Result) throws -> Result {
        if !isSnapshot { try container.checkPlace() }
        do {
            return try ReadOnlyDatabase.reading(database) {
                try database.read { db in
                    try db.tellingReadErrors(of: container.store(scope).path) {
                        try container.checkFormat(db, of: scope)
                        let result = try body(db)
                        try ReadOnlyDatabase.check(db)
                        return result
                    }
                }
            }
        } catch let error as DatabaseError {
            // Its files may have gone meanwhile.
            if !isSnapshot { try container.checkPlace() }
            throw ReadOnlyDatabase.fileError(error, path: container.store(scope).path)
        }
    }

    /// Returns a reader that is pinned to the store's present state, whatever others write from then on.
    ///
    /// It reads in one transaction, one read at a time, until the reader and all its copies are gone. Meanwhile the store's log
    /// can't be emptied, and grows with each write. A snapshot of a snapshot is the same snapshot.
    ///
    /// - Throws: ``StoreError``. Reading from it later throws `changed` when the store had no `-shm` file when the snapshot was
    ///   taken and a writer has come since: what it pinned is gone.
    public func snapshot() throws(StoreError) -> StoreReader {
        if isSnapshot { return self }
        guard let pool = database as? DatabasePool else { return try StoreReader(container: container, scope: scope).snapshot() }
        do {
            // It opens a connection of its own, for which the files may have gone meanwhile.
            let snapshot = try container.lookingForFiles { try ReadOnlyDatabase.reading(pool) { try pool.makeSnapshot() } }
            return StoreReader(container: container, scope: scope, database: snapshot)
        } catch {
            throw StoreError(error, doing: "pin the state of \(container.store(scope).path)")
        }
    }

    /// Whether it sees one pinned state of the store.
    public var isSnapshot: Bool { database is any DatabaseSnapshotReader }

    /// The record types of the store, with their fields.
    public func types() throws(StoreError) -> [RecordTypeSchema] {
        try read("read the schema") { db in try StoredType.fetchAll(db).map(\.schema) }
    }

    package func digestSeed(_ db: Database) throws -> UInt64 {
        guard let seed = try Int64.fetchOne(db, sql: "SELECT value FROM tide_meta WHERE key = 'digest_seed'") else {
            throw StoreError(.corrupt, "\(container.store(scope).path) lacks its digest seed")
        }
        return UInt64(bitPattern: seed)
    }

    package func read<Result>(_ what: String, _ body: (Database) throws -> Result) throws(StoreError) -> Result {
        do {
            return try read(body)
        } catch {
            throw StoreError(error, doing: what, with: container.store(scope).path)
        }
    }

    func storedType(_ db: Database, named name: String) throws -> StoredType {
        let types = try StoredType.fetchAll(db)
        guard let type = types.first(where: { $0.name == name }) else {
            let known = types.isEmpty ? "it has none yet" : "it has \(types.map(\.name).joined(separator: ", "))"
            throw StoreError(.schema, "the store has no record type '\(name)'; \(known)")
        }
        return type
    }
}
