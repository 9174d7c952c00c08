import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Goal: a change that a cloud refuses permanently is reverted and kept, so that the store has the cloud's values and no person's
/// text is lost. Method: a shared store and a cloud in memory that refuses.
@Suite(.timeLimit(.minutes(30))) struct RefusedSaveTests {
    private static let zone = ZoneName.of("anna")
    private static let permissionFailure = ExportResult.rejected(code: "permissionFailure", reason: "the permission is Read-Only")
    private static let values: [String: FieldValue] = [
        "caption": .string("Senja"), "details": .string("an \"island\""), "rating": .int64(4),
    ]

    private func device(_ scratch: Scratch) async throws -> ZonedDevice {
        let device = try ZonedDevice(scratch.container, scope: .shared)
        device.cloud.makeZone(Self.zone)
        let user = ShareParticipant(
            id: "p1", identity: UserIdentity(userRecordName: "ben"), role: .privateUser, permission: .readWrite,
            acceptanceStatus: .accepted)
        let share = Share(scope: .shared, zone: Self.zone, name: "share", participants: [user], currentUser: user)
        // The owner has the record in the cloud.
        let owner = try ZonedDevice(scratch["owner.tidemark"])
        try await owner.set("senja", Self.values)
        let item = try #require(try await owner.next(.default).items.first)
        _ = device.cloud.apply(item, to: Self.zone)
        try await device.take([.share(share), device.cloud.remote("senja", in: Self.zone)], in: Self.zone)
        return device
    }

    private func set(_ device: ZonedDevice, _ name: String, _ values: [String: FieldValue]) async throws {
        try await device.set(name, values, zone: try await device.id(Self.zone))
    }

    private func values(_ device: ZonedDevice) throws -> [String: [String: FieldValue]] { try device.values()["share"] ?? [:] }

    private func check(_ device: ZonedDevice) async throws {
        #expect(try device.reader().outbox() == OutboxSummary())
        #expect(try await device.next(Self.zone).isEmpty)
        let clean = try await device.reader().database.read { db in
            try Int.fetchOne(
                db, sql: "SELECT count(*) FROM Destination WHERE _pending IS NOT NULL OR _base IS NOT _version OR _tag IS NULL")
        }
        #expect(clean == 0)
    }

    @Test func `a refused update is reverted to the cloud's values, and kept with the reason`() async throws {
        let scratch = try Scratch()
        let device = try await device(scratch)
        let edited = device.cloud.zones[Self.zone]!["senja"]!.edited.description
        try await set(device, "senja", ["caption": .string("of Ben"), "neighbour": .reference("lofoten")])
        let batch = try await device.next(Self.zone)
        let request = try await device.begin(batch, Self.zone)
        // An edit made while the update is sent is reverted with it.
        let clearing = RecordEdit(
            record: RecordName(type: "Destination", name: "senja"), base: .any, values: [:], fields: ["rating"],
            zone: try await device.id(Self.zone))
        _ = try await device.save([clearing])
        let token = try device.reader().historyToken()
        try await device.applyReply(to: request, of: batch, Self.zone) { _ in Self.permissionFailure }
        #expect(try values(device) == ["senja": Self.values])
        let refused = try #require(try device.reader().refused().first)
        #expect(
            refused
                == RefusedSave(
                    id: refused.id, time: refused.time, scope: .shared, zone: Self.zone,
                    record: RecordName(type: "Destination", name: "senja"), kind: .update,
                    before: ["caption": .string("Senja"), "neighbour": nil, "rating": .int64(4)],
                    after: ["caption": .string("of Ben"), "neighbour": .reference("lofoten"), "rating": nil],
                    code: "permissionFailure", reason: "the permission is Read-Only"))
        try await check(device)
        let changes = try device.reader().changes(since: token).transactions
        #expect(changes.map(\.transaction.origin) == [.cloud])
        #expect(changes.flatMap(\.changes).map(\.kind) == [.update])
        let times = try await device.reader().database.read { db in
            try String.fetchOne(db, sql: "SELECT _edited FROM Destination")
        }
        #expect(times == edited)
        try await device.store.discardRefused([refused.id])
        #expect(try device.reader().refused() == [])
    }

    @Test func `a refused insert is removed`() async throws {
        let scratch = try Scratch()
        let device = try await device(scratch)
        try await set(device, "beach", ["caption": .string("A beach")])
        try await device.send(Self.zone) { _ in Self.permissionFailure }
        #expect(try values(device) == ["senja": Self.values])
        let refused = try #require(try device.reader().refused().first)
        #expect(refused.kind == .insert)
        #expect(refused.before == [:])
        #expect(refused.after == ["caption": .string("A beach")])
        try await check(device)
    }

    @Test func `a refused deletion restores the record as the cloud has it, even if it was edited before`() async throws {
        let scratch = try Scratch()
        let device = try await device(scratch)
        let tag = device.cloud.zones[Self.zone]!["senja"]!.tag
        let edited = device.cloud.zones[Self.zone]!["senja"]!.edited.description
        try await set(device, "senja", ["caption": .string("of Ben")])
        try await device.delete("senja", zone: try await device.id(Self.zone))
        #expect(try values(device) == [:])
        try await device.send(Self.zone) { _ in Self.permissionFailure }
        #expect(try values(device) == ["senja": Self.values])
        let refused = try #require(try device.reader().refused().first)
        #expect(refused.kind == .delete)
        #expect(refused.before == Self.values.mapValues { $0 })
        #expect(refused.after == [:])
        try await check(device)
        let row = try device.reader().database.read { db in
            try Row.fetchOne(db, sql: "SELECT _tag, _edited FROM Destination")
        }
        #expect(row?[0] == tag)
        #expect(row?[1] == edited)
    }

    @Test func `a refused record that was deleted and made again is merged with the cloud's record`() async throws {
        let scratch = try Scratch()
        let device = try await device(scratch)
        try await device.delete("senja", zone: try await device.id(Self.zone))
        try await set(device, "senja", ["caption": .string("another one")])
        #expect(try await device.next(Self.zone).items.map(\.key.kind) == [.delete])
        try await device.send(Self.zone) { _ in Self.permissionFailure }
        try await device.send(Self.zone)
        // Both sides have made it: a value here counts, and a missing one is as in the cloud.
        let merged = ["senja": Self.values.merging(["caption": .string("another one")]) { $1 }]
        #expect(try values(device) == merged)
        #expect(device.cloud.values["share"] == merged)
        try await check(device)
    }

    @Test func `other records of a refused request are saved, and those that were not done are sent again`() async throws {
        let scratch = try Scratch()
        let device = try await device(scratch)
        for name in ["a", "b", "c"] { try await set(device, name, ["caption": .string(name)]) }
        try await device.send(Self.zone) { $0.name == "b" ? Self.permissionFailure : $0.name == "c" ? .undone : nil }
        #expect(try values(device).keys.sorted() == ["a", "c", "senja"])
        #expect(try await device.send(Self.zone) == ["c"])
        #expect(device.cloud.values["share"]?.keys.sorted() == ["a", "c", "senja"])
        #expect(try device.reader().refused().map(\.record.name) == ["b"])
        try await check(device)
    }

    /// Removes all transactions of history but the last.
    private func purge(_ device: ZonedDevice) async throws {
        let store = try RecordStore(
            container: device.store.container, scope: .shared, notifier: nil,
            now: { Int64(Date().timeIntervalSince1970 * 1_000_000) + 30 * 86_400_000_000 })
        _ = try await store.purgeHistory()
    }

    @Test func `if history does not reach back, the cloud is asked for its values`() async throws {
        let scratch = try Scratch()
        let device = try await device(scratch)
        try await set(device, "senja", ["caption": .string("of Ben")])
        try await set(device, "senja", ["caption": .string("of Ben, again")])
        try await purge(device)
        try await device.send(Self.zone) { _ in Self.permissionFailure }
        #expect(try values(device) == ["senja": Self.values])
        let refused = try #require(try device.reader().refused().first)
        #expect(refused.before == [:])
        #expect(refused.after == ["caption": .string("of Ben, again")])
        try await check(device)
    }

    @Test func `if history does not reach back, the values that a refused deletion has removed are kept`() async throws {
        let scratch = try Scratch()
        let device = try await device(scratch)
        try await set(device, "senja", ["caption": .string("of Ben")])
        try await device.delete("senja", zone: try await device.id(Self.zone))
        try await purge(device)
        try await device.send(Self.zone) { _ in Self.permissionFailure }
        #expect(try values(device) == ["senja": Self.values])
        let refused = try #require(try device.reader().refused().first)
        let deleted = Self.values.merging(["caption": .string("of Ben")]) { $1 }
        #expect(refused.kind == .delete)
        #expect(refused.before == deleted.mapValues { $0 })
        try await check(device)
    }

    @Test func `a removed zone takes all its records, and pending changes are kept`() async throws {
        let scratch = try Scratch()
        let device = try await device(scratch)
        let other = ZoneName.of("carl")
        device.cloud.makeZone(other)
        try await device.take([device.cloud.remote("senja", in: Self.zone)], in: other)
        let zone = try await device.id(Self.zone)
        try await device.take(
            [
                .saved(
                    RemoteRecord(
                        name: "old", type: "Destination", tag: "o1", values: ["caption": .string("Old")], edited: nil,
                        whole: { Data() }))
            ], in: Self.zone)
        try await set(device, "senja", ["caption": .string("of Ben")])
        try await set(device, "beach", ["caption": .string("A beach")])
        try await device.delete("old", zone: zone)
        let batch = try await device.next(Self.zone)
        let request = try await device.begin(batch, Self.zone)
        try await device.store.removeZone(zone, reason: "shared no more", code: "zoneNotFound", author: "cloud")
        #expect(try await device.store.zones().map(\.name) == [.default, other])
        #expect(try device.values().keys.sorted() == ["share"])
        #expect(try device.reader().shares() == [])
        #expect(try device.reader().outbox() == OutboxSummary())
        #expect(try await device.store.sentRequests(zone: zone) == [])
        let refused = try device.reader().refused()
        #expect(refused.map(\.record.name).sorted() == ["beach", "old", "senja"])
        #expect(Set(refused.map(\.kind)) == [.insert, .update, .delete])
        #expect(Set(refused.map(\.zone)) == [Self.zone])
        #expect(refused.first { $0.kind == .update }?.after == ["caption": .string("of Ben")])
        // A late answer changes nothing.
        try await device.store.applyReply(
            to: request, of: batch, results: request.items.map { _ in .saved(tag: "late") }, zone: zone)
        #expect(try device.reader().outbox() == OutboxSummary())
        let left = try await device.reader().database.read { db in
            try Int.fetchOne(db, sql: "SELECT count(*) FROM tide_outbox") ?? -1
        }
        #expect(left == 0)
    }

    @Test func `a record that was still to move into a removed zone is where it was`() async throws {
        let scratch = try Scratch()
        let device = try ZonedDevice(scratch.container)
        for name in ["a", "b"] { try await device.set(name, ["caption": .string(name)]) }
        try await device.sync([.default])
        try await device.move("a", to: .shared)
        try await device.sync([.shared, .default])
        try await device.move("b", to: .shared)
        try await device.set("b", ["caption": .string("edited")])
        try await device.store.removeZone(
            try await device.id(.shared), reason: "purged", code: "userDeletedZone", author: "cloud")
        #expect(try device.values() == ["_defaultZone": ["b": ["caption": .string("edited")]]])
        #expect(try device.reader().refused() == [])
        try await device.sync([.default])
        #expect(device.cloud.values["_defaultZone"] == ["b": ["caption": .string("edited")]])
        #expect(try device.reader().outbox() == OutboxSummary())
    }
}
