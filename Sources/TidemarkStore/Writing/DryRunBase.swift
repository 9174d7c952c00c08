package import Foundation
import GRDB
import TidemarkModel
package import TidemarkSQLite

/// Lets a scratch store behave like another store, which is only read. Before a batch is written to the scratch store, the rows
/// that it concerns are copied there. So a dry run takes exactly the same path as a real write.
///
/// Only values are taken from the other store, since anybody may have written its SQL.
package struct DryRunBase {
    let digestSeed: UInt64
    private let path: String
    private let sources: [Source]
    private let zones: [StoreZone]
    let next: StoreCounters

    /// A type's table there, as it was when the dry run began.
    private struct Source {
        let type: StoredType
        let nextRow: Int64
    }

    /// - Parameter reader: The store that the scratch store is to behave like.
    init(_ reader: StoreReader) throws {
        path = reader.container.store(reader.scope).path
        (digestSeed, sources, zones, next) = try reader.read { db in
            let types = try StoredType.fetchAll(db)
            return (
                try reader.digestSeed(db), try types.map { try Source(type: $0, nextRow: StoreCounters.row(db, type: $0)) },
                try StoreZone.fetchAll(db), try StoreCounters(db)
            )
        }
    }

    /// Attaches the other store to the scratch store's writing connection.
    func attach(to connection: StoreConnection) throws {
        try connection.database.writeWithoutTransaction { db in
            try db.execute(sql: "ATTACH DATABASE ? AS base", arguments: [ReadOnlyDatabase.name(of: path)])
            try db.inTransaction(.deferred) {
                try prepare(db)
                return .commit
            }
        }
    }

    /// Gives the scratch store the types of the other, which is attached to its connection as `base`.
    private func prepare(_ db: Database) throws {
        for source in sources {
            try StoredType.create(
                db, name: source.type.name, nameField: source.type.nameField, fields: source.type.schema.fields)
        }
        for zone in zones {
            try db.execute(
                sql: "INSERT OR IGNORE INTO main.tide_zones (id, owner, name) VALUES (?, ?, ?)",
                arguments: [zone.id, zone.name.owner ?? "", zone.name.name])
        }
        try db.execute(sql: "CREATE TEMP TABLE wanted (key PRIMARY KEY) WITHOUT ROWID")
        for type in try StoredType.fetchAll(db) {
            try db.execute(sql: "CREATE UNIQUE INDEX main.\"\(type.indexName)\" ON \"\(type.table)\" (_key, _zone)")
        }
        for source in sources where try !hasIndex(db, source) {
            // The other store has no index of names while a load was interrupted or is running. In the order of names, keys are
            // inserted fast.
            try db.execute(
                sql: """
                    CREATE TEMP TABLE "\(names(source))" (key PRIMARY KEY, id INTEGER NOT NULL) WITHOUT ROWID;
                    INSERT OR IGNORE INTO temp."\(names(source))" SELECT _key, _id FROM base."\(source.type.table)"
                    WHERE _id < \(source.nextRow) ORDER BY _key
                    """)
        }
    }

    /// Copies the rows of some names, of any type, to the scratch store.
    ///
    /// - Complexity: A look-up for each name and type.
    func bring(_ keys: [RecordKey], to db: Database, types: [StoredType]) throws {
        try db.execute(sql: "DELETE FROM temp.wanted")
        let want = try db.cachedStatement(sql: "INSERT OR IGNORE INTO temp.wanted (key) VALUES (?)")
        for key in keys { try want.execute(arguments: [key]) }
        for source in sources {
            guard let type = types.first(where: { $0.name == source.type.name }) else { continue }
            let fields = source.type.fields.compactMap { field in
                type.fields.first { $0.name == field.name }.map { (from: field.column, to: $0.column) }
            }
            let (from, to) = (StoredType.bookkeeping + fields.map(\.from), StoredType.bookkeeping + fields.map(\.to))
            let found =
                try db.tableExists(names(source), in: "temp")
                ? "JOIN temp.\"\(names(source))\" n ON n.key = w.key CROSS JOIN base.\"\(source.type.table)\" b ON b._id = n.id"
                : "JOIN base.\"\(source.type.table)\" b ON b._key = w.key"
            // A row that came after the row numbers were read may have a number that the dry run gives out.
            try db.execute(
                sql: """
                    INSERT OR IGNORE INTO main."\(type.table)" (\(to.map { "\"\($0)\"" }.joined(separator: ", ")))
                    SELECT \(from.map { "b.\"\($0)\"" }.joined(separator: ", "))
                    FROM temp.wanted w CROSS \(found) WHERE b._id < \(source.nextRow)
                    """)
        }
    }

    /// Returns the next row number of a type in the other store; `nil` if it has no such type.
    func nextRow(of type: String) -> Int64? { sources.first { $0.type.name == type }?.nextRow }

    private func names(_ source: Source) -> String { "names_\(source.type.id)" }

    /// Returns whether the other store can look a name up in a table.
    private func hasIndex(_ db: Database, _ source: Source) throws -> Bool {
        let sql = """
            SELECT 1 FROM pragma_index_list(?, 'base') l, pragma_index_info(l.name, 'base') i
            WHERE l.partial = 0 AND i.seqno = 0 AND i.name = '_key'
            """
        return try Bool.fetchOne(db, sql: sql, arguments: [source.type.table]) ?? false
    }
}

extension RecordStore {
    /// Makes a scratch store in `directory` that behaves as the private store of `container`, or as a new store without one.
    package static func dryRun(of container: ContainerDirectory?, in directory: URL) throws(StoreError) -> RecordStore {
        let scratch = try ContainerDirectory(
            openingOrCreatingAt: directory, environment: container?.description.environment ?? .development)
        guard let container, container.hasStore(.private) else {
            try container?.checkStoreMayBeMade(.private)
            return try RecordStore(container: scratch)
        }
        do {
            return try openOverlay(scratch: scratch, base: container)
        } catch {
            throw StoreError(error, doing: "prepare the dry run")
        }
    }

    private static func openOverlay(scratch: ContainerDirectory, base container: ContainerDirectory) throws -> RecordStore {
        let reader = try StoreReader(container: container)
        let base = try DryRunBase(reader)
        return try RecordStore(container: scratch, scope: .private, lockTimeout: .seconds(30), base: base)
    }
}
