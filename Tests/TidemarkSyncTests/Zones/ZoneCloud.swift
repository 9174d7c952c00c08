import Foundation
import TestSupport
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// The zones of a cloud, in memory: only what a store's exchange with a cloud needs.
final class ZoneCloud {
    struct Stored {
        let type: String
        let tag: String
        let values: [String: FieldValue]
        let edited: EditTimes
    }

    private enum Change {
        case saved(String)
        case deleted(String)
    }

    private(set) var zones: [ZoneName: [String: Stored]] = [.default: [:]]
    private var log: [ZoneName: [Change]] = [:]
    private var tags = 0

    /// The values in all zones, by zone and name.
    var values: [String: [String: [String: FieldValue]]] {
        zones.reduce(into: [:]) { all, zone in
            if !zone.value.isEmpty { all[zone.key.name] = zone.value.mapValues(\.values) }
        }
    }

    func makeZone(_ zone: ZoneName) { zones[zone, default: [:]] = zones[zone] ?? [:] }

    private func nextTag() -> String {
        tags += 1
        return "t\(tags)"
    }

    /// Does an operation; `nil` if the sender's version of the record is not the cloud's.
    func apply(_ item: ExportItem, to zone: ZoneName) -> ExportResult? {
        let there = zones[zone]?[item.name]
        guard item.key.kind == .save else {
            guard let there else { return .deleted }
            guard there.tag == item.tag else { return nil }
            zones[zone]?[item.name] = nil
            log[zone, default: []].append(.deleted(item.name))
            return .deleted
        }
        guard there?.tag == item.tag else { return nil }
        let kept = (there?.values ?? [:]).filter { !item.cleared.contains($0.key) }
        let tag = nextTag()
        zones[zone]![item.name] = Stored(
            type: item.type, tag: tag, values: kept.merging(item.values) { $1 }, edited: item.edited)
        log[zone, default: []].append(.saved(item.name))
        return .saved(tag: tag)
    }

    func remote(_ name: String, in zone: ZoneName) -> RemoteChange {
        guard let it = zones[zone]?[name] else { return .deleted(name: name) }
        return .saved(
            RemoteRecord(name: name, type: it.type, tag: it.tag, values: it.values, edited: it.edited, whole: { Data() }))
    }

    /// The changes since a position in a zone's log, each record once, in its current version.
    func changes(in zone: ZoneName, since place: Int) -> (changes: [RemoteChange], place: Int) {
        let all = log[zone] ?? []
        var names: [String] = []
        for change in all[place...].reversed() {
            let name =
                switch change {
                case .saved(let name), .deleted(let name): name
                }
            if !names.contains(name) { names.append(name) }
        }
        return (names.reversed().map { remote($0, in: zone) }, all.count)
    }
}

/// A store that exchanges with the cloud step by step.
final class ZonedDevice {
    let store: RecordStore
    let cloud: ZoneCloud
    let policy: MergePolicy
    private var places: [ZoneName: Int] = [:]
    private var tokens = 0

    static let schema = RecordTypeSchema(
        name: "Destination",
        fields: [
            .init(name: "caption", type: .string), .init(name: "details", type: .string), .init(name: "rating", type: .int64),
            .init(name: "neighbour", type: .reference),
        ])

    /// - Parameter lead: Microseconds by which the device's clock is ahead.
    init(
        _ url: URL, _ cloud: ZoneCloud = ZoneCloud(), scope: StoreScope = .private,
        policy: MergePolicy = .mergeByPropertyObjectTrump, lead: Int64 = 0
    ) throws {
        store = try RecordStore(
            container: ContainerDirectory(openingOrCreatingAt: url), scope: scope, notifier: nil, now: { Timestamp.now() + lead })
        self.cloud = cloud
        self.policy = policy
    }

    @discardableResult
    func set(
        _ name: String, _ values: [String: FieldValue], zone: Int64? = nil, type: String = "Destination"
    ) async throws -> SaveOutcome {
        let edit = RecordEdit(
            record: RecordName(type: type, name: name), base: .any, values: values, fields: Set(values.keys), zone: zone)
        return try await save([edit], type: type)
    }

    @discardableResult
    func delete(_ name: String, zone: Int64? = nil) async throws -> SaveOutcome {
        try await save([
            RecordEdit(record: RecordName(type: "Destination", name: name), base: .any, values: nil, fields: [], zone: zone)
        ])
    }

    func save(_ edits: [RecordEdit], type: String = "Destination") async throws -> SaveOutcome {
        let policy = policy
        let schema = RecordTypeSchema(name: type, fields: Self.schema.fields)
        return try await store.save(
            edits, schemas: [schema], blobs: [], author: TransactionAuthor("test", origin: .save), policy: { _ in policy },
            check: { _ in })
    }

    func move(_ name: String, to zone: ZoneName) async throws {
        cloud.makeZone(zone)
        let place = try await store.zone(zone)
        do {
            let record = RecordName(type: "Destination", name: name)
            let outcome = try await store.moveGraph(of: [record], to: place.id, author: "test")
            if case .taken(let other) = outcome { throw StoreError(.invalid, "\(other) is shared") }
        } catch let error as StoreError where error.code == .notFound {
            // Another device has deleted the record.
        }
    }

    /// Stores what the cloud says about a zone's shares.
    func know(_ shares: [Share], in zone: ZoneName) async throws {
        let gone = try await store.shares().filter { $0.zone == zone }.map { RemoteChange.deleted(name: $0.name) }
        try await take(gone + shares.map(RemoteChange.share), in: zone)
    }

    func id(_ zone: ZoneName) async throws -> Int64 { try await store.zone(zone).id }

    @discardableResult
    func take(_ changes: [RemoteChange], in zone: ZoneName, _ occasion: ImportOccasion = .page) async throws -> ImportOutcome {
        let policy = policy
        return try await store.apply(
            changes, schemas: [Self.schema], occasion: occasion, author: "cloud", policy: { _ in policy },
            zone: try await id(zone))
    }

    /// Fetches the changes of a zone.
    func fetch(_ zone: ZoneName) async throws {
        let (changes, place) = cloud.changes(in: zone, since: places[zone] ?? 0)
        places[zone] = place
        try await take(changes, in: zone)
        try await lookUp(zone)
    }

    /// Looks up deferred records.
    func lookUp(_ zone: ZoneName) async throws {
        let names = try await store.deferUntilReply(zone: try await id(zone))
        if !names.isEmpty { try await take(names.map { cloud.remote($0, in: zone) }, in: zone, .lookUp) }
    }

    static let limits = ExportLimits(items: 100, bytes: 1 << 20, assetBytes: 1 << 30)

    func next(_ zone: ZoneName) async throws -> ExportBatch {
        try await store.nextExport(edits: Self.limits, bulk: Self.limits, zone: try await id(zone))
    }

    /// Sends one batch of a zone.
    ///
    /// - Returns: The names of the records that were sent.
    @discardableResult
    func send(
        _ zone: ZoneName, answer: (ExportItem) -> ExportResult? = { _ in nil }
    ) async throws -> [String] {
        let batch = try await next(zone)
        guard !batch.isEmpty else { return [] }
        let request = try await begin(batch, zone)
        try await applyReply(to: request, of: batch, zone, answer: answer)
        return batch.items.map(\.name)
    }

    func begin(_ batch: ExportBatch, _ zone: ZoneName) async throws -> SentRequest {
        tokens += 1
        let request = SentRequest(token: "request \(tokens)", items: batch.items)
        try await store.begin(request, zone: try await id(zone))
        return request
    }

    func applyReply(
        to request: SentRequest, of batch: ExportBatch?, _ zone: ZoneName, answer: (ExportItem) -> ExportResult? = { _ in nil }
    ) async throws {
        var changed: [String] = []
        let results = request.items.map { item -> ExportResult in
            if let said = answer(item) { return said }
            if let done = cloud.apply(item, to: zone) { return done }
            changed.append(item.name)
            return .undone
        }
        try await store.applyReply(to: request, of: batch, results: results, zone: try await id(zone), author: "cloud")
        if !changed.isEmpty { try await take(changed.map { cloud.remote($0, in: zone) }, in: zone, .answer) }
        try await lookUp(zone)
    }

    /// Fetches and sends until nothing is left, in the order of these zones.
    func sync(_ zones: [ZoneName]) async throws {
        for zone in zones { cloud.makeZone(zone) }
        for _ in 0..<50 {
            try await store.beginImportRound()
            for zone in zones { try await fetch(zone) }
            try await endAwaitedMoves(zones)
            var sent = 0
            for zone in zones { sent += try await send(zone).count }
            let needsAnother = await store.needsImportRound
            if sent == 0, !needsAnother { return }
        }
        throw StoreError(.core, "the exchange does not come to an end")
    }

    /// Applies the deletions that were deferred until all zones were fetched.
    func endAwaitedMoves(_ zones: [ZoneName]) async throws {
        let policy = policy
        let planner = RemoteChangePlanner { _ in policy }
        for zone in zones { _ = try await store.endAwaitedMoves(zone: try await id(zone), author: "cloud", planner: planner) }
    }

    func reader() throws -> StoreReader { try StoreReader(container: store.container, scope: store.scope) }

    /// The store's values, by zone and name.
    func values(_ type: String = "Destination") throws -> [String: [String: [String: FieldValue]]] {
        let reader = try reader()
        let zones = try reader.zones()
        let schema = try reader.type(named: type)
        var all: [String: [String: [String: FieldValue]]] = [:]
        for zone in zones {
            try reader.forEachRecord(RecordQuery(type: type, condition: "_zone = \(zone.id)")) { record in
                var values: [String: FieldValue] = [:]
                for (field, value) in zip(schema.fields, record.values) { values[field.name] = value }
                all[zone.name.name, default: [:]][record.name] = values
            }
        }
        return all
    }
}

extension ZonedDevice {
    /// Two devices with the same record, in the default zone.
    static func pair(
        _ scratch: Scratch, policy: MergePolicy = .mergeByPropertyObjectTrump, lead: Int64 = 0
    ) async throws -> (
        ZoneCloud, ZonedDevice, ZonedDevice
    ) {
        let cloud = ZoneCloud()
        let a = try ZonedDevice(scratch["a.tidemark"], cloud, policy: policy)
        let b = try ZonedDevice(scratch["b.tidemark"], cloud, policy: policy, lead: lead)
        try await a.set("senja", ["caption": .string("Senja"), "details": .string("an island")])
        try await a.sync([.default])
        try await b.sync([.default])
        return (cloud, a, b)
    }
}

extension ZoneName {
    static let shared = ZoneName("share-a")
    static let other = ZoneName("share-b")
    static func of(_ owner: String) -> ZoneName { ZoneName("share", owner: owner) }
}

extension RecordStore {
    /// The zone with a number; no other zone ever gets it.
    func removeZone(_ id: Int64, reason: String, code: String, author: String) throws(StoreError) {
        guard let zone = try zones().first(where: { $0.id == id }) else { return }
        try removeZone(zone, reason: reason, code: code, author: author)
    }
}
