import Foundation
package import TidemarkCloudEngine
import TidemarkModel

/// Passwords, sessions, known addresses and the audit log.
extension PostgresCredentialStorage {
    // Passwords

    package func password(of account: String) async throws -> StoredPassword? {
        guard account.isStorable else { return nil }
        let rows = try await database.rows("SELECT log_n, r, p, salt, digest FROM passwords WHERE account = $1", account)
        return try rows.first.flatMap { try Self.password($0) }
    }

    /// Reads a stored password; `nil` for one that was removed, whose row stays.
    static func password(_ row: PostgresRow) throws -> StoredPassword? {
        let digest = [UInt8](try row.value(4, as: Data.self))
        guard !digest.isEmpty else { return nil }
        return StoredPassword(
            logN: try row.value(0), r: try row.value(1), p: try row.value(2), salt: [UInt8](try row.value(3, as: Data.self)),
            digest: digest)
    }

    package func accountsWithPassword() async throws -> Set<String> {
        Set(try await database.rows("SELECT account FROM passwords WHERE digest <> ''").map { try $0.value(0, as: String.self) })
    }

    package func passwordVersion(of account: String) async throws -> Int64 {
        guard account.isStorable else { return 0 }
        let rows = try await database.rows("SELECT changed FROM passwords WHERE account = $1", account)
        return try rows.first?.value(0) ?? 0
    }

    package func setPassword(
        _ password: StoredPassword?, of account: String, at time: Int64, ifVersionIs version: Int64?
    ) async throws -> Bool {
        guard account.isStorable else { return false }
        // Without a digest there is no password.
        let row = password ?? StoredPassword(logN: 1, r: 1, p: 1, salt: [], digest: [])
        let change = "log_n = $2, r = $3, p = $4, salt = $5, digest = $6, changed = greatest($7, passwords.changed + 1)"
        let adding = "INSERT INTO passwords (account, log_n, r, p, salt, digest, changed) VALUES ($1, $2, $3, $4, $5, $6, $7)"
        let statement =
            switch version {
            case nil: "\(adding) ON CONFLICT (account) DO UPDATE SET \(change)"
            case 0?: "\(adding) ON CONFLICT (account) DO NOTHING"
            case let version?: "UPDATE passwords SET \(change) WHERE account = $1 AND changed = \(version)"
            }
        return try await database.write { transaction in
            // The password's row goes first. A sign-in locks it until its session is committed, so the next statement sees that
            // session.
            let affected = try transaction.query(
                statement, account, row.logN, row.r, row.p, Data(row.salt), Data(row.digest), time
            ).affected
            guard affected > 0 else { return false }
            try transaction.enqueue("DELETE FROM sessions WHERE account = $1", account)
            try transaction.enqueue("DELETE FROM console_sessions WHERE account = $1", account)
            return true
        }
    }

    package func replacePassword(
        _ old: StoredPassword, by new: StoredPassword, of account: String
    ) async throws -> Bool {
        try await database.write { transaction in
            try transaction.query(
                """
                UPDATE passwords SET log_n = $2, r = $3, p = $4, salt = $5, digest = $6
                WHERE account = $1 AND log_n = $7 AND r = $8 AND p = $9 AND salt = $10 AND digest = $11
                """, account, new.logN, new.r, new.p, Data(new.salt), Data(new.digest), old.logN, old.r, old.p, Data(old.salt),
                Data(old.digest)
            ).affected > 0
        }
    }

    // Sessions

    package func add(
        _ session: StoredSession, ifPasswordIs password: StoredPassword?, auditing event: StoredAuditEvent?
    ) async throws -> SessionAddition {
        guard session.container.isStorable else { return .containerIsNotServed }
        return try await database.write { transaction in
            let rows = try transaction.run([
                PostgresCommand("SELECT FROM served_containers WHERE name = $1", [session.container]),
                // A transaction that sets another password waits for this one, and then ends the session.
                PostgresCommand(
                    "SELECT log_n, r, p, salt, digest FROM passwords WHERE account = $1 AND $2 FOR SHARE",
                    [session.account, password != nil]),
            ])
            guard !rows[0].isEmpty else { return .containerIsNotServed }
            if let password {
                guard try rows[1].first.flatMap({ try Self.password($0) }) == password else { return .passwordIsAnother }
                try Self.keepKnown(session.address, to: "$1", session.account, at: session.began, transaction)
            }
            try Self.insert(session, auditing: event, transaction)
            return .added
        }
    }

    /// Adds a session. The transaction has checked all conditions before.
    static func insert(_ session: StoredSession, auditing event: StoredAuditEvent?, _ transaction: PostgresTransaction) throws {
        if let event { try record(event, at: session.began, transaction) }
        try transaction.enqueue(
            """
            DELETE FROM sessions WHERE id IN (
                SELECT id FROM sessions WHERE kept < $1 ORDER BY kept LIMIT 100 FOR UPDATE SKIP LOCKED)
            """, session.began)
        try transaction.enqueue(
            """
            INSERT INTO sessions (\(PostgresCredentialTables.sessionColumns)) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
            """, Data(session.id), session.account, session.container, session.environment.rawValue, session.kind,
            session.began, session.kept, session.device, session.used, session.address, session.system)
    }

    package func keepSession(_ id: [UInt8], until kept: Int64) async throws {
        try await database.write { transaction in
            try transaction.enqueue("UPDATE sessions SET kept = $2 WHERE id = $1 AND kept < $2", Data(id), kept)
        }
    }

    package func note(_ uses: [SessionUse]) async throws {
        // Servers lock the rows in one order, so that they don't wait for each other.
        let uses = uses.sorted { $0.session.lexicographicallyPrecedes($1.session) }
        try await database.write { transaction in
            for use in uses where use.address.isStorable {
                try transaction.enqueue(
                    "UPDATE sessions SET used = $2, address = $3 WHERE id = $1 AND used < $2", Data(use.session), use.at,
                    use.address)
                try Self.keepKnown(
                    use.address, to: "(SELECT account FROM sessions WHERE id = $1)", Data(use.session), at: use.at, transaction)
            }
        }
    }

    package func renameSession(_ id: [UInt8], of account: String, to device: String) async throws -> Bool {
        guard account.isStorable, device.isStorable else { return false }
        return try await database.write { transaction in
            try transaction.query(
                "UPDATE sessions SET device = $3 WHERE id = $1 AND account = $2", Data(id), account, device
            ).affected > 0
        }
    }

    package func endSession(_ id: [UInt8]) async throws -> Bool {
        try await database.write { transaction in
            try transaction.query("DELETE FROM sessions WHERE id = $1", Data(id)).affected > 0
        }
    }

    package func endSessions(of account: String) async throws -> Int {
        guard account.isStorable else { return 0 }
        return try await database.write { transaction in
            try transaction.enqueue("DELETE FROM console_sessions WHERE account = $1", account)
            return try transaction.query("DELETE FROM sessions WHERE account = $1", account).affected
        }
    }

    package func endAllSessions() async throws -> Int {
        try await database.write { transaction in
            try transaction.enqueue("DELETE FROM console_sessions")
            return try transaction.query("DELETE FROM sessions").affected
        }
    }

    package func sessions(keptFrom time: Int64) async throws -> [StoredSession] {
        try await database.rows(
            "SELECT \(PostgresCredentialTables.sessionColumns) FROM sessions WHERE kept >= $1 ORDER BY began, id", time
        ).map { try PostgresCredentialTables.session($0) }
    }

    package func removeAccount(_ account: String) async throws {
        guard account.isStorable else { return }
        try await change { transaction in
            try Self.lockSyncFailures(transaction)
            // Rows that a sign-in locks are deleted before its session.
            for table in [
                "operators", "passwords", "identities", "sessions", "known_addresses", "console_sessions", "second_factors",
            ] {
                try transaction.enqueue("DELETE FROM \(table) WHERE account = $1", account)
            }
            try Self.removeSyncFailures(of: account, transaction)
            let keys = try transaction.query("DELETE FROM server_keys WHERE account = $1", account)
            return ((), keys.affected > 0)
        }
    }

    // Known addresses

    package func addresses(of account: String, keptFrom time: Int64) async throws -> Set<String> {
        guard account.isStorable else { return [] }
        let rows = try await database.rows(
            "SELECT DISTINCT address FROM sessions WHERE account = $1 AND kept >= $2 AND address <> ''", account, time)
        return Set(try rows.map { try $0.value(0, as: String.self) })
    }

    package func isKnown(_ address: String, to account: String, at now: Int64) async throws -> Bool {
        guard address.isStorable, account.isStorable else { return false }
        return try await database.rows(
            """
            SELECT EXISTS (SELECT FROM known_addresses WHERE account = $1 AND address = $2 AND used > $3)
                OR EXISTS (SELECT FROM sessions WHERE account = $1 AND address = $2 AND kept >= $4)
            """, account, address, now - CredentialLimits.knownAge, now)[0].value(0)
    }

    /// Records an address from which an account was signed in to. Beyond the limit, the addresses used longest ago are removed.
    ///
    /// - Parameters:
    ///   - account: The account in SQL, made of the parameter `$1`.
    ///   - parameter: The value of that parameter.
    static func keepKnown(
        _ address: String, to account: String, _ parameter: any PostgresParameter, at now: Int64,
        _ transaction: PostgresTransaction
    ) throws {
        guard !address.isEmpty, address.isStorable else { return }
        try transaction.enqueue(
            """
            INSERT INTO known_addresses AS known (account, address, used)
            SELECT account, $2, $3 FROM (SELECT \(account) AS account) AS it WHERE account IS NOT NULL
            ON CONFLICT (account, address) DO UPDATE SET used = greatest(known.used, excluded.used)
            """, parameter, address, now)
        try transaction.enqueue(
            """
            DELETE FROM known_addresses WHERE account = \(account) AND (used <= $2 OR address NOT IN
                (SELECT address FROM known_addresses WHERE account = \(account) ORDER BY used DESC, address LIMIT $3))
            """, parameter, now - CredentialLimits.knownAge, Int64(CredentialLimits.knownAddresses))
    }

    // The audit log

    package func audit(_ event: StoredAuditEvent, at time: Int64) async throws {
        try await database.write { transaction in try Self.record(event, at: time, transaction) }
    }

    package func auditLog(_ filter: AuditLogFilter, limit: Int) async throws -> [AuditLogEntry] {
        guard filter.account?.isStorable ?? true, filter.container?.isStorable ?? true else { return [] }
        return try await database.rows(
            filter.statement(
                "number, at, action, actor, account, address, container, subject, outcome, before_change, after_change",
                from: "audit_log"), filter.since, filter.account, filter.container, filter.before, Int64(limit)
        ).map { row in
            AuditLogEntry(
                number: try row.value(0), at: try row.value(1),
                event: StoredAuditEvent(
                    action: try row.value(2), actor: try row.value(3), account: try row.value(4), address: try row.value(5),
                    container: try row.value(6), subject: try row.value(7), outcome: try row.value(8), before: try row.value(9),
                    after: try row.value(10)))
        }
    }

    /// Adds an entry, and removes some of those whose time is over. Only the oldest entries are checked.
    static func record(_ event: StoredAuditEvent, at now: Int64, _ transaction: PostgresTransaction) throws {
        try transaction.enqueue(
            """
            INSERT INTO audit_log
                (at, action, actor, account, address, container, subject, outcome, before_change, after_change)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
            """, now, event.action, event.actor, event.account, event.address, event.container, event.subject, event.outcome,
            event.before, event.after)
        try transaction.enqueue(
            """
            DELETE FROM audit_log WHERE number IN (
                SELECT number FROM (
                    SELECT number, at FROM audit_log WHERE at < $2 ORDER BY at, number LIMIT $3 FOR UPDATE SKIP LOCKED) AS old
                WHERE at < $1 OR number <= (SELECT max(number) FROM audit_log) - $4)
            AND at < (SELECT max(at) FROM audit_log) - $5
            """, now - CredentialLimits.auditAge, now - CredentialLimits.day, Int64(CredentialLimits.auditTrimming),
            CredentialLimits.auditEntries, CredentialLimits.day)
    }
}
