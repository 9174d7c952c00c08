import Foundation
package import TidemarkCloud
package import TidemarkCloudEngine
import TidemarkModel

/// Stores the credentials of a served cloud in PostgreSQL, for any number of servers.
///
/// A change holds for all servers from the commit on. Each request looks its session up, and compares the revision of what the
/// server has cached with the database's (``PostgresCredentialCache``). Notifications only spare the first request after a change
/// a second round trip.
package final class PostgresCredentialStorage: CredentialStorage {
    let database: PostgresDatabase
    private let cache: PostgresCredentialCache
    private let listener: PostgresListener?
    /// Refreshes the cache after changes by other servers.
    private let listening: Task<Void, Never>?

    /// The topic by which servers notify each other of changes.
    private static let topic = "tidemark.credentials"
    /// SQL of a random revision. A counter could return to a cached number, when a database is restored from a backup and then
    /// changed as often as it was since the backup.
    package static let revision = "floor(random() * 9007199254740991)::int8"
    private static let newRevision = "UPDATE credential_state SET revision = \(revision)"

    /// Brings the tables to their newest version, and opens them.
    ///
    /// - Parameters:
    ///   - listener: Receives the notifications of other servers.
    ///   - random: Makes the secret of a new database.
    /// - Throws: `CloudError`, made by `CloudError.init(postgres:)`.
    package static func open(
        _ database: PostgresDatabase, listener: PostgresListener? = nil, random: (Int) -> [UInt8] = systemRandom
    ) async throws(CloudError) -> PostgresCredentialStorage {
        let secret = Data(random(32))
        do {
            // Sessions are looked up together with their accounts, so the tables of accounts have to be there.
            try await PostgresAccountStorage.migrations.run(on: database)
            try await PostgresCredentialTables.migrations.run(on: database)
            let rows = try await database.query("SELECT FROM credential_state")
            if rows.isEmpty {
                // Of servers that start at once, one makes the secret.
                try await database.transaction { transaction in
                    try transaction.enqueue(
                        "INSERT INTO credential_state (is_only, revision, secret) VALUES (true, \(Self.revision), $1) ON CONFLICT DO NOTHING",
                        secret)
                }
            }
            return PostgresCredentialStorage(database, try await PostgresCredentialCache(database), listener)
        } catch {
            throw CloudError(postgres: error)
        }
    }

    private init(_ database: PostgresDatabase, _ cache: PostgresCredentialCache, _ listener: PostgresListener?) {
        (self.database, self.cache, self.listener) = (database, cache, listener)
        guard let changes = listener?.changes(of: Self.topic) else {
            listening = nil
            return
        }
        listening = Task {
            for await _ in changes {
                do {
                    try await cache.refresh()
                } catch {
                    // Each request refreshes the cache itself.
                }
            }
        }
    }

    deinit { listening?.cancel() }

    private static func systemRandom(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }

    // For every request

    package func current() -> StoredCredentials { cache.current }

    package func refresh() async throws {
        do throws(PostgresError) {
            try await cache.refresh()
        } catch {
            throw CloudError(postgres: error)
        }
    }

    package func session(_ id: [UInt8]) async throws -> StoredSession? {
        do throws(PostgresError) {
            return try await cache.session(id)
        } catch {
            throw CloudError(postgres: error)
        }
    }

    /// All requests are noted, whichever server they came to.
    package var notedSince: Int64? { nil }

    package func admit(
        _ mark: [UInt8], of key: String, signed second: Int64, at now: Int64, tolerance: Int64
    ) async throws -> SignedRequestAdmission {
        try await database.write { transaction in
            // Requests this old are not admitted by any server, even if the clocks of two differ.
            try transaction.enqueue(
                """
                DELETE FROM signed_requests WHERE (second, key, mark) IN (
                    SELECT second, key, mark FROM signed_requests WHERE second < $1
                    ORDER BY second LIMIT 100 FOR UPDATE SKIP LOCKED)
                """, now - 2 * tolerance)
            let added = try transaction.query(
                "INSERT INTO signed_requests (second, key, mark) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", second, key,
                Data(mark))
            return added.affected > 0 ? .admitted : .replayed
        }
    }

    // Containers, tokens, keys, and the secret

    /// Changes credentials that servers cache, and notifies the servers after the commit.
    ///
    /// - Parameter body: Returns whether something has changed.
    func change<Answer: Sendable>(
        _ body: @escaping @Sendable (PostgresTransaction) throws -> (answer: Answer, hasChanged: Bool)
    ) async throws -> Answer {
        let (answer, hasChanged) = try await database.write { transaction in
            let result = try body(transaction)
            if result.hasChanged { try transaction.enqueue(Self.newRevision) }
            return result
        }
        guard hasChanged else { return answer }
        listener?.post(Self.topic)
        do {
            try await refresh()
        } catch {
            // The change is committed. The next request refreshes the cache.
        }
        return answer
    }

    package func addContainer(_ name: String, at time: Int64) async throws {
        try await change { transaction in
            let added = try transaction.query(
                "INSERT INTO served_containers (name, added) VALUES ($1, $2) ON CONFLICT DO NOTHING", name, time)
            return ((), added.affected > 0)
        }
    }

    package func removeContainer(_ name: String) async throws -> Bool {
        try await remove("DELETE FROM served_containers WHERE name = $1", name)
    }

    package func add(_ token: StoredAPIToken) async throws -> CredentialAddition {
        guard token.container.isStorable else { return .containerIsNotServed }
        return try await change { transaction in
            guard try Self.hasContainer(token.container, transaction) else { return (.containerIsNotServed, false) }
            let added = try transaction.query(
                """
                INSERT INTO api_tokens (\(PostgresCredentialTables.tokenColumns)) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
                ON CONFLICT DO NOTHING
                """, token.id, Data(token.digest), token.container, token.environment.rawValue, Data(token.name.utf8),
                token.redirect, token.popup, token.origins, token.made)
            return added.affected > 0 ? (.added, true) : (.exists, false)
        }
    }

    package func removeAPIToken(_ id: String) async throws -> Bool {
        try await remove("DELETE FROM api_tokens WHERE id = $1", id)
    }

    package func add(_ key: StoredServerKey) async throws -> CredentialAddition {
        guard key.container.isStorable else { return .containerIsNotServed }
        return try await change { transaction in
            guard try Self.hasContainer(key.container, transaction) else { return (.containerIsNotServed, false) }
            let added = try transaction.query(
                """
                INSERT INTO server_keys (\(PostgresCredentialTables.keyColumns)) VALUES ($1, $2, $3, $4, $5, $6, $7)
                ON CONFLICT DO NOTHING
                """, key.id, key.container, key.environment.rawValue, Data(key.name.utf8), key.account, Data(key.publicKey),
                key.made)
            return added.affected > 0 ? (.added, true) : (.exists, false)
        }
    }

    package func removeKey(_ id: String) async throws -> Bool { try await remove("DELETE FROM server_keys WHERE id = $1", id) }

    private func remove(_ statement: String, _ id: String) async throws -> Bool {
        guard id.isStorable else { return false }
        return try await change { transaction in
            let isThere = try transaction.query(statement, id).affected > 0
            return (isThere, isThere)
        }
    }

    static func hasContainer(_ name: String, _ transaction: PostgresTransaction) throws -> Bool {
        // The lock keeps the container's row until the transaction ends.
        try !transaction.query("SELECT FROM served_containers WHERE name = $1 FOR KEY SHARE", name).isEmpty
    }

    package func replaceSecret(by secret: [UInt8], keepingPreviousUntil until: Int64?) async throws -> Int {
        try await change { transaction in
            try transaction.enqueue(
                """
                UPDATE credential_state SET previous = CASE WHEN $2::int8 IS NULL THEN NULL ELSE secret END, previous_until = $2,
                    secret = $1
                """, Data(secret), until)
            if until == nil { try transaction.enqueue("DELETE FROM console_sessions") }
            let ended = until == nil ? try transaction.query("DELETE FROM sessions").affected : 0
            return (ended, true)
        }
    }
}
