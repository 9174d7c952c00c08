import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// Caches accounts, and always returns what the file has: every request reads the account that sends it.
final class AccountCache: Sendable {
    private struct State {
        var version: Int64?
        var accounts = BoundedCache<String, StoredAccount>(capacity: 50_000)
    }

    private let connection: DatabaseQueue
    private let state = LockedValue(State())

    init(_ connection: DatabaseQueue) { self.connection = connection }

    /// Returns a number that is another one after each commit.
    func version() throws -> Int64 {
        try state.withLock { _ in
            try connection.unsafeRead { db in try Int64.fetchOne(try db.cachedStatement(sql: "PRAGMA data_version")) ?? 0 }
        }
    }

    /// Returns the account of an identifier, and fetches it if anything was committed since it was cached.
    ///
    /// It takes some microseconds on the calling thread.
    func account(
        _ id: String, _ fetch: (Database, String) throws -> StoredAccount?
    ) throws -> StoredAccount? {
        try state.withLock { state in
            try connection.unsafeRead { db in
                // Read before the account, so that what is committed in between is noticed the next time.
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
