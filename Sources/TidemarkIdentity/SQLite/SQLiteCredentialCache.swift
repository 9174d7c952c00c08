import Foundation
import GRDB
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// The rows that each request looks up, in memory. They are always as the file has them: a change of any process is seen at once.
final class SQLiteCredentialCache: Sendable {
    private struct State {
        var version: Int64?
        var revision: Int64?
        /// `nil` before the first look-up.
        var credentials: StoredCredentials?
        var sessions = BoundedCache<[UInt8], StoredSession>(capacity: 50_000)
    }

    private let connection: DatabaseQueue
    private let state = LockedValue(State())

    init(of file: URL) throws {
        connection = try SharedDatabase.watcher(of: file)
        // The first reading makes sure that there is a secret to sign with.
        _ = try current()
    }

    /// Returns the present credentials. It takes some microseconds where nothing has changed.
    func current() throws(CredentialError) -> StoredCredentials {
        try read { state, _ in
            guard let credentials = state.credentials else { throw CredentialTables.damaged("secret") }
            return credentials
        }
    }

    /// Returns the session with an identifier; `nil` when there is none, or none any more.
    func session(_ id: [UInt8]) throws(CredentialError) -> StoredSession? {
        try read { state, db in
            if let known = state.sessions[id] { return known }
            let statement = try db.cachedStatement(sql: "SELECT * FROM sessions WHERE id = ?")
            guard let row = try Row.fetchOne(statement, arguments: [Data(id)]).map(StoredSession.init) else { return nil }
            state.sessions[id] = row
            return row
        }
    }

    /// Changes a session's row in memory as the file was changed, so that renewals and uses cause no new read.
    func update(_ id: [UInt8], _ change: (inout StoredSession) -> Void) {
        state.withLock { state in
            _ = state.sessions.update(id) { change(&$0) }
        }
    }

    private func read<Result>(_ body: (inout State, Database) throws -> Result) throws(CredentialError) -> Result {
        var result: Result?
        do {
            try state.withLock { state in
                try connection.unsafeRead { db in
                    try Self.refresh(&state, db)
                    result = try body(&state, db)
                }
            }
        } catch {
            throw CredentialError(storage: error)
        }
        return result!
    }

    private static func refresh(_ state: inout State, _ db: Database) throws {
        let version = try Int64.fetchOne(try db.cachedStatement(sql: "PRAGMA data_version"))
        guard version != state.version else { return }
        try db.inTransaction(.deferred) {
            let revision = try Int64.fetchOne(try db.cachedStatement(sql: "SELECT revision FROM counters"))
            if revision != state.revision || state.credentials == nil {
                state = State(revision: revision, credentials: try load(db))
            }
            return .commit
        }
        // The version was read before the content: a commit in between is noticed at the next look-up.
        state.version = version
    }

    private static func load(_ db: Database) throws -> StoredCredentials {
        var secrets: [String: [UInt8]] = [:]
        for row in try Row.fetchAll(db, sql: "SELECT name, content FROM secrets") {
            try secrets[row.decode(String.self, atIndex: 0)] = Array(row.decode(Data.self, atIndex: 1))
        }
        guard let secret = secrets[CredentialTables.secret], secret.count == 32 else { throw CredentialTables.damaged("secret") }
        var previous: (secret: [UInt8], until: Int64)?
        if let kept = secrets[CredentialTables.previousSecret] {
            guard kept.count == 40 else { throw CredentialTables.damaged("secret") }
            previous = (Array(kept[8...]), Int64(bytesInOrder: kept[..<8]))
        }
        var containers: [String: Int64] = [:]
        for row in try Row.fetchAll(db, sql: "SELECT name, added FROM containers") {
            try containers[row.decode(String.self, atIndex: 0)] = row.decode(Int64.self, atIndex: 1)
        }
        return StoredCredentials(
            containers: containers, tokens: try Row.fetchAll(db, sql: "SELECT * FROM tokens").map { try StoredAPIToken($0) },
            keys: try Row.fetchAll(db, sql: "SELECT * FROM keys").map { try StoredServerKey($0) }, secret: secret,
            previous: previous)
    }
}
