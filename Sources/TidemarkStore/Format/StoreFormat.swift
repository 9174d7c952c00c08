import Foundation
package import GRDB
import TidemarkModel
package import TidemarkSQLite

/// The tables of a store that are not records; specified in Documentation/Formats/store.md.
package enum StoreFormat {
    /// "Tide", as SQLite's application id.
    static let applicationID: Int32 = 0x5469_6465
    /// The number of the zone that every store has.
    package static let defaultZone: Int64 = 1
    package static let pageSize = 16384

    static let tables = """
        CREATE TABLE tide_meta (key TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;

        CREATE TABLE tide_zones (
            id INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL DEFAULT '', name TEXT NOT NULL, UNIQUE (owner, name)
        ) STRICT;
        CREATE TABLE tide_types (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, table_name TEXT NOT NULL UNIQUE COLLATE NOCASE,
            name_field TEXT, forgotten_rows INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE TABLE tide_fields (
            type_id INTEGER NOT NULL, ordinal INTEGER NOT NULL, name TEXT NOT NULL, column_name TEXT NOT NULL COLLATE NOCASE,
            type INTEGER NOT NULL, PRIMARY KEY (type_id, ordinal), UNIQUE (type_id, name), UNIQUE (type_id, column_name)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE tide_unique_keys (
            type_id INTEGER NOT NULL, ordinal INTEGER NOT NULL, fields TEXT NOT NULL, PRIMARY KEY (type_id, ordinal)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE tide_relationships (
            type_id INTEGER NOT NULL, field TEXT NOT NULL, target TEXT NOT NULL, owning INTEGER NOT NULL, delete_rule TEXT NOT NULL,
            PRIMARY KEY (type_id, field)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE tide_indexes (
            type_id INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, fields TEXT NOT NULL, options TEXT NOT NULL DEFAULT '',
            PRIMARY KEY (type_id, name)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE tide_transactions (
            id INTEGER PRIMARY KEY, time INTEGER NOT NULL, author TEXT NOT NULL, origin TEXT NOT NULL, writer TEXT NOT NULL,
            inserted INTEGER NOT NULL, updated INTEGER NOT NULL, deleted INTEGER NOT NULL,
            first_change INTEGER NOT NULL, last_change INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE tide_changes (
            id INTEGER PRIMARY KEY, transaction_id INTEGER NOT NULL, type_id INTEGER NOT NULL, kind INTEGER NOT NULL,
            first_row INTEGER NOT NULL, last_row INTEGER NOT NULL, previous INTEGER, before TEXT, key ANY, tag TEXT,
            base INTEGER, zone INTEGER
        ) STRICT;
        CREATE INDEX tide_deleted_rows ON tide_changes (type_id, first_row) WHERE kind = \(ChangeKind.delete.rawValue);
        CREATE INDEX tide_deleted_keys ON tide_changes (key) WHERE kind = \(ChangeKind.delete.rawValue);
        CREATE TABLE tide_conflicts (
            id INTEGER PRIMARY KEY, transaction_id INTEGER NOT NULL, type TEXT NOT NULL, record TEXT NOT NULL, field TEXT,
            ancestor TEXT, local TEXT, store TEXT, winner TEXT NOT NULL, policy TEXT NOT NULL
        ) STRICT;
        CREATE TABLE tide_outbox (
            id INTEGER PRIMARY KEY, lane INTEGER NOT NULL, type_id INTEGER NOT NULL, kind INTEGER NOT NULL, first_row INTEGER NOT NULL,
            last_row INTEGER NOT NULL, change_id INTEGER NOT NULL, zone INTEGER NOT NULL DEFAULT 1
        ) STRICT;
        CREATE UNIQUE INDEX tide_outbox_rows ON tide_outbox (type_id, kind, first_row, last_row);
        CREATE INDEX tide_outbox_lanes ON tide_outbox (zone, lane, id);
        CREATE TABLE tide_requests (
            token TEXT PRIMARY KEY, items TEXT NOT NULL, zone INTEGER NOT NULL DEFAULT 1
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE tide_sync_issues (
            type_id INTEGER NOT NULL, row INTEGER NOT NULL, kind INTEGER NOT NULL, version INTEGER NOT NULL, attempts INTEGER NOT NULL,
            code TEXT NOT NULL, reason TEXT NOT NULL, time INTEGER NOT NULL, next_try INTEGER, waits_for TEXT,
            PRIMARY KEY (type_id, row, kind)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX tide_sync_issues_waiting ON tide_sync_issues (waits_for) WHERE waits_for IS NOT NULL;
        CREATE TABLE tide_deferred (
            zone INTEGER NOT NULL DEFAULT 1, name TEXT NOT NULL, type TEXT NOT NULL, tag TEXT, reason TEXT NOT NULL,
            fields BLOB NOT NULL, PRIMARY KEY (zone, name)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE tide_shares (
            zone INTEGER NOT NULL, name TEXT NOT NULL, root TEXT, title TEXT, public_permission INTEGER NOT NULL, tag TEXT,
            role INTEGER NOT NULL, permission INTEGER NOT NULL, acceptance INTEGER NOT NULL, participant TEXT NOT NULL,
            participants TEXT NOT NULL, PRIMARY KEY (zone, name)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE tide_refused (
            id INTEGER PRIMARY KEY, time INTEGER NOT NULL, owner TEXT NOT NULL, zone_name TEXT NOT NULL, type TEXT NOT NULL,
            name TEXT NOT NULL, kind INTEGER NOT NULL, before TEXT, after TEXT, code TEXT NOT NULL, reason TEXT NOT NULL
        ) STRICT;
        CREATE TABLE tide_events (
            id INTEGER PRIMARY KEY, identifier TEXT NOT NULL UNIQUE, type INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER,
            code INTEGER, reason TEXT, records INTEGER NOT NULL, bytes INTEGER NOT NULL, conflicts INTEGER NOT NULL,
            total_records INTEGER, total_bytes INTEGER
        ) STRICT;
        CREATE TABLE tide_sync (key TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;
        CREATE TABLE tide_account (key TEXT PRIMARY KEY, value TEXT) STRICT, WITHOUT ROWID;
        CREATE TABLE tide_seen (type_id INTEGER NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (type_id, row)) STRICT, WITHOUT ROWID;
        CREATE TABLE tide_assets (id TEXT PRIMARY KEY, size INTEGER NOT NULL, media INTEGER NOT NULL, sha256 TEXT) STRICT, WITHOUT ROWID;
        CREATE INDEX tide_assets_sha256 ON tide_assets (sha256) WHERE sha256 IS NOT NULL;
        CREATE TABLE tide_imports (source TEXT PRIMARY KEY, state TEXT NOT NULL) STRICT, WITHOUT ROWID;

        INSERT INTO tide_zones (id, name) VALUES (\(defaultZone), '\(ZoneName.default.name)');
        INSERT INTO tide_meta (key, value) VALUES ('schema_generation', 1), ('first_transaction', 1), ('first_change', 1);
        """

    /// The tables that `tables` makes and their columns. Read from the text: to ask SQLite takes longer than to open a store.
    static let columns: [String: Set<String>] = tables.split(separator: ";").reduce(into: [:]) { columns, statement in
        let words = statement.split(whereSeparator: \.isWhitespace)
        guard words.starts(with: ["CREATE", "TABLE"]), let open = statement.firstIndex(of: "("),
            let close = statement.lastIndex(of: ")")
        else { return }
        var depth = 0
        let definitions = statement[statement.index(after: open)..<close].split { character in
            if character == "(" { depth += 1 }
            if character == ")" { depth -= 1 }
            return character == "," && depth == 0
        }
        let names = definitions.compactMap { $0.split(whereSeparator: \.isWhitespace).first.map(String.init) }
        columns[String(words[2])] = Set(names).subtracting(["PRIMARY", "UNIQUE"])
    }

    /// The columns of the tables whose names match a GLOB pattern; what is no real table is not among them.
    static func columns(_ db: Database, of pattern: String) throws -> [String: Set<String>] {
        let sql = """
            SELECT m.name, c.name FROM main.sqlite_master m, pragma_table_info(m.name, 'main') c
            WHERE m.type = 'table' AND m.rootpage > 0 AND m.name GLOB ?
            """
        return try Row.fetchAll(db, sql: sql, arguments: [pattern]).reduce(into: [:]) { tables, row in
            let (table, column): (String, String) = (try row.decode(atIndex: 0), try row.decode(atIndex: 1))
            tables[table, default: []].insert(column)
        }
    }

    /// Checks that a database is a store of ours that this version can read.
    ///
    /// - Parameters:
    ///   - remedy: What migrates a store of an older format.
    ///   - allowsOlder: Whether it may have an older format that can be migrated. Then its tables are not looked at.
    package static func check(
        _ db: Database, path: String, migrations: FormatMigrations, remedy: @autoclosure () -> String = "",
        allowsOlder: Bool = false
    ) throws {
        let application = try Int32.fetchOne(db, sql: "PRAGMA application_id") ?? 0
        let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        guard try application != 0 || Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master") ?? 0 > 0 else {
            throw StoreError(.notFound, "\(path) has nothing in it yet")
        }
        guard application == applicationID else {
            throw StoreError(.notAStore, "\(path) is a SQLite database, but no Tidemark store")
        }
        if allowsOlder {
            try migrations.checkIsKnown(version, of: path)
            if version < Int(migrations.newest) { return }
        }
        try migrations.checkIsNewest(version, of: path, remedy: remedy())
        let there = try Self.columns(db, of: "tide_*")
        for (table, columns) in columns.sorted(by: { $0.key < $1.key }) {
            guard let found = there[table] else { throw StoreError(.corrupt, "\(path) lacks the table \(table)") }
            if let missing = columns.subtracting(found).min() {
                throw StoreError(.corrupt, "\(path) lacks the column \(missing) of the table \(table)")
            }
        }
    }
}

extension Row {
    /// A column's value. What has another form than the format says is damage, not a mistake of ours.
    package func stored<Value: DatabaseValueConvertible & StatementColumnConvertible>(
        _ column: String, of table: String
    ) throws -> Value {
        do {
            return try decode(Value.self, forColumn: column)
        } catch is RowDecodingError {
            throw StoreError(.corrupt, "the table \(table) has a row whose \(column) has a wrong form")
        }
    }
}
