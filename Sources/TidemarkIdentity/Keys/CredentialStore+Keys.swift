import Foundation
import TidemarkCloudEngine
public import TidemarkModel

extension CredentialStore {
    /// Adds the public key of a server.
    ///
    /// - Parameters:
    ///   - name: What the key is for; a text for people.
    ///   - publicKeyPEM: A public key of ECDSA over P-256 in PEM, at most 8 KB.
    ///   - account: The account that the server acts as, by its identifier. Each server should have its own.
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

    /// Revokes a key. The account that its server acted as stays, with its records.
    ///
    /// - Throws: ``CredentialError`` `notFound`, `storage`, `busy`.
    public func revokeKey(id: String) async throws(CredentialError) {
        guard try await stored({ try await storage.removeKey(id) }) else {
            throw CredentialError(.notFound, "there is no key '\(id.prefix(100))'; see 'tidemark admin key list'")
        }
    }

    /// Returns the key with an identifier; `nil` when there is none. Takes some microseconds.
    public func key(_ id: String) throws(CredentialError) -> ServerKey? {
        guard id.utf8.count == 64 else { return nil }
        return try cache.look { $0.keys[id.lowercased()] }
    }

    /// The time until signed requests may change something: until the second in which this process started is over. `nil` where
    /// there are no keys, or where the storage remembers the signed requests of all processes.
    package func waitForKeys() throws(CredentialError) -> Duration? {
        guard let since = storage.notedSince else { return nil }
        let wait = (since + 1) * 1_000_000 - now()
        guard wait > 0, try !keys().isEmpty else { return nil }
        return .microseconds(min(wait, 1_000_000))
    }

    /// Checks a request that a server has signed.
    ///
    /// A request that changes something is accepted once, so that a copy of it has no effect. A server that got no answer signs
    /// its request again. A request that only reads may come twice: that does no harm, and some signers give equal requests of
    /// one second one signature.
    ///
    /// With a directory, each process remembers the requests that came since its start. A request that changes something is
    /// refused if it was signed before the start, or in the same second: it may have come before.
    ///
    /// - Parameter isChanging: Whether the request changes anything.
    /// - Throws: ``CredentialError`` `storage`, `busy`: then it is not known whether the request is valid.
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
