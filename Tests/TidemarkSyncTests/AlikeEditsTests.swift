import Foundation
import TestSupport
import Testing
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

@testable import TidemarkSync

/// Goal: an edit counts even if it sets a field to the value that another device has set, or that it had before: under the policy
/// of the latest edit no older edit wins over it. Method: three devices on one clock edit one field, and synchronise in different
/// orders.
@Suite(.timeLimit(.minutes(30))) struct AlikeEditsTests {
    private struct World {
        let scratch: Scratch
        let devices: [Device]

        init() async throws {
            let scratch = try Scratch()
            self.scratch = scratch
            let cloud = try await TestCloud(scratch)
            var configuration = SyncConfiguration()
            configuration.mergePolicy = { _ in .latestEdit }
            var environment = SyncEnvironment.system
            let clock = Clock(1_700_000_000_000_000)
            environment.now = { clock.next() }
            devices = try ["a", "b", "c"].map { name in
                try Device(
                    scratch["\(name).tidemark"], database: cloud.database(), configuration: configuration,
                    environment: environment)
            }
        }

        func set(_ device: Int, _ caption: String?) async throws {
            try await devices[device].set("senja", ["caption": caption.map { .string($0) }])
        }

        func sync(_ order: Int...) async throws {
            for device in order { _ = try await devices[device].engine.sync() }
        }

        func check(_ caption: String, _ what: String = "") throws {
            for device in devices {
                #expect(try device.records() == ["senja": ["caption": .string(caption)]], "\(what)")
                #expect(try device.reader().outbox().pending == 0)
            }
        }
    }

    /// A later time at each call.
    private final class Clock: Sendable {
        private let time: LockedValue<Int64>
        init(_ time: Int64) { self.time = LockedValue(time) }
        func next() -> Int64 {
            time.withLock {
                $0 += 1
                return $0
            }
        }
    }

    private let begin: Int64 = 1_700_000_000_000_000

    @Test(arguments: [false, true])
    func `an edit between two that set one value loses, whether or not it knows of the first`(knows: Bool) async throws {
        let world = try await World()
        try await world.set(0, "before")
        try await world.sync(0, 1, 2)
        try await world.set(0, "alike")
        if knows { try await world.sync(0, 2) }
        try await world.set(2, "between")
        try await world.set(1, "alike")
        // The second device changes only the time in the cloud.
        try await world.sync(0, 1, 2, 0, 1)
        try world.check("alike")
        try await world.set(2, "after")
        try await world.sync(2, 0, 1)
        try world.check("after")
    }

    @Test
    func `an edit whose value the cloud has with an older time is sent for its time, and counts when the cloud changes again`()
        async throws
    {
        let scratch = try Scratch()
        let container = try ContainerDirectory(openingOrCreatingAt: scratch["a.tidemark"], environment: .development)
        let clock = Clock(begin + 1000)
        let store = try RecordStore(container: container, scope: .private, notifier: nil, now: { clock.next() })
        let schema = RecordTypeSchema(name: "Destination", fields: [.init(name: "caption", type: .string)])
        func take(_ caption: String, tag: String, at moment: Int64) async throws {
            let record = RemoteRecord(
                name: "senja", type: "Destination", tag: tag, values: ["caption": .string(caption)],
                edited: EditTimes(otherwise: EditTime(microseconds: begin + moment, device: "other")), whole: { Data() })
            _ = try await store.apply([.saved(record)], schemas: [schema], author: "test", policy: { _ in .latestEdit })
        }
        func next() async throws -> ExportItem? {
            let limits = ExportLimits(items: 10, bytes: 10_000, assetBytes: 10_000)
            return try await store.nextExport(edits: limits, bulk: limits).items.first
        }
        try await take("before", tag: "1", at: 1)
        #expect(try await next() == nil)
        let record = RecordName(type: "Destination", name: "senja")
        try await store.apply(
            [RecordEdit(record: record, base: .any, values: ["caption": .string("alike")], fields: ["caption"])],
            schemas: [schema])
        let edited = try #require(try await next()?.edited["caption"])
        #expect(edited.microseconds > begin + 1000)
        for (tag, caption, moment) in [("2", "alike", 3), ("3", "alike", 2), ("4", "between", 4), ("5", "alike", 5)] {
            try await take(caption, tag: tag, at: Int64(moment))
            let item = try #require(try await next(), "\(tag)")
            #expect(item.tag == tag)
            #expect(item.values == ["caption": .string("alike")])
            #expect(item.edited["caption"] == edited)
        }
        try await take("after", tag: "6", at: 2000)
        #expect(try await next() == nil)
    }

    @Test
    func `an edit of a deleted record stays if another device makes the record again later, without the field`() async throws {
        let world = try await World()
        try await world.set(0, "before")
        try await world.sync(0, 1)
        try await world.devices[0].delete("senja")
        try await world.sync(0)
        try await world.set(1, "edited")
        // The device learns of the deletion, and sends nothing yet.
        try await world.devices[1].engine.preview()
        try await world.devices[0].set("senja", ["rating": .int64(7)])
        try await world.sync(0, 1, 0, 2)
        for device in world.devices {
            #expect(try device.records() == ["senja": ["caption": .string("edited"), "rating": .int64(7)]])
        }
    }

    @Test(arguments: [[0, 1, 0, 2], [1, 0, 1, 2]])
    func `a field that was changed and changed back keeps its value over an older edit`(order: [Int]) async throws {
        let world = try await World()
        try await world.set(0, "before")
        try await world.sync(0, 1, 2)
        try await world.set(1, "between")
        try await world.set(0, "other")
        try await world.set(0, "before")
        for device in order { try await world.sync(device) }
        try world.check("before", "\(order)")
    }
}
