public import Foundation
public import TidemarkModel

/// That a server may ask for what is public in a container, and sign its requests with its own key.
public struct ServerKey: ContainerGrant, Identifiable, Sendable {
    /// 64 hexadecimal digits, made of the public key, the container and the environment. No secret.
    public let id: String
    /// The identifier of the container that the key is for.
    public let container: String
    /// The environment of the container.
    public let environment: StoreEnvironment
    /// What it is for, for people.
    public let name: String
    /// The account of the embedded cloud that the server acts as, by its identifier.
    public let account: String
    /// When it was added: microseconds since 1970 UTC.
    public let made: Int64
    let publicKey: PublicKey

    /// Whether a signature, DER-coded ECDSA by SHA-256, is the server's of these bytes.
    public func verifies(signature: Data, of data: Data) -> Bool { publicKey.verifies(Array(signature), of: Array(data)) }

    /// The identifier that a key gets in a container.
    ///
    /// - Throws: ``CredentialError`` `invalid` for what is no public key of P-256 in PEM.
    public static func id(
        of publicKeyPEM: String, container: String, environment: StoreEnvironment
    ) throws(CredentialError) -> String {
        id(of: try PublicKey(pem: publicKeyPEM), container, environment)
    }

    static func id(of key: PublicKey, _ container: String, _ environment: StoreEnvironment) -> String {
        Hexadecimal.text(Digest.sha256(key.der + Array("\(container)/\(environment.rawValue)".utf8)))
    }
}
