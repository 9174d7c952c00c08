import Foundation
import GRDB
import TidemarkModel

/// A store of a container, open for reading only: queries, exports, history.
///
/// ```swift
/// let reader = try StoreReader(container: container)
/// let newest = try reader.database.read { db in
///     try String.fetchAll(db, sql: "SELECT caption FROM Destination ORDER BY createdAt DESC LIMIT 10")
/// }
/// ```
public struct StoreReader: Sendable {
    public let container: ContainerDirectory
    public let scope: DatabaseScope
    /// GRDB's reader, for any SQL.
    public let database: any DatabaseReader

    /// - Throws: ``StoreError`` `notFound`, `notAStore`, `newerFormat`, `corrupt` or `io`.
    public init(container: ContainerDirectory, scope: DatabaseScope = .private) throws(StoreError) {
        let path = container.store(scope).path
        guard container.hasStore(scope) else {
            try container.checkStoreMayBeMade(scope)
            throw StoreError(.notFound, "\(container.url.path) has no \(scope.name) store yet")
        }
        var configuration = Configuration()
        configuration.readonly = true
        configuration.label = "tidemark.reader"
        configuration.busyMode = .timeout(10)
        self.container = container
        self.scope = scope
        do {
            database = try DatabaseQueue(path: path, configuration: configuration)
            try database.read { db in try StoreFormat.check(db, path: path) }
        } catch {
            throw StoreError(error, doing: "open \(path)")
        }
    }

    init(container: ContainerDirectory, scope: DatabaseScope, database: any DatabaseReader) {
        self.container = container
        self.scope = scope
        self.database = database
    }

    /// The record types of the store, with their fields.
    public func types() throws(StoreError) -> [RecordTypeSchema] {
        try read("read the schema") { db in try StoredType.fetchAll(db).map(\.schema) }
    }

    func digestSeed(_ db: Database) throws -> UInt64 {
        guard let seed = try Int64.fetchOne(db, sql: "SELECT value FROM tide_meta WHERE key = 'digest_seed'") else {
            throw StoreError(.corrupt, "\(container.store(scope).path) lacks its digest seed")
        }
        return UInt64(bitPattern: seed)
    }

    func read<Result>(_ what: String, _ body: (Database) throws -> Result) throws(StoreError) -> Result {
        do {
            return try database.read(body)
        } catch {
            throw StoreError(error, doing: what)
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
