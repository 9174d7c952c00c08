import TidemarkCloudEngine
import TidemarkModel

/// Operators and their sessions of the console.
extension CredentialStore {
    private static let minute: Int64 = 60_000_000
    /// How long a console session lasts without a use: microseconds.
    package static let consoleIdleTime = 30 * minute
    /// The longest time that a console session lasts: microseconds.
    package static let consoleLifetime = 12 * 60 * minute
    /// How long an entered password counts as entered just now: microseconds.
    package static let confirmationAge = 10 * minute

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

    /// Gives an account a role, which takes effect with the next request of its console sessions.
    ///
    /// - Parameter containers: The containers of a developer.
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

    /// Removes an account's role, and ends its console sessions.
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
    ///   - code: The code of the second factor, if the account has one.
    ///   - device: The browser's description of itself.
    ///   - address: The client's address.
    ///   - isKnown: As for ``signIn(_:account:code:container:environment:kind:device:system:address:isKnown:as:)``.
    ///   - name: The account's name as it was typed. If there is no such account, the audit log gets a digest of the name.
    /// - Returns: The value of the session's cookie, or why there is none. It takes as long as ``checkPassword(_:of:)``.
    /// - Throws: ``CredentialError`` `busy`, `storage`.
    package func signInToConsole(
        _ password: String, account: String?, code: String = "", device: String, address: String, isKnown: Bool = false,
        as name: String
    ) async throws(CredentialError) -> PageSignIn {
        try await signIn(
            password, to: .console, account: account, code: code, device: device, address: address, isKnown: isKnown, as: name)
    }

    /// Returns the session of a cookie, and notes its use; `nil` where the cookie is not valid.
    ///
    /// - Parameter isUse: Whether a person uses it: requests that a page makes by itself don't keep the session from ending.
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func consoleSession(_ cookie: String, isUse: Bool = true) async throws(CredentialError) -> ConsoleSession? {
        guard let (row, formToken) = try await pageSession(cookie, .console, isUse: isUse),
            let role = try await operatorRole(of: row.account)
        else { return nil }
        return ConsoleSession(
            id: Hexadecimal.text(row.id), operator: role, began: row.began, confirmed: row.confirmed, formToken: formToken)
    }

    /// Whether a session's password was entered so recently that what can't be undone may be done.
    package func isConfirmed(_ session: ConsoleSession) -> Bool { isRecent(session.confirmed) }

    /// Checks a password that was entered again in a session, and notes it. A wrong one is added to the audit log, like a failed
    /// sign-in.
    ///
    /// - Parameters:
    ///   - device: The browser's description of itself.
    ///   - address: The client's address.
    /// - Returns: Whether the password is the account's.
    /// - Throws: ``CredentialError`` `busy`, `storage`.
    package func confirm(
        _ session: ConsoleSession, password: String, device: String, address: String
    ) async throws(CredentialError) -> Bool {
        let event = AuditEvent(
            .consoleConfirm, account: session.operator.id, address: address, subject: Self.line(device),
            outcome: "wrong password")
        return try await confirm(session.id, password: password, orElse: event)
    }

    /// Ends a console session; one that is ended already is no error.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func endConsoleSession(_ session: ConsoleSession) async throws(CredentialError) {
        try await endPageSession(session.id)
    }

    /// Compares a form's token with the session's, in a time that does not depend on where they differ.
    package static func isToken(_ token: String, of session: ConsoleSession) -> Bool { areEqual(token, session.formToken) }
}
