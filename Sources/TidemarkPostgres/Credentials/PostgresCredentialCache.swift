import Foundation
import TidemarkCloudEngine
import TidemarkModel

/// Caches the credentials that every request may need, with their revision. Sessions are not cached but looked up.
///
/// Simultaneous requests share one statement. It returns their sessions with the accounts, which the requests need next, and the
/// revision in the database. If that is not the cached revision, the credentials are read again before the requests go on. The
/// statement also tells whether this version may still use the database (``PostgresVersions``).
final class PostgresCredentialCache: Sendable {
    private struct State: Sendable {
        let revision: Int64
        let credentials: StoredCredentials
    }

    private final class Memory: Sendable {
        private let state: LockedValue<State>

        init(_ state: State) { self.state = LockedValue(state) }

        var current: State { state.withLock { $0 } }
        func replace(by state: State) { self.state.withLock { $0 = state } }
    }

    /// What a look-up finds.
    private struct Found: Sendable {
        let revision: Int64
        let sessions: [[UInt8]: StoredSession]
    }

    /// All sessions are one group of look-ups.
    private enum Group { case all }

    private let memory: Memory
    private let lookUp: PostgresLookUp<Group, [UInt8], Found>
    private let reading: PostgresSharedTask<Void>

    init(_ database: PostgresDatabase) async throws(PostgresError) {
        let memory = Memory(try await Self.load(database))
        // Reads run one at a time, and each begins after its callers have seen another revision. So no read replaces a newer
        // state.
        reading = PostgresSharedTask { () throws(PostgresError) in memory.replace(by: try await Self.load(database)) }
        self.memory = memory
        let name = database.configuration.address.name
        lookUp = PostgresLookUp(database) { _, ids in
            PostgresCommand(Self.sessions, [ids.map { Data($0) }])
        } found: { rows throws(PostgresError) in
            guard let first = rows.first else {
                throw PostgresError(.decoding, "the database has no row in credential_state")
            }
            if let component = try first.value(19, as: String?.self) { throw PostgresVersions.refusal(component, of: name) }
            var sessions: [[UInt8]: StoredSession] = [:]
            for row in rows where try row.value(1, as: Data?.self) != nil {
                var session = try PostgresCredentialTables.session(row, from: 1)
                session.holder = try PostgresAccountStorage.account(ifAnyIn: row, from: 12)
                sessions[session.id] = session
            }
            return Found(revision: try first.value(0), sessions: sessions)
        }
    }

    private func found(for ids: [[UInt8]]) async throws(PostgresError) -> [[UInt8]: StoredSession] {
        let found = try await lookUp.found(for: ids, in: .all)
        if found.revision != memory.current.revision { try await reading.run() }
        return found.sessions
    }

    /// The cached credentials.
    var current: StoredCredentials { memory.current.credentials }

    /// Brings the cache up to date with what was committed before this call.
    func refresh() async throws(PostgresError) { _ = try await found(for: []) }

    /// Looks a session up, and brings the cache up to date as ``refresh()`` does.
    func session(_ id: [UInt8]) async throws(PostgresError) -> StoredSession? { try await found(for: [id])[id] }

    /// Selects the revision, and each session that exists with its account. There is one row at the least.
    private static let sessions = """
        SELECT c.revision, s.id, s.account, s.container, s.environment, s.kind, s.began, s.kept, s.device, s.used, s.address,
            s.system, a.id, a.email, a.phone, a.name, a.quota, a.status, a.discoverable, \(PostgresVersions.newerComponent)
        FROM credential_state AS c LEFT JOIN sessions AS s ON s.id = ANY($1) LEFT JOIN accounts AS a ON a.id = s.account
        """

    private static func load(_ database: PostgresDatabase) async throws(PostgresError) -> State {
        do {
            return try await database.read { transaction in
                let rows = try transaction.run([
                    PostgresCommand("SELECT revision, secret, previous, previous_until FROM credential_state"),
                    PostgresCommand("SELECT name, added FROM served_containers"),
                    PostgresCommand("SELECT \(PostgresCredentialTables.tokenColumns) FROM api_tokens"),
                    PostgresCommand("SELECT \(PostgresCredentialTables.keyColumns) FROM server_keys"),
                ])
                guard let state = rows[0].first else {
                    throw PostgresError(.decoding, "the database has no row in credential_state")
                }
                var previous: (secret: [UInt8], until: Int64)?
                if let secret = try state.value(2, as: Data?.self), let until = try state.value(3, as: Int64?.self) {
                    previous = ([UInt8](secret), until)
                }
                var containers: [String: Int64] = [:]
                for row in rows[1] { containers[try row.value(0)] = try row.value(1) as Int64 }
                return State(
                    revision: try state.value(0),
                    credentials: StoredCredentials(
                        containers: containers, tokens: try rows[2].map { try PostgresCredentialTables.token($0) },
                        keys: try rows[3].map { try PostgresCredentialTables.key($0) },
                        secret: [UInt8](try state.value(1, as: Data.self)), previous: previous))
            }
        } catch {
            throw error as? PostgresError ?? PostgresError(.statement, "\(error)")
        }
    }
}
