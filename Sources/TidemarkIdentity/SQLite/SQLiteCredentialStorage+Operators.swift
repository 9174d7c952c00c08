import Foundation
import GRDB
import TidemarkCloudEngine

/// Operators and their sessions of the console.
extension SQLiteCredentialStorage {
    func operators() async throws -> [StoredOperator] {
        try await writer.read { db in
            try Row.fetchAll(db, sql: "SELECT * FROM operators ORDER BY account").map { try StoredOperator($0) }
        }
    }

    func storedOperator(_ account: String) async throws -> StoredOperator? {
        try await writer.read { db in
            try Row.fetchOne(db, sql: "SELECT * FROM operators WHERE account = ?", arguments: [account])
                .map { try StoredOperator($0) }
        }
    }

    func setOperator(_ row: StoredOperator) async throws {
        try await writer.write { db in
            try db.execute(
                sql: """
                    INSERT INTO operators (account, role, containers, added) VALUES (?, ?, ?, ?)
                    ON CONFLICT (account) DO UPDATE SET role = excluded.role, containers = excluded.containers
                    """,
                arguments: [
                    row.account, row.role, String(decoding: try JSONEncoder().encode(row.containers), as: UTF8.self), row.added,
                ])
        }
    }

    func removeOperator(_ account: String) async throws -> Bool {
        try await writer.write { db in
            try db.execute(sql: "DELETE FROM console_sessions WHERE account = ? AND kind = 'console'", arguments: [account])
            try db.execute(sql: "DELETE FROM operators WHERE account = ?", arguments: [account])
            return db.changesCount > 0
        }
    }

    func add(
        _ session: StoredConsoleSession, ifPasswordIs password: StoredPassword, auditing event: StoredAuditEvent
    ) async throws -> ConsoleSessionAddition {
        try await writer.write { db in
            guard try Self.mayBegin(session, db) else { return .isNoOperator }
            guard try StoredPassword(of: session.account, db) == password else { return .passwordIsAnother }
            try Self.insert(session, auditing: event, db)
            return .added
        }
    }

    /// Whether the account may have a session of pages of that kind.
    static func mayBegin(_ session: StoredConsoleSession, _ db: Database) throws -> Bool {
        guard session.kind == .console else { return true }
        let isOperator = try Bool.fetchOne(
            db, sql: "SELECT EXISTS (SELECT 1 FROM operators WHERE account = ?)", arguments: [session.account])
        return isOperator == true
    }

    /// Adds a session of pages. The transaction has checked the conditions before.
    static func insert(_ session: StoredConsoleSession, auditing event: StoredAuditEvent, _ db: Database) throws {
        try keepKnown(session.address, to: session.account, at: session.began, db)
        try record(event, at: session.began, db)
        try db.execute(sql: "DELETE FROM console_sessions WHERE expires <= ?", arguments: [session.began])
        try db.execute(
            sql: """
                INSERT INTO console_sessions (id, account, began, expires, used, confirmed, device, address, kind)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                Data(session.id), session.account, session.began, session.expires, session.used, session.confirmed,
                session.device, session.address, session.kind.rawValue,
            ])
    }

    func consoleSession(_ id: [UInt8]) async throws -> StoredConsoleSession? {
        try await writer.read { db in
            try Row.fetchOne(db, sql: "SELECT * FROM console_sessions WHERE id = ?", arguments: [Data(id)])
                .map { try StoredConsoleSession($0) }
        }
    }

    func noteConsoleSession(_ id: [UInt8], used: Int64, confirmed: Int64) async throws {
        try await writer.write { db in
            try db.execute(
                sql: "UPDATE console_sessions SET used = max(used, ?), confirmed = max(confirmed, ?) WHERE id = ?",
                arguments: [used, confirmed, Data(id)])
        }
    }

    func endConsoleSession(_ id: [UInt8]) async throws -> Bool {
        try await writer.write { db in
            try db.execute(sql: "DELETE FROM console_sessions WHERE id = ?", arguments: [Data(id)])
            return db.changesCount > 0
        }
    }

    func consoleSessions(of account: String?, at now: Int64) async throws -> [StoredConsoleSession] {
        try await writer.read { db in
            let (select, order) = ("SELECT * FROM console_sessions WHERE expires > ?", "ORDER BY began, id")
            let rows: [Row]
            if let account {
                rows = try Row.fetchAll(db, sql: "\(select) AND account = ? \(order)", arguments: [now, account])
            } else {
                rows = try Row.fetchAll(db, sql: "\(select) \(order)", arguments: [now])
            }
            return try rows.map { try StoredConsoleSession($0) }
        }
    }

    func sessions(of account: String, keptFrom time: Int64) async throws -> [StoredSession] {
        try await writer.read { db in
            try Row.fetchAll(
                db, sql: "SELECT * FROM sessions WHERE account = ? AND kept >= ? ORDER BY began, id", arguments: [account, time]
            ).map { try StoredSession($0) }
        }
    }

    func secondFactor(of account: String) async throws -> StoredSecondFactor? {
        try await writer.read { db in
            try Row.fetchOne(db, sql: "SELECT * FROM second_factors WHERE account = ?", arguments: [account])
                .map { try StoredSecondFactor($0) }
        }
    }

    func setSecondFactor(_ row: StoredSecondFactor?, of account: String) async throws {
        try await writer.write { db in
            try db.execute(sql: "DELETE FROM second_factors WHERE account = ?", arguments: [account])
            guard let row else { return }
            try db.execute(
                sql: "INSERT INTO second_factors (account, secret, recovery, step, added) VALUES (?, ?, ?, ?, ?)",
                arguments: [account, Data(row.secret), Data(row.recovery), row.step, row.added])
        }
    }

    func replaceSecondFactor(_ old: StoredSecondFactor, by new: StoredSecondFactor) async throws -> Bool {
        try await writer.write { db in
            try db.execute(
                sql: """
                    UPDATE second_factors SET recovery = ?, step = ?
                    WHERE account = ? AND secret = ? AND recovery = ? AND step = ?
                    """,
                arguments: [
                    Data(new.recovery), new.step, old.account, Data(old.secret), Data(old.recovery), old.step,
                ])
            return db.changesCount > 0
        }
    }

    /// Ends an account's sessions of the console, in a transaction that ends its other sessions.
    static func endConsoleSessions(of account: String, _ db: Database) throws {
        try db.execute(sql: "DELETE FROM console_sessions WHERE account = ?", arguments: [account])
    }
}

extension StoredOperator {
    fileprivate init(_ row: Row) throws {
        let containers: String = try row.decode(forColumn: "containers")
        try self.init(
            account: row.decode(forColumn: "account"), role: row.decode(forColumn: "role"),
            containers: JSONDecoder().decode([String].self, from: Data(containers.utf8)), added: row.decode(forColumn: "added"))
    }
}

extension StoredSecondFactor {
    fileprivate init(_ row: Row) throws {
        try self.init(
            account: row.decode(forColumn: "account"), secret: Array(row.decode(Data.self, forColumn: "secret")),
            recovery: Array(row.decode(Data.self, forColumn: "recovery")), step: row.decode(forColumn: "step"),
            added: row.decode(forColumn: "added"))
    }
}

extension StoredConsoleSession {
    fileprivate init(_ row: Row) throws {
        guard let kind = Kind(rawValue: try row.decode(forColumn: "kind")) else {
            throw CredentialTables.damaged("kind of a session")
        }
        try self.init(
            id: Array(row.decode(Data.self, forColumn: "id")), kind: kind, account: row.decode(forColumn: "account"),
            began: row.decode(forColumn: "began"), expires: row.decode(forColumn: "expires"),
            used: row.decode(forColumn: "used"), confirmed: row.decode(forColumn: "confirmed"),
            device: row.decode(forColumn: "device"), address: row.decode(forColumn: "address"))
    }
}
