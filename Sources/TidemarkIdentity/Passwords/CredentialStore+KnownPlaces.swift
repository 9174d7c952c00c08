import Foundation
import GRDB
import TidemarkModel

extension CredentialStore {
    /// How many addresses are kept for an account.
    static let knownAddressesMost = 20
    /// For how long an address or a device is known: microseconds, 400 days.
    static let knownAge = 400 * 24 * 60 * 60 * 1_000_000 as Int64

    /// Returns whether somebody signed in to an account from an address before, or uses a session of it there.
    ///
    /// - Parameter address: As limits know it.
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    public func isKnown(_ address: String, to account: String) async throws(CredentialError) -> Bool {
        let now = now()
        return try await writer.read { db in
            let isKnown = try Bool.fetchOne(
                db,
                sql: """
                    SELECT EXISTS (SELECT 1 FROM known_addresses WHERE account = ?1 AND address = ?2 AND used > ?3)
                        OR EXISTS (SELECT 1 FROM sessions WHERE account = ?1 AND address = ?2 AND kept >= ?4)
                    """,
                arguments: [account, address, now - Self.knownAge, now])
            return isKnown ?? false
        }
    }

    /// Keeps an address as one from which somebody was signed in to an account. The oldest beyond ``knownAddressesMost`` go.
    static func keepKnown(_ address: String, to account: String, at now: Int64, _ db: Database) throws {
        guard !address.isEmpty else { return }
        try db.execute(
            sql: """
                INSERT INTO known_addresses (account, address, used) VALUES (?, ?, ?)
                ON CONFLICT (account, address) DO UPDATE SET used = max(used, excluded.used)
                """,
            arguments: [account, address, now])
        try db.execute(
            sql: """
                DELETE FROM known_addresses WHERE account = ?1 AND (used <= ?2 OR address NOT IN
                    (SELECT address FROM known_addresses WHERE account = ?1 ORDER BY used DESC, address LIMIT ?3))
                """,
            arguments: [account, now - knownAge, knownAddressesMost])
    }

    /// Makes a token by which a device, or a browser, shows that somebody signed in to an account on it before.
    ///
    /// It lets nobody in. An attempt to sign in that shows it does not wait for the attempts of strangers.
    public func deviceToken(of account: String) -> String {
        signedText(Data("\(account)\n\(Hexadecimal.text(random(8)))".utf8), for: "device", until: now() + Self.knownAge)
    }

    /// Returns what names the device of a token; `nil` when the token is not this cloud's, has expired, or is for another account.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    public func device(_ token: String, of account: String) throws(CredentialError) -> String? {
        guard let payload = try open(token, for: "device"), let text = String(validating: payload, as: UTF8.self) else {
            return nil
        }
        let parts = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0] == account else { return nil }
        return String(parts[1])
    }
}
