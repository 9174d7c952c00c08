import Foundation
import TidemarkCloudEngine
import TidemarkModel

/// The state of an account's second factor.
package struct SecondFactor: Hashable, Sendable {
    /// How many recovery codes are left.
    package let recoveryCodes: Int
    /// When it was set up: microseconds since 1970 UTC.
    package let added: Int64

    /// The state as a text for people, such as `set up, 7 recovery codes left`.
    package var text: String {
        switch recoveryCodes {
        case 0: "set up, no recovery code left"
        case 1: "set up, 1 recovery code left"
        default: "set up, \(recoveryCodes) recovery codes left"
        }
    }
}

/// Second factors of accounts: a code from an app, beside the password.
extension CredentialStore {
    /// How many recovery codes are made.
    private static let recoveryCodes = 8
    /// How long a new secret waits for its first code: microseconds, 15 minutes.
    private static let patience: Int64 = 15 * 60_000_000

    /// Whether an account has a second factor.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func hasSecondFactor(_ account: String) async throws(CredentialError) -> Bool {
        try await stored { try await storage.secondFactor(of: account) } != nil
    }

    /// Returns the state of an account's second factor; `nil` where it has none.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func secondFactor(of account: String) async throws(CredentialError) -> SecondFactor? {
        let row = try await stored { try await storage.secondFactor(of: account) }
        return row.map { SecondFactor(recoveryCodes: $0.recovery.count / Digest.size, added: $0.added) }
    }

    /// Makes the secret of a second factor. Nothing is stored before its first code.
    ///
    /// - Returns: The secret as apps take it, and a text that carries it to ``setSecondFactor(of:to:code:)``.
    package func newSecondFactor(of account: String) -> (secret: String, form: String) {
        let secret = random(20)
        return (
            TimeCode.base32(secret),
            signedText(Data(secret + Array(account.utf8)), for: "second-factor", until: now() + Self.patience)
        )
    }

    /// Returns the secret in a text of ``newSecondFactor(of:)``, as apps take it; `nil` where the text has expired.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func secret(ofSecondFactor form: String, of account: String) throws(CredentialError) -> String? {
        try pending(form, account).map(TimeCode.base32)
    }

    /// Gives an account a second factor, which replaces the one that it has.
    ///
    /// - Parameters:
    ///   - form: A text of ``newSecondFactor(of:)``.
    ///   - code: The code that the app shows.
    /// - Returns: The recovery codes, each valid once, which are not stored; `nil` where the code is wrong.
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func setSecondFactor(of account: String, to form: String, code: String) async throws(CredentialError) -> [String]? {
        guard let secret = try pending(form, account), let step = Self.step(of: Self.bare(code), secret, at: now()) else {
            return nil
        }
        let codes = newRecoveryCodes()
        let row = StoredSecondFactor(
            account: account, secret: secret, recovery: Self.digests(of: codes), step: step, added: now())
        try await stored { try await storage.setSecondFactor(row, of: account) }
        return codes
    }

    /// Gives an account new recovery codes. Its former ones are no longer valid.
    ///
    /// - Returns: The codes, which are not stored; `nil` where the account has no second factor, or it was changed at the same time.
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func replaceRecoveryCodes(of account: String) async throws(CredentialError) -> [String]? {
        guard let row = try await stored({ try await storage.secondFactor(of: account) }) else { return nil }
        let codes = newRecoveryCodes()
        var changed = row
        changed.recovery = Self.digests(of: codes)
        let next = changed
        let isReplaced = try await stored { try await storage.replaceSecondFactor(row, by: next) }
        return isReplaced ? codes : nil
    }

    private func newRecoveryCodes() -> [String] {
        (0..<Self.recoveryCodes).map { _ in
            let text = TimeCode.base32(random(10)).lowercased()
            return "\(text.prefix(4))-\(text.dropFirst(4).prefix(4))-\(text.dropFirst(8).prefix(4))-\(text.dropFirst(12))"
        }
    }

    /// The digests that are stored of recovery codes.
    private static func digests(of codes: [String]) -> [UInt8] {
        codes.flatMap { Digest.sha256(Array(bare($0).utf8)) }
    }

    /// Removes an account's second factor.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func removeSecondFactor(of account: String) async throws(CredentialError) {
        try await stored { try await storage.setSecondFactor(nil, of: account) }
    }

    /// Uses up a code of an account's second factor.
    ///
    /// - Parameter code: The code that the app shows, or a recovery code.
    /// - Returns: Whether the code is right; `true` where the account has no second factor.
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func useSecondFactor(of account: String, code: String) async throws(CredentialError) -> Bool {
        guard let row = try await stored({ try await storage.secondFactor(of: account) }) else { return true }
        var used = row
        let code = Self.bare(code)
        if let step = Self.step(of: code, row.secret, at: now()), step > row.step {
            used.step = step
        } else {
            let digest = Digest.sha256(Array(code.utf8))
            let places = stride(from: 0, to: row.recovery.count, by: Digest.size)
            guard let place = places.first(where: { Digest.areEqual(row.recovery[$0..<($0 + Digest.size)], digest) }) else {
                return false
            }
            used.recovery.removeSubrange(place..<(place + Digest.size))
        }
        let next = used
        return try await stored { try await storage.replaceSecondFactor(row, by: next) }
    }

    private func pending(_ form: String, _ account: String) throws(CredentialError) -> [UInt8]? {
        guard let payload = try open(form, for: "second-factor"), payload.count > 20,
            String(validating: payload.dropFirst(20), as: UTF8.self) == account
        else { return nil }
        return Array(payload.prefix(20))
    }

    /// Returns the step of time that has the code, at most one before or after the present.
    private static func step(of code: String, _ secret: [UInt8], at time: Int64) -> Int64? {
        let now = TimeCode.step(at: time)
        return (now - 1...now + 1).first { areEqual(TimeCode.code(secret, step: $0), code) }
    }

    /// Whether a text is as short as an app's code.
    static func isTimeCode(_ code: String) -> Bool { bare(code).count == 6 }

    /// A code without the characters that people type between its parts.
    private static func bare(_ code: String) -> String {
        String(
            decoding: code.lowercased().utf8.filter { (0x30...0x39).contains($0) || (0x61...0x7a).contains($0) }, as: UTF8.self)
    }
}
