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

    /// Gives an account a password, and ends its sessions: whoever had the old password is signed out.
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

    /// Removes an account's password, and ends its sessions. Until it has another password, only a connected identity signs in to
    /// it.
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
    /// It takes some four tenths of a second, also for an account without a password and without an account: a client that
    /// guesses does not learn whether the account exists. Only an account whose hash has an earlier, lower cost takes longer,
    /// until its next sign-in.
    ///
    /// - Throws: ``CredentialError`` `busy` when too many wait already; `storage`.
    public func checkPassword(_ password: String, of account: String?) async throws(CredentialError) -> Bool {
        try await matchingHash(password, of: account, from: .own) != nil
    }

    /// Signs an account in.
    ///
    /// - Parameters:
    ///   - code: The code of the second factor, if the account has one: of the app, or a recovery code.
    ///   - device: The device's name for itself.
    ///   - system: The device's operating system, by its own account.
    ///   - address: The client's address.
    ///   - isKnown: Whether the address or the device was used to sign in to the account before: such an attempt does not wait
    ///     for strangers.
    ///   - name: The account's name as it was typed. If there is no such account, the audit log gets a digest of the name.
    /// - Returns: The token of a session, or why there is none. It takes as long as ``checkPassword(_:of:)``.
    /// - Throws: ``CredentialError`` `notFound` when the container is not served; `busy`, `storage`.
    public func signIn(
        _ password: String, account: String?, code: String = "", container: String, environment: StoreEnvironment = .development,
        kind: Session.Kind, device: String = "", system: String = "", address: String = "", isKnown: Bool = false,
        as name: String = ""
    ) async throws(CredentialError) -> SignInResult<SessionToken> {
        var event = AuditEvent(
            .signIn, account: account ?? unknownAccount(name), address: address, container: container, subject: Self.line(device))
        do throws(CredentialError) {
            let origin = SignInOrigin(address: address, isKnown: isKnown)
            let verified: (account: String, hash: PasswordHash)
            switch try await verify(password, code: code, of: account, from: origin, to: container, as: event) {
            case .signedIn(let found): verified = found
            case .refused: return .refused
            case .needsCode: return .needsCode
            case .tooManyCodes(let wait): return .tooManyCodes(wait: wait)
            }
            event.actor = verified.account
            event.after = AuditEvent.text(ofSignInOn: Self.line(device))
            let token = try await makeSession(
                account: verified.account, container: container, environment: environment, kind: kind, device: device,
                system: system, address: address, hash: verified.hash, event: event)
            if let token { return .signedIn(token) }
            event.outcome = "the password was changed meanwhile"
            event.after = ""
        } catch {
            guard error.code == .notFound else { throw error }
            event.after = ""
            event.actor = account ?? ""
            event.outcome = "the container is not served"
            try await audit(event)
            throw error
        }
        try await audit(event)
        return .refused
    }

    /// Checks the password of a sign-in, and then the code, which is used up. The audit log gets the reason of a refusal.
    ///
    /// - Parameters:
    ///   - container: The container of the session; `nil` where it is for none. If the container is not served, no code is used
    ///     up.
    ///   - event: The entry for the audit log, which gets the reason of a refusal as the outcome.
    /// - Returns: The account, and the hash that a session is added with.
    /// - Throws: ``CredentialError`` `notFound` when the container is not served; `busy`, `storage`.
    func verify(
        _ password: String, code: String, of account: String?, from origin: SignInOrigin, to container: String? = nil,
        as event: AuditEvent
    ) async throws(CredentialError) -> SignInResult<(account: String, hash: PasswordHash)> {
        // No account has such a password. The attempt is not logged: it costs no hash, so strangers could fill the audit log with
        // such.
        guard PasswordHash.bytes(of: password) != nil else { return .refused }
        var event = event
        guard let hash = try await matchingHash(password, of: account, from: origin), let account else {
            event.outcome = "wrong password"
            try await audit(event)
            return .refused
        }
        if let container {
            try await refresh()
            guard try hasContainer(container) else { throw Self.noContainer(container) }
        }
        if let refusal = try await refusal(ofCode: code, of: account, as: event) { return refusal.of() }
        return .signedIn((account, hash))
    }

    /// Uses up a code of an account's second factor, if it has one. A refusal is added to the audit log.
    ///
    /// - Returns: Why the code is refused; `nil` where it is accepted.
    func refusal(
        ofCode code: String, of account: String, as event: AuditEvent
    ) async throws(CredentialError) -> CodeRefusal? {
        var event = event
        let canBeGuessed = Self.isTimeCode(code)
        if canBeGuessed, let wait = try await wait(forCodeOf: account) {
            event.outcome = "too many codes"
            try await audit(event)
            return .tooMany(wait: wait)
        }
        guard try await useSecondFactor(of: account, code: code) else {
            event.outcome = code.isEmpty ? "no code" : "wrong code"
            try await audit(event)
            return .needed
        }
        if canBeGuessed {
            codes.withLock { $0.forget(account) }
            try await stored { try await storage.forgetCodes(CodeAttempts.rate(of: account)) }
        }
        return nil
    }

    /// Counts a code that can be guessed.
    ///
    /// - Returns: Seconds until a code may be tried; `nil` where this one may.
    private func wait(forCodeOf account: String) async throws(CredentialError) -> Int? {
        if let seconds = try await stored({ try await storage.countCode(CodeAttempts.rate(of: account)) }) {
            return seconds > 0 ? Int(seconds.rounded(.up)) : nil
        }
        let now = now()
        return codes.withLock { $0.take(account, at: now) }.map { Int(($0 + 999_999) / 1_000_000) }
    }

    /// Returns the stored hash of an account's password, if the given password matches it.
    ///
    /// A hash with a lower cost than ``cost`` is replaced by one with that cost, in the same turn.
    func matchingHash(
        _ password: String, of account: String?, from origin: SignInOrigin, isAgain: Bool = false
    ) async throws(CredentialError) -> PasswordHash? {
        // This depends on the text alone, so the time tells nothing about the account.
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
            // A new hash is made for a wrong password, too. Otherwise the time would tell a wrong guess from a right one.
            let renewed = isOld ? try await hasher.hash(bytes, salt: salt, cost: cost) : nil
            return (isRight, renewed)
        }
        guard isRight, let kept, let account else { return nil }
        guard let renewed else { return kept }
        let isKept = try await stored {
            try await storage.replacePassword(kept.stored, by: renewed.stored, of: account)
        }
        if isKept { return renewed }
        // Another sign-in has replaced the hash, or the password was changed: one more attempt finds out which.
        return isAgain ? nil : try await matchingHash(password, of: account, from: origin, isAgain: true)
    }
}
