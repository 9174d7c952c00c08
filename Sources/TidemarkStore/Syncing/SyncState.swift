import GRDB
import TidemarkModel

/// What a store remembers of the cloud that it is synchronised with; kept in `tide_sync`.
package struct SyncState: Hashable, Sendable {
    /// Whose records it has: an account's name in the cloud container.
    package var user: String?
    /// The place in what the zone has gone through, up to which everything was fetched.
    package var token: String?
    /// The zone was there.
    package var zoneIsMade = false
    /// Everything that the cloud had at one time has been fetched once.
    package var initialImportIsComplete = false
    /// Everything is fetched without a token though the cloud is known to have had something already: what it had and does not come was
    /// deleted meanwhile.
    package var isRefetching = false
    /// The person has deleted the zone's data for good: nothing is to be uploaded.
    package var isPurged = false
    /// The store of a production container had no types when its first import began: it gets the cloud's.
    package var isDeploying = false
    /// The number of the schema with which records that could not be taken in were tried last.
    package var keptGeneration: Int64 = 0

    package init() {}

    init(_ db: Database) throws {
        var values: [String: DatabaseValue] = [:]
        for row in try Row.fetchAll(db.cachedStatement(sql: "SELECT key, value FROM tide_sync")) { values[row[0]] = row[1] }
        func value<Value: DatabaseValueConvertible>(_ key: String) -> Value? { values[key].flatMap(Value.fromDatabaseValue) }
        user = value("user")
        token = value("token")
        zoneIsMade = value("zone_is_made") ?? false
        initialImportIsComplete = value("initial_import_is_complete") ?? false
        isRefetching = value("is_refetching") ?? false
        isPurged = value("is_purged") ?? false
        isDeploying = value("is_deploying") ?? false
        keptGeneration = value("kept_generation") ?? 0
    }

    /// Stores what differs from another state.
    func store(_ db: Database, insteadOf old: SyncState) throws {
        func note(_ key: String, _ isNew: Bool, _ value: (any DatabaseValueConvertible)?) throws {
            guard isNew else { return }
            try db.cachedStatement(sql: "INSERT OR REPLACE INTO tide_sync (key, value) VALUES (?, ?)")
                .execute(arguments: [key, value?.databaseValue ?? .null])
        }
        try note("user", user != old.user, user)
        try note("token", token != old.token, token)
        try note("zone_is_made", zoneIsMade != old.zoneIsMade, zoneIsMade)
        try note(
            "initial_import_is_complete", initialImportIsComplete != old.initialImportIsComplete, initialImportIsComplete)
        try note("is_refetching", isRefetching != old.isRefetching, isRefetching)
        try note("is_purged", isPurged != old.isPurged, isPurged)
        try note("is_deploying", isDeploying != old.isDeploying, isDeploying)
        try note("kept_generation", keptGeneration != old.keptGeneration, keptGeneration)
    }
}

extension RecordStore {
    package func syncState() throws(StoreError) -> SyncState {
        try connection.read("read the state of the sync") { try SyncState($0) }
    }

    /// Changes what the store remembers of its cloud.
    @discardableResult
    package func updateSyncState(_ change: (inout SyncState) -> Void) throws(StoreError) -> SyncState {
        try connection.locked("note the state of the sync") { db in
            let old = try SyncState(db)
            var state = old
            change(&state)
            try state.store(db, insteadOf: old)
            return (state, .commit)
        }
    }
}

extension StoreReader {
    package func syncState() throws(StoreError) -> SyncState { try read("read the state of the sync") { try SyncState($0) } }
}
