import Foundation
import TidemarkCloudEngine
public import TidemarkModel

extension CredentialStore {
    /// Makes sure that a password may be one: 8 to 1,024 bytes, counted in the normal form C of Unicode.
    ///
    /// - Throws: ``CredentialError`` `invalid`.
    public static func check(password: String) throws(CredentialError) { _ = try bytes(of: password) }

    private static func bytes(of password: String) throws(CredentialError) -> [UInt8] {
        guard let bytes = PasswordHash.bytes(of: password) else {
            throw CredentialError(.invalid, "a password has 8 to 1,024 bytes: take another one, such as some words in a row")
        }
        return bytes
    }

    /// Gives an account a password, and ends its sessions: whoever had the old one is out.
    ///
    /// - Parameters:
    ///   - password: 8 to 1,024 bytes, counted in the normal form C of Unicode.
    ///   - account: An account of the embedded cloud, by its identifier.
    /// - Throws: ``CredentialError`` `invalid`, `storage`, `busy`.
    public func setPassword(_ password: String, of account: String) async throws(CredentialError) {
        _ = try await setPassword(password, of: account, ifVersionIs: nil)
    }

    /// - Returns: `false` where the account's password was set at another time than `version`. Nothing is changed then.
    func setPassword(
        _ password: String, of account: String, ifVersionIs version: Int64?
    ) async throws(CredentialError) -> Bool {
        let hash = try await hashers.hash(try Self.bytes(of: password), salt: random(PasswordHash.saltSize), cost: cost)
        let changed = now()
        return try await stored {
            try await storage.setPassword(hash.stored, of: account, at: changed, ifVersionIs: version)
        }
    }

    /// Takes an account's password away, and ends its sessions: nobody signs in to it until it has another one, but with an identity that is
    /// connected with it.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    public func removePassword(of account: String) async throws(CredentialError) {
        let changed = now()
        try await stored { try await storage.setPassword(nil, of: account, at: changed) }
    }

    /// The accounts that have a password, by identifier.
    public func accountsWithPassword() async throws(CredentialError) -> Set<String> {
        try await stored { try await storage.accountsWithPassword() }
    }

    /// Whether a password is an account's.
    ///
    /// It takes some four tenths of a second, and the same time for an account that has none, or for nobody: a client that guesses does not
    /// learn whether there is one. Only an account whose hash is of an earlier, lower cost takes longer, until somebody signs in to it.
    ///
    /// - Throws: ``CredentialError`` `busy` when too many wait already; `storage`.
    public func checkPassword(_ password: String, of account: String?) async throws(CredentialError) -> Bool {
        try await matchingHash(password, of: account, from: .own) != nil
    }

    /// Signs an account in.
    ///
    /// - Parameters:
    ///   - device: What it signs in on, as that says itself.
    ///   - address: From where.
    ///   - isKnown: Whether somebody signed in to the account from there, or on the device, before: such an attempt does not wait for strangers.
    ///   - name: The account as it was typed: where there is none, the audit log gets a digest of it.
    /// - Returns: `nil` when the password is not the account's. It takes as long as ``checkPassword(_:of:)``.
    /// - Throws: ``CredentialError`` `notFound` when the container is not served; `busy`, `storage`.
    public func signIn(
        _ password: String, account: String?, container: String, environment: StoreEnvironment = .development, kind: Session.Kind,
        device: String = "", address: String = "", isKnown: Bool = false, as name: String = ""
    ) async throws(CredentialError) -> SessionToken? {
        // No account has such a password. It costs no hash, so that strangers could fill the audit log with it until older entries go.
        guard PasswordHash.bytes(of: password) != nil else { return nil }
        let origin = SignInOrigin(address: address, isKnown: isKnown)
        var event = AuditEvent(
            .signIn, account: account ?? unknownAccount(name), address: address, container: container,
            subject: Self.line(device), outcome: "wrong password")
        guard let hash = try await matchingHash(password, of: account, from: origin), let account else {
            try await audit(event)
            return nil
        }
        (event.actor, event.outcome) = (account, "done")
        do throws(CredentialError) {
            let token = try await makeSession(
                account: account, container: container, environment: environment, kind: kind, device: device, address: address,
                hash: hash, event: event)
            if token != nil { return token }
            event.outcome = "the password was changed meanwhile"
        } catch {
            guard error.code == .notFound else { throw error }
            event.outcome = "the container is not served"
            try await audit(event)
            throw error
        }
        try await audit(event)
        return nil
    }

    /// The hash that is kept of an account's password, if it is this one.
    ///
    /// A hash of a lower cost than ``cost`` is replaced by one of that cost, which takes the same turn.
    func matchingHash(
        _ password: String, of account: String?, from origin: SignInOrigin, isAgain: Bool = false
    ) async throws(CredentialError) -> PasswordHash? {
        // Of the text alone, so that it tells nothing.
        guard let bytes = PasswordHash.bytes(of: password) else { return nil }
        var found: PasswordHash?
        if let account, let row = try await stored({ try await storage.password(of: account) }) { found = try PasswordHash(row) }
        let (kept, cost) = (found, cost)
        let isOld = kept.map { $0.cost.work < cost.work } ?? false
        let salt = isOld ? random(PasswordHash.saltSize) : []
        let (isRight, renewed) = try await hashers.withTurn(of: origin) {
            hasher throws(CredentialError) -> (Bool, PasswordHash?) in
            let given = try await hasher.hash(
                bytes, salt: kept?.salt ?? [UInt8](repeating: 0, count: PasswordHash.saltSize), cost: kept?.cost ?? cost)
            let isRight = kept.map { Digest.areEqual($0.digest, given.digest) } ?? false
            // Also for a wrong password: otherwise the time would tell that the account has an old hash, and that the guess is wrong.
            let renewed = isOld ? try await hasher.hash(bytes, salt: salt, cost: cost) : nil
            return (isRight, renewed)
        }
        guard isRight, let kept, let account else { return nil }
        guard let renewed else { return kept }
        let isKept = try await stored {
            try await storage.replacePassword(kept.stored, by: renewed.stored, of: account)
        }
        if isKept { return renewed }
        // Another sign-in has replaced the hash, or the password was changed: one more look tells which.
        return isAgain ? nil : try await matchingHash(password, of: account, from: origin, isAgain: true)
    }
}
