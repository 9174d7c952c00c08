import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite

/// What is looked up with every request, in memory, and always as the file has it: a change of this process or another is seen at once.
final class CredentialCache: Sendable {
    /// What the file has, as far as it was asked for.
    struct State {
        fileprivate var version: Int64?
        fileprivate var revision: Int64?
        var containers: [String: Int64] = [:]
        /// By the digests of their texts.
        var tokens: [[UInt8]: APIToken] = [:]
        var keys: [String: ServerKey] = [:]
        /// The secret that everything is signed with.
        var secret: [UInt8] = []
        /// The secret before, and until when what was signed with it is good.
        var previous: (secret: [UInt8], until: Int64)?
        fileprivate var sessions = BoundedCache<[UInt8], SessionRow>(capacity: 50_000)
    }

    private let connection: DatabaseQueue
    private let state = LockedValue(State())

    init(of file: URL) throws {
        connection = try SharedDatabase.watcher(of: file)
        // From here on there is a secret to sign with.
        try look { _ in }
    }

    /// Some microseconds, where nothing has changed.
    ///
    /// - Throws: ``CredentialError`` `busy` or `storage`.
    func look<Result>(_ body: (borrowing State) -> Result) throws(CredentialError) -> Result {
        try read { state, _ in body(state) }
    }

    /// The secret to sign with: the file's; where the file can't be read for the moment, the last one that was read. A signature under that
    /// one is good until the secret is replaced, and then as long as the replacement says.
    var signingSecret: [UInt8] {
        do {
            return try look { $0.secret }
        } catch {
            return state.withLock { $0.secret }
        }
    }

    /// The session of that identifier; `nil` when there is none any more.
    func session(_ id: [UInt8]) throws(CredentialError) -> SessionRow? {
        try read { state, db in
            if let known = state.sessions[id] { return known }
            let statement = try db.cachedStatement(sql: "SELECT * FROM sessions WHERE id = ?")
            guard let row = try Row.fetchOne(statement, arguments: [Data(id)]).map(SessionRow.init) else { return nil }
            state.sessions[id] = row
            return row
        }
    }

    /// Has the row of a session, if it is held, be kept until then, as was just written: a renewal has nobody read anew.
    func keep(_ id: [UInt8], until kept: Int64) {
        state.withLock { state in
            _ = state.sessions.update(id) { $0.kept = max($0.kept, kept) }
        }
    }

    /// Has the row of a session, if it is held, tell of a use, unless it tells of one a short while ago.
    ///
    /// - Returns: Whether that is to be noted.
    func use(_ id: [UInt8], at now: Int64, from address: String) -> Bool {
        state.withLock { state in
            state.sessions.update(id) { session in
                guard now - session.used >= session.kind.noting else { return false }
                (session.used, session.address) = (now, address)
                return true
            } ?? false
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
            if revision != state.revision {
                state = try load(db)
                state.revision = revision
            }
            return .commit
        }
        // Read before the content: what was committed in between is looked at the next time.
        state.version = version
    }

    private static func load(_ db: Database) throws -> State {
        var state = State()
        let secrets = try Row.fetchAll(db, sql: "SELECT name, content FROM secrets").reduce(into: [String: [UInt8]]()) {
            $0[$1[0]] = Array($1[1] as Data)
        }
        guard let secret = secrets[CredentialTables.secret], secret.count == 32 else { throw CredentialTables.damaged("secret") }
        state.secret = secret
        if let previous = secrets[CredentialTables.previousSecret] {
            guard previous.count == 40 else { throw CredentialTables.damaged("secret") }
            state.previous = (Array(previous[8...]), Int64(bytesInOrder: previous[..<8]))
        }
        for row in try Row.fetchAll(db, sql: "SELECT name, added FROM containers") { state.containers[row[0]] = row[1] }
        for row in try Row.fetchAll(db, sql: "SELECT * FROM tokens") {
            state.tokens[Array(row["digest"] as Data)] = try APIToken(row)
        }
        for row in try Row.fetchAll(db, sql: "SELECT * FROM keys") {
            let key = try ServerKey(row)
            state.keys[key.id] = key
        }
        return state
    }
}
