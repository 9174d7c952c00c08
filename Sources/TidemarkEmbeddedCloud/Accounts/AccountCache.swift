import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// Accounts as they were last asked for, and always as the file has them: every request asks for the one that makes it.
final class AccountCache: Sendable {
    private struct State {
        var version: Int64?
        var accounts = BoundedCache<String, StoredAccount>(capacity: 50_000)
    }

    private let connection: DatabaseQueue
    private let state = LockedValue(State())

    init(_ connection: DatabaseQueue) { self.connection = connection }

    /// Another one whenever something was committed.
    func version() throws -> Int64 {
        try state.withLock { _ in
            try connection.unsafeRead { db in try Int64.fetchOne(try db.cachedStatement(sql: "PRAGMA data_version")) ?? 0 }
        }
    }

    /// The account of that identifier, which is fetched if nobody has asked for it since something was last changed.
    ///
    /// It takes some microseconds in the thread that calls.
    func account(
        _ id: String, _ fetch: (Database, String) throws -> StoredAccount?
    ) throws -> StoredAccount? {
        try state.withLock { state in
            try connection.unsafeRead { db in
                // Read before the account: what is committed in between is looked at the next time.
                let version = try Int64.fetchOne(try db.cachedStatement(sql: "PRAGMA data_version"))
                if version != state.version { state = State(version: version) }
                if let known = state.accounts[id] { return known }
                let found = try fetch(db, id)
                state.accounts[id] = found
                return found
            }
        }
    }
}
