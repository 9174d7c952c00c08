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
    package nonisolated let identity: StoreIdentity
    /// Reads what is committed: for any SQL, and for GRDB's `ValueObservation`.
    public nonisolated let reader: any DatabaseReader
    /// Names this opening of the store in history, so that its own transactions can be told from others'.
    package nonisolated let writer = UUID()
    let connection: StoreConnection

    /// Opens a store of a container, making it if the container has neither assets nor a log that one must have left.
    ///
    /// - Parameters:
    ///   - lockTimeout: How long a write waits for other processes' writes.
    ///   - readsConcurrently: Whether ``reader`` reads while something is written. If not, it waits.
    /// - Throws: ``StoreError`` `notFound` when a store was there and is missing, `notAStore`, `newerFormat`, `cannotCreate`, `busy`,
    ///   `corrupt` or `io`.
    public init(
        container: ContainerDirectory, scope: DatabaseScope = .private, lockTimeout: Duration = .seconds(30),
        readsConcurrently: Bool = false
    ) throws(StoreError) {
        try self.init(
            container: container, scope: scope, lockTimeout: lockTimeout, readsConcurrently: readsConcurrently, base: nil)
    }

    init(
        container: ContainerDirectory, scope: DatabaseScope, lockTimeout: Duration, readsConcurrently: Bool = false,
        base: DryRunBase?
    ) throws(StoreError) {
        let connection = try StoreConnection(
            container: container, scope: scope, lockTimeout: lockTimeout, readsConcurrently: readsConcurrently, base: base)
        do {
            try base?.attach(to: connection)
        } catch {
            throw StoreError(error, doing: "look into \(container.store(scope).path)")
        }
        self.connection = connection
        self.container = container
        self.scope = scope
        identity = connection.identity
        reader = connection.database
    }

    /// The record types of the store, with their fields.
    public func types() throws(StoreError) -> [RecordTypeSchema] {
        try connection.read("read the schema") { db in try StoredType.fetchAll(db).map(\.schema) }
    }

    /// Moves the write-ahead log into the database and empties it, unless a reader of another process needs it.
    public func checkpoint() throws(StoreError) { try connection.checkpoint() }

    /// Writes in one transaction, durable when this returns; of history it is one transaction too, if anything changed.
    ///
    /// - Throws: ``StoreError``; then nothing is written.
    package func transact<Result>(
        _ what: String, author: TransactionAuthor, _ body: (StoreTransaction) throws -> Result
    ) throws(StoreError) -> Result {
        try connection.locked(what) { db in
            try connection.refreshSchema(db)
            let transaction = try StoreTransaction(db, connection: connection, author: author, writer: writer)
            let result = try body(transaction)
            guard !transaction.isAbandoned else { return (result, .rollback) }
            try transaction.end()
            return (result, .commit)
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
