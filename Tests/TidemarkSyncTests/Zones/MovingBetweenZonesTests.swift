import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Goal: a record that moves into another zone is the same record everywhere, with any edits in the meantime and in any order of
/// arrival. Method: devices of one person exchange with a cloud in memory, step by step.
@Suite(.timeLimit(.minutes(30))) struct MovingBetweenZonesTests {
    private static let firstSeed = 100
    private static let senja = RecordName(type: "Destination", name: "senja")

    @Test func `pending edits move along, and the old place is deleted once the cloud has the new one`() async throws {
        let scratch = try Scratch()
        let (cloud, a, _) = try await ZonedDevice.pair(scratch)
        try await a.set("senja", ["caption": .string("Senja in June")])
        try await a.move("senja", to: .shared)
        #expect(try a.values() == ["share-a": ["senja": ["caption": .string("Senja in June"), "details": .string("an island")]]])
        #expect(try a.reader().outbox().pending == 2)
        // No device is to see the record missing in between.
        #expect(try await a.next(.default).isEmpty)
        let batch = try await a.next(.shared)
        #expect(batch.items.map(\.values) == [["caption": .string("Senja in June"), "details": .string("an island")]])
        #expect(batch.items.map(\.tag) == [nil])
        try await a.send(.shared)
        let deletion = try await a.next(.default)
        #expect(deletion.items.map(\.key.kind) == [.delete])
        #expect(deletion.items.map(\.tag) == ["t1"])
        try await a.send(.default)
        #expect(cloud.values == ["share-a": ["senja": ["caption": .string("Senja in June"), "details": .string("an island")]]])
        #expect(try a.reader().outbox().pending == 0)
        #expect(try StoreVerification(of: a.store.container).run().problems == [])
    }

    @Test func `a move is an update to other devices, and the record's own history continues`() async throws {
        let scratch = try Scratch()
        let (_, a, _) = try await ZonedDevice.pair(scratch)
        let token = try a.reader().historyToken()
        try await a.set("senja", ["caption": .string("Senja in June")])
        try await a.move("senja", to: .shared)
        let changes = try a.reader().changes(since: token).transactions.map(\.changes)
        #expect(
            changes == [
                [RecordChange(record: Self.senja, kind: .update, fields: ["caption"])],
                [RecordChange(record: Self.senja, kind: .update)],
            ])
        let history = try a.reader().changes(ofRecord: "senja")
        #expect(history.map(\.kind) == [.insert, .delete, .update, .insert])
        let move = try #require(try a.reader().transactions().first)
        await #expect(throws: StoreError.self) { try await a.store.undo(transaction: move.id, author: "test") }
    }

    @Test func `the times of edits differ from the time of the move`() async throws {
        let scratch = try Scratch()
        let (cloud, a, _) = try await ZonedDevice.pair(scratch)
        let before = try #require(cloud.zones[.default]?["senja"]?.edited["details"])
        try await a.set("senja", ["caption": .string("Senja in June")])
        let edit = try #require(try a.reader().transactions().first).time
        // The same holds for a record that no cloud has yet.
        try await a.set("lofoten", ["caption": .string("Lofoten")])
        let insert = try #require(try a.reader().transactions().first).time
        try await a.move("senja", to: .shared)
        try await a.move("lofoten", to: .shared)
        try await a.set("lofoten", ["details": .string("more islands")])
        try await a.sync([.shared, .default])
        let senja = try #require(cloud.zones[.shared]?["senja"]?.edited)
        #expect(senja["details"] == before)
        #expect(senja["caption"]?.microseconds == edit)
        let lofoten = try #require(cloud.zones[.shared]?["lofoten"]?.edited)
        #expect(lofoten["caption"]?.microseconds == insert)
        #expect((lofoten["details"]?.microseconds ?? 0) > insert)
    }

    @Test(arguments: [[ZoneName.shared, .default], [.default, .shared]])
    func `a device without edits has a moved record once, in any order of arrival`(order: [ZoneName]) async throws {
        let scratch = try Scratch()
        let (cloud, a, b) = try await ZonedDevice.pair(scratch)
        try await a.set("senja", ["caption": .string("Senja in June")])
        try await a.move("senja", to: .shared)
        try await a.sync([.shared, .default])
        let token = try b.reader().historyToken()
        for zone in order { try await b.fetch(zone) }
        let senja: [String: FieldValue] = ["caption": .string("Senja in June"), "details": .string("an island")]
        #expect(try b.values() == ["share-a": ["senja": senja]])
        if order[0] == .shared {
            let kinds = try b.reader().changes(since: token).transactions.flatMap(\.changes).map(\.kind)
            #expect(Set(kinds) == [.update])
        }
        try await b.sync(order)
        #expect(cloud.values == ["share-a": ["senja": senja]])
        #expect(try b.reader().outbox().pending == 0)
        #expect(try StoreVerification(of: b.store.container).run().problems == [])
    }

    @Test(arguments: [[ZoneName.shared, .default], [.default, .shared]], [true, false])
    func `an edit by a device that did not know of the move is kept, in any order of arrival`(
        order: [ZoneName], isSent: Bool
    ) async throws {
        let scratch = try Scratch()
        let (cloud, a, b) = try await ZonedDevice.pair(scratch)
        try await a.set("senja", ["caption": .string("Senja in June")])
        try await a.move("senja", to: .shared)
        try await b.set("senja", ["rating": .int64(5)])
        if isSent { try await b.sync([.default]) }
        try await a.send(.shared)
        try await a.fetch(.default)
        try await a.sync([.shared, .default])
        for _ in 0..<3 {
            try await b.sync(order)
            try await a.sync([.shared, .default])
        }
        let senja: [String: FieldValue] = [
            "caption": .string("Senja in June"), "details": .string("an island"), "rating": .int64(5),
        ]
        for device in [a, b] {
            #expect(try device.values() == ["share-a": ["senja": senja]])
            #expect(try device.reader().outbox().pending == 0)
        }
        #expect(cloud.values == ["share-a": ["senja": senja]])
    }

    @Test func `a record that was edited, deleted in the cloud and made there again counts as moved`() async throws {
        let scratch = try Scratch()
        let (cloud, a, b) = try await ZonedDevice.pair(scratch)
        try await a.move("senja", to: .shared)
        try await a.sync([.shared, .default])
        // The second device learns only of the deletion, and brings the record back.
        try await b.set("senja", ["rating": .int64(5)])
        try await b.sync([.default])
        #expect(cloud.values.keys.sorted() == ["_defaultZone", "share-a"])
        let senja: [String: FieldValue] = [
            "caption": .string("Senja"), "details": .string("an island"), "rating": .int64(5),
        ]
        // The first device's edits arrived in between.
        try await a.set("senja", ["details": .string("a large island")])
        try await a.sync([.shared, .default])
        let merged = senja.merging(["details": .string("a large island")]) { $1 }
        #expect(try a.values() == ["share-a": ["senja": merged]])
        #expect(cloud.values == ["share-a": ["senja": merged]])
        try await b.sync([.shared, .default])
        #expect(try b.values() == ["share-a": ["senja": merged]])
    }

    @Test
    func `an edit that only the old place got is kept if the second device is the first to learn of the move`() async throws {
        let scratch = try Scratch()
        let (cloud, a, b) = try await ZonedDevice.pair(scratch)
        try await a.move("senja", to: .shared)
        try await a.sync([.shared, .default])
        try await b.set("senja", ["rating": .int64(5)])
        try await b.sync([.default])
        // Its edit is in the cloud, at the record's old place; it has nothing pending.
        #expect(try b.reader().outbox().pending == 0)
        try await b.sync([.shared, .default])
        try await a.sync([.shared, .default])
        let senja: [String: FieldValue] = [
            "caption": .string("Senja"), "details": .string("an island"), "rating": .int64(5),
        ]
        #expect(cloud.values == ["share-a": ["senja": senja]])
        for device in [a, b] { #expect(try device.values() == ["share-a": ["senja": senja]]) }
    }

    @Test(arguments: [true, false])
    func `two devices that move a record at once into different zones end with one, in the zone of the later move`(
        isForeignFirst: Bool
    ) async throws {
        let scratch = try Scratch()
        let (cloud, a, b) = try await ZonedDevice.pair(scratch)
        try await a.move("senja", to: isForeignFirst ? .other : .shared)
        try await b.move("senja", to: isForeignFirst ? .shared : .other)
        try await a.set("senja", ["caption": .string("Senja in June")])
        try await b.set("senja", ["rating": .int64(5)])
        let zones: [ZoneName] = [.shared, .other, .default]
        for _ in 0..<3 {
            for device in [a, b] { try await device.sync(zones) }
        }
        let senja: [String: FieldValue] = [
            "caption": .string("Senja in June"), "details": .string("an island"), "rating": .int64(5),
        ]
        let zone = isForeignFirst ? "share-a" : "share-b"
        #expect(cloud.values == [zone: ["senja": senja]])
        for device in [a, b] {
            #expect(try device.values() == [zone: ["senja": senja]])
            #expect(try device.reader().outbox().pending == 0)
        }
    }

    @Test func `a record that moves there and back while another device is off is where it was`() async throws {
        let scratch = try Scratch()
        let (cloud, a, b) = try await ZonedDevice.pair(scratch)
        let zones: [ZoneName] = [.shared, .default]
        try await a.move("senja", to: .shared)
        try await a.send(.shared)
        // The device learns of the new place before the old one.
        try await b.fetch(.shared)
        try await a.sync(zones)
        try await a.move("senja", to: .default)
        try await a.sync(zones)
        try await b.sync(zones)
        try await a.sync(zones)
        let senja: [String: FieldValue] = ["caption": .string("Senja"), "details": .string("an island")]
        #expect(cloud.values == ["_defaultZone": ["senja": senja]])
        for device in [a, b] { #expect(try device.values() == ["_defaultZone": ["senja": senja]]) }
    }

    @Test func `a request that is under way when the record moves ends well`() async throws {
        let scratch = try Scratch()
        let (cloud, a, _) = try await ZonedDevice.pair(scratch)
        try await a.set("senja", ["caption": .string("Senja in June")])
        let batch = try await a.next(.default)
        let request = try await a.begin(batch, .default)
        try await a.move("senja", to: .shared)
        try await a.applyReply(to: request, of: batch, .default)
        try await a.sync([.shared, .default])
        #expect(cloud.values == ["share-a": ["senja": ["caption": .string("Senja in June"), "details": .string("an island")]]])
        #expect(try a.reader().outbox().pending == 0)
    }

    /// Checks for entries of the outbox that name another change than the last one of their row.
    private func strayEntries(_ device: ZonedDevice) async throws -> [String] {
        try await device.reader().database.read { db in
            try String.fetchAll(
                db,
                sql: """
                    SELECT o.kind || ': ' || o.change_id FROM tide_outbox o
                    WHERE o.change_id IS NOT CASE o.kind
                        WHEN 3 THEN (
                            SELECT c.id FROM tide_changes c WHERE c.kind = 3 AND c.type_id = o.type_id AND c.first_row = o.first_row)
                        ELSE (SELECT _version FROM Destination WHERE _id = o.first_row) END
                    """)
        }
    }

    @Test(arguments: [(.mergeByPropertyStoreTrump, "of B"), (.mergeByPropertyObjectTrump, "of A")] as [(MergePolicy, String)])
    func `an edit that only the old place got meets an edit made here by the policy, and the log has the conflict`(
        policy: MergePolicy, winner: String
    ) async throws {
        let scratch = try Scratch()
        let (cloud, a, b) = try await ZonedDevice.pair(scratch, policy: policy)
        try await a.set("senja", ["caption": .string("of A")])
        try await a.move("senja", to: .shared)
        try await a.send(.shared)
        try await b.set("senja", ["caption": .string("of B")])
        try await b.send(.default)
        try await a.fetch(.default)
        let logged = try #require(try a.reader().conflicts().first)
        #expect(logged.field == "caption" && logged.policy == policy.name)
        #expect([logged.ancestor, logged.local, logged.store] == [#""Senja""#, #""of A""#, #""of B""#])
        #expect(try await strayEntries(a) == [])
        let senja: [String: FieldValue] = ["caption": .string(winner), "details": .string("an island")]
        #expect(try a.values() == ["share-a": ["senja": senja]])
        try await a.sync([.shared, .default])
        #expect(cloud.values == ["share-a": ["senja": senja]])
    }

    @Test func `a device that learns of the new place first deletes the old copy, which it never had`() async throws {
        let scratch = try Scratch()
        let (cloud, a, _) = try await ZonedDevice.pair(scratch)
        try await a.set("senja", ["caption": .string("Senja in June")])
        try await a.move("senja", to: .shared)
        try await a.send(.shared)
        let c = try ZonedDevice(scratch["c.tidemark"], cloud)
        for zone in [ZoneName.shared, .default] { try await c.fetch(zone) }
        let senja: [String: FieldValue] = ["caption": .string("Senja in June"), "details": .string("an island")]
        #expect(try c.values() == ["share-a": ["senja": senja]])
        #expect(try await strayEntries(c) == [])
        #expect(try await c.next(.default).items.map(\.key.kind) == [.delete])
        try await c.send(.default)
        #expect(cloud.values == ["share-a": ["senja": senja]])
        #expect(try c.reader().outbox().pending == 0)
    }

    @Test func `deleting a record after its move deletes it at its old place, too`() async throws {
        let scratch = try Scratch()
        let (cloud, a, b) = try await ZonedDevice.pair(scratch, policy: .mergeByPropertyStoreTrump)
        try await a.move("senja", to: .shared)
        try await a.delete("senja")
        // Under this policy a deletion wins over an edit, while after a move the record would be back.
        try await b.set("senja", ["rating": .int64(5)])
        try await b.sync([.default])
        try await a.fetch(.default)
        #expect(try a.values() == [:])
        for device in [a, b] { try await device.sync([.shared, .default]) }
        #expect(cloud.values == [:])
        for device in [a, b] {
            #expect(try device.values() == [:])
            #expect(try device.reader().outbox().pending == 0)
        }
    }

    @Test func `under the policy error a conflict between two zones waits for a person, and nothing is lost`() async throws {
        let scratch = try Scratch()
        let (cloud, a, b) = try await ZonedDevice.pair(scratch, policy: .error)
        try await a.set("senja", ["caption": .string("of A")])
        try await a.move("senja", to: .shared)
        try await a.sync([.shared, .default])
        try await b.set("senja", ["caption": .string("of B")])
        try await b.fetch(.shared)
        let zone = try await b.id(.shared)
        #expect(try await b.store.deferredRecords([.conflict], zone: zone).map(\.name) == ["senja"])
        #expect(try await b.send(.shared) == [])
        #expect(try b.values() == ["share-a": ["senja": ["caption": .string("of B"), "details": .string("an island")]]])
        let outcome = try await b.store.apply(
            [cloud.remote("senja", in: .shared)], occasion: .resolved, author: "cloud",
            policy: { _ in .mergeByPropertyObjectTrump },
            zone: zone)
        #expect(outcome.conflicts.count == 1)
        try await b.sync([.shared, .default])
        #expect(cloud.values["share-a"]?["senja"]?["caption"] == .string("of B"))
        #expect(cloud.values.keys.sorted() == ["share-a"])
    }

    /// Each device edits a field of its own, so there are no conflicts: finally every record exists once, with the last edit of
    /// each device.
    @Test(arguments: 0..<24)
    func `devices that edit, move and exchange at random end with equal stores and every last edit`(round: Int) async throws {
        // The seeds are the same in each run, unless `TIDEMARK_SEED` gives another one.
        let isGiven = ProcessInfo.processInfo.environment["TIDEMARK_SEED"] != nil
        var random = isGiven ? Randomness("moving between zones") : Randomness(seed: UInt64(Self.firstSeed + round))
        print("moving between zones, round \(round): TIDEMARK_SEED=\(random.seed)")
        let scratch = try Scratch()
        let cloud = ZoneCloud()
        let fields = ["caption", "details", "rating"]
        let devices = try fields.map { try ZonedDevice(scratch["\($0).tidemark"], cloud) }
        let zones: [ZoneName] = [.default, .shared, .other]
        for zone in zones { cloud.makeZone(zone) }
        let names = ["senja", "lofoten"]
        for name in names { try await devices[0].set(name, ["caption": .string("first")]) }
        for device in devices { try await device.sync(zones) }
        var last: [String: [String: FieldValue]] = [:]
        for name in names { last[name] = ["caption": .string("first")] }
        for step in 0..<60 {
            let index = Int.random(in: 0..<devices.count, using: &random)
            let device = devices[index]
            let name = names.randomElement(using: &random)!
            let zone = zones.randomElement(using: &random)!
            switch Int.random(in: 0..<8, using: &random) {
            case 0, 1:
                let value: FieldValue = index == 2 ? .int64(Int64(step)) : .string("\(step)")
                try await device.set(name, [fields[index]: value])
                last[name]![fields[index]] = value
            case 2: try await device.move(name, to: zone)
            case 3, 4: try await device.fetch(zone)
            case 5, 6: try await device.send(zone)
            default: try await device.sync(zones.shuffled(using: &random))
            }
        }
        for _ in 0..<4 {
            for device in devices { try await device.sync(zones.shuffled(using: &random)) }
        }
        for device in devices {
            let values = try device.values()
            let found = values.values.reduce(into: [String: [String: FieldValue]]()) { all, zone in
                for (name, values) in zone {
                    #expect(all[name] == nil, "\(name) is there twice")
                    all[name] = values
                }
            }
            #expect(found == last)
            #expect(values == cloud.values)
            #expect(try device.reader().outbox().pending == 0)
            #expect(try StoreVerification(of: device.store.container).run().problems == [])
        }
    }
}
