import TidemarkCloud
import TidemarkModel

/// User record names of accounts in a container.
///
/// A user record name is a digest, so only a row leads from it to its account. The first request for a name in a container writes
/// the names of all accounts, in steps: a transaction over millions of rows would keep new accounts waiting. A new account is
/// stored together with its names in all containers.
///
/// Adding an account and registering a container take the same advisory lock: the former shares it, the latter has it alone, for
/// a moment.
extension PostgresAccountStorage {
    /// The number of the advisory lock: "tidename" in ASCII.
    static let namingLock: Int64 = 0x7469_6465_6e61_6d65
    /// Accounts that are named in one transaction.
    private static let namedAtOnce: Int64 = 2_000

    /// How long a request waits before it checks again whether another one still writes names.
    private static let pause = Duration.milliseconds(50)

    private enum Naming: Sendable {
        case complete, incomplete
        /// Another request writes names, on this server or another.
        case busy
    }

    /// Writes the missing user record names of a container.
    ///
    /// - Throws: `CloudError` `serviceUnavailable`, with `retryAfter`, where it takes longer than ``namingPatience``. The next
    ///   request continues the work.
    func name(_ container: String) async throws(CloudError) {
        let found = try await database.rows(
            """
            SELECT n.named_to FROM account_containers AS c LEFT JOIN account_namings AS n ON n.container = c.name WHERE c.name = $1
            """, container)
        let isComplete = try CloudError.ofPostgres { try found.first.map { try $0.value(0, as: String?.self) == nil } }
        if isComplete == true { return }
        if isComplete == nil { try await begin(container) }
        let clock = ContinuousClock()
        let end = clock.now + namingPatience
        while true {
            let naming = try await nameSome(container)
            if naming == .complete { return }
            var mayGoOn = clock.now < end
            // The pause holds no connection. A task that is cancelled in it ends as one that has waited for too long.
            if naming == .busy, mayGoOn { mayGoOn = (try? await clock.sleep(for: Self.pause)) != nil }
            guard mayGoOn else {
                throw CloudError(
                    .serviceUnavailable,
                    forClients: "the names of accounts in this container are being written, for the first time",
                    retryAfter: .seconds(1))
            }
        }
    }

    /// Registers a container. From then on each new account gets its name in it.
    private func begin(_ container: String) async throws(CloudError) {
        try await database.write { transaction in
            try transaction.enqueue("SELECT pg_advisory_xact_lock($1)", Self.namingLock)
            try transaction.enqueue(
                """
                WITH made AS (INSERT INTO account_containers (name) VALUES ($1) ON CONFLICT DO NOTHING RETURNING name)
                INSERT INTO account_namings (container, named_to) SELECT name, '' FROM made
                """, container)
        }
    }

    /// Names the next accounts, unless another request does.
    private func nameSome(_ container: String) async throws(CloudError) -> Naming {
        try await database.write { transaction in
            let naming = try transaction.query(
                "SELECT named_to FROM account_namings WHERE container = $1 FOR UPDATE SKIP LOCKED", container)
            guard let row = naming.first else {
                let others = try transaction.query("SELECT FROM account_namings WHERE container = $1", container)
                return others.isEmpty ? .complete : .busy
            }
            let named = try transaction.query(
                """
                WITH a AS MATERIALIZED (SELECT id FROM accounts WHERE id > $2 ORDER BY id LIMIT $3 FOR KEY SHARE), made AS (
                    INSERT INTO account_names (container, name, account)
                    SELECT c.name, \(Self.userRecordName), a.id FROM account_containers AS c, a WHERE c.name = $1
                    ON CONFLICT DO NOTHING)
                SELECT count(*), max(id) FROM a
                """, container, try row.value(0, as: String.self), Self.namedAtOnce)
            let count: Int64 = try named[0].value(0)
            guard count == Self.namedAtOnce, let last: String = try named[0].value(1, as: String?.self) else {
                try transaction.enqueue("DELETE FROM account_namings WHERE container = $1", container)
                return .complete
            }
            try transaction.enqueue("UPDATE account_namings SET named_to = $2 WHERE container = $1", container, last)
            return .incomplete
        }
    }
}
