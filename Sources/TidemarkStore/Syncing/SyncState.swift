import GRDB
import TidemarkModel
package import TidemarkSQLite

/// What a store remembers of a zone of the cloud that it is synchronised with; kept in `tide_sync`.
package struct SyncState: Hashable, Sendable {
    /// Whose records the store has: an account's name in the cloud container. It is the same in all zones.
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
    package var deferredGeneration: Int64 = 0
    /// The cloud has said that something has changed in the zone, and that was not fetched yet.
    package var hasNewChanges = false
    /// The name of the life of the cloud's database that was fetched last; `nil` where the cloud does not say.
    package var incarnation: String?
    /// The cloud was put back to an earlier state: everything is fetched, and each record compared with the one that is here.
    package var isComparing = false
    /// The last change here when that began: deletions until then may be unknown to the cloud, and to those who send it what it has lost.
    package var comparedChange: Int64?

    /// Whether no page of the zone has come yet since the device began, or began anew: it does not know in which incarnation the cloud is.
    package var awaitsFirstPage: Bool { token == nil }

    package init() {}

    private static let keys = [
        "token", "zone_is_made", "initial_import_is_complete", "is_refetching", "is_purged", "is_deploying", "kept_generation",
        "has_new_changes", "incarnation", "is_comparing", "compared_change",
    ]

    /// A parameter for each key.
    private static let places = String(repeating: ", ?", count: keys.count)

    init(_ db: Database, zone: Int64) throws {
        let prefix = Self.prefix(zone)
        let sql = "SELECT key, value FROM tide_sync WHERE key IN ('user'\(Self.places))"
        let rows = try Row.fetchAll(
            db.cachedStatement(sql: sql), arguments: StatementArguments(Self.keys.map { prefix + $0 }))
        let values = rows.reduce(into: [String: DatabaseValue]()) { $0[$1[0]] = $1[1] }
        func value<Value: DatabaseValueConvertible>(_ key: String) -> Value? {
            values[prefix + key].flatMap(Value.fromDatabaseValue)
        }
        user = values["user"].flatMap(String.fromDatabaseValue)
        token = value("token")
        zoneIsMade = value("zone_is_made") ?? false
        initialImportIsComplete = value("initial_import_is_complete") ?? false
        isRefetching = value("is_refetching") ?? false
        isPurged = value("is_purged") ?? false
        isDeploying = value("is_deploying") ?? false
        deferredGeneration = value("kept_generation") ?? 0
        hasNewChanges = value("has_new_changes") ?? false
        incarnation = value("incarnation")
        isComparing = value("is_comparing") ?? false
        comparedChange = value("compared_change")
    }

    /// What is said of a zone has its number before the key; of the default one it has not.
    private static func prefix(_ zone: Int64) -> String { zone == StoreFormat.defaultZone ? "" : "\(zone)/" }

    /// Stores what differs from another state.
    func store(_ db: Database, insteadOf old: SyncState, zone: Int64) throws {
        let prefix = Self.prefix(zone)
        func note(_ key: String, _ isNew: Bool, _ value: (any DatabaseValueConvertible)?) throws {
            guard isNew else { return }
            try db.cachedStatement(sql: "INSERT OR REPLACE INTO tide_sync (key, value) VALUES (?, ?)")
                .execute(arguments: [key, value?.databaseValue ?? .null])
        }
        try note("user", user != old.user, user)
        try note(prefix + "token", token != old.token, token)
        try note(prefix + "zone_is_made", zoneIsMade != old.zoneIsMade, zoneIsMade)
        try note(
            prefix + "initial_import_is_complete", initialImportIsComplete != old.initialImportIsComplete,
            initialImportIsComplete)
        try note(prefix + "is_refetching", isRefetching != old.isRefetching, isRefetching)
        try note(prefix + "is_purged", isPurged != old.isPurged, isPurged)
        try note(prefix + "is_deploying", isDeploying != old.isDeploying, isDeploying)
        try note(prefix + "kept_generation", deferredGeneration != old.deferredGeneration, deferredGeneration)
        try note(prefix + "has_new_changes", hasNewChanges != old.hasNewChanges, hasNewChanges)
        try note(prefix + "incarnation", incarnation != old.incarnation, incarnation)
        try note(prefix + "is_comparing", isComparing != old.isComparing, isComparing)
        try note(prefix + "compared_change", comparedChange != old.comparedChange, comparedChange)
    }

    /// Forgets what is remembered of a zone.
    static func forget(_ db: Database, zone: Int64) throws {
        let prefix = prefix(zone)
        let statement = try db.cachedStatement(sql: "DELETE FROM tide_sync WHERE key = ?")
        for key in keys { try statement.execute(arguments: [prefix + key]) }
    }
}

extension RecordStore {
    package func syncState(zone: Int64 = StoreFormat.defaultZone) throws(StoreError) -> SyncState {
        try connection.read("read the state of the sync") { try SyncState($0, zone: zone) }
    }

    /// Changes what the store remembers of its cloud; of a zone that was removed nothing is.
    @discardableResult
    package func updateSyncState(
        zone: Int64 = StoreFormat.defaultZone, _ change: (inout SyncState) -> Void
    ) throws(StoreError) -> SyncState {
        try connection.locked("note the state of the sync") { db in
            let old = try SyncState(db, zone: zone)
            guard try StoreZone.isThere(db, id: zone) else { return (old, .commit) }
            var state = old
            change(&state)
            try state.store(db, insteadOf: old, zone: zone)
            return (state, .commit)
        }
    }

    /// The place in what the cloud's database has gone through, up to which it is known which zones have changed.
    package func databaseToken() throws(StoreError) -> String? {
        try connection.read("read the state of the sync") { db in
            try String.fetchOne(db, sql: "SELECT value FROM tide_sync WHERE key = 'database_token'")
        }
    }

    /// Notes that zones have changed in the cloud, and up to where that is known.
    ///
    /// - Parameter token: `nil` where nothing is known any more.
    package func recordZoneChanges(_ zones: [Int64], token: String?) throws(StoreError) {
        try connection.locked("note which zones have changed") { db in
            for zone in zones {
                guard try StoreZone.isThere(db, id: zone) else { continue }
                let old = try SyncState(db, zone: zone)
                var state = old
                state.hasNewChanges = true
                try state.store(db, insteadOf: old, zone: zone)
            }
            try db.execute(sql: "INSERT OR REPLACE INTO tide_sync (key, value) VALUES ('database_token', ?)", arguments: [token])
            return ((), .commit)
        }
    }
}

extension StoreReader {
    package func syncState(zone: Int64 = StoreFormat.defaultZone) throws(StoreError) -> SyncState {
        try read("read the state of the sync") { try SyncState($0, zone: zone) }
    }
}
