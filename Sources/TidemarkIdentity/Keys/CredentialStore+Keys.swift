import Foundation
import GRDB
public import TidemarkModel

extension CredentialStore {
    /// Adds the public key of a server.
    ///
    /// - Parameters:
    ///   - name: What it is for, for people.
    ///   - publicKeyPEM: A public key of ECDSA over P-256 in PEM, at most 8 KB.
    ///   - account: The account that the server acts as, by its identifier: one of its own.
    /// - Throws: ``CredentialError`` `invalid`, `notFound` when the container is not served, `exists`, `storage`, `busy`.
    public func addKey(
        container: String, environment: StoreEnvironment, name: String, publicKeyPEM: String, account: String
    ) async throws(CredentialError) -> ServerKey {
        let publicKey = try PublicKey(pem: publicKeyPEM)
        let key = ServerKey(
            id: ServerKey.id(of: publicKey, container, environment), container: container, environment: environment,
            name: try Self.checkedName(name), account: account, made: now(), publicKey: publicKey)
        try await writer.write { db in
            try Self.demandContainer(container, db)
            let isThere = try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM keys WHERE id = ?)", arguments: [key.id])
            guard isThere == false else {
                throw CredentialError(
                    .exists, "the key is there already, in \(container), \(environment.rawValue): its ID is \(key.id)")
            }
            try db.execute(
                sql: """
                    INSERT INTO keys (id, container, environment, name, account, public_key, made) VALUES (?, ?, ?, ?, ?, ?, ?)
                    """,
                arguments: [
                    key.id, container, environment.rawValue, key.name, account, Data(key.publicKey.der), key.made,
                ])
            try CredentialTables.bump(db)
        }
        return key
    }

    /// The keys of servers, the oldest first.
    public func keys() throws(CredentialError) -> [ServerKey] {
        try cache.look { $0.keys.values.sorted { ($0.made, $0.id) < ($1.made, $1.id) } }
    }

    /// Ends what a key allows. The account that its server has acted as stays, as what it has made.
    ///
    /// - Throws: ``CredentialError`` `notFound`, `storage`, `busy`.
    public func revokeKey(id: String) async throws(CredentialError) {
        try await writer.write { db in
            try CredentialTables.delete(
                from: "keys", is: id,
                orThrow: CredentialError(.notFound, "there is no key '\(id.prefix(100))'; see 'tidemark admin key list'"), db)
        }
    }

    /// The key of that identifier; `nil` when there is none. Some microseconds.
    public func key(_ id: String) throws(CredentialError) -> ServerKey? {
        guard id.utf8.count == 64 else { return nil }
        return try cache.look { $0.keys[id.lowercased()] }
    }

    /// How long until the second of the start is over, in which nothing that keys sign may change anything; none where there are no keys.
    package func waitForKeys() throws(CredentialError) -> Duration? {
        let wait = (started + 1) * 1_000_000 - now()
        guard wait > 0, try !keys().isEmpty else { return nil }
        return .microseconds(min(wait, 1_000_000))
    }

    /// Checks a request that a server has signed.
    ///
    /// One that changes something is let in once: who has listened to it can't have it done again. A server whose request got no answer signs
    /// it anew. What only reads does no harm twice, and some ways of signing give the same question in the same second the same signature.
    ///
    /// The memory of what has come is this process's, and begins anew with it. What was signed before it began is refused, since it may have
    /// come before; and what was signed in the second in which it began, since of that second nobody knows.
    ///
    /// - Parameter isChanging: Whether it changes anything.
    public func check(_ request: SignedRequest, by key: ServerKey, isChanging: Bool) throws(SignatureFailure) {
        let now = now()
        let (second, mark) = try key.mark(of: request, at: now)
        guard isChanging else { return }
        guard second > started else { throw .beforeStart }
        let failure = replays.withLock { memories -> SignatureFailure? in
            do throws(SignatureFailure) {
                // 100,000 in ten minutes are some 4 MB.
                try memories[key.id, default: ReplayMemory(capacity: 100_000)].admit(mark, signed: second, at: now / 1_000_000)
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw failure }
    }
}
