import Foundation
import GRDB
import TidemarkModel

/// Lets a scratch store behave as if it were another one, which is only read: before a batch is written to the scratch store, the
/// rows that it concerns are copied there. So a dry run goes exactly the way of a real one.
struct DryRunBase {
    let digestSeed: UInt64

    func bring(_ keys: [RecordKey], to db: Database, types: [StoredType]) throws {
        for type in types {
            guard try Bool.fetchOne(db, sql: "SELECT 1 FROM base.sqlite_master WHERE name = ?", arguments: [type.table]) ?? false
            else { continue }
            let columns = try db.columns(in: type.table, in: "base").map { "\"\($0.name)\"" }.joined(separator: ", ")
            let statement = try db.makeStatement(
                sql: """
                    INSERT OR IGNORE INTO main."\(type.table)" (\(columns))
                    SELECT \(columns) FROM base."\(type.table)" WHERE _key = ? AND _zone = \(StoreFormat.defaultZone)
                    """)
            for key in keys { try statement.execute(arguments: [key]) }
        }
    }
}

extension RecordStore {
    /// Makes a scratch store in `directory` that behaves as the private store of `container`, or as a new store without one.
    package static func dryRun(of container: ContainerDirectory?, in directory: URL) throws(StoreError) -> RecordStore {
        let scratch = try ContainerDirectory(
            openingOrCreatingAt: directory, environment: container?.description.environment ?? .development)
        guard let container, FileManager.default.fileExists(atPath: container.privateStore.path) else {
            return try RecordStore(container: scratch)
        }
        do {
            return try openOverlay(scratch: scratch, base: container)
        } catch {
            throw StoreError(error, doing: "prepare the dry run")
        }
    }

    private static func openOverlay(scratch: ContainerDirectory, base: ContainerDirectory) throws -> RecordStore {
        let reader = try StoreReader(container: base)
        let seed = try reader.database.read(reader.digestSeed)
        let store = try RecordStore(container: scratch, lockTimeout: .seconds(30), base: DryRunBase(digestSeed: seed))
        try store.queue.inDatabase { db in
            try db.execute(sql: "ATTACH DATABASE ? AS base", arguments: [base.privateStore.path])
            try db.inTransaction(.deferred) {
                for row in try Row.fetchAll(
                    db,
                    sql:
                        "SELECT sql FROM base.sqlite_master WHERE name NOT GLOB 'tide_[^n]*' AND name NOT GLOB 'sqlite_*' AND sql IS NOT NULL"
                ) {
                    try db.execute(sql: row["sql"])
                }
                for type in try Row.fetchAll(db, sql: "SELECT table_name FROM base.tide_types") {
                    let table: String = type["table_name"]
                    try db.execute(sql: "CREATE UNIQUE INDEX IF NOT EXISTS \"tide_name_\(table)\" ON \"\(table)\" (_key, _zone)")
                }
                for table in ["tide_types", "tide_fields", "tide_zones", "tide_counters", "tide_meta"] {
                    try db.execute(sql: "DELETE FROM main.\(table); INSERT INTO main.\(table) SELECT * FROM base.\(table)")
                }
                return .commit
            }
        }
        return store
    }
}
