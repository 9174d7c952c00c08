import TidemarkCloudEngine
import TidemarkModel

/// Operators and their sessions of the console.
extension CredentialStore {
    private static let minute: Int64 = 60_000_000
    /// For how long a console session is good that nobody uses: microseconds.
    package static let consoleIdleTime = 30 * minute
    /// For how long a console session is good at the most: microseconds.
    package static let consoleLifetime = 12 * 60 * minute
    /// How long ago a password was entered at the most that counts as entered just now: microseconds.
    package static let confirmationAge = 10 * minute
    /// How much later than the last use that was noted one is noted: microseconds.
    private static let consoleNoting = minute

    /// Returns all operators.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func operators() async throws(CredentialError) -> [Operator] {
        var found: [Operator] = []
        for row in try await stored({ try await storage.operators() }) { found.append(try Operator(row)) }
        return found
    }

    /// Returns an account's role; `nil` where it has none.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func operatorRole(of account: String) async throws(CredentialError) -> Operator? {
        guard let row = try await stored({ try await storage.storedOperator(account) }) else { return nil }
        return try Operator(row)
    }

    /// Gives an account a role. It counts with the next request of its console sessions.
    ///
    /// - Parameter containers: Those of a developer.
    /// - Throws: ``CredentialError`` `invalid` for a developer without containers, `notFound` for a container that is not served,
    ///   `storage`, `busy`.
    package func setOperator(
        _ account: String, role: Operator.Role, containers: [String] = []
    ) async throws(CredentialError) {
        try await refresh()
        let containers = role == .operator ? [] : Set(containers).sorted()
        for container in containers where try !hasContainer(container) { throw Self.noContainer(container) }
        guard role == .operator || !containers.isEmpty else {
            throw CredentialError(.invalid, "a developer has containers: name one at the least")
        }
        let row = StoredOperator(account: account, role: role.rawValue, containers: containers, added: now())
        try await stored { try await storage.setOperator(row) }
    }

    /// Takes an account's role away, and ends its console sessions.
    ///
    /// - Throws: ``CredentialError`` `notFound`, `storage`, `busy`.
    package func removeOperator(_ account: String) async throws(CredentialError) {
        guard try await stored({ try await storage.removeOperator(account) }) else {
            throw CredentialError(.notFound, "the account is no operator; see 'tidemark admin operator list'")
        }
    }

    // Sessions of the console

    /// Signs an operator in to the console.
    ///
    /// - Parameters:
    ///   - device: The browser, as it says itself.
    ///   - address: From where.
    ///   - isKnown: As for ``signIn(_:account:container:environment:kind:device:address:isKnown:as:)``.
    ///   - name: The account as it was typed: where there is none, the audit log gets a digest of it.
    ///   - code: Of the second factor, where the account has one.
    /// - Returns: What the cookie gets, or why there is none. It takes as long as ``checkPassword(_:of:)``.
    /// - Throws: ``CredentialError`` `busy`, `storage`.
    package func signInToConsole(
        _ password: String, account: String?, code: String = "", device: String, address: String, isKnown: Bool = false,
        as name: String
    ) async throws(CredentialError) -> ConsoleSignIn {
        guard PasswordHash.bytes(of: password) != nil else { return .refused }
        let origin = SignInOrigin(address: address, isKnown: isKnown)
        var event = AuditEvent(
            .consoleSignIn, account: account ?? unknownAccount(name), address: address, subject: Self.line(device),
            outcome: "wrong password")
        guard let hash = try await matchingHash(password, of: account, from: origin), let account else {
            try await audit(event)
            return .refused
        }
        guard try await useSecondFactor(of: account, code: code) else {
            event.outcome = code.isEmpty ? "no code" : "wrong code"
            try await audit(event)
            return .needsCode
        }
        let (secret, began) = (random(32), now())
        let row = StoredConsoleSession(
            id: Digest.sha256(secret), account: account, began: began, expires: began + Self.consoleLifetime, used: began,
            confirmed: began, device: Self.line(device), address: Self.line(address))
        (event.actor, event.outcome) = (account, "done")
        let (kept, entry) = (hash.stored, event.stored)
        switch try await stored({ try await storage.add(row, ifPasswordIs: kept, auditing: entry) }) {
        case .added: return .signedIn(Base64URL.text(secret))
        case .isNoOperator: event.outcome = "the account is no operator"
        case .passwordIsAnother: event.outcome = "the password was changed meanwhile"
        }
        event.actor = ""
        try await audit(event)
        return .refused
    }

    /// Returns the session of a cookie, and notes that it is used; `nil` where it lets nobody in.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func consoleSession(_ cookie: String) async throws(CredentialError) -> ConsoleSession? {
        guard let secret = Self.secret(of: cookie) else { return nil }
        let id = Digest.sha256(secret)
        let now = now()
        guard let row = try await stored({ try await storage.consoleSession(id) }), row.expires > now,
            now - row.used < Self.consoleIdleTime, let role = try await operatorRole(of: row.account)
        else { return nil }
        if now - row.used >= Self.consoleNoting {
            try await stored { try await storage.noteConsoleSession(id, used: now, confirmed: 0) }
        }
        return ConsoleSession(
            id: Hexadecimal.text(id), operator: role, began: row.began, confirmed: row.confirmed,
            formToken: Base64URL.text(Digest.hmac(Array("console form".utf8), key: secret)))
    }

    /// Whether a session's password was entered so recently that what can't be undone may be done.
    package func isConfirmed(_ session: ConsoleSession) -> Bool { now() - session.confirmed < Self.confirmationAge }

    /// Notes that a session's password was entered again.
    ///
    /// - Returns: Whether it is the account's.
    /// - Throws: ``CredentialError`` `busy`, `storage`.
    package func confirm(_ session: ConsoleSession, password: String) async throws(CredentialError) -> Bool {
        guard try await checkPassword(password, of: session.operator.id), let id = Hexadecimal.bytes(session.id) else {
            return false
        }
        let now = now()
        try await stored { try await storage.noteConsoleSession(id, used: now, confirmed: now) }
        return true
    }

    /// Ends a console session; one that is ended already is no error.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func endConsoleSession(_ session: ConsoleSession) async throws(CredentialError) {
        guard let id = Hexadecimal.bytes(session.id) else { return }
        _ = try await stored { try await storage.endConsoleSession(id) }
    }

    /// Compares a form's token with that of the session, in a time that does not tell where they differ.
    package static func isToken(_ token: String, of session: ConsoleSession) -> Bool { areEqual(token, session.formToken) }

    private static func secret(of cookie: String) -> [UInt8]? {
        guard cookie.utf8.count == 43, let bytes = Base64URL.bytes(cookie), bytes.count == 32 else { return nil }
        return Array(bytes)
    }
}
