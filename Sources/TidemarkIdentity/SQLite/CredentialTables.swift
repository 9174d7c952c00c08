import Foundation
import GRDB
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// The layout of `access.sqlite`; see `Documentation/Formats/access.md`.
enum CredentialTables {
    static let file = "access.sqlite"
    /// "TidK". Format 2 is the oldest that was frozen.
    static let migrations = FormatMigrations(applicationID: 0x5469_644b, oldest: 2)

    // Names of secrets.
    static let secret = "secret"
    /// The name of the previous secret. Its content begins with 8 bytes, which say until when it is valid.
    static let previousSecret = "secret.previous"

    static let sql = """
        CREATE TABLE counters (revision INTEGER NOT NULL) STRICT;
        INSERT INTO counters (revision) VALUES (0);
        CREATE TABLE secrets (name TEXT PRIMARY KEY, content BLOB NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE containers (name TEXT PRIMARY KEY, added INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE tokens (id TEXT PRIMARY KEY, digest BLOB NOT NULL UNIQUE, container TEXT NOT NULL, environment TEXT NOT NULL,
            name TEXT NOT NULL, redirect TEXT, popup TEXT, origins TEXT NOT NULL, made INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE keys (id TEXT PRIMARY KEY, container TEXT NOT NULL, environment TEXT NOT NULL, name TEXT NOT NULL,
            account TEXT NOT NULL, public_key BLOB NOT NULL, made INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE passwords (account TEXT PRIMARY KEY, log_n INTEGER NOT NULL, r INTEGER NOT NULL, p INTEGER NOT NULL,
            salt BLOB NOT NULL, digest BLOB NOT NULL, changed INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE sessions (id BLOB PRIMARY KEY, account TEXT NOT NULL, container TEXT NOT NULL, environment TEXT NOT NULL,
            kind TEXT NOT NULL, began INTEGER NOT NULL, kept INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE INDEX sessions_by_account ON sessions (account);
        CREATE INDEX sessions_by_kept ON sessions (kept);
        """ + added

    /// Tables that were added later: an older file gets them when it is opened.
    private static let added = """
        CREATE TABLE IF NOT EXISTS known_addresses (account TEXT NOT NULL, address TEXT NOT NULL, used INTEGER NOT NULL,
            PRIMARY KEY (account, address)) STRICT, WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS audit (number INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, action TEXT NOT NULL,
            actor TEXT NOT NULL, account TEXT NOT NULL, address TEXT NOT NULL, container TEXT NOT NULL, subject TEXT NOT NULL,
            outcome TEXT NOT NULL) STRICT;
        CREATE INDEX IF NOT EXISTS audit_by_at ON audit (at);
        CREATE INDEX IF NOT EXISTS audit_by_account ON audit (account);
        CREATE INDEX IF NOT EXISTS audit_by_actor ON audit (actor);
        CREATE INDEX IF NOT EXISTS audit_by_container ON audit (container);
        CREATE INDEX IF NOT EXISTS audit_of_consent ON audit (account) WHERE action = 'account.consent';
        CREATE INDEX IF NOT EXISTS audit_of_consent_by_actor ON audit (actor) WHERE action = 'account.consent';
        CREATE TRIGGER IF NOT EXISTS audit_is_not_changed BEFORE UPDATE ON audit
            BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
        CREATE TRIGGER IF NOT EXISTS audit_is_kept BEFORE DELETE ON audit
            WHEN OLD.at >= (SELECT max(at) FROM audit) - 86400000000
            BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
        CREATE TABLE IF NOT EXISTS operators (account TEXT PRIMARY KEY, role TEXT NOT NULL, containers TEXT NOT NULL,
            added INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS console_sessions (id BLOB PRIMARY KEY, account TEXT NOT NULL, began INTEGER NOT NULL,
            expires INTEGER NOT NULL, used INTEGER NOT NULL, confirmed INTEGER NOT NULL, device TEXT NOT NULL,
            address TEXT NOT NULL) STRICT, WITHOUT ROWID;
        CREATE INDEX IF NOT EXISTS console_sessions_by_account ON console_sessions (account);
        CREATE TABLE IF NOT EXISTS second_factors (account TEXT PRIMARY KEY, secret BLOB NOT NULL, recovery BLOB NOT NULL,
            step INTEGER NOT NULL, added INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS identities (issuer TEXT NOT NULL, subject TEXT NOT NULL, account TEXT NOT NULL,
            label TEXT NOT NULL, added INTEGER NOT NULL, PRIMARY KEY (issuer, subject)) STRICT, WITHOUT ROWID;
        CREATE INDEX IF NOT EXISTS identities_by_account ON identities (account);
        CREATE TABLE IF NOT EXISTS sync_failures (id TEXT PRIMARY KEY, container TEXT NOT NULL, environment TEXT NOT NULL,
            account TEXT NOT NULL, scope TEXT NOT NULL, operation TEXT NOT NULL, zone TEXT NOT NULL, type TEXT NOT NULL,
            record TEXT NOT NULL, code TEXT NOT NULL, reason TEXT NOT NULL, first_at INTEGER NOT NULL, at INTEGER NOT NULL,
            count INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE INDEX IF NOT EXISTS sync_failures_by_at ON sync_failures (at);
        CREATE INDEX IF NOT EXISTS sync_failures_by_container ON sync_failures (container, at);
        CREATE INDEX IF NOT EXISTS sync_failures_by_account ON sync_failures (account, at);
        CREATE INDEX IF NOT EXISTS audit_of_sign_in ON audit (subject) WHERE action = 'sign-in';
        """
    private static let addedNames: Set = [
        "known_addresses", "audit", "audit_by_at", "audit_by_account", "audit_by_actor", "audit_by_container", "audit_of_consent",
        "audit_of_consent_by_actor", "audit_is_not_changed", "audit_is_kept", "operators", "console_sessions",
        "console_sessions_by_account", "second_factors", "identities", "identities_by_account", "sync_failures",
        "sync_failures_by_at",
        "sync_failures_by_container", "sync_failures_by_account", "audit_of_sign_in",
    ]

    /// Columns that were added later: an older file gets them when it is opened.
    private static let addedColumns = [
        ("sessions", "device", "TEXT NOT NULL DEFAULT ''"), ("sessions", "used", "INTEGER NOT NULL DEFAULT 0"),
        ("sessions", "address", "TEXT NOT NULL DEFAULT ''"), ("audit", "before_change", "TEXT NOT NULL DEFAULT ''"),
        ("audit", "after_change", "TEXT NOT NULL DEFAULT ''"), ("console_sessions", "kind", "TEXT NOT NULL DEFAULT 'console'"),
        ("sessions", "system", "TEXT NOT NULL DEFAULT ''"), ("sync_failures", "session", "TEXT NOT NULL DEFAULT ''"),
        ("sync_failures", "field", "TEXT NOT NULL DEFAULT ''"), ("sync_failures", "field_type", "TEXT NOT NULL DEFAULT ''"),
        ("sync_failures", "device", "TEXT NOT NULL DEFAULT ''"),
    ]

    /// Whether the file has all tables and columns.
    static func areComplete(_ db: Database) throws -> Bool {
        let objects = try String.fetchSet(db, sql: "SELECT name FROM sqlite_master")
        return try addedNames.isSubset(of: objects) && missingColumns(db).isEmpty
    }

    /// Adds the tables and columns that are missing.
    static func complete(_ db: Database) throws {
        try db.execute(sql: added)
        for (table, name, type) in try missingColumns(db) {
            try db.execute(sql: "ALTER TABLE \(table) ADD COLUMN \(name) \(type)")
        }
    }

    private static func missingColumns(_ db: Database) throws -> [(String, String, String)] {
        var known: [String: Set<String>] = [:]
        for table in Set(addedColumns.map(\.0)) { known[table] = Set(try db.columns(in: table).map(\.name)) }
        return addedColumns.filter { known[$0.0]?.contains($0.1) == false }
    }

    /// Deletes a row, and tells the caches of the credential store.
    ///
    /// - Returns: Whether there was one.
    static func delete(
        from table: String, where column: String = "id", is value: any DatabaseValueConvertible, _ db: Database
    ) throws -> Bool {
        try db.execute(sql: "DELETE FROM \(table) WHERE \(column) = ?", arguments: [value])
        guard db.changesCount > 0 else { return false }
        try bump(db)
        return true
    }

    /// Whether a container is served, in a transaction.
    static func hasContainer(_ name: String, _ db: Database) throws -> Bool {
        try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM containers WHERE name = ?)", arguments: [name]) ?? false
    }

    /// Tells the caches of the credential store that it has changed. Sessions that begin, are used or renewed do not change it.
    static func bump(_ db: Database) throws { try db.execute(sql: "UPDATE counters SET revision = revision + 1") }

    static func environment(_ row: Row, _ column: String) throws -> StoreEnvironment {
        guard let environment = StoreEnvironment(rawValue: try row.decode(forColumn: column)) else {
            throw damaged("environment")
        }
        return environment
    }

    static func damaged(_ what: String) -> CredentialError { CredentialError(damaged: what, file) }
}

extension StoredAPIToken {
    init(_ row: Row) throws {
        let origins: String = try row.decode(forColumn: "origins")
        try self.init(
            id: row.decode(forColumn: "id"), digest: Array(row.decode(Data.self, forColumn: "digest")),
            container: row.decode(forColumn: "container"), environment: CredentialTables.environment(row, "environment"),
            name: row.decode(forColumn: "name"), redirect: row.decode(forColumn: "redirect"),
            popup: row.decode(forColumn: "popup"), origins: JSONDecoder().decode([String].self, from: Data(origins.utf8)),
            made: row.decode(forColumn: "made"))
    }
}

extension StoredServerKey {
    init(_ row: Row) throws {
        try self.init(
            id: row.decode(forColumn: "id"), container: row.decode(forColumn: "container"),
            environment: CredentialTables.environment(row, "environment"), name: row.decode(forColumn: "name"),
            account: row.decode(forColumn: "account"), publicKey: Array(row.decode(Data.self, forColumn: "public_key")),
            made: row.decode(forColumn: "made"))
    }
}

extension StoredSession {
    init(_ row: Row) throws {
        try self.init(
            id: Array(row.decode(Data.self, forColumn: "id")), account: row.decode(forColumn: "account"),
            container: row.decode(forColumn: "container"), environment: CredentialTables.environment(row, "environment"),
            kind: row.decode(forColumn: "kind"), began: row.decode(forColumn: "began"), kept: row.decode(forColumn: "kept"),
            device: row.decode(forColumn: "device"), system: row.decode(forColumn: "system"),
            used: row.decode(forColumn: "used"), address: row.decode(forColumn: "address"))
    }
}
