import Foundation
import TidemarkCloudEngine
public import TidemarkModel

extension CredentialStore {
    /// Begins a session of an account without its password: the caller has identified the person by other means.
    ///
    /// - Parameters:
    ///   - device: The device's name for itself.
    ///   - system: The device's operating system, by its own account.
    ///   - address: The client's address.
    /// - Throws: ``CredentialError`` `notFound` when the container is not served; `storage`, `busy`.
    public func makeSession(
        account: String, container: String, environment: StoreEnvironment, kind: Session.Kind, device: String = "",
        system: String = "", address: String = ""
    ) async throws(CredentialError) -> SessionToken {
        guard
            let token = try await makeSession(
                account: account, container: container, environment: environment, kind: kind, device: device, system: system,
                address: address, hash: nil)
        else { throw CredentialError(.storage, "the session could not be made") }
        return token
    }

    /// - Parameters:
    ///   - hash: The hash that the account's password must still have; `nil` for any.
    ///   - event: The audit log's entry, which is added together with the session.
    /// - Returns: `nil` when the password was changed meanwhile.
    func makeSession(
        account: String, container: String, environment: StoreEnvironment, kind: Session.Kind, device: String = "",
        system: String = "", address: String = "", hash: PasswordHash?, event: AuditEvent? = nil
    ) async throws(CredentialError) -> SessionToken? {
        try await makeSession(
            account: account, container: container, environment: environment, kind: kind, device: device, system: system,
            address: address
        ) { row, session throws(CredentialError) in
            var event = event
            event?.subject = session
            let (password, entry) = (hash?.stored, event?.stored)
            return try await stored { try await storage.add(row, ifPasswordIs: password, auditing: entry) }
        }
    }

    /// - Parameter add: Adds the row to the storage. Its second argument is the session's name in the audit log.
    /// - Returns: `nil` when the password or the identity was changed meanwhile.
    func makeSession(
        account: String, container: String, environment: StoreEnvironment, kind: Session.Kind, device: String,
        system: String = "", address: String, add: (StoredSession, String) async throws(CredentialError) -> SessionAddition
    ) async throws(CredentialError) -> SessionToken? {
        let began = now()
        let expires = began + kind.lifetime
        let row = StoredSession(
            id: random(16), account: account, container: container, environment: environment, kind: kind.stored, began: began,
            kept: Self.kept(kind, expires), device: Self.line(device), system: Self.line(system, most: Self.systemLength),
            used: began, address: Self.line(address))
        switch try await add(row, "session \(Hexadecimal.text(row.id))") {
        case .added: break
        case .containerIsNotServed: throw Self.noContainer(container)
        case .passwordIsAnother, .identityIsGone: return nil
        }
        return token(try SessionRow(row).session(issued: began, expires: expires))
    }

    /// The most bytes of a device's name.
    package static let deviceLength = 200
    /// The most bytes of an operating system's name.
    private static let systemLength = 100

    /// Makes one line for a list of a text from a client: without control characters and without invisible marks, such as those
    /// that turn the direction of the text around them. Empty where nothing of the text is visible.
    ///
    /// - Parameter most: The most bytes of the line.
    package static func line(_ text: String, most: Int = CredentialStore.deviceLength) -> String {
        let whole = shown(text)
        guard whole.utf8.count > most else { return whole }
        var line = ""
        for scalar in whole.unicodeScalars {
            guard line.utf8.count + UTF8.width(scalar) <= most else { break }
            line.unicodeScalars.append(scalar)
        }
        return line.trimmingCharacters(in: .whitespaces)
    }

    /// The whole line, however long it is.
    private static func shown(_ text: String) -> String {
        var line = ""
        var isVisible = false
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator: line.unicodeScalars.append(" ")
            // Some scripts and emoji need the marks that join characters or keep them apart.
            case .format where scalar != "\u{200c}" && scalar != "\u{200d}": continue
            default:
                line.unicodeScalars.append(scalar)
                // The empty pattern of Braille counts as a symbol.
                let isBlank = scalar.properties.isDefaultIgnorableCodePoint || scalar.properties.isWhitespace
                if !isBlank, scalar != "\u{2800}" { isVisible = true }
            }
        }
        return isVisible ? line.trimmingCharacters(in: .whitespaces) : ""
    }

    /// Returns the session of a token, or why the token is refused. A space in place of a plus sign does no harm.
    ///
    /// The answer includes everything that any process has committed before, as after a ``refresh()``.
    ///
    /// The caller has to check that the session is for the container that is asked for: ``Session/isOf(_:_:)``.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    public func session(_ text: String) async throws(CredentialError) -> Result<Session, SessionFailure> {
        guard (86...88).contains(text.utf8.count), let bytes = Base64URL.bytes(text), bytes.count == 64 else {
            return .failure(.malformed)
        }
        // The row is looked up first, which also makes the secret as new.
        let row = try await row(ofSession: Array(bytes[..<16]))
        guard let place = try secret(of: bytes) else { return .failure(.unknown) }
        let (issued, expires) = (Int64(bytesInOrder: bytes[16..<24]), Int64(bytesInOrder: bytes[24..<32]))
        guard expires > now() else { return .failure(.expired) }
        guard let row else { return .failure(.revoked) }
        // A token under the previous secret is due for renewal.
        return .success(try SessionRow(row).session(issued: place == 0 ? issued : 0, expires: expires))
    }

    /// Returns the index of the secret that has signed a token; `nil` where none has.
    private func secret(of token: [UInt8]) throws(CredentialError) -> Int? {
        let signedBytes = Self.signedBytes(token[..<32])
        return try secrets().firstIndex { Digest.areEqual(token[32...], Digest.hmac(signedBytes, key: $0)) }
    }

    /// Returns the identifier of the session of a token that this cloud has made, even if the session has ended; `nil` for any
    /// other text.
    package func sessionID(of text: String) throws(CredentialError) -> String? {
        guard (86...88).contains(text.utf8.count), let bytes = Base64URL.bytes(text), bytes.count == 64,
            try secret(of: bytes) != nil
        else { return nil }
        return Hexadecimal.text(bytes[..<16])
    }

    /// Returns the present row of a session.
    func row(ofSession id: [UInt8]) async throws(CredentialError) -> StoredSession? {
        try await stored { try await storage.session(id) }
    }

    /// Makes a new token of a session, valid from now on for as long as its kind allows. Older tokens stay valid until they
    /// expire.
    ///
    /// A renewal is written to the storage once in half of that time. Otherwise the call takes some microseconds.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    public func renewed(_ session: Session) async throws(CredentialError) -> SessionToken {
        let issued = now()
        let expires = issued + session.kind.lifetime
        let id = Hexadecimal.bytes(session.id) ?? []
        if let row = try await row(ofSession: id), row.kept < expires {
            let kept = Self.kept(session.kind, expires)
            try await stored { try await storage.keepSession(id, until: kept) }
        }
        var renewed = session
        (renewed.issued, renewed.expires) = (issued, expires)
        return token(renewed)
    }

    /// Renames the device of an account's session.
    ///
    /// - Returns: The former name, and the one that lists show from now on.
    /// - Throws: ``CredentialError`` `invalid` for a name that has nothing visible or is too long; `notFound`, `storage`, `busy`.
    package func renameSession(
        id: String, of account: String, to name: String
    ) async throws(CredentialError) -> (before: String, after: String) {
        let after = Self.shown(name)
        guard !after.isEmpty else { throw CredentialError(.invalid, "a device has a name: write one") }
        let length = after.utf8.count
        guard length <= Self.deviceLength else {
            throw CredentialError(
                .invalid,
                "a device's name has \(Self.deviceLength) bytes at the most, and this one has \(length): write a shorter one")
        }
        let bytes = Hexadecimal.bytes(id) ?? []
        let missing = CredentialError(.notFound, "there is no such session; it may have ended")
        guard let before = try await sessions(of: account).first(where: { $0.id == id })?.device else { throw missing }
        guard before != after else { return (before, after) }
        guard try await stored({ try await storage.renameSession(bytes, of: account, to: after) }) else { throw missing }
        return (before, after)
    }

    /// Ends a session: its tokens are refused from now on.
    ///
    /// - Throws: ``CredentialError`` `notFound`, `storage`, `busy`.
    public func endSession(id: String) async throws(CredentialError) {
        let bytes = Hexadecimal.bytes(id) ?? []
        guard try await stored({ try await storage.endSession(bytes) }) else {
            throw CredentialError(.notFound, "there is no session '\(id.prefix(100))'; see 'tidemark admin session list'")
        }
    }

    /// Ends all sessions of an account.
    ///
    /// - Returns: How many there were.
    @discardableResult
    public func endSessions(of account: String) async throws(CredentialError) -> Int {
        try await stored { try await storage.endSessions(of: account) }
    }

    /// Ends all sessions there are.
    ///
    /// - Returns: How many there were.
    @discardableResult
    public func endAllSessions() async throws(CredentialError) -> Int {
        try await stored { try await storage.endAllSessions() }
    }

    /// The sessions that may still be used, the oldest first.
    public func sessions() async throws(CredentialError) -> [Session] {
        let now = now()
        return try usable(try await stored { try await storage.sessions(keptFrom: now) }, at: now)
    }

    /// The sessions of an account that may still be used, the oldest first.
    package func sessions(of account: String) async throws(CredentialError) -> [Session] {
        let now = now()
        return try usable(try await stored { try await storage.sessions(of: account, keptFrom: now) }, at: now)
    }

    private func usable(_ rows: [StoredSession], at now: Int64) throws(CredentialError) -> [Session] {
        var found: [Session] = []
        for stored in rows {
            let row = try SessionRow(stored)
            // A token may have been given out after the use that was noted.
            guard row.until + row.kind.noting > now else { continue }
            found.append(row.session(issued: stored.began, expires: row.until))
        }
        return found
    }

    /// How long a session's row is kept after a token was given out: longer than the token is valid, so that not every renewal is
    /// written.
    private static func kept(_ kind: Session.Kind, _ expires: Int64) -> Int64 { expires + kind.lifetime / 2 }

    private func token(_ session: Session) -> SessionToken {
        let body = (Hexadecimal.bytes(session.id) ?? []) + session.issued.bytesInOrder + session.expires.bytesInOrder
        let check = Digest.hmac(Self.signedBytes(body[...]), key: cache.signingSecret)
        return SessionToken(text: Base64URL.text(body + check), session: session)
    }

    /// The bytes that a token's signature covers. Those of other signed texts begin differently.
    private static func signedBytes(_ body: ArraySlice<UInt8>) -> [UInt8] { Array("session\0".utf8) + body }
}
