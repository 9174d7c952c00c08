import Foundation
import TidemarkCloudEngine
import TidemarkModel

extension CredentialStore {
    /// How long the audit log keeps an entry: microseconds, 180 days.
    public static let auditAge = CredentialLimits.auditAge

    /// Adds an entry to the audit log. It is durable when this returns.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    public func audit(_ event: AuditEvent) async throws(CredentialError) {
        let (row, now) = (event.stored, now())
        try await stored { try await storage.audit(row, at: now) }
    }

    /// Reads the audit log, the newest entry first.
    ///
    /// - Parameters:
    ///   - time: Only entries from then on: microseconds since 1970 UTC.
    ///   - account: Only entries of an account that did something or that it concerns, by its identifier.
    ///   - container: Only entries of a container, in whatever environment.
    ///   - before: Only entries with a smaller ``AuditEntry/id``.
    ///   - limit: How many at the most.
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    /// - Complexity: O(entries of the account or the container), or of all, up to the limit.
    public func auditLog(
        since time: Int64 = 0, account: String? = nil, container: String? = nil, before: Int64? = nil, limit: Int = 1_000
    ) async throws(CredentialError) -> [AuditEntry] {
        let filter = AuditLogFilter(since: time, account: account, container: container, before: before)
        return try await stored { try await storage.auditLog(filter, limit: limit) }.map { AuditEntry($0) }
    }

    /// Returns the entries by which a person has given or ended consent, the newest first.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    /// - Complexity: O(entries that it returns), however many others the account has.
    package func consentLog(of account: String, since time: Int64) async throws(CredentialError) -> [AuditEntry] {
        let filter = AuditLogFilter(since: time, account: account, isOfConsent: true)
        return try await stored { try await storage.auditLog(filter, limit: 10_000) }.map { AuditEntry($0) }
    }

    /// Returns a digest that stands for the name of an unknown account. Attempts at one name can so be told from attempts at
    /// many. The log does not keep the typed text itself, because people type passwords into the field of the address.
    func unknownAccount(_ name: String) -> String {
        "unknown:" + Hexadecimal.text(Digest.hmac(Array("audit\0\(name)".utf8), key: cache.signingSecret).prefix(6))
    }
}
