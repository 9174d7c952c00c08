import Foundation
import GRDB
import TidemarkModel

extension AccessBook {
    /// Makes sure that a password may be one: 8 to 1,024 bytes, counted in the normal form C of Unicode.
    ///
    /// - Throws: ``AccessError`` `invalid`.
    public static func check(password: String) throws(AccessError) { _ = try bytes(of: password) }

    private static func bytes(of password: String) throws(AccessError) -> [UInt8] {
        guard let bytes = PasswordHash.bytes(of: password) else {
            throw AccessError(.invalid, "a password has 8 to 1,024 bytes: take another one, such as some words in a row")
        }
        return bytes
    }

    /// Gives an account a password, and ends its sessions: whoever had the old one is out.
    ///
    /// - Parameters:
    ///   - password: 8 to 1,024 bytes, counted in the normal form C of Unicode.
    ///   - account: An account of the embedded cloud, by its identifier.
    /// - Throws: ``AccessError`` `invalid`, `storage`, `busy`.
    public func setPassword(_ password: String, of account: String) async throws(AccessError) {
        let hash = try await hashers.hash(try Self.bytes(of: password), salt: random(PasswordHash.saltSize), cost: cost)
        let changed = now()
        try await ledger.write { db in
            try db.execute(
                sql: """
                    INSERT OR REPLACE INTO passwords (account, log_n, r, p, salt, digest, changed) VALUES (?, ?, ?, ?, ?, ?, ?)
                    """,
                arguments: [
                    account, hash.cost.logN, hash.cost.r, hash.cost.p, Data(hash.salt), Data(hash.digest), changed,
                ])
            try Self.endSessions(of: account, db)
        }
    }

    /// Takes an account's password away, and ends its sessions: nobody signs in to it until it has another one.
    ///
    /// - Throws: ``AccessError`` `storage`, `busy`.
    public func removePassword(of account: String) async throws(AccessError) {
        try await ledger.write { db in
            try db.execute(sql: "DELETE FROM passwords WHERE account = ?", arguments: [account])
            try Self.endSessions(of: account, db)
        }
    }

    /// The accounts that have a password, by identifier.
    public func accountsWithPassword() async throws(AccessError) -> Set<String> {
        try await ledger.read { db in try String.fetchSet(db, sql: "SELECT account FROM passwords") }
    }

    /// Whether a password is an account's.
    ///
    /// It takes about a tenth of a second, and the same time for an account that has none, or for nobody: so that who guesses does not learn
    /// whether there is one.
    ///
    /// - Throws: ``AccessError`` `busy` when too many wait already; `storage`.
    public func checkPassword(_ password: String, of account: String?) async throws(AccessError) -> Bool {
        try await matchingHash(password, of: account) != nil
    }

    /// Signs an account in.
    ///
    /// - Parameters:
    ///   - device: What it signs in on, as that says itself.
    ///   - address: From where.
    /// - Returns: `nil` when the password is not the account's. It takes as long as ``checkPassword(_:of:)``.
    /// - Throws: ``AccessError`` `notFound` when the container is not served; `busy`, `storage`.
    public func signIn(
        _ password: String, account: String?, container: String, environment: StoreEnvironment = .development, kind: Session.Kind,
        device: String = "", address: String = ""
    ) async throws(AccessError) -> SessionToken? {
        guard let hash = try await matchingHash(password, of: account), let account else { return nil }
        return try await makeSession(
            account: account, container: container, environment: environment, kind: kind, device: device, address: address,
            hash: hash)
    }

    /// What is kept of an account's password, if it is this one.
    private func matchingHash(_ password: String, of account: String?) async throws(AccessError) -> PasswordHash? {
        // Of the text alone, so that it tells nothing.
        guard let bytes = PasswordHash.bytes(of: password) else { return nil }
        var kept: PasswordHash?
        if let account { kept = try await ledger.read { db in try PasswordHash(of: account, db) } }
        let given = try await hashers.hash(
            bytes, salt: kept?.salt ?? [UInt8](repeating: 0, count: PasswordHash.saltSize), cost: kept?.cost ?? cost)
        guard let kept, Digest.areEqual(kept.digest, given.digest) else { return nil }
        return kept
    }
}

extension PasswordHash {
    /// What is kept of an account's password.
    init?(of account: String, _ db: Database) throws {
        guard
            let row = try Row.fetchOne(
                db, sql: "SELECT log_n, r, p, salt, digest FROM passwords WHERE account = ?", arguments: [account])
        else { return nil }
        self.init(cost: Cost(logN: row[0], r: row[1], p: row[2]), salt: Array(row[3] as Data), digest: Array(row[4] as Data))
        guard cost.isBounded else { throw AccessTables.damaged("cost of a password") }
    }
}
