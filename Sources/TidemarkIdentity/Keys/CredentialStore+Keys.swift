import Foundation
import TidemarkCloudEngine
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
        switch try await stored({ try await storage.add(key.stored) }) {
        case .added: break
        case .containerIsNotServed: throw Self.noContainer(container)
        case .exists:
            throw CredentialError(
                .exists, "the key is there already, in \(container), \(environment.rawValue): its ID is \(key.id)")
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
        guard try await stored({ try await storage.removeKey(id) }) else {
            throw CredentialError(.notFound, "there is no key '\(id.prefix(100))'; see 'tidemark admin key list'")
        }
    }

    /// The key of that identifier; `nil` when there is none. Some microseconds.
    public func key(_ id: String) throws(CredentialError) -> ServerKey? {
        guard id.utf8.count == 64 else { return nil }
        return try cache.look { $0.keys[id.lowercased()] }
    }

    /// How long until the second of the start is over, in which nothing that keys sign may change anything; none where there are no keys,
    /// and where the storage has noted all requests there were.
    package func waitForKeys() throws(CredentialError) -> Duration? {
        guard let since = storage.notedSince else { return nil }
        let wait = (since + 1) * 1_000_000 - now()
        guard wait > 0, try !keys().isEmpty else { return nil }
        return .microseconds(min(wait, 1_000_000))
    }

    /// Checks a request that a server has signed.
    ///
    /// One that changes something is let in once: who has listened to it can't have it done again. A server whose request got no answer signs
    /// it anew. What only reads does no harm twice, and some ways of signing give the same question in the same second the same signature.
    ///
    /// In a directory, the memory of what has come is this process's, and begins anew with it. What was signed before it began is refused,
    /// since it may have come before; and what was signed in the second in which it began, since of that second nobody knows.
    ///
    /// - Parameter isChanging: Whether it changes anything.
    /// - Throws: ``CredentialError`` `storage`, `busy`: then nothing is known of it.
    public func check(
        _ request: SignedRequest, by key: ServerKey, isChanging: Bool
    ) async throws(CredentialError) -> Result<Void, SignatureFailure> {
        let now = now()
        let (second, mark): (Int64, [UInt8])
        do throws(SignatureFailure) {
            (second, mark) = try key.mark(of: request, at: now)
        } catch {
            return .failure(error)
        }
        guard isChanging else { return .success(()) }
        let admission = try await stored {
            try await storage.admit(mark, of: key.id, signed: second, at: now / 1_000_000, tolerance: ServerKey.tolerance)
        }
        return switch admission {
        case .admitted: .success(())
        case .replayed: .failure(.replayed)
        case .forgotten: .failure(.forgotten)
        case .beforeStart: .failure(.beforeStart)
        }
    }
}
