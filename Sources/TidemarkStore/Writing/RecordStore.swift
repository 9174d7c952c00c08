package import Foundation
package import GRDB
public import TidemarkModel
public import TidemarkSQLite

/// A part of a process that writes through a store. Each part has its own mark in history and its own notifier, because it has to
/// hear of the other part's writes.
package enum WriterRole: Hashable, Sendable {
    case program
    case sync
}

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
    package nonisolated let executor: StoreExecutor
    /// Runs the actor's work on the store's own queue, so that waiting for a lock blocks no thread of Swift's pool.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// The container that the store belongs to.
    public nonisolated let container: ContainerDirectory
    /// Which of the container's stores it is.
    public nonisolated let scope: StoreScope
    package nonisolated let identity: StoreIdentity
    /// Reads what is committed: for any SQL, and for GRDB's `ValueObservation`.
    package nonisolated let reader: any DatabaseReader
    /// Names this opening of the store in history, so that its own transactions can be told from others'.
    package nonisolated let writer = UUID()
    /// Names the synchronisation in history, which the rest of the process hears of like another process.
    package nonisolated let syncWriter = UUID()
    let connection: StoreConnection
    private let notifier: StoreChangeNotifier?
    /// The notifier of the synchronisation that uses this store, while there is one.
    private nonisolated let syncNotifier = LockedValue(WeakNotifier())
    /// The clock.
    private nonisolated let clock: LockedValue<@Sendable () -> Int64>
    /// Returns the time, in microseconds since 1970 UTC.
    nonisolated var now: @Sendable () -> Int64 { clock.withLock(\.self) }
    /// The state of the store that the observers of ``reader`` have seen.
    private var noticed: Noticed
    /// The round of imports that began last.
    var importRound = ImportRound()
    /// Whether the store is known to list contents under identifiers made of a SHA-256. `false` means unknown, because another
    /// process may begin to list one.
    var listsDigestNames = false

    private struct Noticed {
        var transaction: Int64
        var schema: Int64

        init(_ db: Database) throws {
            transaction = try Int64.fetchOne(db.cachedStatement(sql: "SELECT max(id) FROM tide_transactions")) ?? 0
            let sql = "SELECT value FROM tide_meta WHERE key = 'schema_generation'"
            schema = try Int64.fetchOne(db.cachedStatement(sql: sql)) ?? 0
        }
    }

    /// Opens a store of a container, and makes it unless assets or a log show that it existed before. A container of an older
    /// format is migrated.
    /// older format is migrated.
    ///
    /// - Parameters:
    ///   - lockTimeout: How long a write waits for other processes' writes.
    ///   - readsConcurrently: Whether `reader` reads while something is written. If not, it waits.
    ///   - notifier: Posts each transaction to other processes.
    /// - Throws: ``StoreError`` `notFound` when a store was there and is missing, `notAStore`, `newerFormat`, `cannotCreate`, `busy`,
    ///   `corrupt` or `io`.
    public init(
        container: ContainerDirectory, scope: StoreScope = .private, lockTimeout: Duration = .seconds(30),
        readsConcurrently: Bool = false, notifier: StoreChangeNotifier? = nil
    ) throws(StoreError) {
        try self.init(
            container: container, scope: scope, lockTimeout: lockTimeout, readsConcurrently: readsConcurrently,
            notifier: notifier, base: nil)
    }

    /// Opens a store that shares its executor with other stores.
    package init(
        container: ContainerDirectory, scope: StoreScope, notifier: StoreChangeNotifier, executor: StoreExecutor
    ) throws(StoreError) {
        try self.init(
            container: container, scope: scope, lockTimeout: .seconds(30), readsConcurrently: true, notifier: notifier,
            executor: executor, base: nil)
    }

    /// Opens a store with another clock: microseconds since 1970 UTC.
    package init(
        container: ContainerDirectory, scope: StoreScope, notifier: StoreChangeNotifier?, now: @escaping @Sendable () -> Int64
    ) throws(StoreError) {
        try self.init(
            container: container, scope: scope, lockTimeout: .seconds(30), readsConcurrently: false, notifier: notifier,
            base: nil,
            now: now)
    }

    init(
        container: ContainerDirectory, scope: StoreScope, lockTimeout: Duration, readsConcurrently: Bool = false,
        notifier: StoreChangeNotifier? = nil, executor: StoreExecutor = StoreExecutor(label: "tidemark.store"), base: DryRunBase?,
        now: @escaping @Sendable () -> Int64 = Timestamp.now
    ) throws(StoreError) {
        self.executor = executor
        clock = LockedValue(Timestamp.bounded(now))
        let connection = try StoreConnection(
            container: container, scope: scope, lockTimeout: lockTimeout, readsConcurrently: readsConcurrently, base: base)
        do {
            try base?.attach(to: connection)
        } catch {
            throw StoreError(error, doing: "look into \(container.store(scope).path)")
        }
        noticed = try connection.read("read the history") { try Noticed($0) }
        if base == nil { ContainerContents.removeAbandoned(from: container.url) }
        self.connection = connection
        self.notifier = notifier
        self.container = connection.container
        self.scope = scope
        identity = connection.identity
        reader = connection.database
    }

    /// The record types of the store, with their fields.
    public func types() throws(StoreError) -> [RecordTypeSchema] {
        try connection.read("read the schema") { db in try StoredType.fetchAll(db).map(\.schema) }
    }

    /// As ``types()``; what the store has read of its schema before is not read again.
    package func knownTypes() throws(StoreError) -> [RecordTypeSchema] {
        try connection.read("read the schema") { db in
            try connection.refreshSchema(db)
            return connection.types.map(\.schema)
        }
    }

    /// Whether the store has a record type.
    package func hasTypes() throws(StoreError) -> Bool {
        try connection.read("read the schema") { db in
            try connection.refreshSchema(db)
            return !connection.types.isEmpty
        }
    }

    /// Returns, for each record, whether this store has it.
    ///
    /// - Complexity: A look-up for each record of a type that the store has.
    package func contains(_ records: [RecordName]) throws(StoreError) -> [Bool] {
        try connection.read("look for records") { db in
            try connection.refreshSchema(db)
            let tables = Dictionary(connection.types.map { ($0.name, $0.table) }, uniquingKeysWith: { one, _ in one })
            guard !tables.isEmpty else { return records.map { _ in false } }
            var last: (table: String, statement: Statement)?
            return try records.map { record in
                guard let table = tables[record.type] else { return false }
                if last?.table != table {
                    last = (table, try db.cachedStatement(sql: "SELECT \(RecordKey.existence(in: table))"))
                }
                let keys = RecordKey.all(name: record.name)
                return try Bool.fetchOne(last!.statement, arguments: [keys[0], keys[keys.count - 1]]) ?? false
            }
        }
    }

    /// Reads committed data beside the writes, so that no save waits for a long read.
    ///
    /// - Throws: ``StoreError``; `CancellationError` where the task is cancelled.
    nonisolated func readConcurrently<Result: Sendable>(
        _ what: String, _ body: @escaping @Sendable (Database) throws -> Result
    ) async throws -> Result {
        do {
            return try await reader.read { [container, scope] db in
                try container.checkFormat(db, of: scope)
                return try body(db)
            }
        } catch let error as CancellationError {
            throw error
        } catch {
            throw StoreError(error, doing: what, with: container.store(scope).path)
        }
    }

    /// Replaces the clock by that of a test: microseconds since 1970 UTC.
    package nonisolated func setClock(_ now: @escaping @Sendable () -> Int64) {
        let bounded = Timestamp.bounded(now)
        clock.withLock { $0 = bounded }
    }

    /// Closes the connections of the store. Reads and writes throw ``StoreError`` `closed` afterwards.
    package func close() throws(StoreError) { try connection.close() }

    /// Moves the write-ahead log into the database and empties it, unless a reader of another process needs it.
    public func checkpoint() throws(StoreError) { try connection.checkpoint() }

    /// Writes in one transaction, which is durable when this returns. If anything changes, it is one transaction of history, too.
    ///
    /// - Throws: ``StoreError``; then nothing is written.
    package func transact<Result>(
        _ what: String, author: TransactionAuthor, notBefore: Int64? = nil, _ body: (StoreTransaction) throws -> Result
    ) throws(StoreError) -> Result {
        let (result, changed): (Result, Int64?) = try connection.locked(what) { db in
            try connection.refreshSchema(db)
            let transaction = try StoreTransaction(
                db, connection: connection, author: author, writer: author.role == .sync ? syncWriter : writer, now: now(),
                notBefore: notBefore)
            let result = try body(transaction)
            guard !transaction.isAbandoned else { return ((result, nil), .rollback) }
            try transaction.end()
            let changed = !transaction.counts.isUnchanged || transaction.changesShares
            return ((result, changed ? transaction.id : nil), .commit)
        }
        if let changed { post(changed, by: author.role) }
        return result
    }

    /// Notifies the other processes, and the other user of the store in this one, that something has changed.
    func post(_ transaction: Int64, by role: WriterRole) {
        let syncNotifier = role == .sync ? syncNotifier.withLock(\.notifier) : nil
        (syncNotifier ?? notifier)?.post(transaction: transaction, scope: scope.databaseScope)
    }

    /// Sets the notifier with which a synchronisation posts its transactions. The container that owns the store then hears the
    /// synchronisation, and the synchronisation hears the container.
    package nonisolated func setSyncNotifier(_ notifier: StoreChangeNotifier) { syncNotifier.withLock { $0.notifier = notifier } }

    private struct WeakNotifier {
        weak var notifier: StoreChangeNotifier?
    }

    /// As ``transact(_:author:_:)``, for a body that may also throw an error which is no failure of the store, such as a conflict
    /// or the error of a hook. Such an error is thrown as it is, and nothing is written.
    package func transactOrRefuse<Result>(
        _ what: String, author: TransactionAuthor, _ body: (StoreTransaction) throws -> Result
    ) throws -> Result {
        let outcome: Swift.Result<Result, any Error> = try transact(what, author: author) { transaction in
            do {
                return .success(try body(transaction))
            } catch let error where error is StoreError || error is DatabaseError {
                throw error
            } catch {
                transaction.isAbandoned = true
                return .failure(error)
            }
        }
        return try outcome.get()
    }

    /// Makes GRDB's observations fetch again what other processes have written. They fetch everything where the container has
    /// moved, or a newer version has migrated it.
    package func refreshAfterExternalChanges() throws(StoreError) {
        let (before, isInPlace) = (noticed, container.isInPlace)
        let own = [writer.uuidString, syncWriter.uuidString]
        noticed = try connection.read("look for others' changes") { db in
            func notify(of tables: [String]) throws {
                try db.inTransaction(.deferred) {
                    for table in tables { try db.notifyChanges(in: Table(table)) }
                    return .commit
                }
            }
            func all() throws -> [String] { try String.fetchAll(db, sql: "SELECT table_name FROM tide_types") + ["tide_types"] }
            do {
                try container.checkFormat(db, of: scope)
            } catch {
                // The observations then meet the same error. Every format has that table.
                try notify(of: all())
                throw error
            }
            let now = try Noticed(db)
            var tables: [String] = []
            if !isInPlace {
                tables = try all()
            } else if now.transaction > before.transaction {
                let sql = """
                    SELECT DISTINCT y.table_name FROM tide_transactions t
                    JOIN tide_changes c ON c.id BETWEEN t.first_change AND t.last_change JOIN tide_types y ON y.id = c.type_id
                    WHERE t.id > ? AND t.writer NOT IN (?, ?)
                    """
                tables = try String.fetchAll(db, sql: sql, arguments: [before.transaction, own[0], own[1]])
            }
            if now.schema != before.schema { tables.append("tide_types") }
            if !tables.isEmpty { try notify(of: tables) }
            return now
        }
    }
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
