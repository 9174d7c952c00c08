import Foundation
import GRDB
import TidemarkModel

extension CredentialStore {
    /// For how long an entry of the audit log is kept: microseconds, 180 days.
    public static let auditAge = 180 * 24 * 60 * 60 * 1_000_000 as Int64
    /// How many entries are kept; what is younger than a day stays all the same.
    static let auditMost = 1_000_000 as Int64

    /// Adds an entry to the audit log. It is durable when this returns.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    public func audit(_ event: AuditEvent) async throws(CredentialError) {
        let now = now()
        try await writer.write { db in try Self.record(event, at: now, db) }
    }

    /// Reads the audit log, the newest entry first.
    ///
    /// - Parameters:
    ///   - time: Only entries from then on: microseconds since 1970 UTC.
    ///   - account: Only entries of an account that did something or that it concerns, by its identifier.
    ///   - limit: How many at the most.
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    /// - Complexity: O(entries since `time`).
    public func auditLog(
        since time: Int64 = 0, account: String? = nil, limit: Int = 1_000
    ) async throws(CredentialError) -> [AuditEntry] {
        try await writer.read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT number, at, action, actor, account, address, container, subject, outcome FROM audit
                    WHERE at >= ?1 AND (?2 IS NULL OR actor = ?2 OR account = ?2) ORDER BY number DESC LIMIT ?3
                    """,
                arguments: [time, account, limit]
            ).map { row in
                AuditEntry(
                    id: row[0], at: row[1],
                    event: AuditEvent(
                        .init(rawValue: row[2]), actor: row[3], account: row[4], address: row[5], container: row[6],
                        subject: row[7], outcome: row[8]))
            }
        }
    }

    /// Names an account that there is not, so that attempts to one name can be told from attempts to many and the log keeps nothing that
    /// somebody typed: a password is easily typed in the field of the address.
    func unknownAccount(_ name: String) -> String {
        "unknown:" + Hexadecimal.text(Digest.hmac(Array("audit\0\(name)".utf8), key: cache.signingSecret).prefix(6))
    }

    /// Adds an entry in a transaction, and removes those whose time is over.
    static func record(_ event: AuditEvent, at now: Int64, _ db: Database) throws {
        try db.execute(
            sql: """
                INSERT INTO audit (at, action, actor, account, address, container, subject, outcome) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                now, event.action.rawValue, line(event.actor), line(event.account), line(event.address), line(event.container),
                line(event.subject), line(event.outcome),
            ])
        let number = db.lastInsertedRowID
        try db.execute(sql: trimming, arguments: [now - auditAge, number - auditMost, now - day, day])
    }

    private static let day = 24 * 60 * 60 * 1_000_000 as Int64

    /// Removes entries whose time is over. The table lets go of nothing that is younger than a day.
    ///
    /// It looks at the 100 oldest ones by their index, and at no others: it runs with each entry that is added.
    private static let trimming = """
        DELETE FROM audit WHERE number IN (
            SELECT number FROM (SELECT number, at FROM audit WHERE at < ?3 ORDER BY at, number LIMIT 100) WHERE at < ?1 OR number <= ?2)
        AND at < (SELECT max(at) FROM audit) - ?4
        """
}
