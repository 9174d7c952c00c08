public import Foundation
public import TidemarkModel

/// The key of a server, which signs its requests with it, and may ask for public records of a container.
public struct ServerKey: ContainerGrant, Identifiable, Sendable {
    /// The key's identifier: 64 hexadecimal digits, a digest of the public key, the container and the environment. No secret.
    public let id: String
    /// The identifier of the container that the key is for.
    public let container: String
    /// The environment of the container.
    public let environment: StoreEnvironment
    /// What the key is for; a text for people.
    public let name: String
    /// The account of the embedded cloud that the server acts as, by its identifier.
    public let account: String
    /// When it was added: microseconds since 1970 UTC.
    public let made: Int64
    let publicKey: PublicKey

    /// Whether a signature of these bytes, DER-coded ECDSA by SHA-256, is valid under the server's key.
    public func verifies(signature: Data, of data: Data) -> Bool { publicKey.verifies(Array(signature), of: Array(data)) }

    /// The identifier that a key gets in a container.
    ///
    /// - Throws: ``CredentialError`` `invalid` for a text that is no public key of P-256 in PEM.
    public static func id(
        of publicKeyPEM: String, container: String, environment: StoreEnvironment
    ) throws(CredentialError) -> String {
        id(of: try PublicKey(pem: publicKeyPEM), container, environment)
    }

    static func id(of key: PublicKey, _ container: String, _ environment: StoreEnvironment) -> String {
        Hexadecimal.text(Digest.sha256(key.der + Array("\(container)/\(environment.rawValue)".utf8)))
    }
}
