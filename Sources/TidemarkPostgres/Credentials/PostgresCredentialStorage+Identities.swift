import Foundation
package import TidemarkCloudEngine

/// Identities of identity providers.
extension PostgresCredentialStorage {
    private static let identityColumns = "issuer, subject, account, label, added"

    package func identity(_ key: IdentityKey) async throws -> StoredIdentity? {
        guard key.isStorable else { return nil }
        return try await database.rows(
            "SELECT \(Self.identityColumns) FROM identities WHERE issuer = $1 AND subject = $2", key.issuer, key.subject
        ).first.map { try Self.identity($0) }
    }

    package func identities(of account: String) async throws -> [StoredIdentity] {
        guard account.isStorable else { return [] }
        return try await database.rows(
            "SELECT \(Self.identityColumns) FROM identities WHERE account = $1 ORDER BY added, issuer, subject", account
        ).map { try Self.identity($0) }
    }

    package func add(_ identity: StoredIdentity, most: Int) async throws -> IdentityAddition {
        try await database.write { transaction in
            let rows = try transaction.run([
                PostgresCommand(
                    "SELECT account FROM identities WHERE issuer = $1 AND subject = $2", Self.parameters(identity.key)),
                PostgresCommand("SELECT count(*) FROM identities WHERE account = $1", [identity.account]),
            ])
            if let known = rows[0].first { return .exists(account: try known.value(0)) }
            guard try rows[1].first.map({ try $0.value(0, as: Int64.self) }) ?? 0 < Int64(most) else { return .tooMany }
            let added = try transaction.query(
                "INSERT INTO identities (\(Self.identityColumns)) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
                identity.key.issuer, identity.key.subject, identity.account, identity.label, identity.added)
            guard added.affected == 0 else { return .added }
            // Another server was first.
            let known = try transaction.query(
                "SELECT account FROM identities WHERE issuer = $1 AND subject = $2", identity.key.issuer, identity.key.subject)
            return .exists(account: try known.first.map { try $0.value(0) } ?? "")
        }
    }

    package func removeIdentity(
        _ key: IdentityKey, of account: String, evenIfLast: Bool
    ) async throws -> IdentityRemoval {
        guard key.isStorable, account.isStorable else { return .notFound }
        return try await database.write { transaction in
            let rows = try transaction.run([
                // Transactions that remove the password, or that disconnect another identity of the account, wait for this one.
                PostgresCommand("SELECT FROM passwords WHERE account = $1 AND digest <> '' FOR SHARE", [account]),
                PostgresCommand(
                    "SELECT \(Self.identityColumns) FROM identities WHERE account = $1 ORDER BY issuer, subject FOR UPDATE",
                    [account]),
            ])
            let identities = try rows[1].map { try Self.identity($0).key }
            guard identities.contains(key) else { return .notFound }
            guard evenIfLast || !rows[0].isEmpty || identities.count > 1 else { return .isLast }
            try transaction.enqueue(
                "DELETE FROM identities WHERE issuer = $1 AND subject = $2", key.issuer, key.subject)
            return .removed
        }
    }

    package func add(
        _ session: StoredConsoleSession, ifIdentityIs key: IdentityKey, auditing event: StoredAuditEvent
    ) async throws -> ConsoleSessionAddition {
        guard key.isStorable else { return .identityIsGone }
        return try await database.write { transaction in
            let rows = try transaction.run([
                PostgresCommand("SELECT FROM operators WHERE account = $1 FOR SHARE", [session.account]), Self.holding(key),
            ])
            guard !rows[0].isEmpty || session.kind == .account else { return .isNoOperator }
            guard try Self.isHeld(rows[1], by: session.account) else { return .identityIsGone }
            try Self.insert(session, auditing: event, transaction)
            return .added
        }
    }

    package func add(
        _ session: StoredSession, ifIdentityIs key: IdentityKey, auditing event: StoredAuditEvent
    ) async throws -> SessionAddition {
        guard session.container.isStorable else { return .containerIsNotServed }
        guard key.isStorable else { return .identityIsGone }
        return try await database.write { transaction in
            let rows = try transaction.run([
                PostgresCommand("SELECT FROM served_containers WHERE name = $1", [session.container]), Self.holding(key),
            ])
            guard !rows[0].isEmpty else { return .containerIsNotServed }
            guard try Self.isHeld(rows[1], by: session.account) else { return .identityIsGone }
            try Self.keepKnown(session.address, to: "$1", session.account, at: session.began, transaction)
            try Self.insert(session, auditing: event, transaction)
            return .added
        }
    }

    /// Reads the account of an identity. A transaction that disconnects the identity waits for this one.
    private static func holding(_ key: IdentityKey) -> PostgresCommand {
        PostgresCommand("SELECT account FROM identities WHERE issuer = $1 AND subject = $2 FOR SHARE", parameters(key))
    }

    private static func isHeld(_ rows: PostgresRows, by account: String) throws -> Bool {
        try rows.first.map { try $0.value(0, as: String.self) } == account
    }

    private static func parameters(_ key: IdentityKey) -> [any PostgresParameter] { [key.issuer, key.subject] }

    private static func identity(_ row: PostgresRow) throws -> StoredIdentity {
        StoredIdentity(
            key: IdentityKey(issuer: try row.value(0), subject: try row.value(1)), account: try row.value(2),
            label: try row.value(3), added: try row.value(4))
    }
}

extension IdentityKey {
    fileprivate var isStorable: Bool { issuer.isStorable && subject.isStorable }
}
