/// Stores the credentials of a served cloud, as rows: containers, tokens, keys, passwords, sessions, the audit log, and the
/// failures of devices.
///
/// The module `TidemarkIdentity` has the rules: it hashes, signs, and decides what has expired. All calls may come from any task, several
/// at a time, also from other processes. What a call has written is durable when it returns. ``session(_:)`` and ``refresh()`` have all
/// that was committed before they were called, by whatever process.
///
/// A storage may throw any error, and the rules turn it into a `CredentialError`. A text that a storage can't hold counts as
/// missing.
package protocol CredentialStorage: OperatorStorage, IdentityStorage, SyncFailureStorage {
    // For every request

    /// Returns containers, tokens, keys and the secret, in some microseconds: as they were when ``session(_:)`` or ``refresh()`` was
    /// called last, or later.
    func current() throws -> StoredCredentials
    /// Makes ``current()`` return everything that was committed before this call.
    func refresh() async throws
    /// Returns a session's row; `nil` if it no longer exists. It also does what ``refresh()`` does.
    func session(_ id: [UInt8]) async throws -> StoredSession?
    /// Records a signed request that changes something, so that it is not accepted twice.
    ///
    /// - Parameters:
    ///   - mark: 16 bytes that identify the request.
    ///   - second: The time of the signature, in seconds since 1970 UTC.
    ///   - now: The present time, in the same unit.
    ///   - tolerance: The most seconds between a request's date and now. Older requests are refused before this call.
    func admit(
        _ mark: [UInt8], of key: String, signed second: Int64, at now: Int64, tolerance: Int64
    ) async throws -> SignedRequestAdmission
    /// The second in which the storage began to note requests, in seconds since 1970 UTC; `nil` where it has noted all there were.
    var notedSince: Int64? { get }

    // Containers, tokens, keys, and the secret

    /// Adds a container, unless it exists.
    func addContainer(_ name: String, at time: Int64) async throws
    /// - Returns: Whether there was one.
    func removeContainer(_ name: String) async throws -> Bool
    func add(_ token: StoredAPIToken) async throws -> CredentialAddition
    /// - Returns: Whether there was one.
    func removeAPIToken(_ id: String) async throws -> Bool
    func add(_ key: StoredServerKey) async throws -> CredentialAddition
    /// - Returns: Whether there was one.
    func removeKey(_ id: String) async throws -> Bool
    /// Replaces the secret.
    ///
    /// - Parameter until: The time until which the previous secret stays valid; with `nil` it is invalid at once, and all
    ///   sessions end.
    /// - Returns: How many sessions were ended.
    func replaceSecret(by secret: [UInt8], keepingPreviousUntil until: Int64?) async throws -> Int

    // Passwords

    func password(of account: String) async throws -> StoredPassword?
    func accountsWithPassword() async throws -> Set<String>
    /// Returns the time when an account's password was last set or removed, which differs after each change; 0 for never.
    func passwordVersion(of account: String) async throws -> Int64
    /// Sets or removes an account's password, and ends its sessions. The time of a removed password stays.
    ///
    /// - Parameter version: The ``passwordVersion(of:)`` that the account must still have; `nil` for any.
    /// - Returns: `false` where it was set at another time. Nothing is changed then.
    func setPassword(
        _ password: StoredPassword?, of account: String, at time: Int64, ifVersionIs version: Int64?
    ) async throws -> Bool
    /// Replaces the stored form of a password that stays the same.
    ///
    /// - Returns: `false` where the account has another one by now.
    func replacePassword(_ old: StoredPassword, by new: StoredPassword, of account: String) async throws -> Bool

    // Sessions

    /// Adds a session, and removes those whose rows may go.
    ///
    /// - Parameters:
    ///   - password: The password that the account must still have. With it, the session's address becomes a known one.
    ///   - event: The entry that the audit log gets in the same transaction.
    func add(
        _ session: StoredSession, ifPasswordIs password: StoredPassword?, auditing event: StoredAuditEvent?
    ) async throws -> SessionAddition
    /// Keeps a session's row at least until a time.
    func keepSession(_ id: [UInt8], until kept: Int64) async throws
    /// Records uses of sessions. Their addresses become known ones.
    func note(_ uses: [SessionUse]) async throws
    /// Renames the device of an account's session.
    ///
    /// - Returns: Whether the account has such a session.
    func renameSession(_ id: [UInt8], of account: String, to device: String) async throws -> Bool
    /// - Returns: Whether there was one.
    func endSession(_ id: [UInt8]) async throws -> Bool
    /// - Returns: How many there were.
    func endSessions(of account: String) async throws -> Int
    /// - Returns: How many there were.
    func endAllSessions() async throws -> Int
    /// Returns the sessions whose rows may not go before a time, by when they began.
    func sessions(keptFrom time: Int64) async throws -> [StoredSession]
    /// Returns the addresses from which an account's sessions were last used, without the empty one.
    func addresses(of account: String, keptFrom time: Int64) async throws -> Set<String>
    /// Returns whether an address is known to an account, or a session of it was used there last.
    func isKnown(_ address: String, to account: String, at now: Int64) async throws -> Bool
    /// Removes an account's password, identities, sessions, known addresses, keys, and its failures.
    func removeAccount(_ account: String) async throws
    /// As `CloudStorage.emptyLog()`.
    func emptyLog() async

    // The audit log

    /// Adds an entry, and removes those whose time is over: ``CredentialLimits``.
    func audit(_ event: StoredAuditEvent, at time: Int64) async throws
    /// Returns entries, the newest first.
    func auditLog(_ filter: AuditLogFilter, limit: Int) async throws -> [AuditLogEntry]
}

/// Which entries of the audit log are read.
package struct AuditLogFilter: Hashable, Sendable {
    /// Only entries from then on: microseconds since 1970 UTC.
    package var since: Int64
    /// Only entries of an account that did something or that it concerns.
    package var account: String?
    /// Only entries of a container, in whatever environment.
    package var container: String?
    /// Only entries with a smaller number.
    package var before: Int64?
    /// Only entries of a person who gives or ends consent. They have an index of their own, so an account's are found quickly.
    package var isOfConsent: Bool

    package init(
        since: Int64 = 0, account: String? = nil, container: String? = nil, before: Int64? = nil, isOfConsent: Bool = false
    ) {
        (self.since, self.account, self.container, self.before) = (since, account, container, before)
        self.isOfConsent = isOfConsent
    }

    /// The action of entries by which a person gives or ends consent.
    package static let consent = "account.consent"

    /// Returns the statement that finds the entries. Each inner statement walks an index in the order of the entries, and ends at
    /// the limit.
    ///
    /// Its parameters are `$1` to `$5`: since, account, container, before and the limit.
    package func statement(_ columns: String, from table: String) -> String {
        var rest = "at >= $1"
        if before != nil { rest += " AND number < $4" }
        if isOfConsent { rest += " AND action = '\(Self.consent)'" }
        let places = ["$3", "$3 || '/development'", "$3 || '/production'"].map { "container = \($0)" }
        var arms: [String] = []
        if account != nil {
            if container != nil { rest += " AND (\(places.joined(separator: " OR ")))" }
            arms = ["account = $2", "actor = $2"]
        } else if container != nil {
            arms = places
        }
        let order = "ORDER BY number DESC LIMIT $5"
        guard !arms.isEmpty else { return "SELECT \(columns) FROM \(table) WHERE \(rest) \(order)" }
        let inner = arms.enumerated().map { index, arm in
            "SELECT number FROM (SELECT number FROM \(table) WHERE \(arm) AND \(rest) \(order)) AS arm\(index)"
        }
        return "SELECT \(columns) FROM \(table) WHERE number IN (\(inner.joined(separator: " UNION "))) \(order)"
    }
}

extension CredentialStorage {
    /// Sets or removes an account's password, whenever it was last set, and ends its sessions.
    package func setPassword(_ password: StoredPassword?, of account: String, at time: Int64) async throws {
        _ = try await setPassword(password, of: account, at: time, ifVersionIs: nil)
    }
}

/// The result of adding a token or a key.
package enum CredentialAddition: Hashable, Sendable {
    case added
    /// The token or key exists already.
    case exists
    case containerIsNotServed
}

/// The result of adding a session.
package enum SessionAddition: Hashable, Sendable {
    case added
    case containerIsNotServed
    case passwordIsAnother
    /// The identity no longer belongs to the account.
    case identityIsGone
}

/// The result of recording a signed request.
package enum SignedRequestAdmission: Hashable, Sendable {
    case admitted
    /// The request has come before.
    case replayed
    /// The request is older than those that the storage still remembers.
    case forgotten
    /// The request is from the second ``CredentialStorage/notedSince``, or older.
    case beforeStart
}

/// Limits for rows that accumulate by themselves.
package enum CredentialLimits {
    /// The most known addresses of an account.
    package static let knownAddresses = 20
    /// Microseconds for which an address is known: 400 days.
    package static let knownAge: Int64 = 400 * day
    /// Microseconds for which an entry of the audit log is kept: 180 days.
    package static let auditAge: Int64 = 180 * day
    /// The most entries. Entries younger than a day stay in any case.
    package static let auditEntries: Int64 = 1_000_000
    /// The most entries that are removed with each one that is added.
    package static let auditTrimming = 100
    /// Microseconds.
    package static let day: Int64 = 24 * 60 * 60 * 1_000_000
}

extension CredentialStorage {
    /// Does nothing: the storage has no log of its own.
    package func emptyLog() async {}
}
