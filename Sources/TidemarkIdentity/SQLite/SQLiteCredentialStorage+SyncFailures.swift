import GRDB
import TidemarkCloudEngine
import TidemarkModel

/// Refused requests of clients.
extension SQLiteCredentialStorage {
    func record(_ failures: [SyncFailure], at now: Int64) async throws {
        try await writer.write { db in
            for failure in failures {
                try db.execute(
                    sql: """
                        INSERT INTO sync_failures AS known (id, container, environment, account, scope, operation, zone, type,
                            record, code, reason, first_at, at, count, session, field, field_type, device)
                            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                        ON CONFLICT (id) DO UPDATE SET first_at = min(known.first_at, excluded.first_at),
                            at = max(known.at, excluded.at), count = known.count + excluded.count,
                            \(SyncFailureLimits.newest)
                        """,
                    arguments: [
                        failure.id, failure.container, failure.environment, failure.account, failure.scope?.name ?? "",
                        failure.operation, failure.zone, failure.recordType, failure.record, failure.code, failure.reason,
                        failure.firstAt, failure.at, failure.count, failure.sender, failure.field, failure.fieldType,
                        failure.device,
                    ])
            }
            try Self.removeOldSyncFailures(at: now, db)
            for place in SyncFailureLimits.places(of: failures) {
                for (statement, limit) in SyncFailureLimits.ofPlace {
                    try db.execute(sql: statement.replacing("$", with: "?"), arguments: [place[0], place[1], limit])
                }
            }
            for (statement, limit) in SyncFailureLimits.ofAll {
                try db.execute(sql: statement.replacing("$", with: "?"), arguments: [limit])
            }
        }
    }

    func syncFailures(_ filter: SyncFailureFilter, limit: Int) async throws -> [SyncFailure] {
        try await writer.read { db in
            try Row.fetchAll(
                db,
                sql: filter.statement(SyncFailureLimits.columns).replacing("$", with: ":p"),
                arguments: [
                    "p1": filter.since, "p2": filter.container, "p3": filter.environment?.rawValue, "p4": filter.account,
                    "p5": filter.code, "p6": limit,
                ]
            ).map { row in
                let scope: String = try row.decode(atIndex: 4)
                var failure = try SyncFailure(
                    at: row.decode(atIndex: 11), operation: row.decode(atIndex: 0), container: row.decode(atIndex: 1),
                    environment: row.decode(atIndex: 2), account: row.decode(atIndex: 3),
                    scope: DatabaseScope.allCases.first { $0.name == scope }, record: row.decode(atIndex: 5),
                    recordType: row.decode(atIndex: 6), zone: row.decode(atIndex: 7), code: row.decode(atIndex: 8),
                    reason: row.decode(atIndex: 9), count: row.decode(atIndex: 12))
                failure.firstAt = try row.decode(atIndex: 10)
                failure.sender = try row.decode(atIndex: 13)
                failure.field = try row.decode(atIndex: 14)
                failure.fieldType = try row.decode(atIndex: 15)
                failure.device = try row.decode(atIndex: 16)
                return failure
            }
        }
    }

    func syncFailureValues(of column: SyncFailureColumn, _ filter: SyncFailureFilter) async throws -> Set<String> {
        try await writer.read { db in
            try String.fetchSet(
                db, sql: filter.statement(of: column).replacing("$", with: ":p"),
                arguments: [
                    "p1": filter.since, "p2": filter.container, "p3": filter.environment?.rawValue, "p4": filter.account,
                    "p5": filter.code,
                ])
        }
    }

    func sweepSyncFailures(at now: Int64) async throws {
        try await writer.write { db in try Self.removeOldSyncFailures(at: now, db) }
    }

    func removeSyncFailures(of account: String) async throws {
        try await writer.write { db in try Self.removeSyncFailures(of: account, db) }
    }

    static func removeSyncFailures(of account: String, _ db: Database) throws {
        try db.execute(
            sql: "DELETE FROM sync_failures WHERE account = ? OR session = ?",
            arguments: [account, SyncFailure.sender(ofSignInTo: account)])
    }

    private static func removeOldSyncFailures(at now: Int64, _ db: Database) throws {
        try db.execute(sql: "DELETE FROM sync_failures WHERE at < ?", arguments: [now - SyncFailureLimits.age])
    }

    func signIn(ofSession session: String) async throws -> (account: String, container: String, after: String)? {
        try await writer.read { db in
            try Row.fetchOne(
                db,
                sql: """
                    SELECT account, container, after_change FROM audit
                    WHERE action = 'sign-in' AND subject = ? AND outcome = 'done'
                    """,
                arguments: ["session \(session)"]
            ).map { row in
                (
                    account: try row.decode(String.self, atIndex: 0), container: try row.decode(String.self, atIndex: 1),
                    after: try row.decode(String.self, atIndex: 2)
                )
            }
        }
    }
}
