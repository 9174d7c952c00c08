import TidemarkCloud
package import TidemarkModel

/// Stores failures of clients' requests, as rows. They are diagnostics: their number is limited, and they are removed after a
/// week.
package protocol SyncFailureStorage: Sendable {
    /// Adds failures, which differ from each other in ``SyncFailure/kind``. One whose kind is there already adds its count to that row.
    ///
    /// A row has the newest reason. Expired rows are removed, and the oldest rows beyond the limits of ``SyncFailureLimits``.
    func record(_ failures: [SyncFailure], at now: Int64) async throws
    /// Returns failures, the newest first.
    func syncFailures(_ filter: SyncFailureFilter, limit: Int) async throws -> [SyncFailure]
    /// Returns the different values of a column of failures.
    func syncFailureValues(of column: SyncFailureColumn, _ filter: SyncFailureFilter) async throws -> Set<String>
    /// Removes expired rows.
    func sweepSyncFailures(at now: Int64) async throws
    /// Removes the failures of an account, and of refused sign-ins to it.
    func removeSyncFailures(of account: String) async throws
    /// Returns the account and container of a session, and what the audit log has of its device, as far back as the log reaches;
    /// `nil` where the log has no such sign-in.
    ///
    /// - Parameter session: 32 hexadecimal digits.
    func signIn(ofSession session: String) async throws -> (account: String, container: String, after: String)?
}

/// A column whose different values are read.
package enum SyncFailureColumn: String, Sendable {
    case account, code
}

/// A failure of a client's request, or of a part of one, and how often it has happened.
package struct SyncFailure: Hashable, Sendable {
    /// The times of the first and the last failure, in microseconds since 1970 UTC.
    package var firstAt, at: Int64
    /// Such as `records.modify`.
    package var operation: String
    package var container: String
    /// Empty where the request names none.
    package var environment: String
    /// The account's identifier; empty for nobody.
    package var account: String
    /// The ended session of the request, whose account is looked up before the failure is stored; empty for none. It is not
    /// stored.
    package var session = ""
    /// The database; `nil` where the request names none.
    package var scope: DatabaseScope?
    /// The refused record, with its type and zone; empty where the failure is of no record.
    package var record, recordType, zone: String
    /// The error's code, as the protocol has it.
    package var code: String
    /// Why: it may name fields, types and records.
    package var reason: String
    /// The number of failures.
    package var count: Int
    /// The session that was refused, by its identifier, or the account whose sign-in was refused, as ``sender(ofSignInTo:)`` names it; empty for
    /// none.
    package var sender = ""
    /// The device's name then, or the name that a refused sign-in gave; empty where it is not known.
    package var device = ""
    /// The field and type that a record has and the schema lacks, as in `SchemaMismatch`; empty for another failure.
    package var field = "", fieldType = ""

    package init(
        at: Int64, operation: String, container: String, environment: String, account: String, scope: DatabaseScope?,
        record: String = "", recordType: String = "", zone: String = "", code: String, reason: String, count: Int = 1
    ) {
        (firstAt, self.at, self.operation) = (at, at, operation)
        (self.container, self.environment, self.account, self.scope) = (container, environment, account, scope)
        (self.record, self.recordType, self.zone) = (record, recordType, zone)
        (self.code, self.reason, self.count) = (code, reason, count)
    }

    private static let signInPrefix = "account "

    /// The sender of a sign-in, which has no session. Sign-ins to different accounts are different failures. They have no
    /// ``account``, since anyone who knows an address can cause any number of them.
    ///
    /// - Parameter account: The account's identifier.
    package static func sender(ofSignInTo account: String) -> String { signInPrefix + account }

    /// The account whose sign-in was refused, by its identifier; `nil` for what is no sign-in, and where the cloud has no such account.
    package var triedAccount: String? {
        sender.hasPrefix(Self.signInPrefix) ? String(sender.dropFirst(Self.signInPrefix.count)) : nil
    }

    /// The operation by which a device signs in.
    package static let signInOperation = "session.begin"

    /// Whether it is a refused sign-in, which has no ``account``, also where the account that was tried exists. These rows have a bound of their
    /// own.
    package var isSignInOfNobody: Bool { account.isEmpty && operation == Self.signInOperation }

    /// Makes refused sign-ins equal that differ only in the tried account or in the reason. It removes their devices and merges
    /// equal failures, so that nothing tells which addresses have an account. Other failures stay as they are.
    ///
    /// - Parameter failures: The newest first.
    package static func withoutTriedAccounts(_ failures: [SyncFailure]) -> [SyncFailure] {
        var (result, places): ([SyncFailure], [SyncFailure: Int]) = ([], [:])
        for var failure in failures {
            guard failure.operation == signInOperation else {
                result.append(failure)
                continue
            }
            (failure.sender, failure.reason, failure.device) = ("", "", "")
            if let place = places[failure.kind] {
                result[place].add(failure)
            } else {
                places[failure.kind] = result.count
                result.append(failure)
            }
        }
        return result
    }

    /// Returns the reason, with the container's name in the commands that it contains.
    ///
    /// - Parameter isServed: Whether the cloud serves the container. A client may have made another name up, and that must not be
    ///   in a command that people copy.
    package func reason(isOfServedContainer isServed: Bool) -> String {
        isServed ? reason.replacing("--container <id>", with: "--container \(container)") : reason
    }

    /// How reasons name the storage that an account's own quota bounds.
    package static let ownStorage = "the account's storage"

    /// Whether the account's own quota was full. A server without room, a content that is too large and the full storage of another owner have
    /// the same code.
    package var isOfOwnQuota: Bool { code == Self.quotaExceeded && scope != .shared && reason.contains(Self.ownStorage) }

    /// The words that follow the number of bytes in the reason of a full quota.
    package static let doesNotFit = "bytes, and does not fit into"

    /// The bytes that a share's new title needs at the most. Its reason has no number.
    private static let titleBytes: Int64 = 20_000

    /// The bytes that did not fit the account's own quota, by the reason: at least these; `nil` for another failure.
    package var neededBytes: Int64? {
        guard isOfOwnQuota else { return nil }
        guard let end = reason.firstRange(of: " \(Self.doesNotFit) ")?.lowerBound else { return Self.titleBytes }
        return reason[..<end].split(separator: " ").last.flatMap { Int64($0) }
    }

    /// The failure without its times and count: equal failures have the same kind. The numbers in a reason make no difference,
    /// since sizes and times differ with each attempt. Nor does the reason of a conflict, which has versions.
    package var kind: SyncFailure {
        var kind = self
        (kind.firstAt, kind.at, kind.count) = (0, 0, 0)
        (kind.device, kind.field, kind.fieldType) = ("", "", "")
        kind.reason = code == Self.conflict ? "" : Self.withoutNumbers(reason)
        return kind
    }

    /// Returns a text with one zero in place of each number.
    private static func withoutNumbers(_ text: String) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        var isInNumber = false
        for byte in text.utf8 {
            let isDigit = (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            if !isDigit { bytes.append(byte) } else if !isInNumber { bytes.append(UInt8(ascii: "0")) }
            isInNumber = isDigit
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Adds a failure of the same ``kind``. The newest reason stays, with the values that belong to it.
    package mutating func add(_ other: SyncFailure) {
        if other.at >= at {
            (reason, field, fieldType) = (other.reason, other.field, other.fieldType)
            if !other.device.isEmpty || isSignInOfNobody { device = other.device }
        }
        (firstAt, at) = (min(firstAt, other.firstAt), max(at, other.at))
        count += other.count
    }

    /// Names ``kind`` in storages: the SHA-256 of its texts.
    package var id: String {
        var digest = AssetDigest()
        let texts = [
            container, environment, account, scope?.name ?? "", operation, zone, recordType, record, code, sender, kind.reason,
        ]
        for text in texts {
            digest.update(Array("\(text.utf8.count) \(text)".utf8))
        }
        return digest.finish().digest
    }

    /// The code of a change that was made from an older version. It is no fault: the device merges, and sends again.
    package static let conflict = "CONFLICT"
    /// The code of content that has no room.
    package static let quotaExceeded = "QUOTA_EXCEEDED"

    /// Cuts texts from a client to the lengths that a row allows. A conflict loses its zone, so that a session's conflicts in all
    /// zones are one row.
    ///
    /// - Complexity: O(limits), however long the texts are.
    package mutating func fit() {
        (container, operation, code) = (Self.cut(container, 255), Self.cut(operation, 255), Self.cut(code, 100))
        (record, recordType, zone) = (Self.cut(record, 255), Self.cut(recordType, 255), Self.cut(zone, 255))
        (field, fieldType, sender) = (Self.cut(field, 255), Self.cut(fieldType, 255), Self.cut(sender, 255))
        (reason, device) = (Self.cut(reason, 1_000), Self.cut(device, 255))
        if code == Self.conflict { zone = "" }
    }

    /// Returns a text's beginning. It has no U+0000, which PostgreSQL can't store.
    ///
    /// - Parameter limit: Bytes of UTF-8.
    private static func cut(_ text: String, _ limit: Int) -> String {
        var cut = ""
        for scalar in text.unicodeScalars {
            guard cut.utf8.count + UTF8.width(scalar) <= limit else { break }
            cut.unicodeScalars.append(scalar == "\0" ? "\u{fffd}" : scalar)
        }
        return cut
    }
}

/// Which failures are read.
package struct SyncFailureFilter: Hashable, Sendable {
    /// Only failures that were answered then or later: microseconds since 1970 UTC.
    package var since: Int64
    package var container: String?
    package var environment: StoreEnvironment?
    /// By its identifier.
    package var account: String?
    /// As the protocol has it.
    package var code: String?

    package init(
        since: Int64 = 0, container: String? = nil, environment: StoreEnvironment? = nil, account: String? = nil,
        code: String? = nil
    ) {
        (self.since, self.container, self.environment, self.account) = (since, container, environment, account)
        self.code = code
    }

    /// Which rows are wanted. The parameters are `$1` to `$5`: since, container, environment, account and code.
    private var condition: String {
        var wanted = "at >= $1"
        if container != nil { wanted += " AND container = $2" }
        if environment != nil { wanted += " AND environment = $3" }
        if account != nil { wanted += " AND account = $4" }
        if code != nil { wanted += " AND code = $5" }
        return wanted
    }

    /// The statement that finds the failures. Its parameters are `$1` to `$6`: those of the filter, and the limit.
    package func statement(_ columns: String) -> String {
        "SELECT \(columns) FROM sync_failures WHERE \(condition) ORDER BY at DESC, id LIMIT $6"
    }

    /// The statement that finds the different values of a column. Its parameters are `$1` to `$5`, those of the filter.
    package func statement(of column: SyncFailureColumn) -> String {
        "SELECT DISTINCT \(column.rawValue) FROM sync_failures WHERE \(condition)"
    }
}

/// How many failures storages keep, and for how long.
package enum SyncFailureLimits {
    /// How many rows of accounts an environment of a container has.
    package static let ofAccounts = 500
    /// How many of them one account has: a device that is refused everything takes no place from those of others.
    package static let ofAccount = 50
    /// How many rows of accounts there are in all.
    package static let ofAccountsInAll = 10_000
    /// How many rows an environment of a container has of requests without an account, but for sign-ins. A client without an account can cause any
    /// number of failures, and takes no place from accounts.
    package static let ofNobody = 100
    /// How many rows there are of requests without an account in all, but for sign-ins: they may name any container, also one that is not there.
    package static let ofNobodyInAll = 1_000
    /// How many rows an environment of a container has of refused sign-ins. A client that tries many addresses takes no place from other requests,
    /// and these take none from sign-ins.
    package static let ofSignIns = 25
    /// How many rows there are of refused sign-ins in all.
    package static let ofSignInsInAll = 500
    /// How many rows an environment of a container has at the most.
    package static let ofPlaceInAll = ofAccounts + ofNobody + ofSignIns
    /// How many rows there are at the most.
    package static let inAll = ofAccountsInAll + ofNobodyInAll + ofSignInsInAll
    /// For how long a row is kept after its last failure: microseconds, 7 days.
    package static let age: Int64 = 7 * CredentialLimits.day

    /// The rows of refused sign-ins without an account, and those of all other requests without one.
    private static let (signIns, nobody) = (
        "account = '' AND operation = '\(SyncFailure.signInOperation)'",
        "account = '' AND operation <> '\(SyncFailure.signInOperation)'"
    )

    /// The statements that remove the oldest rows of an environment of a container, each with its limit. Their parameters are `$1` to `$3`:
    /// the container, the environment and the limit.
    package static let ofPlace: [(statement: String, limit: Int)] = [
        (removal("account <> ''", "PARTITION BY account"), ofAccount), (removal("account <> ''", ""), ofAccounts),
        (removal(nobody, ""), ofNobody), (removal(signIns, ""), ofSignIns),
    ]

    private static func removal(_ rows: String, _ partition: String) -> String {
        """
        DELETE FROM sync_failures WHERE id IN (
            SELECT id FROM (
                SELECT id, row_number() OVER (\(partition) ORDER BY at DESC, id) AS number FROM sync_failures
                WHERE container = $1 AND environment = $2 AND \(rows)) AS numbered
            WHERE number > $3)
        """
    }

    /// The statements that remove the oldest rows of the whole cloud, each with its limit. Their parameter is `$1`, the limit.
    package static let ofAll: [(statement: String, limit: Int)] = [
        (removal("account <> ''"), ofAccountsInAll), (removal(nobody), ofNobodyInAll), (removal(signIns), ofSignInsInAll),
    ]

    private static func removal(_ rows: String) -> String {
        """
        DELETE FROM sync_failures WHERE \(rows) AND at <= (
            SELECT at FROM sync_failures WHERE \(rows) ORDER BY at DESC LIMIT 1 OFFSET $1)
        """
    }

    /// The columns of a row that are read, in their order.
    package static let columns = """
        operation, container, environment, account, scope, record, type, zone, code, reason, first_at, at, count, session, field, \
        field_type, device
        """

    /// The columns that a row gets from the newest failure when equal failures become one. They are assignments of `ON CONFLICT`,
    /// where the row is called `known`.
    package static let newest =
        ["reason", "field", "field_type"].map { column in
            "\(column) = CASE WHEN excluded.at >= known.at THEN excluded.\(column) ELSE known.\(column) END"
        }.joined(separator: ", ")
            // A session that has ended since has no name any more.
            + """
            , device = CASE WHEN excluded.at >= known.at AND (excluded.device <> '' OR known.account = '' \
            AND known.operation = '\(SyncFailure.signInOperation)') THEN excluded.device \
            ELSE known.device END
            """

    /// Where failures are, each place once.
    package static func places(of failures: [SyncFailure]) -> Set<[String]> {
        Set(failures.map { [$0.container, $0.environment] })
    }
}
