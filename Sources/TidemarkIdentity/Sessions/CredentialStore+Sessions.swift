import Foundation
import GRDB
public import TidemarkModel

extension CredentialStore {
    /// Begins a session of an account, which is known by other means than its password.
    ///
    /// - Parameters:
    ///   - device: What it is on, as that says itself.
    ///   - address: From where.
    /// - Throws: ``CredentialError`` `notFound` when the container is not served; `storage`, `busy`.
    public func makeSession(
        account: String, container: String, environment: StoreEnvironment, kind: Session.Kind, device: String = "",
        address: String = ""
    ) async throws(CredentialError) -> SessionToken {
        guard
            let token = try await makeSession(
                account: account, container: container, environment: environment, kind: kind, device: device, address: address,
                hash: nil)
        else { throw CredentialError(.storage, "the session could not be made") }
        return token
    }

    /// - Parameters:
    ///   - hash: What the account's password has to be still.
    ///   - event: What the audit log gets, along with the session.
    /// - Returns: `nil` when it has another one by now.
    func makeSession(
        account: String, container: String, environment: StoreEnvironment, kind: Session.Kind, device: String = "",
        address: String = "", hash: PasswordHash?, event: AuditEvent? = nil
    ) async throws(CredentialError) -> SessionToken? {
        let began = now()
        let expires = began + kind.lifetime
        let row = SessionRow(
            id: random(16), account: account, container: container, environment: environment, kind: kind, began: began,
            kept: Self.kept(kind, expires), device: Self.line(device), used: began, address: Self.line(address))
        let isMade = try await writer.write { db in
            try Self.demandContainer(container, db)
            if let hash {
                guard try PasswordHash(of: account, db) == hash else { return false }
                try Self.keepKnown(row.address, to: account, at: began, db)
            }
            if var event {
                event.subject = "session \(Hexadecimal.text(row.id))"
                try Self.record(event, at: began, db)
            }
            try db.execute(sql: "DELETE FROM sessions WHERE kept < ?", arguments: [began])
            try db.execute(
                sql: """
                    INSERT INTO sessions (id, account, container, environment, kind, began, kept, device, used, address)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                    """,
                arguments: [
                    Data(row.id), account, container, environment.rawValue, kind.stored, began, row.kept, row.device, row.used,
                    row.address,
                ])
            return true
        }
        guard isMade else { return nil }
        return token(row.session(issued: began, expires: expires))
    }

    /// What others say of themselves as a line of a list: at most 200 bytes, without control characters.
    static func line(_ text: String) -> String {
        var line = ""
        for scalar in text.unicodeScalars {
            let shown = scalar.properties.generalCategory == .control ? " " : scalar
            guard line.utf8.count + UTF8.width(shown) <= 200 else { break }
            line.unicodeScalars.append(shown)
        }
        return line.trimmingCharacters(in: .whitespaces)
    }

    /// The session of a token, or why it lets nobody in. Some microseconds; a space for a plus sign does no harm.
    ///
    /// Whether the session is of the container that is asked for is the caller's to look at: ``Session/isOf(_:_:)``.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    public func session(_ text: String) throws(CredentialError) -> Result<Session, SessionFailure> {
        guard (86...88).contains(text.utf8.count), let bytes = Base64URL.bytes(text), bytes.count == 64 else {
            return .failure(.malformed)
        }
        let signedBytes = Self.signedBytes(bytes[..<32])
        guard let place = try secrets().firstIndex(where: { Digest.areEqual(bytes[32...], Digest.hmac(signedBytes, key: $0)) })
        else {
            return .failure(.unknown)
        }
        let (issued, expires) = (Int64(bytesInOrder: bytes[16..<24]), Int64(bytesInOrder: bytes[24..<32]))
        guard expires > now() else { return .failure(.expired) }
        guard let row = try cache.session(Array(bytes[..<16])) else { return .failure(.revoked) }
        // A token under the secret before is due for another one.
        return .success(row.session(issued: place == 0 ? issued : 0, expires: expires))
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
        if let row = try cache.session(id), row.kept < expires {
            let kept = Self.kept(session.kind, expires)
            try await writer.write { db in
                try db.execute(sql: "UPDATE sessions SET kept = max(kept, ?) WHERE id = ?", arguments: [kept, Data(id)])
            }
            // Another process that knows the row as it was writes it once more than it had to, and no worse.
            cache.keep(id, until: kept)
        }
        var renewed = session
        (renewed.issued, renewed.expires) = (issued, expires)
        return token(renewed)
    }

    /// Ends a session: its tokens let nobody in any more.
    ///
    /// - Throws: ``CredentialError`` `notFound`, `storage`, `busy`.
    public func endSession(id: String) async throws(CredentialError) {
        let bytes = Hexadecimal.bytes(id) ?? []
        try await writer.write { db in
            try CredentialTables.delete(
                from: "sessions", is: Data(bytes),
                orThrow: CredentialError(.notFound, "there is no session '\(id.prefix(100))'; see 'tidemark admin session list'"),
                db)
        }
    }

    /// Ends all sessions of an account.
    ///
    /// - Returns: How many there were.
    @discardableResult
    public func endSessions(of account: String) async throws(CredentialError) -> Int {
        try await writer.write { db in try Self.endSessions(of: account, db) }
    }

    /// Ends all sessions there are.
    ///
    /// - Returns: How many there were.
    @discardableResult
    public func endAllSessions() async throws(CredentialError) -> Int {
        try await writer.write { db in
            try db.execute(sql: "DELETE FROM sessions")
            let count = db.changesCount
            try CredentialTables.bump(db)
            return count
        }
    }

    /// The sessions that may still be used, the oldest first.
    public func sessions() async throws(CredentialError) -> [Session] {
        let now = now()
        return try await writer.read { db in
            let rows = try Row.fetchAll(
                db, sql: "SELECT * FROM sessions WHERE kept >= ? ORDER BY began, id", arguments: [now]
            ).map { try SessionRow($0) }
            // A token may have been given out since the use that was noted.
            return rows.filter { $0.until + $0.kind.noting > now }.map { $0.session(issued: $0.began, expires: $0.until) }
        }
    }

    @discardableResult
    static func endSessions(of account: String, _ db: Database) throws -> Int {
        try db.execute(sql: "DELETE FROM sessions WHERE account = ?", arguments: [account])
        let count = db.changesCount
        try CredentialTables.bump(db)
        return count
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
