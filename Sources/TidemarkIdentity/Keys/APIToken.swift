import Foundation
public import TidemarkModel

/// A program's permission to ask for public records of a container, and to let people sign in.
///
/// The token itself, 64 hexadecimal digits, is shown once, when it is made. The credential store keeps its SHA-256.
public struct APIToken: ContainerGrant, Hashable, Identifiable, Sendable {
    /// The token's identifier: 16 hexadecimal digits. No secret.
    public let id: String
    /// The identifier of the container that the token is for.
    public let container: String
    /// The environment of the container.
    public let environment: StoreEnvironment
    /// What the token is for; a text for people.
    public let name: String
    /// Where the sign-in page sends a browser after a sign-in.
    public let callback: SignInCallback
    /// The origins whose pages may use the token; empty for any origin.
    public let origins: [String]
    /// When it was made: microseconds since 1970 UTC.
    public let made: Int64

    /// Whether pages of an origin, as a browser's header `Origin` names it, may use the token.
    public func allows(origin: String) -> Bool { origins.isEmpty || origins.contains(origin) }
}
