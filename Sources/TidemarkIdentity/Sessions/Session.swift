package import TidemarkCloudEngine
public import TidemarkModel

/// That a person is signed in to a container, in a browser or on a device.
public struct Session: ContainerGrant, Hashable, Identifiable, Sendable {
    /// Where somebody is signed in, and for how long a token is good.
    public enum Kind: Hashable, Sendable {
        /// In a browser: 30 minutes, or two weeks for who stays signed in.
        case web(staysSignedIn: Bool)
        /// On a device: 180 days.
        case device

        /// Microseconds that a token is good from when it was given out.
        public var lifetime: Int64 {
            let minute = 60_000_000 as Int64
            return switch self {
            case .web(staysSignedIn: false): 30 * minute
            case .web(staysSignedIn: true): 14 * 24 * 60 * minute
            case .device: 180 * 24 * 60 * minute
            }
        }

        /// Microseconds after which another use is noted: an hour, or half of a shorter lifetime. So long before the next use that is noted there
        /// may have been another one.
        package var noting: Int64 { min(60 * 60_000_000, lifetime / 2) }
    }

    /// 32 hexadecimal digits. No secret: it can't be used to sign in.
    public let id: String
    /// An account of the embedded cloud, by its identifier.
    public let account: String
    /// The identifier of the container that the session is for.
    public let container: String
    /// The environment of the container.
    public let environment: StoreEnvironment
    /// Where the sign-in came from.
    public let kind: Kind
    /// When the person signed in: microseconds since 1970 UTC.
    public let began: Int64
    /// What the person is signed in on, as that says itself: the name of a device or a browser's description. Empty when it says nothing.
    /// The person may have given it another name.
    public let device: String
    /// The operating system of the device and its version, as that says itself, such as `Debian GNU/Linux 12`; empty when it says nothing.
    public let system: String
    /// When it was used last: microseconds since 1970 UTC, to the hour, and to a quarter of one for a browser that does not stay signed in.
    /// 0 when that is not known.
    public let used: Int64
    /// From where it was used then: an address, of IPv6 its network. Empty when that is not known.
    public let address: String
    /// When the token that was shown was given out; in a list, when the person signed in.
    public internal(set) var issued: Int64
    /// Until when the token that was shown is good; in a list, the last one that was given out, as exactly as ``used`` is known.
    public internal(set) var expires: Int64
    /// The account, where it was looked up together with the session. It is as new as the session.
    package internal(set) var holder: StoredAccount?

    /// Whether the caller should be given a new token: in a browser with each answer, on a device once a tenth of the token's time is over.
    public func isDueForRenewal(at now: Int64) -> Bool {
        switch kind {
        case .web: true
        case .device: now - issued >= kind.lifetime / 10
        }
    }
}

/// What whoever is signed in shows with each request.
public struct SessionToken: Hashable, Sendable {
    /// 86 letters, digits, `-` and `_`. A secret.
    public let text: String
    /// The session that the token belongs to.
    public let session: Session
    /// Until when it is good: microseconds since 1970 UTC.
    public var expires: Int64 { session.expires }
}

extension SessionToken: CustomStringConvertible {
    /// Without the text, so that no log has it.
    public var description: String { "a token of the session \(session.id)" }
}

/// Why a token does not let anybody in.
public enum SessionFailure: String, Error, CaseIterable, Sendable {
    /// The text can't be a token: a part of it is missing, or it has other characters.
    case malformed
    /// It was altered, or another cloud has made it.
    case unknown
    /// The session ended by its age.
    case expired
    /// The session was ended, or the account has another password since.
    case revoked

    /// What is wrong, for people.
    public var reason: String {
        switch self {
        case .malformed: "the session token is incomplete, or none: sign in again"
        case .unknown: "the session token is not of this server: sign in again"
        case .expired: "the session token has expired: sign in again"
        case .revoked: "the session was ended: sign in again"
        }
    }
}
