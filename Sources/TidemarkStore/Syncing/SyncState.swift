import GRDB
import TidemarkModel
package import TidemarkSQLite

/// The state of the synchronisation with a zone of the cloud, stored in `tide_sync`.
package struct SyncState: Hashable, Sendable {
    /// The account that the records belong to: its name in the cloud container. It is the same in all zones.
    package var user: String?
    /// The cloud's token of the last change up to which everything was fetched.
    package var token: String?
    /// Whether the zone was made in the cloud.
    package var zoneIsMade = false
    /// Whether everything that the cloud had at some time has been fetched once.
    package var initialImportIsComplete = false
    /// Whether everything is fetched again without a token. Records that the cloud had and that do not come were deleted meanwhile.
    package var isRefetching = false
    /// Whether the person has deleted the zone's data permanently: then nothing is uploaded.
    package var isPurged = false
    /// The number of the schema with which deferred records were tried last.
    package var deferredGeneration: Int64 = 0
    /// Whether the cloud has reported changes of the zone that were not fetched yet.
    package var hasNewChanges = false
    /// The cloud's incarnation at the last fetch; `nil` if the cloud does not report it.
    package var incarnation: String?
    /// Whether the cloud was put back to an earlier state: then everything is fetched, and each record is compared with the local one.
    package var isComparing = false
    /// The last local change when the comparison began. The cloud may have lost deletions up to it, and devices that send lost
    /// records again may not know these deletions.
    package var comparedChange: Int64?
    /// The last change up to which the relationships of imported records were resolved.
    package var resolvedChange: Int64?

    /// The limits that the cloud announced at the last set-up, as text; `nil` if none are known.
    package var limits: String?

    /// Whether no page of the zone has come since the device began, or began again. Then the device does not know the cloud's
    /// incarnation.
    package var awaitsFirstPage: Bool { token == nil }

    package init() {}

    private static let keys = [
        "token", "zone_is_made", "initial_import_is_complete", "is_refetching", "is_purged", "kept_generation",
        "has_new_changes", "incarnation", "is_comparing", "compared_change",
        "resolved_change", "limits",
    ]

    /// A parameter for each key.
    private static let places = String(repeating: ", ?", count: keys.count)

    init(_ db: Database, zone: Int64) throws {
        let prefix = Self.prefix(zone)
        let sql = "SELECT key, value FROM tide_sync WHERE key IN ('user'\(Self.places))"
        let rows = try Row.fetchAll(
            db.cachedStatement(sql: sql), arguments: StatementArguments(Self.keys.map { prefix + $0 }))
        let values = try rows.reduce(into: [String: DatabaseValue]()) { values, row in
            values[try row.decode(atIndex: 0)] = row[1] as DatabaseValue
        }
        func value<Value: DatabaseValueConvertible>(_ key: String) -> Value? {
            values[prefix + key].flatMap(Value.fromDatabaseValue)
        }
        user = values["user"].flatMap(String.fromDatabaseValue)
        token = value("token")
        zoneIsMade = value("zone_is_made") ?? false
        initialImportIsComplete = value("initial_import_is_complete") ?? false
        isRefetching = value("is_refetching") ?? false
        isPurged = value("is_purged") ?? false
        deferredGeneration = value("kept_generation") ?? 0
        hasNewChanges = value("has_new_changes") ?? false
        incarnation = value("incarnation")
        isComparing = value("is_comparing") ?? false
        comparedChange = value("compared_change")
        resolvedChange = value("resolved_change")
        limits = value("limits")
    }

    /// The prefix of a zone's keys: its number. The keys of the default zone have none.
    private static func prefix(_ zone: Int64) -> String { zone == StoreFormat.defaultZone ? "" : "\(zone)/" }

    /// Stores the values that differ from another state.
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
        try note(prefix + "kept_generation", deferredGeneration != old.deferredGeneration, deferredGeneration)
        try note(prefix + "has_new_changes", hasNewChanges != old.hasNewChanges, hasNewChanges)
        try note(prefix + "incarnation", incarnation != old.incarnation, incarnation)
        try note(prefix + "is_comparing", isComparing != old.isComparing, isComparing)
        try note(prefix + "compared_change", comparedChange != old.comparedChange, comparedChange)
        try note(prefix + "resolved_change", resolvedChange != old.resolvedChange, resolvedChange)
        try note(prefix + "limits", limits != old.limits, limits)
    }

    /// Removes the state of a zone.
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

    /// Changes the state of a zone. A zone that was removed has none.
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

    /// The cloud's token up to which the changed zones are known.
    package func databaseToken() throws(StoreError) -> String? {
        try connection.read("read the state of the sync") { db in
            try String.fetchOne(db, sql: "SELECT value FROM tide_sync WHERE key = 'database_token'")
        }
    }

    /// Notes that zones have changed in the cloud, and the token up to which that is known.
    ///
    /// - Parameter token: The cloud's token; `nil` if nothing is known any more.
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
