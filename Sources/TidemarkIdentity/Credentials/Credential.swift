import TidemarkCloudEngine
import TidemarkModel

/// The credential with which a request was admitted. An address that the answer gives out is valid as long as the credential.
public enum Credential: Hashable, Sendable {
    /// The request had no credential.
    case none
    /// A session, by its identifier.
    case session(String)
    /// An API token alone, by its identifier.
    case apiToken(String)
    /// A key of a server, by its identifier.
    case key(String)

    /// The credential as a text that ``init(text:)`` reads.
    public var text: String {
        switch self {
        case .none: ""
        case .session(let id): "s\(id)"
        case .apiToken(let id): "t\(id)"
        case .key(let id): "k\(id)"
        }
    }

    /// - Returns: `nil` for text that is not one of a credential.
    public init?(text: String) {
        let id = String(text.dropFirst())
        switch text.first {
        case nil: self = .none
        case "s": self = .session(id)
        case "t": self = .apiToken(id)
        case "k": self = .key(id)
        default: return nil
        }
    }
}

extension CredentialStore {
    /// Returns whether a credential may still be used: its session was not ended, its token or key not revoked.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    public func isGood(_ credential: Credential) async throws(CredentialError) -> Bool {
        switch credential {
        case .none: return true
        case .session(let id):
            guard let bytes = Hexadecimal.bytes(id), let row = try await row(ofSession: bytes) else { return false }
            return row.kept > now()
        case .apiToken(let id):
            try await refresh()
            return try cache.look { $0.tokens.values.contains { $0.id == id } }
        case .key(let id):
            try await refresh()
            return try cache.look { $0.keys[id] != nil }
        }
    }
}
