import TidemarkCloud
package import TidemarkModel

/// Stores what clients were refused, as rows. They are diagnostics: their number is bounded, and they go after a week.
package protocol SyncFailureStorage: Sendable {
    /// Adds failures, which differ from each other in ``SyncFailure/kind``. One whose kind is there already adds its count to that row.
    ///
    /// Rows whose time is over go, and the oldest beyond what ``SyncFailureLimits`` allows.
    func record(_ failures: [SyncFailure], at now: Int64) async throws
    /// Returns failures, the newest first.
    func syncFailures(_ filter: SyncFailureFilter, limit: Int) async throws -> [SyncFailure]
    /// Removes rows whose time is over.
    func sweepSyncFailures(at now: Int64) async throws
    /// Returns the account that has begun a session, as far back as the audit log has sign-ins; `nil` where it has none.
    ///
    /// - Parameter session: 32 hexadecimal digits.
    func account(ofSignIn session: String) async throws -> String?
}

/// A request, or a part of one, that a client was refused, and how often.
package struct SyncFailure: Hashable, Sendable {
    /// When it was answered first and last: microseconds since 1970 UTC.
    package var firstAt, at: Int64
    /// Such as `records.modify`.
    package var operation: String
    package var container: String
    /// Empty where the request names none.
    package var environment: String
    /// The account's identifier; empty for nobody.
    package var account: String
    /// The session that has ended, whose account is looked up before the failure is stored; empty for none. It is not stored.
    package var session = ""
    /// The database; `nil` where the request names none.
    package var scope: DatabaseScope?
    /// The record that was refused, with its type and its zone; empty where it is none.
    package var record, recordType, zone: String
    /// The error's code, as the protocol has it.
    package var code: String
    /// Why: it may name fields, types and records.
    package var reason: String
    /// How many times it was answered.
    package var count: Int

    package init(
        at: Int64, operation: String, container: String, environment: String, account: String, scope: DatabaseScope?,
        record: String = "", recordType: String = "", zone: String = "", code: String, reason: String, count: Int = 1
    ) {
        (firstAt, self.at, self.operation) = (at, at, operation)
        (self.container, self.environment, self.account, self.scope) = (container, environment, account, scope)
        (self.record, self.recordType, self.zone) = (record, recordType, zone)
        (self.code, self.reason, self.count) = (code, reason, count)
    }

    /// What was refused, without when and how often: equal failures have one.
    package var kind: SyncFailure {
        var kind = self
        (kind.firstAt, kind.at, kind.count) = (0, 0, 0)
        return kind
    }

    /// Adds another one of the same ``kind``.
    package mutating func add(_ other: SyncFailure) {
        (firstAt, at) = (min(firstAt, other.firstAt), max(at, other.at))
        count += other.count
    }

    /// Names ``kind`` in storages: the SHA-256 of its texts.
    package var id: String {
        var digest = AssetDigest()
        for text in [container, environment, account, scope?.name ?? "", operation, zone, recordType, record, code, reason] {
            digest.update(Array("\(text.utf8.count) \(text)".utf8))
        }
        return digest.finish().digest
    }

    /// The code of a change that was made from an older version. It is no fault: the device merges, and sends again.
    package static let conflict = "CONFLICT"
}

/// Which failures are read.
package struct SyncFailureFilter: Hashable, Sendable {
    /// Only failures that were answered then or later: microseconds since 1970 UTC.
    package var since: Int64
    package var container: String?
    package var environment: StoreEnvironment?
    /// By its identifier.
    package var account: String?

    package init(
        since: Int64 = 0, container: String? = nil, environment: StoreEnvironment? = nil, account: String? = nil
    ) {
        (self.since, self.container, self.environment, self.account) = (since, container, environment, account)
    }

    /// The statement that finds the failures. Its parameters are `$1` to `$5`: since, container, environment, account and the limit.
    package func statement(_ columns: String) -> String {
        var wanted = "at >= $1"
        if container != nil { wanted += " AND container = $2" }
        if environment != nil { wanted += " AND environment = $3" }
        if account != nil { wanted += " AND account = $4" }
        return "SELECT \(columns) FROM sync_failures WHERE \(wanted) ORDER BY at DESC, id LIMIT $5"
    }
}

/// How many failures storages keep, and for how long.
package enum SyncFailureLimits {
    /// How many rows of accounts a container has.
    package static let ofAccounts = 500
    /// How many rows a container has of requests that have no account. Whoever asks without one can make as many as they want, and takes no
    /// place from those who have one.
    package static let ofNobody = 100
    /// How many rows there are of requests without an account in all: they may name any container, also one that is not there.
    package static let ofNobodyInAll = 1_000
    /// For how long a row is kept after its last failure: microseconds, 7 days.
    package static let age: Int64 = 7 * CredentialLimits.day
}
