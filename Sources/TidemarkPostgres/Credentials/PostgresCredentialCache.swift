import Foundation
import TidemarkCloudEngine
import TidemarkModel

/// What every request may ask for, in memory, with the number of its state; and sessions, which are always looked up.
///
/// Requests that ask at once share one statement. It returns the sessions, and the number of the state: where that is another one, what is
/// in memory is read again before the requests go on.
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

    private let memory: Memory
    private let lookUp: PostgresLookUp<[UInt8], [[UInt8]: StoredSession]>

    init(_ database: PostgresDatabase) async throws(PostgresError) {
        let memory = Memory(try await Self.load(database))
        // One at a time, and each begins after whoever waits for it has seen another state: nothing newer is replaced by what is older.
        let reading = PostgresLookUp<Int64, Int64>(atOnce: 1) { _ throws(PostgresError) in
            let state = try await Self.load(database)
            memory.replace(by: state)
            return state.revision
        }
        self.memory = memory
        lookUp = PostgresLookUp { ids throws(PostgresError) in
            let rows = try await database.reading { () throws(PostgresError) in
                try await database.query(Self.sessions, ids.map { Data($0) })
            }
            var (found, revision): ([[UInt8]: StoredSession], Int64?) = ([:], nil)
            for row in rows {
                revision = try row.value(0)
                guard try row.value(1, as: Data?.self) != nil else { continue }
                let session = try PostgresCredentialTables.session(row, from: 1)
                found[session.id] = session
            }
            if revision != memory.current.revision { _ = try await reading.found(for: nil) }
            return found
        }
    }

    /// What is in memory.
    var current: StoredCredentials { memory.current.credentials }

    /// Sees to it that what is in memory is as new as this call.
    func refresh() async throws(PostgresError) { _ = try await lookUp.found(for: nil) }

    /// Looks a session up; what is in memory is as new as this call then, too.
    func session(_ id: [UInt8]) async throws(PostgresError) -> StoredSession? { try await lookUp.found(for: id)[id] }

    /// The number of the state, and each session that there is: one row at the least.
    private static let sessions = """
        SELECT c.revision, s.id, s.account, s.container, s.environment, s.kind, s.began, s.kept, s.device, s.used, s.address
        FROM credential_state AS c LEFT JOIN sessions AS s ON s.id = ANY($1)
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
