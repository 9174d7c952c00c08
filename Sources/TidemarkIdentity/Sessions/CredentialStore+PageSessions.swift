import TidemarkCloudEngine
import TidemarkModel

/// The present state of a session of a person's own pages.
package struct PersonSession: Hashable, Sendable {
    /// A digest of the cookie's secret, in hexadecimal digits.
    package let id: String
    /// The account, by its identifier.
    package let account: String
    /// Microseconds since 1970 UTC.
    package let began: Int64
    /// When the account's password was entered last: microseconds since 1970 UTC.
    package let confirmed: Int64
    /// The token that a form has to carry.
    package let formToken: String
}

/// A session of pages, as lists show it.
package struct PageSession: Hashable, Identifiable, Sendable {
    package let id: String
    /// The account, by its identifier.
    package let account: String
    /// Whether the session is for the console; otherwise it is for the person's own pages.
    package let isOfConsole: Bool
    /// Microseconds since 1970 UTC.
    package let began, used: Int64
    /// When it ends if nobody uses it: microseconds since 1970 UTC.
    package let expires: Int64
    package let device, address: String
}

/// Sessions of pages: of the console, and of people's own pages. A session of one kind opens no page of the other.
extension CredentialStore {
    /// The least time between two noted uses of a session: microseconds.
    static let pageNoting: Int64 = 60_000_000

    /// Signs a person in to their own pages. The parameters are those of
    /// ``signInToConsole(_:account:code:device:address:isKnown:as:)``.
    ///
    /// - Throws: ``CredentialError`` `busy`, `storage`.
    package func signInToPages(
        _ password: String, account: String?, code: String = "", device: String, address: String, isKnown: Bool = false,
        as name: String
    ) async throws(CredentialError) -> PageSignIn {
        try await signIn(
            password, to: .account, account: account, code: code, device: device, address: address, isKnown: isKnown, as: name)
    }

    func signIn(
        _ password: String, to kind: StoredConsoleSession.Kind, account: String?, code: String, device: String, address: String,
        isKnown: Bool, as name: String
    ) async throws(CredentialError) -> PageSignIn {
        var event = AuditEvent(
            kind == .console ? .consoleSignIn : .accountSignIn, account: account ?? unknownAccount(name), address: address,
            subject: Self.line(device))
        let origin = SignInOrigin(address: address, isKnown: isKnown)
        let verified: (account: String, hash: PasswordHash)
        switch try await verify(password, code: code, of: account, from: origin, as: event) {
        case .signedIn(let found): verified = found
        case .refused: return .refused
        case .needsCode: return .needsCode
        case .tooManyCodes(let wait): return .tooManyCodes(wait: wait)
        }
        let (secret, row) = newPageSession(kind, of: verified.account, isConfirmed: true, device: device, address: address)
        event.actor = verified.account
        let (kept, entry) = (verified.hash.stored, event.stored)
        switch try await stored({ try await storage.add(row, ifPasswordIs: kept, auditing: entry) }) {
        case .added: return .signedIn(Base64URL.text(secret))
        case .isNoOperator: event.outcome = "the account is no operator"
        case .passwordIsAnother, .identityIsGone: event.outcome = "the password was changed meanwhile"
        }
        event.actor = ""
        try await audit(event)
        return .refused
    }

    /// Makes the row of a session of pages that begins now, and the secret for its cookie.
    ///
    /// - Parameter isConfirmed: Whether the account's password was entered for it.
    func newPageSession(
        _ kind: StoredConsoleSession.Kind, of account: String, isConfirmed: Bool, device: String, address: String
    ) -> (secret: [UInt8], row: StoredConsoleSession) {
        let (secret, began) = (random(32), now())
        let row = StoredConsoleSession(
            id: Self.id(of: secret, kind), kind: kind, account: account, began: began, expires: began + Self.consoleLifetime,
            used: began, confirmed: isConfirmed ? began : 0, device: Self.line(device), address: Self.line(address))
        return (secret, row)
    }

    /// Returns the session of a person's own pages for a cookie, and notes its use; `nil` where the cookie is not valid.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func personSession(_ cookie: String) async throws(CredentialError) -> PersonSession? {
        guard let (row, formToken) = try await pageSession(cookie, .account) else { return nil }
        return PersonSession(
            id: Hexadecimal.text(row.id), account: row.account, began: row.began, confirmed: row.confirmed, formToken: formToken)
    }

    func pageSession(
        _ cookie: String, _ kind: StoredConsoleSession.Kind, isUse: Bool = true
    ) async throws(CredentialError) -> (row: StoredConsoleSession, formToken: String)? {
        guard cookie.utf8.count == 43, let bytes = Base64URL.bytes(cookie), bytes.count == 32 else { return nil }
        let secret = Array(bytes)
        let (id, now) = (Self.id(of: secret, kind), now())
        guard let row = try await stored({ try await storage.consoleSession(id) }), row.kind == kind, row.expires > now,
            now - row.used < Self.consoleIdleTime
        else { return nil }
        if isUse, now - row.used >= Self.pageNoting {
            try await stored { try await storage.noteConsoleSession(id, used: now, confirmed: 0) }
        }
        return (row, Base64URL.text(Digest.hmac(Array("\(kind.rawValue) form".utf8), key: secret)))
    }

    /// The identifier of a session's row. It depends on the kind, so that a cookie finds no session of the other kind.
    private static func id(of secret: [UInt8], _ kind: StoredConsoleSession.Kind) -> [UInt8] {
        Digest.sha256(kind == .console ? secret : Array("account pages\0".utf8) + secret)
    }

    /// Whether a password that was entered at that time counts as entered just now.
    func isRecent(_ confirmed: Int64) -> Bool { now() - confirmed < Self.confirmationAge }

    /// Whether a session's password was entered not long ago.
    package func isConfirmed(_ session: PersonSession) -> Bool { isRecent(session.confirmed) }

    /// Checks a password that was entered again in a session, and notes it. A wrong one is added to the audit log, like a failed
    /// sign-in.
    ///
    /// - Parameters:
    ///   - device: The browser's description of itself.
    ///   - address: The client's address.
    /// - Returns: Whether the password is the account's.
    /// - Throws: ``CredentialError`` `busy`, `storage`.
    package func confirm(
        _ session: PersonSession, password: String, device: String, address: String
    ) async throws(CredentialError) -> Bool {
        let event = AuditEvent(
            .accountConfirm, account: session.account, address: address, subject: Self.line(device), outcome: "wrong password")
        return try await confirm(session.id, password: password, orElse: event)
    }

    /// Notes that a session's password was entered again, if it is the account's.
    ///
    /// - Parameter event: The audit log's entry for a wrong password. It has no actor: it is not known who has entered the
    ///   password.
    func confirm(
        _ session: String, password: String, orElse event: AuditEvent
    ) async throws(CredentialError) -> Bool {
        // A text that can be no password is not logged: it costs no hash, so a client could fill the audit log with such.
        guard PasswordHash.bytes(of: password) != nil else { return false }
        guard try await checkPassword(password, of: event.account), let id = Hexadecimal.bytes(session) else {
            try await audit(event)
            return false
        }
        let now = now()
        try await stored { try await storage.noteConsoleSession(id, used: now, confirmed: now) }
        return true
    }

    /// Ends a session of pages by its identifier; one that is ended already is no error.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func endPageSession(_ session: String) async throws(CredentialError) {
        guard let id = Hexadecimal.bytes(session) else { return }
        _ = try await stored { try await storage.endConsoleSession(id) }
    }

    /// Returns the sessions of pages that may still be used, of an account or, with `nil`, of all accounts, the oldest first.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func pageSessions(of account: String?) async throws(CredentialError) -> [PageSession] {
        let now = now()
        return try await stored { try await storage.consoleSessions(of: account, at: now) }
            .filter { now - $0.used < Self.consoleIdleTime }
            .map {
                PageSession(
                    id: Hexadecimal.text($0.id), account: $0.account, isOfConsole: $0.kind == .console, began: $0.began,
                    used: $0.used, expires: min($0.expires, $0.used + Self.consoleIdleTime), device: $0.device,
                    address: $0.address)
            }
    }

    /// Compares a form's token with the session's, in a time that does not depend on where they differ.
    package static func isToken(_ token: String, of session: PersonSession) -> Bool { areEqual(token, session.formToken) }
}
