import Foundation
import GRDB
import TidemarkCloudEngine

/// Identities of identity providers.
extension SQLiteCredentialStorage {
    func identity(_ key: IdentityKey) async throws -> StoredIdentity? {
        try await writer.read { db in try StoredIdentity(key, db) }
    }

    func identities(of account: String) async throws -> [StoredIdentity] {
        try await writer.read { db in
            try Row.fetchAll(
                db, sql: "SELECT * FROM identities WHERE account = ? ORDER BY added, issuer, subject", arguments: [account]
            ).map { try StoredIdentity($0) }
        }
    }

    func add(_ identity: StoredIdentity, most: Int) async throws -> IdentityAddition {
        try await writer.write { db in
            if let known = try StoredIdentity(identity.key, db) { return .exists(account: known.account) }
            let count = try Int.fetchOne(
                db, sql: "SELECT count(*) FROM identities WHERE account = ?", arguments: [identity.account])
            guard count ?? 0 < most else { return .tooMany }
            try db.execute(
                sql: "INSERT INTO identities (issuer, subject, account, label, added) VALUES (?, ?, ?, ?, ?)",
                arguments: [identity.key.issuer, identity.key.subject, identity.account, identity.label, identity.added])
            return .added
        }
    }

    func removeIdentity(_ key: IdentityKey, of account: String, evenIfLast: Bool) async throws -> IdentityRemoval {
        try await writer.write { db in
            guard try StoredIdentity(key, db)?.account == account else { return .notFound }
            let others = try Int.fetchOne(
                db,
                sql: """
                    SELECT (SELECT count(*) FROM identities WHERE account = ?1) - 1
                        + (SELECT count(*) FROM passwords WHERE account = ?1 AND digest <> x'')
                    """, arguments: [account])
            guard evenIfLast || others ?? 0 > 0 else { return .isLast }
            try db.execute(
                sql: "DELETE FROM identities WHERE issuer = ? AND subject = ?", arguments: [key.issuer, key.subject])
            return .removed
        }
    }

    func add(
        _ session: StoredConsoleSession, ifIdentityIs key: IdentityKey, auditing event: StoredAuditEvent
    ) async throws -> ConsoleSessionAddition {
        try await writer.write { db in
            guard try Self.mayBegin(session, db) else { return .isNoOperator }
            guard try StoredIdentity(key, db)?.account == session.account else { return .identityIsGone }
            try Self.insert(session, auditing: event, db)
            return .added
        }
    }

    func add(
        _ session: StoredSession, ifIdentityIs key: IdentityKey, auditing event: StoredAuditEvent
    ) async throws -> SessionAddition {
        try await writer.write { db in
            guard try CredentialTables.hasContainer(session.container, db) else { return .containerIsNotServed }
            guard try StoredIdentity(key, db)?.account == session.account else { return .identityIsGone }
            try Self.keepKnown(session.address, to: session.account, at: session.began, db)
            try Self.insert(session, auditing: event, db)
            return .added
        }
    }
}

extension StoredIdentity {
    fileprivate init(_ row: Row) throws {
        try self.init(
            key: IdentityKey(issuer: row.decode(forColumn: "issuer"), subject: row.decode(forColumn: "subject")),
            account: row.decode(forColumn: "account"), label: row.decode(forColumn: "label"),
            added: row.decode(forColumn: "added"))
    }

    /// The row of an identity.
    fileprivate init?(_ key: IdentityKey, _ db: Database) throws {
        // A text ends at a zero byte for SQLite: it would be another identity.
        guard !key.issuer.utf8.contains(0), !key.subject.utf8.contains(0) else { return nil }
        guard
            let row = try Row.fetchOne(
                db, sql: "SELECT * FROM identities WHERE issuer = ? AND subject = ?", arguments: [key.issuer, key.subject])
        else { return nil }
        try self.init(row)
    }
}
