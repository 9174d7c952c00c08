import Foundation
import TidemarkCloudEngine
public import TidemarkModel

extension CredentialStore {
    /// Begins a session of an account, which is known by other means than its password.
    ///
    /// - Parameters:
    ///   - device: What it is on, as that says itself.
    ///   - system: The operating system of that, as it says itself.
    ///   - address: From where.
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
    ///   - hash: What the account's password has to be still.
    ///   - event: What the audit log gets, along with the session.
    /// - Returns: `nil` when it has another one by now.
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

    /// - Parameter add: Adds the row to the storage; it gets what the audit log calls the session, too.
    /// - Returns: `nil` when what let the account in has changed meanwhile.
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

    /// Bytes of the name of a device at the most.
    package static let deviceLength = 200
    /// Bytes of the name of an operating system at the most.
    private static let systemLength = 100

    /// What others say of themselves as a line of a list: without control characters, and without marks that nobody sees, such as those that
    /// turn the direction of what is written around them. Empty where nothing of it shows.
    ///
    /// - Parameter most: Its bytes at the most.
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
            // Scripts and pictures need those that join letters, and those that keep them apart.
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

    /// The session of a token, or why it lets nobody in. A space for a plus sign does no harm.
    ///
    /// It has everything that was committed before, by whatever process, as after a ``refresh()``.
    ///
    /// Whether the session is of the container that is asked for is the caller's to look at: ``Session/isOf(_:_:)``.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    public func session(_ text: String) async throws(CredentialError) -> Result<Session, SessionFailure> {
        guard (86...88).contains(text.utf8.count), let bytes = Base64URL.bytes(text), bytes.count == 64 else {
            return .failure(.malformed)
        }
        // Looked up before the secret: that is as new then.
        let row = try await row(ofSession: Array(bytes[..<16]))
        guard let place = try secret(of: bytes) else { return .failure(.unknown) }
        let (issued, expires) = (Int64(bytesInOrder: bytes[16..<24]), Int64(bytesInOrder: bytes[24..<32]))
        guard expires > now() else { return .failure(.expired) }
        guard let row else { return .failure(.revoked) }
        // A token under the secret before is due for another one.
        return .success(try SessionRow(row).session(issued: place == 0 ? issued : 0, expires: expires))
    }

    /// Which of the secrets has signed a token; `nil` for none.
    private func secret(of token: [UInt8]) throws(CredentialError) -> Int? {
        let signedBytes = Self.signedBytes(token[..<32])
        return try secrets().firstIndex { Digest.areEqual(token[32...], Digest.hmac(signedBytes, key: $0)) }
    }

    /// The identifier of the session of a token that this cloud has made, whether the session has ended or not; `nil` for any other text.
    package func sessionID(of text: String) throws(CredentialError) -> String? {
        guard (86...88).contains(text.utf8.count), let bytes = Base64URL.bytes(text), bytes.count == 64,
            try secret(of: bytes) != nil
        else { return nil }
        return Hexadecimal.text(bytes[..<16])
    }

    /// The row of a session, as it is now.
    func row(ofSession id: [UInt8]) async throws(CredentialError) -> StoredSession? {
        try await stored { try await storage.session(id) }
    }

    /// A new token of a session, good from now on for as long as its kind allows. Older ones stay good until they expire.
    ///
    /// Once in half of that time it is noted on disk; otherwise this takes some microseconds.
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

    /// Gives what an account's session is on another name.
    ///
    /// - Returns: The name before, and the one that lists have from now on.
    /// - Throws: ``CredentialError`` `invalid` for a name that shows nothing or is too long; `notFound`, `storage`, `busy`.
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

    /// Ends a session: its tokens let nobody in any more.
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
            // A token may have been given out since the use that was noted.
            guard row.until + row.kind.noting > now else { continue }
            found.append(row.session(issued: stored.began, expires: row.until))
        }
        return found
    }

    /// Until when a session's row is kept when a token of it is given out: for longer than that is good, so that not every renewal is noted.
    private static func kept(_ kind: Session.Kind, _ expires: Int64) -> Int64 { expires + kind.lifetime / 2 }

    private func token(_ session: Session) -> SessionToken {
        let body = (Hexadecimal.bytes(session.id) ?? []) + session.issued.bytesInOrder + session.expires.bytesInOrder
        let check = Digest.hmac(Self.signedBytes(body[...]), key: cache.signingSecret)
        return SessionToken(text: Base64URL.text(body + check), session: session)
    }

    /// What a token's check is made of; no capability's begins so.
    private static func signedBytes(_ body: ArraySlice<UInt8>) -> [UInt8] { Array("session\0".utf8) + body }
}
