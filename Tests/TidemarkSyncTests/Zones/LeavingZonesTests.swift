import Foundation
import TestSupport
import Testing
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Goal: a record that leaves a zone keeps the edits of other devices, and a record that is deleted there does not come back.
/// Method: devices of one person exchange with a cloud in memory, step by step; the deletion in the old zone arrives first.
@Suite(.timeLimit(.minutes(30))) struct LeavingZonesTests {
    @Test(arguments: [MergePolicy.mergeByPropertyStoreTrump, .mergeByPropertyObjectTrump, .latestEdit], [true, false])
    func `an edit in a zone that the record has left is kept, though the deletion there arrives first`(
        policy: MergePolicy, isSent: Bool
    ) async throws {
        let scratch = try Scratch()
        let (cloud, a, b) = try await ZonedDevice.pair(scratch, policy: policy)
        try await a.move("senja", to: .shared)
        for device in [a, b, a] { try await device.sync([.shared, .default]) }
        try await b.set("senja", ["rating": .int64(5)])
        try await a.move("senja", to: .default)
        try await a.sync([.shared, .default])
        // The deletion is the answer to the edit, or arrives by itself.
        if isSent { try await b.send(.shared) } else { try await b.fetch(.shared) }
        #expect(try b.values().values.first?["senja"]?["rating"] == .int64(5))
        for device in [b, a, b] { try await device.sync([.shared, .default]) }
        let senja: [String: FieldValue] = ["caption": .string("Senja"), "details": .string("an island"), "rating": .int64(5)]
        for device in [a, b] {
            #expect(try device.values() == [ZoneName.default.name: ["senja": senja]])
            #expect(try device.reader().outbox().pending == 0)
            #expect(try device.reader().deferredRecords() == [])
            #expect(try device.reader().syncIssues() == [])
            #expect(try StoreVerification(of: device.store.container).run().problems == [])
        }
        #expect(cloud.values == [ZoneName.default.name: ["senja": senja]])
    }

    @Test func `a deletion wins over an edit under store trump once all zones show that the record has not moved`() async throws {
        let scratch = try Scratch()
        let (cloud, a, b) = try await ZonedDevice.pair(scratch, policy: .mergeByPropertyStoreTrump)
        try await a.move("senja", to: .shared)
        for device in [a, b, a] { try await device.sync([.shared, .default]) }
        try await b.set("senja", ["rating": .int64(5)])
        try await a.delete("senja")
        try await a.sync([.shared, .default])
        try await b.fetch(.shared)
        // The edit is deferred, and nothing of it is sent.
        #expect(try b.reader().deferredRecords().map(\.reason) == [.move])
        #expect(try await b.next(.shared).isEmpty)
        for device in [b, a] { try await device.sync([.shared, .default]) }
        for device in [a, b] {
            #expect(try device.values() == [:])
            #expect(try device.reader().outbox().pending == 0)
            #expect(try device.reader().deferredRecords() == [])
        }
        #expect(cloud.values == [:])
    }

    @Test func `a record that is edited again and saved while its deletion waits is not deleted afterwards`() async throws {
        let scratch = try Scratch()
        let (cloud, a, b) = try await ZonedDevice.pair(scratch, policy: .overwrite)
        try await a.move("senja", to: .shared)
        for device in [a, b, a] { try await device.sync([.shared, .default]) }
        try await b.set("senja", ["rating": .int64(5)])
        try await a.delete("senja")
        try await a.sync([.shared, .default])
        try await b.store.beginImportRound()
        try await b.fetch(.shared)
        #expect(try b.reader().deferredRecords().map(\.reason) == [.move])
        try await b.set("senja", ["rating": .int64(6)])
        // This policy saves whatever the cloud has.
        try await b.send(.shared)
        for device in [b, a, b] { try await device.sync([.shared, .default]) }
        for device in [a, b] {
            #expect(try device.values()["share-a"]?["senja"]?["rating"] == .int64(6))
            #expect(try device.reader().deferredRecords() == [])
        }
        #expect(cloud.values["share-a"]?["senja"]?["rating"] == .int64(6))
    }

    @Test func `a deferred deletion is also applied if the store has lost its other zones in the meantime`() async throws {
        let scratch = try Scratch()
        let (cloud, a, b) = try await ZonedDevice.pair(scratch, policy: .mergeByPropertyStoreTrump)
        try await b.set("lofoten", ["caption": .string("Lofoten")], zone: b.id(.shared))
        for device in [b, a, b] { try await device.sync([.shared, .default]) }
        try await b.set("senja", ["rating": .int64(5)])
        try await a.delete("senja")
        try await a.sync([.shared, .default])
        try await b.fetch(.default)
        #expect(try b.reader().deferredRecords().map(\.reason) == [.move])
        try await b.store.removeZone(try await b.id(.shared), reason: "it is gone", code: "zoneNotFound", author: "test")
        try await b.sync([.default])
        #expect(try b.values() == [:])
        #expect(try b.reader().deferredRecords() == [])
        #expect(try b.reader().outbox().pending == 0)
        #expect(cloud.zones[.default]?.isEmpty == true)
    }

    @Test func `an edit stays with a record that moves twice while the zones are fetched`() async throws {
        let scratch = try Scratch()
        let (cloud, a, b) = try await ZonedDevice.pair(scratch, policy: .mergeByPropertyStoreTrump)
        let zones = [ZoneName.shared, .other, .default]
        try await a.move("senja", to: .shared)
        for device in [a, b, a] { try await device.sync(zones) }
        try await b.set("senja", ["rating": .int64(5)])
        try await a.move("senja", to: .other)
        try await a.sync(zones)
        try await b.fetch(.shared)
        // In the next round it has moved back, after the first zone was fetched.
        try await b.store.beginImportRound()
        try await b.fetch(.shared)
        try await a.move("senja", to: .shared)
        try await a.sync(zones)
        try await b.fetch(.other)
        try await b.fetch(.default)
        try await b.endAwaitedMoves(zones)
        for device in [b, a, b] { try await device.sync(zones) }
        for device in [a, b] { #expect(try device.values()["share-a"]?["senja"]?["rating"] == .int64(5)) }
        #expect(cloud.values.keys.sorted() == ["share-a"])
    }

    @Test(arguments: [[ZoneName.shared, .default], [.default, .shared]], [true, false])
    func `a record that a fast clock has moved, and another device has moved back, is where the cloud has it`(
        order: [ZoneName], isEdited: Bool
    ) async throws {
        let scratch = try Scratch()
        let (cloud, a, b) = try await ZonedDevice.pair(scratch, policy: .mergeByPropertyStoreTrump, lead: 3_600_000_000)
        try await b.move("senja", to: .shared)
        for device in [b, a, b] { try await device.sync([.shared, .default]) }
        // By the device's clock, the second move is older.
        if isEdited { try await b.set("senja", ["rating": .int64(5)]) }
        try await a.move("senja", to: .default)
        try await a.sync([.shared, .default])
        for device in [b, a, b] { try await device.sync(order) }
        for device in [a, b] {
            #expect(try device.values()[ZoneName.default.name]?["senja"]?["rating"] == (isEdited ? .int64(5) : nil))
            #expect(try device.values()[ZoneName.default.name]?["senja"]?["caption"] == .string("Senja"))
        }
        #expect(cloud.values.keys.sorted() == [ZoneName.default.name])
    }
}
