import Foundation
public import TidemarkModel

/// That a program may ask for what is public in a container, and have people sign in.
///
/// The token itself, 64 hexadecimal digits, is told once, when it is made; the credential store keeps its SHA-256.
public struct APIToken: ContainerGrant, Hashable, Identifiable, Sendable {
    /// 16 hexadecimal digits. No secret.
    public let id: String
    /// The identifier of the container that the token is for.
    public let container: String
    /// The environment of the container.
    public let environment: StoreEnvironment
    /// What it is for, for people.
    public let name: String
    /// Where a browser goes after a sign-in.
    public let callback: SignInCallback
    /// Whose pages may use it; of any origin when there is none.
    public let origins: [String]
    /// When it was made: microseconds since 1970 UTC.
    public let made: Int64

    /// Whether pages of an origin may use it, as a browser's header `Origin` names it.
    public func allows(origin: String) -> Bool { origins.isEmpty || origins.contains(origin) }
}
