import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkContainers
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

@testable import TidemarkSync

/// Goal: if a record moves to another zone, or is deleted, while a device fetches its zones one by one, the device ends with the
/// cloud's state, and with its own edits where the merge policy keeps them. Method: two devices of one account over a real cloud;
/// one of them acts after the other one has asked which zones have changed.
@Suite(.timeLimit(.minutes(30))) struct MovesDuringImportTests {
    private static let zone = ZoneName.ofShare(root: "trip")
    private static let senja = RecordName(type: "Destination", name: "senja")

    /// A database that runs something once, after it was asked which zones have changed.
    private final class HookedDatabase: ForwardingDatabase {
        let base: any CloudDatabase
        private let hook = LockedValue<(@Sendable () async throws -> Void)?>(nil)

        init(_ base: any CloudDatabase) { self.base = base }

        func afterQuestion(_ action: @escaping @Sendable () async throws -> Void) { hook.withLock { $0 = action } }

        func modify(_ request: ModifyRecordsRequest) async throws(CloudError) -> [RecordOutcome] {
            try await base.modify(request)
        }

        func zoneChanges(
            _ zone: CloudZoneID, since token: CloudToken?, limit: Int?, desiredKeys: Set<String>?
        ) async throws(CloudError) -> ZoneChanges {
            try await base.zoneChanges(zone, since: token, limit: limit, desiredKeys: desiredKeys)
        }

        func databaseChanges(since token: CloudToken?, limit: Int?) async throws(CloudError) -> DatabaseChanges {
            let changes = try await base.databaseChanges(since: token, limit: limit)
            let action = hook.withLock { hook in
                defer { hook = nil }
                return hook
            }
            do { try await action?() } catch { throw CloudError(.internalError, "\(error)") }
            return changes
        }
    }

    private struct Pair {
        let cloud: TestCloud
        let a, b: Device
        let hooked: HookedDatabase
    }

    /// Two devices with `senja` and `bodø` in a zone of a share; the first one has changed `bodø` since.
    private func devices(_ scratch: Scratch, _ policy: MergePolicy) async throws -> Pair {
        let cloud = try await TestCloud(scratch)
        let hooked = HookedDatabase(try cloud.database())
        var configuration = SyncConfiguration()
        configuration.mergePolicy = { _ in policy }
        let a = try Device(scratch["a.tidemark"], database: cloud.database(), configuration: configuration)
        let b = try Device(scratch["b.tidemark"], database: hooked, configuration: configuration)
        try await cloud.database().modifyZones(saving: [Self.zone.cloudZone], deleting: [])
        for name in ["senja", "bodø"] { try await a.set(name, ["caption": .string(name), "rating": .int64(1)]) }
        #expect(try await a.engine.sync().isComplete)
        for name in ["senja", "bodø"] { try await move(name, to: Self.zone, a) }
        #expect(try zones(a) == ["senja": Self.zone, "bodø": Self.zone])
        for device in [a, b, a, b] { #expect(try await device.engine.sync().isComplete) }
        let found = try zones(b)
        #expect(found == ["senja": Self.zone, "bodø": Self.zone])
        try await a.set("bodø", ["rating": .int64(2)])
        #expect(try await a.engine.sync().isComplete)
        return Pair(cloud: cloud, a: a, b: b, hooked: hooked)
    }

    private func move(_ name: String, to zone: ZoneName, _ device: Device) async throws {
        let place = try await device.store.zone(zone)
        let moved = try await device.store.moveGraph(
            of: [RecordName(type: "Destination", name: name)], to: place.id, author: "test")
        guard case .moved = moved else { throw StoreError(.invalid, "\(name) is in a share") }
    }

    /// The zones of a device's records.
    private func zones(_ device: Device) throws -> [String: ZoneName] {
        let reader = try device.reader()
        var zones: [String: ZoneName] = [:]
        for zone in try reader.zones() {
            try reader.forEachRecord(RecordQuery(type: "Destination", condition: "_zone = \(zone.id)")) {
                zones[$0.name] = zone.name
            }
        }
        return zones
    }

    /// Checks that nothing is pending, and that both devices have the same.
    private func expectEqual(_ devices: Pair) async throws {
        #expect(try await devices.a.engine.sync().isComplete)
        #expect(try await devices.b.engine.sync().isComplete)
        #expect(try devices.a.records() == devices.b.records())
        #expect(try zones(devices.a) == zones(devices.b))
        for device in [devices.a, devices.b] {
            #expect(try device.reader().deferredRecords() == [])
            #expect(try device.reader().syncIssues() == [])
            #expect(try StoreVerification(of: device.container).run().problems == [])
        }
    }

    @Test(arguments: [MergePolicy.mergeByPropertyStoreTrump, .mergeByPropertyObjectTrump, .latestEdit, .error])
    func `an edit moves with a record that moves while the zones are fetched`(policy: MergePolicy) async throws {
        let scratch = try Scratch()
        let it = try await devices(scratch, policy)
        try await it.b.set("senja", ["rating": .int64(5)])
        it.hooked.afterQuestion {
            try await move("senja", to: .default, it.a)
            #expect(try await it.a.engine.sync().isComplete)
        }
        let report = try await it.b.engine.sync()
        #expect(report.isComplete && report.deferred == 0)
        let found = try zones(it.b)
        #expect(found == ["senja": .default, "bodø": Self.zone])
        try await expectEqual(it)
        #expect(try it.a.records()["senja"] == ["caption": .string("senja"), "rating": .int64(5)])
    }

    @Test(arguments: [MergePolicy.mergeByPropertyStoreTrump, .rollback])
    func `a deletion that arrives while the zones are fetched wins over an edit in the same synchronisation`(
        policy: MergePolicy
    ) async throws {
        let scratch = try Scratch()
        let it = try await devices(scratch, policy)
        try await it.b.set("senja", ["rating": .int64(5)])
        it.hooked.afterQuestion {
            try await it.a.delete("senja")
            #expect(try await it.a.engine.sync().isComplete)
        }
        let report = try await it.b.engine.sync()
        #expect(report.isComplete && report.deferred == 0)
        #expect(try it.b.records().keys.sorted() == ["bodø"])
        try await expectEqual(it)
    }

    @Test func `under the policy that asks, a deletion is left to a person once no zone has the record`() async throws {
        let scratch = try Scratch()
        let it = try await devices(scratch, .error)
        try await it.b.set("senja", ["rating": .int64(5)])
        it.hooked.afterQuestion {
            try await it.a.delete("senja")
            #expect(try await it.a.engine.sync().isComplete)
        }
        #expect(try await it.b.engine.sync().deferred == 1)
        #expect(try it.b.reader().deferredRecords().map(\.reason) == [.deletion])
        _ = try await it.b.engine.resolveConflicts(policy: .mergeByPropertyStoreTrump)
        try await expectEqual(it)
        #expect(try it.a.records().keys.sorted() == ["bodø"])
    }

    @Test func `a deletion that a look-up finds wins in the same synchronisation`() async throws {
        let scratch = try Scratch()
        let it = try await devices(scratch, .mergeByPropertyStoreTrump)
        try await it.a.set("lofoten", ["rating": .int64(1)])
        for device in [it.a, it.b] { #expect(try await device.engine.sync().isComplete) }
        try await it.b.set("lofoten", ["rating": .int64(5)])
        try await it.a.delete("lofoten")
        #expect(try await it.a.engine.sync().isComplete)
        // A record that is missing when everything is fetched again is looked up.
        try await it.b.engine.refetch()
        let report = try await it.b.engine.sync()
        #expect(report.isComplete && report.deferred == 0)
        try await expectEqual(it)
        #expect(try it.a.records().keys.sorted() == ["bodø", "senja"])
    }

    @Test func `a preview shows a deletion that wins over an edit as done, not as deferred`() async throws {
        let scratch = try Scratch()
        let it = try await devices(scratch, .mergeByPropertyStoreTrump)
        try await it.b.set("senja", ["rating": .int64(5)])
        try await it.a.delete("senja")
        #expect(try await it.a.engine.sync().isComplete)
        try FileManager.default.createDirectory(at: scratch["preview"], withIntermediateDirectories: true)
        var configuration = SyncConfiguration()
        configuration.mergePolicy = { _ in .mergeByPropertyStoreTrump }
        let preview = try await SyncPreview(
            of: it.b.container,
            databases: try it.cloud.cloud.databases(of: TestCloud.container, account: it.cloud.account.id),
            configuration: configuration, in: scratch["preview"])
        #expect(preview.fetched.contains { $0.record == Self.senja && $0.kind == .delete })
        #expect(preview.deferred == [])
        #expect(preview.toSend == [])
    }

    @Test func `a reference stays if both records move while the zones are fetched`() async throws {
        let scratch = try Scratch()
        let it = try await devices(scratch, .mergeByPropertyObjectTrump)
        var stop = RecordTypeSchema(
            name: "Stop", fields: [.init(name: "place", type: .reference), .init(name: "text", type: .string)])
        stop.relationships = [
            "place": RelationshipSchema(
                field: "place", target: "Destination", isOwning: false, deleteRule: .nullify)
        ]
        for device in [it.a, it.b] { try await device.store.declare([stop], environment: .development) }
        try await it.a.set("first", ["place": .reference("senja"), "text": .string("a")], type: "Stop")
        let shared = try await it.a.store.zone(Self.zone)
        let first = RecordName(type: "Stop", name: "first")
        _ = try await it.a.store.moveGraph(of: [first], to: shared.id, author: "test")
        for device in [it.a, it.b, it.a] { #expect(try await device.engine.sync().isComplete) }
        try await it.b.set("first", ["text": .string("b")], type: "Stop")
        try await it.a.set("bodø", ["rating": .int64(3)])
        #expect(try await it.a.engine.sync().isComplete)
        it.hooked.afterQuestion {
            try await move("senja", to: .default, it.a)
            _ = try await it.a.store.moveGraph(of: [first], to: it.a.store.zone(.default).id, author: "test")
            #expect(try await it.a.engine.sync().isComplete)
        }
        #expect(try await it.b.engine.sync().isComplete)
        try await expectEqual(it)
        for device in [it.a, it.b] {
            #expect(try device.records("Stop") == ["first": ["place": .reference("senja"), "text": .string("b")]])
        }
    }
}
