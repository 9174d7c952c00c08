import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Goal: changes of a shared store that were set aside are restored to their zones, or kept as refused, and none is lost. Method:
/// stores with the zones of two owners, which are missing, or allow less, when the changes are restored.
@Suite(.timeLimit(.minutes(30))) struct SetAsideSharedTests {
    private static let (anna, carl) = (ZoneName.of("anna"), ZoneName.of("carl"))
    private static let objectTrump: @Sendable (String) -> MergePolicy = { _ in .mergeByPropertyObjectTrump }

    private static func share(_ zone: ZoneName, _ permission: ShareParticipant.Permission) -> RemoteChange {
        let user = ShareParticipant(
            id: "p1", identity: UserIdentity(userRecordName: "ben"), role: .privateUser, permission: permission,
            acceptanceStatus: .accepted)
        return .share(Share(scope: .shared, zone: zone, name: "share", participants: [user], currentUser: user))
    }

    private static func remote(_ name: String, _ caption: String) -> RemoteChange {
        .saved(
            RemoteRecord(
                name: name, type: "Destination", tag: "t-\(caption)",
                values: ["caption": .string(caption), "rating": .int64(1)], edited: nil, whole: { Data() }))
    }

    /// Fetches a zone from the cloud, with `senja` and `old` in it.
    private func come(
        _ zone: ZoneName, to device: ZonedDevice, _ permission: ShareParticipant.Permission = .readWrite
    ) async throws {
        let owner = zone.owner ?? ""
        try await device.take(
            [Self.share(zone, permission), Self.remote("senja", "of \(owner)"), Self.remote("old", "old of \(owner)")], in: zone)
    }

    /// A store with edits in both zones, set aside: `senja` is updated, `old` deleted, `new` made.
    private func setAside(_ scratch: Scratch) async throws -> (device: ZonedDevice, quarantine: Quarantine) {
        let device = try ZonedDevice(scratch.container, scope: .shared)
        for zone in [Self.anna, Self.carl] {
            try await come(zone, to: device)
            let id = try await device.id(zone)
            try await device.set("senja", ["caption": .string("for \(zone.owner ?? "")")], zone: id)
            try await device.set("new", ["caption": .string("new for \(zone.owner ?? "")")], zone: id)
            try await device.delete("old", zone: id)
        }
        let quarantine = try #require(try await device.store.setAside(reason: "test"))
        #expect((quarantine.records, quarantine.pending, quarantine.refused) == (4, 6, 0))
        return (device, quarantine)
    }

    private func restore(_ quarantine: Quarantine, _ device: ZonedDevice, all: Bool = false) async throws -> SaveOutcome {
        try await device.store.restore(quarantine, all: all, author: "test", policy: Self.objectTrump)
    }

    private func records(_ device: ZonedDevice, _ zone: ZoneName) async throws -> [String: String] {
        let place = try await device.store.zones().first { $0.name == zone }?.id ?? 0
        var all: [String: String] = [:]
        try device.reader().forEachRecord(RecordQuery(type: "Destination", condition: "_zone = \(place)")) { record in
            if case .string(let caption)? = record.values.first ?? nil { all[record.name] = caption }
        }
        return all
    }

    /// The refused saves of a zone, with all edits.
    private func check(_ refused: [RefusedSave], _ zone: ZoneName, code: String) {
        let owner = zone.owner ?? ""
        #expect(Set(refused.map(\.zone)) == [zone])
        #expect(Set(refused.map(\.code)) == [code])
        #expect(Set(refused.map(\.kind)) == [.insert, .update, .delete])
        #expect(refused.map(\.record.name).sorted() == ["new", "old", "senja"])
        let update = refused.first { $0.kind == .update }
        #expect(update?.before == ["caption": .string("of \(owner)")])
        #expect(update?.after == ["caption": .string("for \(owner)")])
        #expect(refused.first { $0.kind == .insert }?.after == ["caption": .string("new for \(owner)")])
        #expect(refused.first { $0.kind == .delete }?.before == ["caption": .string("old of \(owner)"), "rating": .int64(1)])
    }

    @Test func `if the zones are missing, nothing is saved into another zone, and all edits are kept as refused`() async throws {
        let scratch = try Scratch()
        let (device, quarantine) = try await setAside(scratch)
        let outcome = try await restore(quarantine, device)
        #expect(outcome.counts.isUnchanged)
        #expect(outcome.refused == 6)
        #expect(try device.values() == [:])
        #expect(try device.reader().outbox() == OutboxSummary())
        let refused = try device.reader().refused()
        for zone in [Self.anna, Self.carl] { check(refused.filter { $0.zone == zone }, zone, code: "zoneNotFound") }
    }

    @Test func `if one zone is gone, the edits of the other are restored, and equal names there stay as they are`() async throws {
        let scratch = try Scratch()
        let (device, quarantine) = try await setAside(scratch)
        try await come(Self.carl, to: device)
        let outcome = try await restore(quarantine, device)
        #expect(outcome.counts == ChangeCounts(inserted: 1, updated: 1, unchanged: 0, deleted: 1))
        #expect(try await records(device, Self.carl) == ["senja": "for carl", "new": "new for carl"])
        #expect(try await device.next(Self.carl).items.map(\.name).sorted() == ["new", "old", "senja"])
        check(try device.reader().refused(), Self.anna, code: "zoneNotFound")
    }

    @Test func `edits of a now read-only zone are kept as refused, with the reason, and others are restored`() async throws {
        let scratch = try Scratch()
        let (device, quarantine) = try await setAside(scratch)
        try await come(Self.anna, to: device, .readOnly)
        try await come(Self.carl, to: device)
        _ = try await restore(quarantine, device)
        #expect(try await records(device, Self.anna) == ["senja": "of anna", "old": "old of anna"])
        #expect(try await records(device, Self.carl) == ["senja": "for carl", "new": "new for carl"])
        #expect(try await device.next(Self.anna).isEmpty)
        let refused = try device.reader().refused()
        check(refused, Self.anna, code: "permissionFailure")
        #expect(refused.allSatisfy { $0.reason.contains("Read-Only") && $0.reason.contains("ask the owner") }, "\(refused)")
        // No edit that is not written is reported as a resolved conflict.
        #expect(try device.reader().conflicts().allSatisfy { $0.store != "\"of anna\"" })
    }

    @Test func `if both zones are as they were, all edits are restored`() async throws {
        let scratch = try Scratch()
        let (device, quarantine) = try await setAside(scratch)
        for zone in [Self.carl, Self.anna] { try await come(zone, to: device) }
        let outcome = try await restore(quarantine, device, all: true)
        #expect(outcome.refused == 0)
        for zone in [Self.anna, Self.carl] {
            let owner = zone.owner ?? ""
            #expect(try await records(device, zone) == ["senja": "for \(owner)", "new": "new for \(owner)"])
        }
        #expect(try device.reader().refused() == [])
    }

    @Test func `refused saves are set aside, even if there is nothing else, and are restored once`() async throws {
        let scratch = try Scratch()
        let device = try ZonedDevice(scratch.container, scope: .shared)
        try await come(Self.anna, to: device)
        let zone = try await device.store.zone(Self.anna)
        try await device.set("senja", ["caption": .string("for anna")], zone: zone.id)
        try await device.delete("old", zone: zone.id)
        try await device.store.removeZone(zone, reason: "shared no more", code: "zoneNotFound", author: "cloud")
        let before = try device.reader().refused()
        #expect(before.map(\.record.name).sorted() == ["old", "senja"])

        let quarantine = try #require(try await device.store.setAside(reason: "test"))
        #expect((quarantine.records, quarantine.pending, quarantine.refused) == (0, 0, 2))
        #expect(try device.store.container.quarantines() == [quarantine])
        #expect(try device.reader().refused() == [])
        for _ in 0..<2 {
            _ = try await restore(quarantine, device)
            #expect(try device.reader().refused() == before)
        }
        // They are also set aside along with records.
        try await come(Self.carl, to: device)
        let second = try #require(try await device.store.setAside(reason: "test"))
        #expect((second.records, second.refused) == (2, 2))
        _ = try await restore(second, device)
        #expect(try device.reader().refused() == before)
    }

    @Test func `a file that only a refused save names is restored with it`() async throws {
        let scratch = try Scratch()
        let device = try ZonedDevice(scratch.container, scope: .shared)
        try await come(Self.anna, to: device)
        let zone = try await device.store.zone(Self.anna)
        let assets = try BlobStore(container: device.store.container)
        let workers = try IngestWorkers(store: assets, root: scratch.url, count: 1)
        let blob = try Data("a picture".utf8).withUnsafeBytes { try workers.ingest($0, name: "a picture") }
        let schema = RecordTypeSchema(name: "Destination", fields: [.init(name: "image", type: .asset)])
        let edit = RecordEdit(
            record: RecordName(type: "Destination", name: "senja"), base: .any, values: ["image": .asset(blob.id)],
            fields: ["image"], zone: zone.id)
        _ = try await device.store.save(
            [edit], schemas: [schema], blobs: [blob], author: TransactionAuthor("test", origin: .save), policy: Self.objectTrump,
            check: { _ in })
        assets.close()
        let file = device.store.container.assets.appendingPathComponent("\(blob.id.prefix(2))/\(blob.id)")
        #expect(try Data(contentsOf: file) == Data("a picture".utf8))
        try await device.store.removeZone(zone, reason: "shared no more", code: "zoneNotFound", author: "cloud")
        let quarantine = try #require(try await device.store.setAside(reason: "test"))
        // While a process stages files the file stays.
        try? FileManager.default.removeItem(at: file)
        _ = try await restore(quarantine, device)
        #expect(try Data(contentsOf: file) == Data("a picture".utf8))
        #expect(try device.reader().refused().map(\.after) == [["image": .asset(blob.id)]])
        _ = try RecordStore(container: device.store.container)
        #expect(try StoreVerification(of: device.store.container).run().problems == [])
    }

    @Test(arguments: [StoreScope.private, .shared])
    func `a save for a zone that is gone is refused, and a deletion there counts as done`(_ scope: StoreScope) async throws {
        let scratch = try Scratch()
        let device = try ZonedDevice(scratch.container, scope: scope)
        let zone = try await device.store.zone(scope == .shared ? Self.anna : .shared)
        if scope == .shared { try await come(Self.carl, to: device) }
        try await device.store.removeZone(zone, reason: "gone", code: "zoneNotFound", author: "cloud")
        let error = await #expect(throws: StoreError(.invalid, "")) {
            try await device.set("new", ["caption": .string("new")], zone: zone.id)
        }
        #expect(error?.message.contains("a zone that is gone") == true)
        #expect(try await device.store.types().isEmpty == (scope == .private))
        try await device.set("mine", [:], zone: scope == .shared ? try await device.id(Self.carl) : nil)
        #expect(try await device.delete("mine", zone: zone.id).counts.isUnchanged)
    }
}
