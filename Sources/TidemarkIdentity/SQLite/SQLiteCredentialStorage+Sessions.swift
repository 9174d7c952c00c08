import Foundation
import GRDB
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// Passwords, sessions, known addresses and the audit log.
extension SQLiteCredentialStorage {
    // Passwords

    func password(of account: String) async throws -> StoredPassword? {
        try await writer.read { db in try StoredPassword(of: account, db) }
    }

    func accountsWithPassword() async throws -> Set<String> {
        try await writer.read { db in try String.fetchSet(db, sql: "SELECT account FROM passwords WHERE digest <> x''") }
    }

    func passwordVersion(of account: String) async throws -> Int64 {
        try await writer.read { db in try Self.passwordVersion(of: account, db) }
    }

    private static func passwordVersion(of account: String, _ db: Database) throws -> Int64 {
        try Int64.fetchOne(db, sql: "SELECT changed FROM passwords WHERE account = ?", arguments: [account]) ?? 0
    }

    func setPassword(
        _ password: StoredPassword?, of account: String, at time: Int64, ifVersionIs version: Int64?
    ) async throws -> Bool {
        try await writer.write { db in
            if let version { guard try Self.passwordVersion(of: account, db) == version else { return false } }
            // A row without a digest means that the account has no password.
            try db.execute(
                sql: """
                    INSERT INTO passwords (account, log_n, r, p, salt, digest, changed) VALUES (?, 1, 1, 1, x'', x'', ?)
                    ON CONFLICT (account) DO UPDATE SET salt = x'', digest = x'', changed = max(excluded.changed, changed + 1)
                    """,
                arguments: [account, time])
            try password?.keep(of: account, db)
            try Self.endSessions(of: account, db)
            return true
        }
    }

    func replacePassword(_ old: StoredPassword, by new: StoredPassword, of account: String) async throws -> Bool {
        try await writer.write { db in
            guard try StoredPassword(of: account, db) == old else { return false }
            try new.keep(of: account, db)
            return true
        }
    }

    // Sessions

    func add(
        _ session: StoredSession, ifPasswordIs password: StoredPassword?, auditing event: StoredAuditEvent?
    ) async throws -> SessionAddition {
        try await writer.write { db in
            guard try CredentialTables.hasContainer(session.container, db) else { return .containerIsNotServed }
            if let password {
                guard try StoredPassword(of: session.account, db) == password else { return .passwordIsAnother }
                try Self.keepKnown(session.address, to: session.account, at: session.began, db)
            }
            try Self.insert(session, auditing: event, db)
            return .added
        }
    }

    /// Adds a session. The transaction has checked the conditions before.
    static func insert(_ session: StoredSession, auditing event: StoredAuditEvent?, _ db: Database) throws {
        if let event { try record(event, at: session.began, db) }
        try db.execute(sql: "DELETE FROM sessions WHERE kept < ?", arguments: [session.began])
        try db.execute(
            sql: """
                INSERT INTO sessions (id, account, container, environment, kind, began, kept, device, system, used, address)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                Data(session.id), session.account, session.container, session.environment.rawValue, session.kind,
                session.began, session.kept, session.device, session.system, session.used, session.address,
            ])
    }

    func keepSession(_ id: [UInt8], until kept: Int64) async throws {
        try await writer.write { db in
            try db.execute(sql: "UPDATE sessions SET kept = max(kept, ?) WHERE id = ?", arguments: [kept, Data(id)])
        }
        // Another process may hold the old row. Then it writes the renewal once more, which does no harm.
        cache.update(id) { $0.kept = max($0.kept, kept) }
    }

    func note(_ uses: [SessionUse]) async throws {
        try await writer.write { db in
            for use in uses {
                try db.execute(
                    sql: "UPDATE sessions SET used = ?, address = ? WHERE id = ? AND used < ?",
                    arguments: [use.at, use.address, Data(use.session), use.at])
                if let account = try String.fetchOne(
                    db, sql: "SELECT account FROM sessions WHERE id = ?", arguments: [Data(use.session)])
                {
                    try Self.keepKnown(use.address, to: account, at: use.at, db)
                }
            }
        }
        for use in uses {
            cache.update(use.session) { session in
                guard session.used < use.at else { return }
                (session.used, session.address) = (use.at, use.address)
            }
        }
    }

    func renameSession(_ id: [UInt8], of account: String, to device: String) async throws -> Bool {
        try await writer.write { db in
            try db.execute(
                sql: "UPDATE sessions SET device = ? WHERE id = ? AND account = ?", arguments: [device, Data(id), account])
            guard db.changesCount > 0 else { return false }
            // Other processes may hold the old row.
            try CredentialTables.bump(db)
            return true
        }
    }

    func endSession(_ id: [UInt8]) async throws -> Bool {
        try await writer.write { db in try CredentialTables.delete(from: "sessions", is: Data(id), db) }
    }

    func endSessions(of account: String) async throws -> Int {
        try await writer.write { db in try Self.endSessions(of: account, db) }
    }

    func endAllSessions() async throws -> Int {
        try await writer.write { db in
            try db.execute(sql: "DELETE FROM sessions")
            let count = db.changesCount
            try db.execute(sql: "DELETE FROM console_sessions")
            try CredentialTables.bump(db)
            return count
        }
    }

    @discardableResult
    private static func endSessions(of account: String, _ db: Database) throws -> Int {
        try db.execute(sql: "DELETE FROM sessions WHERE account = ?", arguments: [account])
        let count = db.changesCount
        try endConsoleSessions(of: account, db)
        try CredentialTables.bump(db)
        return count
    }

    func sessions(keptFrom time: Int64) async throws -> [StoredSession] {
        try await writer.read { db in
            try Row.fetchAll(db, sql: "SELECT * FROM sessions WHERE kept >= ? ORDER BY began, id", arguments: [time])
                .map { try StoredSession($0) }
        }
    }

    func removeAccount(_ account: String) async throws {
        try await writer.write { db in
            for table in [
                "passwords", "identities", "sessions", "known_addresses", "keys", "operators", "console_sessions",
                "second_factors",
            ] {
                try db.execute(sql: "DELETE FROM \(table) WHERE account = ?", arguments: [account])
            }
            try Self.removeSyncFailures(of: account, db)
            try CredentialTables.bump(db)
        }
    }

    func emptyLog() async { await SharedDatabase.emptyLog { [writer] in await writer.tryToEmptyLog() } }

    // Known addresses

    func addresses(of account: String, keptFrom time: Int64) async throws -> Set<String> {
        try await writer.read { db in
            try String.fetchSet(
                db, sql: "SELECT address FROM sessions WHERE account = ? AND kept >= ? AND address <> ''",
                arguments: [account, time])
        }
    }

    func isKnown(_ address: String, to account: String, at now: Int64) async throws -> Bool {
        try await writer.read { db in
            let isKnown = try Bool.fetchOne(
                db,
                sql: """
                    SELECT EXISTS (SELECT 1 FROM known_addresses WHERE account = ?1 AND address = ?2 AND used > ?3)
                        OR EXISTS (SELECT 1 FROM sessions WHERE account = ?1 AND address = ?2 AND kept >= ?4)
                    """,
                arguments: [account, address, now - CredentialLimits.knownAge, now])
            return isKnown ?? false
        }
    }

    /// Remembers an address from which an account was used. The oldest addresses beyond the limit are removed.
    static func keepKnown(_ address: String, to account: String, at now: Int64, _ db: Database) throws {
        guard !address.isEmpty else { return }
        try db.execute(
            sql: """
                INSERT INTO known_addresses (account, address, used) VALUES (?, ?, ?)
                ON CONFLICT (account, address) DO UPDATE SET used = max(used, excluded.used)
                """,
            arguments: [account, address, now])
        try db.execute(
            sql: """
                DELETE FROM known_addresses WHERE account = ?1 AND (used <= ?2 OR address NOT IN
                    (SELECT address FROM known_addresses WHERE account = ?1 ORDER BY used DESC, address LIMIT ?3))
                """,
            arguments: [account, now - CredentialLimits.knownAge, CredentialLimits.knownAddresses])
    }

    // The audit log

    func audit(_ event: StoredAuditEvent, at time: Int64) async throws {
        try await writer.write { db in try Self.record(event, at: time, db) }
    }

    func auditLog(_ filter: AuditLogFilter, limit: Int) async throws -> [AuditLogEntry] {
        try await writer.read { db in
            try Row.fetchAll(
                db,
                sql: filter.statement(
                    "number, at, action, actor, account, address, container, subject, outcome, before_change, after_change",
                    from: "audit"
                ).replacing("$", with: ":p"),
                arguments: [
                    "p1": filter.since, "p2": filter.account, "p3": filter.container, "p4": filter.before, "p5": limit,
                ]
            ).map { row in
                try AuditLogEntry(
                    number: row.decode(atIndex: 0), at: row.decode(atIndex: 1),
                    event: StoredAuditEvent(
                        action: row.decode(atIndex: 2), actor: row.decode(atIndex: 3), account: row.decode(atIndex: 4),
                        address: row.decode(atIndex: 5), container: row.decode(atIndex: 6), subject: row.decode(atIndex: 7),
                        outcome: row.decode(atIndex: 8), before: row.decode(atIndex: 9), after: row.decode(atIndex: 10)))
            }
        }
    }

    /// Adds an entry in a transaction, and removes expired ones.
    static func record(_ event: StoredAuditEvent, at now: Int64, _ db: Database) throws {
        try db.execute(
            sql: """
                INSERT INTO audit (at, action, actor, account, address, container, subject, outcome, before_change, after_change)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                now, event.action, event.actor, event.account, event.address, event.container, event.subject, event.outcome,
                event.before, event.after,
            ])
        let number = db.lastInsertedRowID
        try db.execute(
            sql: trimming,
            arguments: [
                now - CredentialLimits.auditAge, number - CredentialLimits.auditEntries, now - CredentialLimits.day,
                CredentialLimits.day, CredentialLimits.auditTrimming,
            ])
    }

    /// Removes expired entries. A trigger of the table refuses to delete an entry of the last day.
    ///
    /// It looks at the oldest entries only, by their index, because it runs with each entry that is added.
    private static let trimming = """
        DELETE FROM audit WHERE number IN (
            SELECT number FROM (SELECT number, at FROM audit WHERE at < ?3 ORDER BY at, number LIMIT ?5) WHERE at < ?1 OR number <= ?2)
        AND at < (SELECT max(at) FROM audit) - ?4
        """
}

extension StoredPassword {
    /// The stored hash of an account's password.
    init?(of account: String, _ db: Database) throws {
        guard
            let row = try Row.fetchOne(
                db, sql: "SELECT log_n, r, p, salt, digest FROM passwords WHERE account = ? AND digest <> x''",
                arguments: [account])
        else { return nil }
        try self.init(
            logN: row.decode(atIndex: 0), r: row.decode(atIndex: 1), p: row.decode(atIndex: 2),
            salt: Array(row.decode(Data.self, atIndex: 3)), digest: Array(row.decode(Data.self, atIndex: 4)))
    }

    /// Writes the hash into the row of an account.
    fileprivate func keep(of account: String, _ db: Database) throws {
        try db.execute(
            sql: "UPDATE passwords SET log_n = ?, r = ?, p = ?, salt = ?, digest = ? WHERE account = ?",
            arguments: [logN, r, p, Data(salt), Data(digest), account])
    }
}
