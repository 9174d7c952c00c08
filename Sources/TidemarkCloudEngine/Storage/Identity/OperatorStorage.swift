/// Stores the operators of a served cloud and their console sessions, as rows.
///
/// Whatever ends a password or an account's sessions also ends its console sessions, in the same transaction.
package protocol OperatorStorage: Sendable {
    /// Returns all operators, by the identifiers of their accounts.
    func operators() async throws -> [StoredOperator]
    func storedOperator(_ account: String) async throws -> StoredOperator?
    /// Adds an operator, or changes an operator's role. The account's console sessions stay.
    func setOperator(_ row: StoredOperator) async throws
    /// Removes an operator, and ends the account's sessions of the console.
    ///
    /// - Returns: Whether there was one.
    func removeOperator(_ account: String) async throws -> Bool

    /// Adds a session of web pages, and removes expired ones. A console session needs an operator's account.
    ///
    /// - Parameters:
    ///   - password: The password that the account must still have.
    ///   - event: The entry that the audit log gets in the same transaction.
    func add(
        _ session: StoredConsoleSession, ifPasswordIs password: StoredPassword, auditing event: StoredAuditEvent
    ) async throws -> ConsoleSessionAddition
    /// Returns a console session's row; `nil` if it no longer exists.
    func consoleSession(_ id: [UInt8]) async throws -> StoredConsoleSession?
    /// Records when a console session was last used, and when its account's password was last entered.
    func noteConsoleSession(_ id: [UInt8], used: Int64, confirmed: Int64) async throws
    /// - Returns: Whether there was one.
    func endConsoleSession(_ id: [UInt8]) async throws -> Bool
    /// Returns the console sessions that have not expired of an account, or of all with `nil`, by when they began.
    func consoleSessions(of account: String?, at now: Int64) async throws -> [StoredConsoleSession]
    /// Returns an account's sessions of devices and browsers whose rows may not go before a time, by when they began.
    func sessions(of account: String, keptFrom time: Int64) async throws -> [StoredSession]

    /// Returns an account's second factor; `nil` where it has none.
    func secondFactor(of account: String) async throws -> StoredSecondFactor?
    /// Sets or removes an account's second factor.
    func setSecondFactor(_ row: StoredSecondFactor?, of account: String) async throws
    /// Replaces a second factor after a code of it was used.
    ///
    /// - Returns: `false` where the account has another second factor by now.
    func replaceSecondFactor(_ old: StoredSecondFactor, by new: StoredSecondFactor) async throws -> Bool
    /// Counts an attempt with a code of a second factor, for all servers that share the storage. The default implementation
    /// counts nothing.
    ///
    /// - Parameter rate: The account's name, and the number of attempts that it may make.
    /// - Returns: Seconds until the next attempt, 0 where this one may go on; `nil` where each process counts by itself.
    func countCode(_ rate: SignInRate) async throws -> Double?
    /// Forgets the counted attempts, after a right code. The default implementation does nothing.
    func forgetCodes(_ rate: SignInRate) async throws
}

extension OperatorStorage {
    /// Returns `nil`.
    package func countCode(_ rate: SignInRate) async throws -> Double? { nil }

    /// Does nothing.
    package func forgetCodes(_ rate: SignInRate) async throws {}
}

/// A row of a second factor: a device makes codes from a secret and the time, as in RFC 6238.
package struct StoredSecondFactor: Hashable, Sendable {
    package let account: String
    /// The secret from which codes are made: 20 bytes.
    package let secret: [UInt8]
    /// The SHA-256 digests of the unused recovery codes, joined.
    package var recovery: [UInt8]
    /// The last time step whose code was used. No code is valid twice.
    package var step: Int64
    /// Microseconds since 1970 UTC.
    package let added: Int64

    package init(account: String, secret: [UInt8], recovery: [UInt8], step: Int64, added: Int64) {
        (self.account, self.secret, self.recovery, self.step, self.added) = (account, secret, recovery, step, added)
    }
}

/// A row of an operator.
package struct StoredOperator: Hashable, Sendable {
    package let account: String
    /// `operator` or `developer`.
    package let role: String
    /// The containers of a developer.
    package let containers: [String]
    /// Microseconds since 1970 UTC.
    package let added: Int64

    package init(account: String, role: String, containers: [String], added: Int64) {
        (self.account, self.role, self.containers, self.added) = (account, role, containers, added)
    }
}

/// A row of a session of web pages: of the console, or of a person's own pages.
package struct StoredConsoleSession: Hashable, Sendable {
    /// Whose pages it opens. The raw values are stored.
    package enum Kind: String, Sendable {
        case console, account
    }

    /// A digest of the cookie's secret.
    package let id: [UInt8]
    package let kind: Kind
    package let account: String
    /// Microseconds since 1970 UTC, as all times.
    package let began: Int64
    package let expires: Int64
    /// The last use that was noted.
    package var used: Int64
    /// When the password was entered last.
    package var confirmed: Int64
    package let device, address: String

    package init(
        id: [UInt8], kind: Kind = .console, account: String, began: Int64, expires: Int64, used: Int64, confirmed: Int64,
        device: String, address: String
    ) {
        (self.id, self.kind, self.account, self.began, self.expires) = (id, kind, account, began, expires)
        (self.used, self.confirmed, self.device, self.address) = (used, confirmed, device, address)
    }
}

/// The result of adding a session of web pages.
package enum ConsoleSessionAddition: Hashable, Sendable {
    case added
    /// The account administers nothing.
    case isNoOperator
    case passwordIsAnother
    /// The identity is not the account's any more.
    case identityIsGone
}
