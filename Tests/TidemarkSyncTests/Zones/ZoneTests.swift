import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

@testable import TidemarkTransfer

/// Goal: the zones of one store are kept apart, in everything that a store does. Method: stores with two zones, and a cloud in
/// memory.
@Suite(.timeLimit(.minutes(30))) struct ZoneTests {
    private static let (anna, carl) = (ZoneName.of("anna"), ZoneName.of("carl"))

    private func remote(_ name: String, _ caption: String, tag: String) -> RemoteChange {
        .saved(
            RemoteRecord(
                name: name, type: "Destination", tag: tag, values: ["caption": .string(caption)], edited: nil, whole: { Data() }))
    }

    private func share(_ zone: ZoneName, _ permission: ShareParticipant.Permission, root: String? = nil) -> Share {
        let user = ShareParticipant(
            id: "p1", identity: UserIdentity(userRecordName: "ben"), role: .privateUser, permission: permission,
            acceptanceStatus: .accepted)
        let owner = ShareParticipant(
            id: "p0", identity: UserIdentity(userRecordName: zone.owner), role: .owner, permission: .readWrite,
            acceptanceStatus: .accepted)
        return Share(
            scope: .shared, zone: zone, name: "share-\(root ?? "zone")", root: root, title: "Title", publicPermission: .readOnly,
            participants: [owner, user], currentUser: user, changeTag: "s1")
    }

    /// A shared store with records of equal names from two owners.
    private func sharedStore(
        _ scratch: Scratch, _ permission: ShareParticipant.Permission = .readWrite
    ) async throws -> ZonedDevice {
        let device = try ZonedDevice(scratch.container, scope: .shared)
        for (zone, caption) in [(Self.anna, "of Anna"), (Self.carl, "of Carl")] {
            device.cloud.makeZone(zone)
            try await device.take([remote("senja", caption, tag: "\(caption) 1"), .share(share(zone, permission))], in: zone)
        }
        return device
    }

    private func captions(_ device: ZonedDevice) throws -> [String] {
        var captions: [String] = []
        try device.reader().database.read { db in
            captions = try String.fetchAll(db, sql: "SELECT caption FROM Destination ORDER BY _zone, _key")
        }
        return captions
    }

    // Names

    @Test func `records of equal names from two owners stay apart`() async throws {
        let scratch = try Scratch()
        let device = try await sharedStore(scratch)
        #expect(try captions(device) == ["of Anna", "of Carl"])
        let (anna, carl) = (try await device.id(Self.anna), try await device.id(Self.carl))
        // Without a zone the first record is meant.
        try await device.set("senja", ["caption": .string("mine 1")])
        try await device.set("senja", ["caption": .string("mine 2")], zone: carl)
        #expect(try captions(device) == ["mine 1", "mine 2"])
        #expect(try await device.next(Self.anna).items.map(\.tag) == ["of Anna 1"])
        #expect(try await device.next(Self.carl).items.map(\.tag) == ["of Carl 1"])
        #expect(try await device.next(.default).isEmpty)
        try await device.take([.deleted(name: "senja")], in: Self.anna)
        // It was edited here, so it is made again in its zone.
        #expect(try captions(device) == ["mine 1", "mine 2"])
        #expect(try await device.next(Self.anna).items.map(\.tag) == [nil])
        try await device.delete("senja", zone: carl)
        #expect(try captions(device) == ["mine 1"])
        #expect(try await device.next(Self.carl).items.map(\.key.kind) == [.delete])
        try await device.take([remote("senja", "of Carl, again", tag: "c2")], in: Self.carl)
        #expect(try captions(device) == ["mine 1", "of Carl, again"])
        #expect(anna < carl)
    }

    @Test func `a new record of a shared store needs a zone`() async throws {
        let scratch = try Scratch()
        let device = try await sharedStore(scratch)
        await #expect(throws: StoreError(.invalid, "")) { try await device.set("beach", ["caption": .string("A beach")]) }
        try await device.set("beach", ["caption": .string("A beach")], zone: try await device.id(Self.carl))
        #expect(
            try captions(device) == ["of Anna", "A beach", "of Carl"] || captions(device) == ["of Anna", "of Carl", "A beach"])
        let zone = try await device.store.zone(of: RecordName(type: "Destination", name: "beach"))
        #expect(zone == Self.carl)
    }

    @Test func `zones of other owners are for shared stores, and the user's own for private ones`() async throws {
        let scratch = try Scratch()
        let (mine, others) = (try ZonedDevice(scratch.container), try ZonedDevice(scratch.container, scope: .shared))
        #expect(try await mine.store.zones().map(\.name) == [.default])
        await #expect(throws: StoreError(.invalid, "")) { try await mine.store.zone(Self.anna) }
        await #expect(throws: StoreError(.invalid, "")) { try await others.store.zone(.shared) }
        let zone = try await mine.store.zone(.shared)
        #expect(try await mine.store.zone(.shared) == zone)
        let zones = try mine.reader().zones()
        #expect(zones.map(\.id) == [1, zone.id])
        #expect(zones.map(\.name) == [.default, .shared])
    }

    @Test func `unique keys hold within one zone`() async throws {
        let scratch = try Scratch()
        let device = try ZonedDevice(scratch.container)
        let unique = RecordTypeSchema(
            name: "Destination", fields: ZonedDevice.schema.fields, uniqueKeys: [["caption"]])
        try await device.store.declare([unique], environment: .development)
        try await device.set("a", ["caption": .string("Senja")])
        try await device.move("a", to: .shared)
        try await device.set("b", ["caption": .string("Senja")])
        #expect(try device.values().mapValues { Set($0.keys) } == ["share-a": ["a"], "_defaultZone": ["b"]])
        let outcome = try await device.set("c", ["caption": .string("Senja")])
        #expect(outcome.replaced.values.sorted() == ["b"])
        #expect(try device.values().mapValues { Set($0.keys) } == ["share-a": ["a"], "_defaultZone": ["b"]])
        try await device.move("b", to: .shared)
        #expect(try device.values().mapValues { Set($0.keys) } == ["share-a": ["a"]])
    }

    @Test func `a name is used once in a private store, for all types together`() async throws {
        let scratch = try Scratch()
        let device = try ZonedDevice(scratch.container)
        try await device.set("senja", ["caption": .string("Senja")])
        try await device.move("senja", to: .shared)
        await #expect(throws: StoreError(.invalid, "")) { try await device.set("senja", [:], type: "Photo") }
        let zone = try await device.id(.other)
        try await device.set("senja", ["caption": .string("again")], zone: zone)
        #expect(try device.values() == ["share-a": ["senja": ["caption": .string("again")]]])
        try await device.delete("senja")
        #expect(try device.values() == [:])
    }

    // Importing

    @Test func `an import changes records in their zones, and puts new ones into the default zone`() async throws {
        let scratch = try Scratch()
        let device = try ZonedDevice(scratch.container)
        let lines = (1...5).map { #"{"id": "r\#($0)", "caption": "one", "n": \#($0)}"# }
        try await scratch.importing(lines: lines, .destination())
        for name in ["r2", "r4"] { try await device.move(name, to: .shared) }
        let again = (1...7).map { #"{"id": "r\#($0)", "caption": "two", "n": \#($0)}"# }
        let summary = try await scratch.importing(lines: again, .destination())
        #expect(summary.changes == ChangeCounts(inserted: 2, updated: 5, unchanged: 0))
        #expect(
            try device.values().mapValues { $0.keys.sorted() } == [
                "_defaultZone": ["r1", "r3", "r5", "r6", "r7"], "share-a": ["r2", "r4"],
            ])
        device.cloud.makeZone(.shared)
        #expect(try await device.next(.shared).items.map(\.name).sorted() == ["r2", "r4"])
        #expect(try await device.next(.default).items.map(\.name).sorted() == ["r1", "r3", "r5", "r6", "r7"])
        try await device.sync([.default, .shared])
        #expect(device.cloud.values.mapValues { $0.count } == ["_defaultZone": 5, "share-a": 2])
        #expect(try device.reader().outbox().pending == 0)
    }

    @Test func `a range of rows in two zones is sent zone by zone`() async throws {
        let scratch = try Scratch()
        let device = try ZonedDevice(scratch.container)
        for n in 1...9 {
            try await device.set("r\(n)", ["caption": .string("one")])
            if n.isMultiple(of: 3) { try await device.move("r\(n)", to: .shared) }
        }
        try await device.sync([.default, .shared])
        // Both zones are to be sent whole; their rows alternate.
        for zone in try await device.store.zones() { try await device.store.forgetZone(zone.id) }
        #expect(try device.reader().outbox().pending == 9)
        var sent: [String: [String]] = [:]
        let one = ExportLimits(items: 1, bytes: 1 << 20, assetBytes: 0)
        for _ in 0..<20 {
            for zone in [ZoneName.default, .shared] {
                let batch = try await device.store.nextExport(edits: one, bulk: one, zone: try await device.id(zone))
                guard !batch.isEmpty else { continue }
                sent[zone.name, default: []] += batch.items.map(\.name)
                let request = try await device.begin(batch, zone)
                try await device.applyReply(to: request, of: batch, zone) { _ in .saved(tag: "again") }
            }
        }
        #expect(sent == ["_defaultZone": ["r1", "r2", "r4", "r5", "r7", "r8"], "share-a": ["r3", "r6", "r9"]])
        #expect(try device.reader().outbox().pending == 0)
    }

    @Test func `a dry run finds records in any zone`() async throws {
        let scratch = try Scratch()
        let device = try ZonedDevice(scratch.container)
        try await scratch.importing(
            lines: [#"{"id": "a", "caption": "one"}"#, #"{"id": "b", "caption": "one"}"#], .destination())
        try await device.move("a", to: .shared)
        let dry = try RecordStore.dryRun(of: device.store.container, in: scratch["dry"])
        let batch = try RecordBatch(rowLimit: 10, byteLimit: 1 << 20)
        for name in ["a", "b", "c"] {
            try batch.add(name: name, values: [(.init(name: "caption", type: .string), .string("two"))])
        }
        batch.digest(seed: dry.identity.digestSeed)
        let counts = try await dry.write(
            batch,
            BatchWrite(type: "Destination", environment: .development, author: TransactionAuthor("test", origin: .import)))
        #expect(counts == ChangeCounts(inserted: 1, updated: 2, unchanged: 0))
    }

    // State

    @Test func `the state of a cloud is kept for each zone`() async throws {
        let scratch = try Scratch()
        let device = try ZonedDevice(scratch.container)
        let zone = try await device.id(.shared)
        try await device.store.updateSyncState { ($0.user, $0.token) = ("anna", "one") }
        try await device.store.updateSyncState(zone: zone) { ($0.token, $0.initialImportIsComplete) = ("two", true) }
        try await device.store.recordZoneChanges([zone, 77], token: "all")
        #expect(try await device.store.syncState().token == "one")
        #expect(try await !device.store.syncState().hasNewChanges)
        let state = try await device.store.syncState(zone: zone)
        #expect(state.user == "anna")
        #expect(state.token == "two")
        #expect(state.hasNewChanges)
        #expect(state.initialImportIsComplete)
        #expect(try await device.store.databaseToken() == "all")
        try await device.store.removeZone(zone, reason: "gone", code: "zoneNotFound", author: "cloud")
        #expect(
            try await device.store.syncState(zone: zone)
                == {
                    var it = SyncState()
                    it.user = "anna"
                    return it
                }())
        #expect(try await device.store.syncState().token == "one")
    }

    @Test func `a zone that is fetched again loses the records that are missing, and other zones keep theirs`() async throws {
        let scratch = try Scratch()
        let device = try await sharedStore(scratch)
        let anna = try await device.id(Self.anna)
        try await device.store.beginRefetch(zone: anna)
        #expect(try await device.store.syncState(zone: anna).isRefetching)
        _ = try await device.store.apply(
            [], occasion: .page, author: "cloud", policy: { _ in .mergeByPropertyObjectTrump },
            state: { $0.isRefetching = false },
            zone: anna)
        #expect(try await device.store.deferUntilReply(zone: anna) == ["senja"])
        #expect(try await device.store.deferUntilReply(zone: try await device.id(Self.carl)) == [])
        try await device.lookUp(Self.anna)
        #expect(try captions(device) == ["of Carl"])
    }

    @Test func `requests and deferred records belong to one zone`() async throws {
        let scratch = try Scratch()
        let device = try await sharedStore(scratch)
        let (anna, carl) = (try await device.id(Self.anna), try await device.id(Self.carl))
        try await device.set("senja", ["caption": .string("mine")], zone: anna)
        let batch = try await device.next(Self.anna)
        _ = try await device.begin(batch, Self.anna)
        #expect(try await device.store.sentRequests(zone: carl) == [])
        #expect(try await device.store.sentRequests(zone: anna).map(\.items) == [batch.items])
        // Changes of the other zone do not affect it.
        try await device.take([remote("senja", "new", tag: "c2")], in: Self.carl)
        try await device.take([remote("senja", "new", tag: "a2")], in: Self.anna)
        #expect(try captions(device) == ["mine", "new"])
        #expect(try device.reader().deferredRecords() == [])
        let strange = RemoteRecord(
            name: "x", type: "Unknown", tag: "t", values: [:], edited: nil, whole: { Data("whole".utf8) })
        for zone in [Self.anna, Self.carl] { try await device.take([.saved(strange)], in: zone) }
        #expect(try device.reader().deferredRecords().map(\.zone) == [anna, carl])
        #expect(try await device.store.deferredRecords([.schema], zone: carl).map(\.name) == ["x"])
        try await device.take([.deleted(name: "x")], in: Self.anna)
        #expect(try device.reader().deferredRecords().map(\.zone) == [carl])
    }

    @Test func `another account gets the records, but not the zones and shares`() async throws {
        let scratch = try Scratch()
        let device = try ZonedDevice(scratch.container)
        for name in ["a", "b"] { try await device.set(name, ["caption": .string(name)]) }
        try await device.move("a", to: .shared)
        try await device.sync([.shared, .default])
        try await device.know([share(.shared, .readWrite)], in: .shared)
        try await device.store.forgetCloud(user: "other")
        #expect(try await device.store.zones().map(\.name) == [.default])
        #expect(try await device.store.shares() == [])
        #expect(try device.values().mapValues { $0.keys.sorted() } == ["_defaultZone": ["a", "b"]])
        #expect(try await device.next(.default).items.map(\.name).sorted() == ["a", "b"])
        #expect(try await device.store.syncState().user == "other")
    }

    @Test func `records that were set aside are restored to their current zones`() async throws {
        let scratch = try Scratch()
        let device = try ZonedDevice(scratch.container)
        for name in ["a", "b"] { try await device.set(name, ["caption": .string(name)]) }
        try await device.sync([.default])
        try await device.set("a", ["caption": .string("edited")])
        try await device.move("a", to: .shared)
        let quarantine = try #require(try await device.store.setAside(reason: "test"))
        #expect(try await device.store.zones().map(\.name) == [.default])
        #expect(try device.values() == [:])
        _ = try await device.store.restore(
            quarantine, all: true, author: "test", policy: { _ in .mergeByPropertyObjectTrump })
        #expect(
            try device.values() == ["_defaultZone": ["a": ["caption": .string("edited")], "b": ["caption": .string("b")]]])
    }

    @Test func `the folders of set-aside records are durable, even if a killed process has made the first`() async throws {
        let scratch = try Scratch()
        let device = try ZonedDevice(scratch.container)
        try await device.set("a", ["caption": .string("a")])
        let folder = scratch.container.appendingPathComponent("quarantine", isDirectory: true)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        let log = StepLog()
        try await DurableFile.$onSynchronized.withValue(.init(log.add)) { _ = try await device.store.setAside(reason: "test") }
        // The folder of this store is in the first one, which is in the second.
        #expect(log.all.filter { [folder.path, scratch.container.path].contains($0) } == [folder.path, scratch.container.path])
    }

    // Sharing

    @Test func `shares are stored as the cloud sent them last`() async throws {
        let scratch = try Scratch()
        let device = try await sharedStore(scratch)
        let both = [share(Self.anna, .readWrite), share(Self.carl, .readWrite)]
        #expect(try await device.store.shares() == both)
        #expect(try device.reader().shares() == both)
        var changed = share(Self.anna, .readOnly)
        changed.title = nil
        try await device.take([.share(changed)], in: Self.anna)
        #expect(try device.reader().shares() == [changed, both[1]])
        try await device.take([.deleted(name: "share-zone")], in: Self.carl)
        #expect(try device.reader().shares() == [changed])
        try await device.store.forget(changed)
        #expect(try device.reader().shares() == [])
    }

    @Test func `a read-only record can't be saved, deleted, updated or undone, and nothing is written`() async throws {
        let scratch = try Scratch()
        let device = try await sharedStore(scratch, .readOnly)
        let (anna, carl) = (try await device.id(Self.anna), try await device.id(Self.carl))
        try await device.know([share(Self.carl, .readWrite)], in: Self.carl)
        let before = try device.reader().historyToken()
        let query = RecordQuery(type: "Destination")
        let author = TransactionAuthor("test", origin: .save)
        let denial = await #expect(throws: PermissionDenied.self) {
            _ = try await device.save([
                RecordEdit(
                    record: RecordName(type: "Destination", name: "new"), base: .any, values: [:], fields: [], zone: carl),
                RecordEdit(
                    record: RecordName(type: "Destination", name: "senja"), base: .any, values: ["caption": .string("x")],
                    fields: ["caption"], zone: anna),
            ])
        }
        #expect(denial?.record == RecordName(type: "Destination", name: "senja"))
        #expect(denial?.decision.operation == .update)
        #expect(denial?.decision.rule == .readOnly)
        await #expect(throws: PermissionDenied.self) { try await device.set("new", [:], zone: anna) }
        await #expect(throws: PermissionDenied.self) { try await device.delete("senja", zone: anna) }
        await #expect(throws: PermissionDenied.self) { try await device.store.delete(matching: query, author: author) }
        await #expect(throws: PermissionDenied.self) {
            try await device.store.update(matching: query, set: ["caption": .string("x")], author: author)
        }
        let first = try #require(try device.reader().transactions().last).id
        await #expect(throws: PermissionDenied.self) { try await device.store.undo(transaction: first, author: "test") }
        #expect(try device.reader().historyToken() == before)
        #expect(try captions(device) == ["of Anna", "of Carl"])
        // A save without changes needs no permission.
        try await device.set("senja", ["caption": .string("of Anna")], zone: anna)
        try await device.set("senja", ["caption": .string("mine")], zone: carl)
        #expect(try captions(device) == ["of Anna", "mine"])
        let updated = try await device.store.update(
            matching: RecordQuery(type: "Destination", condition: "_zone = \(carl)"), set: ["caption": .string("more")],
            author: author)
        #expect(updated == ["senja"])
        #expect(try captions(device) == ["of Anna", "more"])
    }

    @Test func `in a hierarchy the share of the root decides, and among several candidates the weakest`() async throws {
        let scratch = try Scratch()
        let device = try await sharedStore(scratch)
        let anna = try await device.id(Self.anna)
        try await device.take([remote("root", "root", tag: "r"), remote("other", "other", tag: "o")], in: Self.anna)
        try await device.know([share(Self.anna, .readWrite, root: "root")], in: Self.anna)
        let denial = await #expect(throws: PermissionDenied.self) { try await device.delete("root", zone: anna) }
        #expect(denial?.decision.rule == .rootIsTheOwners)
        try await device.set("other", ["caption": .string("x")], zone: anna)
        try await device.know(
            [share(Self.anna, .readWrite, root: "root"), share(Self.anna, .readOnly, root: "senja")], in: Self.anna)
        try await device.set("root", ["caption": .string("x")], zone: anna)
        await #expect(throws: PermissionDenied.self) { try await device.set("other", ["caption": .string("y")], zone: anna) }
        try await device.know([], in: Self.anna)
        let stranger = await #expect(throws: PermissionDenied.self) {
            try await device.set("root", ["caption": .string("y")], zone: anna)
        }
        #expect(stranger?.decision.rule == .stranger)
    }
}
