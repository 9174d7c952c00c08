package import TidemarkCloudEngine
import TidemarkModel

/// Failures of devices to sync.
extension PostgresCredentialStorage {
    package func record(_ failures: [SyncFailure], at now: Int64) async throws {
        let added = Self.addition(of: failures)
        try await database.write { transaction in
            try Self.lockSyncFailures(transaction)
            try transaction.enqueue(added)
            try Self.removeOldSyncFailures(at: now, transaction)
            for place in SyncFailureLimits.places(of: failures) {
                for (statement, limit) in SyncFailureLimits.ofPlace {
                    try transaction.enqueue(statement, place[0], place[1], Int64(limit))
                }
            }
            for (statement, limit) in SyncFailureLimits.ofAll { try transaction.enqueue(statement, Int64(limit)) }
        }
    }

    /// The number of the advisory lock: "tidefail" in ASCII.
    package static let syncFailureLock: Int64 = 0x7469_6465_6661_696c

    /// Makes servers write one after the other. Each adds rows and removes those of others, in no common order, which would end
    /// in deadlocks.
    static func lockSyncFailures(_ transaction: PostgresTransaction) throws {
        try transaction.enqueue("SELECT pg_advisory_xact_lock($1)", syncFailureLock)
    }

    private static func addition(of failures: [SyncFailure]) -> PostgresCommand {
        // Servers that write the same rows lock them in one order.
        let rows = failures.map { ($0.id, $0) }.sorted { $0.0 < $1.0 }
        func texts(_ column: (SyncFailure) -> String) -> [String] { rows.map { column($0.1) } }
        func numbers(_ column: (SyncFailure) -> Int64) -> [Int64] { rows.map { column($0.1) } }
        let parameters: [any PostgresParameter] = [
            rows.map { $0.0 }, texts(\.container), texts(\.environment), texts(\.account), texts { $0.scope?.name ?? "" },
            texts(\.operation), texts(\.zone), texts(\.recordType), texts(\.record), texts(\.code), texts(\.reason),
            numbers(\.firstAt), numbers(\.at), numbers { Int64($0.count) }, texts(\.sender), texts(\.field),
            texts(\.fieldType), texts(\.device),
        ]
        return PostgresCommand(
            """
            INSERT INTO sync_failures AS known (id, container, environment, account, scope, operation, zone, type, record, code,
                reason, first_at, at, count, session, field, field_type, device)
            SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
            ON CONFLICT (id) DO UPDATE SET first_at = least(known.first_at, excluded.first_at),
                at = greatest(known.at, excluded.at), count = known.count + excluded.count,
                \(SyncFailureLimits.newest)
            """, parameters)
    }

    package func syncFailures(_ filter: SyncFailureFilter, limit: Int) async throws -> [SyncFailure] {
        guard Self.isStorable(filter) else { return [] }
        return try await database.rows(
            filter.statement(SyncFailureLimits.columns), filter.since, filter.container, filter.environment?.rawValue,
            filter.account, filter.code, Int64(limit)
        ).map { row in
            let scope: String = try row.value(4)
            var failure = SyncFailure(
                at: try row.value(11), operation: try row.value(0), container: try row.value(1), environment: try row.value(2),
                account: try row.value(3), scope: DatabaseScope.allCases.first { $0.name == scope }, record: try row.value(5),
                recordType: try row.value(6), zone: try row.value(7), code: try row.value(8), reason: try row.value(9),
                count: Int(try row.value(12, as: Int64.self)))
            failure.firstAt = try row.value(10)
            failure.sender = try row.value(13)
            failure.field = try row.value(14)
            failure.fieldType = try row.value(15)
            failure.device = try row.value(16)
            return failure
        }
    }

    package func syncFailureValues(of column: SyncFailureColumn, _ filter: SyncFailureFilter) async throws -> Set<String> {
        guard Self.isStorable(filter) else { return [] }
        let rows = try await database.rows(
            filter.statement(of: column), filter.since, filter.container, filter.environment?.rawValue, filter.account,
            filter.code)
        return Set(try rows.map { try $0.value(0, as: String.self) })
    }

    /// Whether columns of the type `text` can hold the values of a filter.
    private static func isStorable(_ filter: SyncFailureFilter) -> Bool {
        [filter.account, filter.container, filter.code].allSatisfy { $0?.isStorable ?? true }
    }

    package func sweepSyncFailures(at now: Int64) async throws {
        try await database.write { transaction in
            try Self.lockSyncFailures(transaction)
            try Self.removeOldSyncFailures(at: now, transaction)
        }
    }

    package func removeSyncFailures(of account: String) async throws {
        guard account.isStorable else { return }
        try await database.write { transaction in
            try Self.lockSyncFailures(transaction)
            try Self.removeSyncFailures(of: account, transaction)
        }
    }

    static func removeSyncFailures(of account: String, _ transaction: PostgresTransaction) throws {
        try transaction.enqueue(
            "DELETE FROM sync_failures WHERE account = $1 OR session = $2", account, SyncFailure.sender(ofSignInTo: account))
    }

    private static func removeOldSyncFailures(at now: Int64, _ transaction: PostgresTransaction) throws {
        try transaction.enqueue("DELETE FROM sync_failures WHERE at < $1", now - SyncFailureLimits.age)
    }

    package func signIn(ofSession session: String) async throws -> (account: String, container: String, after: String)? {
        guard session.isStorable else { return nil }
        let rows = try await database.rows(
            "SELECT account, container, after_change FROM audit_log WHERE action = 'sign-in' AND subject = $1 AND outcome = 'done'",
            "session \(session)")
        guard let row = rows.first else { return nil }
        return (
            account: try row.value(0, as: String.self), container: try row.value(1, as: String.self),
            after: try row.value(2, as: String.self)
        )
    }
}
