import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// The parts that synchronise a zone of a store.
struct ZoneSync: Sendable {
    let zone: StoreZone
    let cloudZone: CloudZoneID
    let resolver: ConflictResolver
    let exports: ExportScheduler
    let imports: ImportScheduler

    var isDefault: Bool { zone.name == .default }

    /// The parts that all zones of a store have in common.
    struct Parts: Sendable {
        let store: RecordStore
        let database: any CloudDatabase
        let assets: AssetTransfer
        let configuration: SyncConfiguration
        let environment: SyncEnvironment
    }

    init(_ zone: StoreZone, _ parts: Parts) {
        self.zone = zone
        cloudZone = zone.name == .default ? CloudZoneID(parts.configuration.zoneName) : zone.name.cloudZone
        let mapping = RecordMapping(zone: cloudZone, number: zone.id, scope: parts.store.scope)
        resolver = ConflictResolver(
            store: parts.store, assets: parts.assets, mapping: mapping, author: parts.configuration.author,
            policy: parts.configuration.policy)
        exports = ExportScheduler(
            store: parts.store, database: parts.database, assets: parts.assets, resolver: resolver, mapping: mapping,
            environment: parts.environment)
        imports = ImportScheduler(
            store: parts.store, database: parts.database, resolver: resolver, mapping: mapping,
            order: parts.environment.aheadOrder)
    }
}

/// The zones of a store, in the order in which they are synchronised. Shared zones come before the default zone, so that a record that
/// moves has arrived before it leaves.
actor ZoneSyncRegistry {
    private let parts: ZoneSync.Parts
    private var known: [Int64: ZoneSync] = [:]
    /// The zone that was served last; the one behind it goes first.
    private var last: Int64 = 0

    init(_ parts: ZoneSync.Parts) { self.parts = parts }

    /// Returns the present zones.
    func all() async throws -> [ZoneSync] {
        let zones = try await parts.store.zones().filter { parts.store.scope == .private || $0.name != .default }
        known = known.filter { _, zoneSync in zones.contains(zoneSync.zone) }
        for zone in zones where known[zone.id] == nil { known[zone.id] = ZoneSync(zone, parts) }
        return known.values.sorted { one, other in
            one.isDefault ? false : other.isDefault ? true : one.zone.id < other.zone.id
        }
    }

    /// Returns all zones, beginning behind the one that was served last. The default zone comes at the end.
    func byTurns() async throws -> [ZoneSync] {
        let all = try await all()
        let shared = all.filter { !$0.isDefault }
        let first = shared.firstIndex { $0.zone.id > last } ?? 0
        return shared[first...] + shared[..<first] + all.filter { $0.isDefault }
    }

    func served(_ zoneSync: ZoneSync) { last = zoneSync.zone.id }

    /// Discards the pages that were fetched ahead: they are fetched again.
    func forgetImports() async { for zoneSync in known.values { await zoneSync.imports.forget() } }

    /// Forgets the requests that were sent: their outcomes are not asked for.
    func forgetExports() async { for zoneSync in known.values { await zoneSync.exports.forget() } }

    /// Forgets everything that is on its way to a zone, or from it.
    func forget(_ zone: Int64) async {
        await known[zone]?.exports.forget()
        await known[zone]?.imports.forget()
    }

    /// Discards the batches that were gathered: they are gathered again.
    func forgetNext() async { for zoneSync in known.values { await zoneSync.exports.forgetNext() } }
}
