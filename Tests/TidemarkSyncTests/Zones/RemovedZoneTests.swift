import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Goal: a removed zone is gone, whatever arrives late for it, and no later zone is mistaken for it. Method: stores whose zones
/// are removed in between, and all their tables.
@Suite(.timeLimit(.minutes(30))) struct RemovedZoneTests {
    private static let (anna, carl) = (ZoneName.of("anna"), ZoneName.of("carl"))

    private static func remote(_ name: String, tag: String) -> RemoteChange {
        .saved(
            RemoteRecord(
                name: name, type: "Destination", tag: tag, values: ["caption": .string(name)], edited: nil, whole: { Data() }))
    }

    private func device(_ scratch: Scratch) async throws -> (device: ZonedDevice, zone: StoreZone) {
        let device = try ZonedDevice(scratch.container, scope: .shared)
        try await come(Self.anna, to: device)
        return (device, try await device.store.zone(Self.anna))
    }

    /// Fetches a zone from the cloud, with two records that may be edited.
    private func come(_ zone: ZoneName, to device: ZonedDevice) async throws {
        let user = ShareParticipant(
            id: "p1", identity: UserIdentity(userRecordName: "ben"), role: .privateUser, permission: .readWrite,
            acceptanceStatus: .accepted)
        let share = Share(scope: .shared, zone: zone, name: "share", participants: [user], currentUser: user)
        let records = ["senja", "beach"].map { Self.remote($0, tag: "t-\($0)") }
        try await device.take([.share(share)] + records, in: zone)
    }

    private func remove(_ zone: StoreZone, from device: ZonedDevice) async throws {
        try await device.store.removeZone(zone, reason: "the share was left", code: "userDeletedZone", author: "test")
    }

    /// All rows of the tables of zones, and of the records.
    private func contents(_ device: ZonedDevice) throws -> [String: [Row]] {
        try device.reader().database.read { db in
            var all: [String: [Row]] = [:]
            for table in ["zones", "sync", "requests", "outbox", "deferred", "shares", "seen", "transactions", "changes"] {
                all[table] = try Row.fetchAll(db, sql: "SELECT * FROM tide_\(table)")
            }
            all["records"] = try Row.fetchAll(db, sql: "SELECT * FROM Destination")
            return all
        }
    }

    @Test func `late data for a removed zone are not written, and nothing is sent to it`() async throws {
        let scratch = try Scratch()
        let (device, zone) = try await device(scratch)
        try await device.set("senja", ["caption": .string("of Ben")], zone: zone.id)
        let items = try await device.next(Self.anna).items
        #expect(items.count == 1)
        try await remove(zone, from: device)
        let before = try contents(device)
        #expect(before["records"] == [])

        let store = device.store
        let outcome = try await store.apply(
            [Self.remote("late", tag: "l1")], schemas: [RecordTypeSchema(name: "Late", fields: [])], occasion: .page,
            author: "cloud", policy: { _ in .rollback }, state: { $0.token = "late" }, zone: zone.id)
        #expect(outcome.counts.isUnchanged)
        #expect(try await !store.begin(SentRequest(token: "late", items: items), zone: zone.id))
        let (late, next) = (SentRequest(token: "late", items: items), SentRequest(token: "next", items: items))
        for result in [ExportResult.saved(tag: "late"), .rejected(code: "permissionFailure", reason: "late")] {
            let begins = try await store.applyReply(
                to: late, of: nil, results: items.map { _ in result }, next: next, zone: zone.id)
            #expect(!begins)
        }
        try await store.beginRefetch(zone: zone.id)
        try await store.updateSyncState(zone: zone.id) { $0.deferredGeneration = 7 }
        try await store.forgetZone(zone.id)
        #expect(try contents(device) == before)
        #expect(try await store.types().map(\.name) == ["Destination"])
        #expect(try await store.begin(SentRequest(token: "other", items: items)))
    }

    @Test func `the number of a removed zone is never given to another`() async throws {
        let scratch = try Scratch()
        let (device, zone) = try await device(scratch)
        try await remove(zone, from: device)
        let next = try await device.store.zone(Self.carl)
        #expect(next.id > zone.id)
        // This holds even if the store is emptied in between, or the same zone comes again.
        try await device.store.wipe()
        let again = try await device.store.zone(Self.carl)
        #expect(again.id > next.id)
        try await remove(again, from: device)
        #expect(try await device.store.zone(Self.carl).id > again.id)
    }

    @Test func `an unsent deletion is kept, even if another zone has a record of that name`() async throws {
        let scratch = try Scratch()
        let (device, zone) = try await device(scratch)
        try await come(Self.carl, to: device)
        for name in ["senja", "beach"] { try await device.delete(name, zone: zone.id) }
        // This record was made again at its place.
        try await device.set("beach", ["caption": .string("another one")], zone: zone.id)
        try await remove(zone, from: device)
        let refused = try device.reader().refused()
        #expect(refused.filter { $0.kind == .delete }.map(\.record.name) == ["senja"])
        #expect(refused.filter { $0.kind == .insert }.map(\.record.name) == ["beach"])
        #expect(Set(refused.map(\.zone)) == [Self.anna])
    }

    @Test func `a row of a zone that does not exist is damage, and not the user's own record`() async throws {
        let scratch = try Scratch()
        let device = try ZonedDevice(scratch.container)
        try await device.set("senja", ["caption": .string("Senja")])
        let record = RecordName(type: "Destination", name: "senja")
        #expect(try await device.store.graph(of: [record]).map(\.zone) == [.default])
        try DatabaseQueue.execute(
            device.store.container.url.appendingPathComponent("private.sqlite"), "UPDATE Destination SET _zone = 77")
        await #expect(throws: StoreError(.corrupt, "")) { try await device.store.graph(of: [record]) }
        await #expect(throws: StoreError(.corrupt, "")) { try await device.store.zone(of: record) }
    }

    @Test func `a refused save in an invalid form is damage, and does not crash`() async throws {
        let scratch = try Scratch()
        let device = try ZonedDevice(scratch.container)
        let columns = ["time", "owner", "zone_name", "type", "name", "kind", "before", "after", "code", "reason"]
        for column in columns {
            let values = columns.map { name in
                name == column
                    ? "x'ff'" : ["time", "kind"].contains(name) ? "1" : ["before", "after"].contains(name) ? "'{}'" : "'a'"
            }
            try DatabaseQueue.execute(
                device.store.container.url.appendingPathComponent("private.sqlite"),
                """
                DROP TABLE tide_refused;
                CREATE TABLE tide_refused (id INTEGER PRIMARY KEY, \(columns.joined(separator: ", ")));
                INSERT INTO tide_refused VALUES (1, \(values.joined(separator: ", ")))
                """)
            #expect(throws: StoreError(.corrupt, ""), "\(column)") { try device.reader().refused() }
        }
    }

    @Test func `a zone is removed only while it has the given name`() async throws {
        let scratch = try Scratch()
        let (device, zone) = try await device(scratch)
        let other = try await device.store.zone(Self.carl)
        let before = try contents(device)
        try await remove(StoreZone(id: zone.id, name: other.name), from: device)
        #expect(try contents(device) == before)
        try await remove(zone, from: device)
        #expect(try await device.store.zones().map(\.name) == [.default, Self.carl])
    }
}
