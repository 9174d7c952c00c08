import TidemarkCloudEngine
import TidemarkModel

/// What is looked up with every request, decoded: it is decoded once for each state that the storage has.
final class CredentialCache: Sendable {
    /// What the storage has.
    struct State: Sendable {
        var containers: [String: Int64] = [:]
        /// By the digests of their texts.
        var tokens: [[UInt8]: APIToken] = [:]
        var keys: [String: ServerKey] = [:]
        /// The secret that everything is signed with.
        var secret: [UInt8] = []
        /// The secret before, and until when what was signed with it is good.
        var previous: (secret: [UInt8], until: Int64)?

        fileprivate init(_ rows: StoredCredentials) throws(CredentialError) {
            (containers, secret, previous) = (rows.containers, rows.secret, rows.previous)
            for row in rows.tokens { tokens[row.digest] = try APIToken(row) }
            for row in rows.keys { keys[row.id] = try ServerKey(row) }
        }
    }

    private let storage: any CredentialStorage
    private let state: LockedValue<(rows: StoredCredentials, decoded: State)>

    /// - Throws: ``CredentialError`` `busy` or `storage`. From here on there is a secret to sign with.
    init(_ storage: any CredentialStorage) throws(CredentialError) {
        self.storage = storage
        let rows = try Self.current(storage)
        state = LockedValue((rows, try State(rows)))
    }

    /// Some microseconds, where nothing has changed.
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

    /// The secret to sign with: the storage's; where that can't be read for the moment, the last one that was read. A signature under that
    /// one is good until the secret is replaced, and then as long as the replacement says.
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
