import TidemarkCloudEngine
import TidemarkModel

/// The decoded credentials that each request looks up. They are decoded once for each state of the storage.
final class CredentialCache: Sendable {
    /// The decoded content of the storage.
    struct State: Sendable {
        var containers: [String: Int64] = [:]
        /// The tokens, by the digests of their texts.
        var tokens: [[UInt8]: APIToken] = [:]
        var keys: [String: ServerKey] = [:]
        /// The secret that everything is signed with.
        var secret: [UInt8] = []
        /// The previous secret, and the time until which signatures under it are valid.
        var previous: (secret: [UInt8], until: Int64)?

        fileprivate init(_ rows: StoredCredentials) throws(CredentialError) {
            (containers, secret, previous) = (rows.containers, rows.secret, rows.previous)
            for row in rows.tokens { tokens[row.digest] = try APIToken(row) }
            for row in rows.keys { keys[row.id] = try ServerKey(row) }
        }
    }

    private let storage: any CredentialStorage
    private let state: LockedValue<(rows: StoredCredentials, decoded: State)>

    /// Reads the storage, so that there is a secret to sign with from now on.
    ///
    /// - Throws: ``CredentialError`` `busy` or `storage`.
    init(_ storage: any CredentialStorage) throws(CredentialError) {
        self.storage = storage
        let rows = try Self.current(storage)
        state = LockedValue((rows, try State(rows)))
    }

    /// Calls a body with the present state. It takes some microseconds where nothing has changed.
    ///
    /// - Throws: ``CredentialError`` `busy` or `storage`.
    func look<Result>(_ body: (borrowing State) -> Result) throws(CredentialError) -> Result {
        let rows = try Self.current(storage)
        let state = try state.withLock { state throws(CredentialError) -> State in
            if state.rows !== rows { state = (rows, try State(rows)) }
            return state.decoded
        }
        return body(state)
    }

    /// The secret to sign with: the storage's, or the last one that was read while the storage can't be read. A signature under
    /// the last one is valid until the secret is replaced, and after that for the grace period of the replacement.
    var signingSecret: [UInt8] {
        do {
            return try look { $0.secret }
        } catch {
            return state.withLock { $0.decoded.secret }
        }
    }

    private static func current(_ storage: any CredentialStorage) throws(CredentialError) -> StoredCredentials {
        do {
            return try storage.current()
        } catch {
            throw CredentialError(storage: error)
        }
    }
}
