package import TidemarkCloudEngine
public import TidemarkModel

/// A person's session with a container, in a browser or on a device.
public struct Session: ContainerGrant, Hashable, Identifiable, Sendable {
    /// Where the person is signed in, and how long a token is valid.
    public enum Kind: Hashable, Sendable {
        /// In a browser: 30 minutes, or two weeks for a person who stays signed in.
        case web(staysSignedIn: Bool)
        /// On a device: 180 days.
        case device

        /// How long a token is valid after it was given out: microseconds.
        public var lifetime: Int64 {
            let minute = 60_000_000 as Int64
            return switch self {
            case .web(staysSignedIn: false): 30 * minute
            case .web(staysSignedIn: true): 14 * 24 * 60 * minute
            case .device: 180 * 24 * 60 * minute
            }
        }

        /// The least time between two noted uses, in microseconds: an hour, or half of a shorter lifetime. The true last use may
        /// be up to that much later than the noted one.
        package var noting: Int64 { min(60 * 60_000_000, lifetime / 2) }
    }

    /// The session's identifier: 32 hexadecimal digits. No secret: it can't be used to sign in.
    public let id: String
    /// The account of the cloud, by its identifier.
    public let account: String
    /// The identifier of the container that the session is for.
    public let container: String
    /// The environment of the container.
    public let environment: StoreEnvironment
    /// Where the person is signed in.
    public let kind: Kind
    /// When the person signed in: microseconds since 1970 UTC.
    public let began: Int64
    /// The name of the device, or the browser's description of itself; empty when it has sent none. The person may have renamed
    /// it.
    public let device: String
    /// The device's operating system and its version, by its own account, such as `Debian GNU/Linux 12`; empty when it has sent
    /// none.
    public let system: String
    /// The last noted use: microseconds since 1970 UTC, to the hour, and to a quarter of an hour for a browser that does not stay
    /// signed in. 0 when none is known.
    public let used: Int64
    /// The client's address at that use; for IPv6 its network. Empty when it is not known.
    public let address: String
    /// When the client's token was given out; in a list, when the person signed in.
    public internal(set) var issued: Int64
    /// When the client's token expires; in a list, when the last token expires, as precisely as ``used`` is known.
    public internal(set) var expires: Int64
    /// The account, if it was looked up together with the session. It is as new as the session.
    package internal(set) var holder: StoredAccount?

    /// Whether the caller should be given a new token: in a browser with each answer, on a device once a tenth of the token's time is over.
    public func isDueForRenewal(at now: Int64) -> Bool {
        switch kind {
        case .web: true
        case .device: now - issued >= kind.lifetime / 10
        }
    }
}

/// The token that a signed-in client sends with each request.
public struct SessionToken: Hashable, Sendable {
    /// 86 letters, digits, `-` and `_`. A secret.
    public let text: String
    /// The session that the token belongs to.
    public let session: Session
    /// When the token expires: microseconds since 1970 UTC.
    public var expires: Int64 { session.expires }
}

extension SessionToken: CustomStringConvertible {
    /// A description without the token's text, so that no log has the text.
    public var description: String { "a token of the session \(session.id)" }
}

/// Why a session's token is refused.
public enum SessionFailure: String, Error, CaseIterable, Sendable {
    /// The text can't be a token: a part of it is missing, or it has other characters.
    case malformed
    /// The token was altered, or is from another cloud.
    case unknown
    /// The token has expired.
    case expired
    /// The session was ended, such as by a change of the account's password.
    case revoked

    /// The reason as a sentence for people.
    public var reason: String {
        switch self {
        case .malformed: "the session token is incomplete, or none: sign in again"
        case .unknown: "the session token is not of this server: sign in again"
        case .expired: "the session token has expired: sign in again"
        case .revoked: "the session was ended: sign in again"
        }
    }
}
