import Foundation
package import TidemarkCloudEngine

/// Operators and their sessions of the console.
extension PostgresCredentialStorage {
    private static let operatorColumns = "account, role, containers, added"
    private static let consoleColumns = "id, account, began, expires, used, confirmed, device, address, kind"

    package func operators() async throws -> [StoredOperator] {
        try await database.rows("SELECT \(Self.operatorColumns) FROM operators ORDER BY account").map {
            try Self.storedOperator($0)
        }
    }

    package func storedOperator(_ account: String) async throws -> StoredOperator? {
        guard account.isStorable else { return nil }
        return try await database.rows("SELECT \(Self.operatorColumns) FROM operators WHERE account = $1", account).first
            .map { try Self.storedOperator($0) }
    }

    package func setOperator(_ row: StoredOperator) async throws {
        try await database.write { transaction in
            try transaction.enqueue(
                """
                INSERT INTO operators (\(Self.operatorColumns)) VALUES ($1, $2, $3, $4)
                ON CONFLICT (account) DO UPDATE SET role = excluded.role, containers = excluded.containers
                """, row.account, row.role, row.containers, row.added)
        }
    }

    package func removeOperator(_ account: String) async throws -> Bool {
        guard account.isStorable else { return false }
        return try await database.write { transaction in
            // The operator's row goes first. A sign-in locks it until its session is committed, so the next statement sees that
            // session.
            let removed = try transaction.query("DELETE FROM operators WHERE account = $1", account).affected > 0
            try transaction.enqueue("DELETE FROM console_sessions WHERE account = $1 AND kind = 'console'", account)
            return removed
        }
    }

    /// Codes are counted like attempts to sign in, by all servers together.
    package func countCode(_ rate: SignInRate) async throws -> Double? {
        try await PostgresSignInRates(database).wait(for: [rate], at: 0) ?? 0
    }

    package func forgetCodes(_ rate: SignInRate) async throws { try await PostgresSignInRates(database).forget(rate) }

    package func add(
        _ session: StoredConsoleSession, ifPasswordIs password: StoredPassword, auditing event: StoredAuditEvent
    ) async throws -> ConsoleSessionAddition {
        try await database.write { transaction in
            let rows = try transaction.run([
                PostgresCommand("SELECT FROM operators WHERE account = $1 FOR SHARE", [session.account]),
                PostgresCommand(
                    "SELECT log_n, r, p, salt, digest FROM passwords WHERE account = $1 FOR SHARE", [session.account]),
            ])
            guard !rows[0].isEmpty || session.kind == .account else { return .isNoOperator }
            guard try rows[1].first.flatMap({ try Self.password($0) }) == password else { return .passwordIsAnother }
            try Self.insert(session, auditing: event, transaction)
            return .added
        }
    }

    /// Adds a session of web pages. The transaction has checked all conditions before.
    static func insert(
        _ session: StoredConsoleSession, auditing event: StoredAuditEvent, _ transaction: PostgresTransaction
    ) throws {
        try keepKnown(session.address, to: "$1", session.account, at: session.began, transaction)
        try record(event, at: session.began, transaction)
        try transaction.enqueue(
            """
            DELETE FROM console_sessions WHERE id IN (
                SELECT id FROM console_sessions WHERE expires <= $1 ORDER BY expires LIMIT 100 FOR UPDATE SKIP LOCKED)
            """, session.began)
        try transaction.enqueue(
            "INSERT INTO console_sessions (\(consoleColumns)) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            Data(session.id), session.account, session.began, session.expires, session.used, session.confirmed,
            session.device, session.address, session.kind.rawValue)
    }

    package func consoleSession(_ id: [UInt8]) async throws -> StoredConsoleSession? {
        try await database.rows("SELECT \(Self.consoleColumns) FROM console_sessions WHERE id = $1", Data(id)).first
            .map { try Self.consoleSession($0) }
    }

    package func noteConsoleSession(_ id: [UInt8], used: Int64, confirmed: Int64) async throws {
        try await database.write { transaction in
            try transaction.enqueue(
                """
                UPDATE console_sessions SET used = greatest(used, $2), confirmed = greatest(confirmed, $3) WHERE id = $1
                """, Data(id), used, confirmed)
        }
    }

    package func endConsoleSession(_ id: [UInt8]) async throws -> Bool {
        try await database.write { transaction in
            try transaction.query("DELETE FROM console_sessions WHERE id = $1", Data(id)).affected > 0
        }
    }

    package func consoleSessions(of account: String?, at now: Int64) async throws -> [StoredConsoleSession] {
        guard account?.isStorable ?? true else { return [] }
        let select = "SELECT \(Self.consoleColumns) FROM console_sessions WHERE expires > $1"
        guard let account else {
            return try await database.rows("\(select) ORDER BY began, id", now).map { try Self.consoleSession($0) }
        }
        return try await database.rows("\(select) AND account = $2 ORDER BY began, id", now, account).map {
            try Self.consoleSession($0)
        }
    }

    package func sessions(of account: String, keptFrom time: Int64) async throws -> [StoredSession] {
        guard account.isStorable else { return [] }
        return try await database.rows(
            """
            SELECT \(PostgresCredentialTables.sessionColumns) FROM sessions WHERE account = $1 AND kept >= $2 ORDER BY began, id
            """, account, time
        ).map { try PostgresCredentialTables.session($0) }
    }

    package func secondFactor(of account: String) async throws -> StoredSecondFactor? {
        guard account.isStorable else { return nil }
        let rows = try await database.rows(
            "SELECT account, secret, recovery, step, added FROM second_factors WHERE account = $1", account)
        return try rows.first.map { row in
            StoredSecondFactor(
                account: try row.value(0), secret: [UInt8](try row.value(1, as: Data.self)),
                recovery: [UInt8](try row.value(2, as: Data.self)), step: try row.value(3), added: try row.value(4))
        }
    }

    package func setSecondFactor(_ row: StoredSecondFactor?, of account: String) async throws {
        guard account.isStorable else { return }
        try await database.write { transaction in
            guard let row else {
                return try transaction.enqueue("DELETE FROM second_factors WHERE account = $1", account)
            }
            try transaction.enqueue(
                """
                INSERT INTO second_factors (account, secret, recovery, step, added) VALUES ($1, $2, $3, $4, $5)
                ON CONFLICT (account) DO UPDATE SET secret = excluded.secret, recovery = excluded.recovery, step = excluded.step,
                    added = excluded.added
                """, account, Data(row.secret), Data(row.recovery), row.step, row.added)
        }
    }

    package func replaceSecondFactor(_ old: StoredSecondFactor, by new: StoredSecondFactor) async throws -> Bool {
        try await database.write { transaction in
            try transaction.query(
                """
                UPDATE second_factors SET recovery = $1, step = $2
                WHERE account = $3 AND secret = $4 AND recovery = $5 AND step = $6
                """, Data(new.recovery), new.step, old.account, Data(old.secret), Data(old.recovery), old.step
            ).affected > 0
        }
    }

    private static func storedOperator(_ row: PostgresRow) throws -> StoredOperator {
        StoredOperator(
            account: try row.value(0), role: try row.value(1), containers: try row.value(2), added: try row.value(3))
    }

    private static func consoleSession(_ row: PostgresRow) throws -> StoredConsoleSession {
        guard let kind = StoredConsoleSession.Kind(rawValue: try row.value(8)) else {
            throw PostgresError(.decoding, "the database has a session of pages of no known kind")
        }
        return StoredConsoleSession(
            id: [UInt8](try row.value(0, as: Data.self)), kind: kind, account: try row.value(1), began: try row.value(2),
            expires: try row.value(3), used: try row.value(4), confirmed: try row.value(5), device: try row.value(6),
            address: try row.value(7))
    }
}
