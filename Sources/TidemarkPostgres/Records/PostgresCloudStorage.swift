import Foundation
package import TidemarkCloud
package import TidemarkCloudEngine
package import TidemarkModel

/// Stores the rows of one container and environment in PostgreSQL. Any number of servers may use the same rows.
///
/// A write locks the row of each owner that it declares. A write of all owners excludes all other writes of the container, by an
/// advisory lock that every write takes. A lock on the container's row would not do, since even a shared one writes to the row.
package final class PostgresCloudStorage: CloudStorage {
    package let key: [UInt8]
    package let began: Int64
    package let commonChanges: Int64
    let database: PostgresDatabase
    /// How many transactions of this storage have written.
    private let writes = LockedValue(0)
    private let zoneRows: PostgresLookUp<PostgresZoneRows.Group, Data, PostgresRows>
    let context: PostgresCloudContext

    /// Opens the rows of a container, and makes it if there is none. ``PostgresCloudTables/migrations`` have been run.
    ///
    /// - Throws: `CloudError` `serviceUnavailable` where the database can't be reached; `internalError`.
    package convenience init(
        _ database: PostgresDatabase, container: String, environment: StoreEnvironment
    ) async throws(CloudError) {
        do {
            self.init(database, try await Container.open(container, environment, in: database))
        } catch {
            throw CloudError(postgres: error)
        }
    }

    private init(_ database: PostgresDatabase, _ container: Container) {
        (key, began, commonChanges) = (container.key, container.began, container.commonChanges)
        self.database = database
        context = PostgresCloudContext(
            container: container.number, writer: Data(Self.random(16)), commonChanges: container.commonChanges)
        zoneRows = PostgresZoneRows.lookUp(database, container: container.number)
    }

    private static func random(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }

    /// The row of a container in an environment.
    private struct Container: Sendable {
        let number: Int64
        let key: [UInt8]
        let began, commonChanges: Int64

        static func open(
            _ name: String, _ environment: StoreEnvironment, in database: PostgresDatabase
        ) async throws -> Container {
            if let found = try await database.read({ try find(name, environment, $0) }) { return found }
            let (key, id) = (random(16), random(16))
            return try await database.transaction { transaction in
                // Another server may just have made the container. The time is that of the database's clock, and not of this
                // server's.
                try transaction.enqueue(
                    """
                    INSERT INTO tidemark_containers (name, environment, key, began, common_changes)
                    VALUES ($1, $2, $3, (extract(epoch FROM now()) * 1000000)::int8, 0) ON CONFLICT (name, environment) DO NOTHING
                    """, name, environment.rawValue, Data(key))
                guard let made = try find(name, environment, transaction) else {
                    throw CloudError(.internalError, "the database forgets a container")
                }
                try transaction.enqueue(
                    """
                    INSERT INTO tidemark_incarnations (container, began, previous, id) VALUES ($1, 0, 0, $2)
                    ON CONFLICT (container, began) DO NOTHING
                    """, made.number, Data(id))
                return made
            }
        }

        private static func find(
            _ name: String, _ environment: StoreEnvironment, _ transaction: PostgresTransaction
        ) throws(PostgresError) -> Container? {
            let row = try transaction.query(
                "SELECT number, key, began, common_changes FROM tidemark_containers WHERE name = $1 AND environment = $2", name,
                environment.rawValue
            ).first
            guard let row else { return nil }
            return Container(
                number: try row.value(0), key: Array(try row.value(1, as: Data.self)), began: try row.value(2),
                commonChanges: try row.value(3))
        }
    }

    /// Runs a body over one committed state.
    package func read<Answer: Sendable>(
        _ body: @escaping @Sendable (any CloudTransaction) throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer {
        do {
            return try await database.read { [context] transaction in
                try body(PostgresCloudTransaction(transaction, context))
            }
        } catch {
            throw CloudError(postgres: error)
        }
    }

    /// Runs a body, with the rows of the owners locked. The body runs again after a rollback that it has not caused.
    ///
    /// If the connection breaks after COMMIT was sent, the answer that the transaction has stored under the request's client
    /// token tells whether the transaction is committed.
    ///
    /// - Throws: What the body throws, or `CloudError`:
    ///   - `zoneBusy` where others hold a lock for too long.
    ///   - `serviceUnavailable` where the database can't be reached.
    ///   - `networkFailure` where the outcome of COMMIT is unknown, since the request has no client token, or the database can't
    ///     be asked. The same request, sent again with its token, finds the outcome.
    ///   - `internalError`, also for a body that writes rows of an owner that it has not declared.
    package func write<Answer: Sendable>(
        owners: WrittenOwners, _ body: @escaping @Sendable (any CloudTransaction) throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer {
        try await write(owners: owners, expecting: nil, body)
    }

    /// Writes as ``write(owners:_:)`` does, and reads what the body is expected to need in the round trip of the locks.
    package func write<Answer: Sendable>(
        owners: WrittenOwners, expecting reads: ExpectedReads?,
        _ body: @escaping @Sendable (any CloudTransaction) throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer {
        let clock = ContinuousClock()
        let end = clock.now + database.configuration.patience
        while true {
            let last = LockedValue<Attempt<Answer>?>(nil)
            do {
                let answer = try await database.transaction { [context, metrics = database.metrics] transaction in
                    let rows = PostgresCloudTransaction(transaction, context, writing: owners)
                    try Self.lock(rows, expecting: reads, metrics)
                    let answer = try body(rows)
                    last.withLock { $0 = Attempt(answer: answer, kept: rows.state.kept, hasWritten: rows.state.hasWritten) }
                    return answer
                }
                if last.withLock({ $0?.hasWritten ?? false }) { await analyzeNewTable() }
                return answer
            } catch {
                guard (error as? PostgresError)?.code == .commitUnknown, let last = last.withLock({ $0 }) else {
                    throw CloudError(postgres: error)
                }
                switch await outcome(of: last.kept, hasWritten: last.hasWritten, owners) {
                case .committed: return last.answer
                case .rolledBack where clock.now < end: continue
                case .rolledBack, .unknown: throw CloudError(postgres: error)
                }
            }
        }
    }

    /// Locks what is to be written, and notes how long that took, also where it failed.
    private static func lock(
        _ rows: PostgresCloudTransaction, expecting reads: ExpectedReads?, _ metrics: PostgresMetrics
    ) throws {
        let clock = ContinuousClock()
        let began = clock.now
        defer { metrics.locked(after: began.duration(to: clock.now)) }
        try rows.lock(expecting: reads)
    }

    /// Analyzes the tables of records while they are new, after some writes. Without statistics PostgreSQL takes all indexes for
    /// equal, and looks a name up by an index that has all records of the zone. Autovacuum comes after a minute or more, too late
    /// for a bulk of saves.
    private func analyzeNewTable() async {
        let count = writes.withLock { count in
            count += 1
            return count
        }
        guard [4, 32, 256].contains(count) else { return }
        do {
            // With fewer than a thousand rows, the statistics tell little of later rows.
            let isKnown: Bool = try await database.query(
                "SELECT reltuples >= 1000 FROM pg_catalog.pg_class WHERE oid = 'tidemark_records'::regclass")[0].value(0)
            if !isKnown { _ = try await database.query("ANALYZE tidemark_records, tidemark_found") }
        } catch {
            // Without statistics the statements are slower, and right. Autovacuum comes later.
        }
    }

    /// A run of a body whose COMMIT was sent.
    private struct Attempt<Answer: Sendable>: Sendable {
        let answer: Answer
        let kept: PostgresCloudTransaction.StoredReply?
        let hasWritten: Bool
    }

    private enum Outcome { case committed, rolledBack, unknown }

    /// Finds out whether a transaction was committed whose COMMIT was not answered. Its locks are free only when it has ended.
    private func outcome(
        of kept: PostgresCloudTransaction.StoredReply?, hasWritten: Bool, _ owners: WrittenOwners
    ) async -> Outcome {
        // A transaction that has written nothing may run again.
        guard hasWritten else { return .rolledBack }
        guard let kept else { return .unknown }
        do {
            return try await database.transaction { [context] transaction in
                let rows = PostgresCloudTransaction(transaction, context, writing: owners)
                try rows.lock()
                // Another answer is that of the same request at another server, or of an earlier use of the token. The body finds
                // it when it runs again.
                return try rows.answer(to: kept.token, of: kept.user) == kept.answer ? .committed : .rolledBack
            }
        } catch {
            return .unknown
        }
    }

    /// Reads records together with those that other requests look up in the zone at the moment. Look-ups elsewhere share the
    /// round trip.
    package func readTogether<Answer>(
        _ names: [String], in place: StoredZone.Place, _ body: (any CloudTransaction) throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer? {
        let rows: PostgresRows
        do throws(PostgresError) {
            rows = try await zoneRows.found(
                for: names.map(\.key), in: .init(owner: place.owner, name: place.name))
        } catch {
            throw CloudError(postgres: error)
        }
        let transaction = PostgresTransaction()
        let together = PostgresCloudTransaction(transaction, context)
        together.state.together = PostgresZoneRows(place: place, rows: rows, names: Set(names.map(\.key)))
        let answer: Result<Answer, CloudError>
        do throws(CloudError) {
            answer = .success(try body(together))
        } catch {
            answer = .failure(error)
        }
        // The body has asked for rows that were not read.
        guard transaction.failure == nil else { return nil }
        return try answer.get()
    }

    /// Returns `nil`: the caller's thread must not wait for a network.
    package func readInline<Answer>(
        _ body: (any CloudTransaction) throws(CloudError) -> Answer
    ) throws(CloudError) -> Answer? { nil }
}

extension PostgresCloudTransaction {
    /// "tide" in ASCII: the first number of the advisory locks of containers. Their second is the container's.
    static let lockSpace = 1_953_064_037
    /// The second number of the lock that the writes of all containers share: no container has it.
    static let versionLock = 0

    /// Locks the owners that are to be written. If all of them have a row, this takes one round trip.
    ///
    /// The first lock is shared by all writes. A migration that older servers can't work with takes it alone. The version of the
    /// tables is read after it, so a write comes before such a migration, or sees it. A write that waits for this lock holds no
    /// other.
    ///
    /// - Parameter reads: What to read in the same round trip. Once the locks are there, nobody else changes it.
    /// - Throws: `PostgresError` `newerVersion`, or what a statement throws.
    func lock(expecting reads: ExpectedReads? = nil) throws {
        guard let written else { return }
        let mode = written == .all ? "" : "_shared"
        let all = PostgresCommand(
            """
            SELECT pg_advisory_xact_lock_shared(\(Self.lockSpace), \(Self.versionLock)),
                pg_advisory_xact_lock\(mode)(\(Self.lockSpace), $1::int4)
            """, [container])
        let first = PostgresCommand(Self.newestIncarnationAndVersion, [container])
        let names = written.names?.filter { !$0.isEmpty } ?? []
        guard !names.isEmpty else {
            try readFirstChange(try db.run([all, first])[1][0])
            return
        }
        let keys = names.map(\.key)
        let owners = PostgresCommand(
            """
            SELECT o.owner, o.change, EXISTS (SELECT FROM tidemark_writers w
                WHERE w.container = o.container AND w.owner = o.owner AND w.nonce = \(Self.nonce(of: "$3")))
            FROM tidemark_owners o WHERE o.container = $1 AND o.owner = ANY($2) ORDER BY o.owner FOR UPDATE OF o
            """, [container, keys, context.writer])
        var found = try db.run([all, first, owners], ahead: reads.map { commands(of: $0) } ?? [])
        try readFirstChange(found[1][0])
        if found[2].count < names.count {
            // Rows of an owner that was not locked may have changed since.
            db.forgetAhead()
            let missing = PostgresCommand(
                """
                INSERT INTO tidemark_owners (container, owner, change)
                SELECT $1, owner, 0 FROM unnest($2) AS owner ORDER BY owner ON CONFLICT (container, owner) DO NOTHING
                """, [container, keys])
            found = try db.run([all, missing, owners])
        }
        for row in found[2] {
            let owner = try row.text(0)
            state.changes[owner] = try row.value(1)
            if try row.value(2) { state.noted.insert(owner) }
        }
    }

    private static let newestIncarnationAndVersion = """
        SELECT coalesce(max(began), 0), \(PostgresVersions.oldestUserOfRecords) FROM tidemark_incarnations WHERE container = $1
        """

    /// Reads a row of ``newestIncarnationAndVersion``.
    ///
    /// - Throws: `PostgresError` `newerVersion`, `decoding`.
    private func readFirstChange(_ row: PostgresRow) throws(PostgresError) {
        guard try row.value(1, as: Int64.self) <= Int64(PostgresCloudTables.migrations.count) else {
            throw PostgresVersions.refusal("records", of: db.name)
        }
        state.firstChange = max(context.commonChanges, try row.value(0))
    }

    /// SQL of the 8 bytes that identify a writer: this storage, one start of the database's server, and one database. Rows that
    /// are restored from a backup come with another start of the server, or in another database. So what is written to them has
    /// other bytes, although this process has gone on.
    ///
    /// - Parameter parameter: The parameter with ``PostgresCloudContext/writer``.
    static func nonce(of parameter: String) -> String {
        """
        (SELECT substring(sha256(\(parameter) || int8send((extract(epoch FROM pg_postmaster_start_time()) * 1000000)::int8)
            || int8send(d.oid::int8)), 1, 8) FROM pg_database d WHERE d.datname = current_database())
        """
    }

    /// Excludes all other writes of the container until the transaction ends.
    func lockAll() throws {
        try db.query("SELECT pg_advisory_xact_lock(\(Self.lockSpace), $1::int4)", container)
    }
}
