import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkContainers
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync
import TidemarkTesting
import TidemarkTransfer

/// Goal: two contents with the same XXH3-128, which containers use to name files, stay two everywhere. Method: a crafted pair
/// that is imported by several manifests, containers and accounts, and is moved, copied, evicted and set aside; each record's
/// bytes are read.
@Suite(.timeLimit(.minutes(30))) struct CollisionTests {
    private static let first = Collision.pair.0
    private static let second = Collision.pair.1
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    /// Imports one record with a content, by a manifest of its own.
    private func importing(_ content: Data, as name: String, into container: URL) async throws {
        let folder = "source-\(UUID().uuidString)"
        try scratch.write(content, to: "\(folder)/\(name).bin")
        let manifest = try scratch.writeLines([#"{"id": "\#(name)", "image": "\#(name).bin"}"#], to: "\(folder)/manifest.jsonl")
        _ = try await BulkImport(
            source: .file(manifest), into: container, options: .destination { $0.assetFields = ["image"] }
        ).run()
    }

    /// The contents of a container's records, by name.
    private func contents(_ url: URL) throws -> [String: Data] {
        let reader = try StoreReader(container: ContainerDirectory(openingAt: url))
        let schema = try reader.type(named: "Destination")
        let field = try #require(schema.fields.firstIndex { $0.name == "image" })
        var all: [String: Data] = [:]
        try reader.forEachRecord(RecordQuery(type: "Destination")) { record in
            guard case .asset(let id) = record.values[field] else { return }
            all[record.name] = try Data(contentsOf: AssetFiles.url(of: id, in: reader.container.assets))
        }
        #expect(try StoreVerification(of: ContainerDirectory(openingAt: url)).run().problems.isEmpty)
        return all
    }

    private static let both = ["first": first, "second": second]

    /// The identifier of a record's content.
    private func asset(_ name: String, on device: Device) throws -> String {
        guard case .asset(let id)? = try device.records()[name]?["image"] else {
            throw StoreError(.notFound, "\(name) has no content")
        }
        return id
    }

    @Test(arguments: [["first", "second"], ["second", "first"]])
    func `contents of two manifests stay two in one store, in either order, also when they are imported again`(
        order: [String]
    ) async throws {
        for _ in 0..<2 {
            for name in order { try await importing(Self.both[name]!, as: name, into: scratch.container) }
            #expect(try contents(scratch.container) == Self.both)
        }
        // Both get one name, so that one replaces the other.
        for name in order {
            try await importing(Self.both[name]!, as: "changed", into: scratch.container)
            #expect(try contents(scratch.container)["changed"] == Self.both[name])
        }
        #expect(try contents(scratch.container).filter { $0.key != "changed" } == Self.both)
    }

    @Test func `contents of two containers stay two when the containers are synchronised`() async throws {
        let cloud = try await TestCloud(scratch)
        let (one, other) = (scratch["a.tidemark"], scratch["b.tidemark"])
        try await importing(Self.first, as: "first", into: one)
        try await importing(Self.second, as: "second", into: other)
        let a = try Device(one, database: cloud.database())
        let b = try Device(other, database: cloud.database())
        // Without equal digests this test would prove nothing.
        #expect(try asset("first", on: a) == asset("second", on: b))
        for device in [a, b, a] { #expect(try await device.engine.sync().isComplete) }
        for url in [one, other] { #expect(try contents(url) == Self.both) }
        // A third container has neither content.
        let c = try Device(scratch["c.tidemark"], database: cloud.database())
        #expect(try await c.engine.sync().isComplete)
        #expect(try contents(c.container.url) == Self.both)
    }

    @Test func `contents that were evicted are fetched again, each as its own, in either order`() async throws {
        let cloud = try await TestCloud(scratch)
        for name in ["first", "second"] { try await importing(Self.both[name]!, as: name, into: scratch.container) }
        let device = try Device(scratch.container, database: cloud.database())
        #expect(try await device.engine.sync().isComplete)
        let access = AssetAccess(device.container, engines: [device.engine], stores: [device.store])
        let ids = [try asset("first", on: device), try asset("second", on: device)]
        for order in [ids, ids.reversed()] {
            // The second content of a digest is not evicted: it would not get its identifier again.
            #expect(try await access.evict(Set(ids)).assets == 1)
            for id in order {
                try await access.download([id], priority: .userInitiated, progress: nil)
                let content = try Data(contentsOf: AssetFiles.url(of: id, in: device.container.assets))
                #expect(content == (id == ids[0] ? Self.first : Self.second))
            }
            #expect(try contents(scratch.container) == Self.both)
        }
    }

    @Test func `contents of two accounts stay two in one cloud, and each account gets its own`() async throws {
        let cloud = try await TestCloud(scratch)
        let ben = try await cloud.cloud.addAccount("ben@example.org")
        let databases = [
            "first": try cloud.database(), "second": try cloud.cloud.database(.private, of: TestCloud.container, account: ben.id),
        ]
        for (name, database) in databases.sorted(by: { $0.key < $1.key }) {
            // Both records have the same name, too.
            try await importing(Self.both[name]!, as: "picture", into: scratch["\(name).tidemark"])
            let device = try Device(scratch["\(name).tidemark"], database: database)
            #expect(try await device.engine.sync().isComplete)
        }
        for (name, database) in databases {
            let device = try Device(scratch["\(name)-again.tidemark"], database: database)
            #expect(try await device.engine.sync().isComplete)
            #expect(try contents(device.container.url) == ["picture": Self.both[name]!])
            let zone = CloudZoneID("TidemarkZone")
            let foreign = AssetDigest.asset(of: name == "first" ? Self.second : Self.first)
            #expect(try await database.missingAssets([foreign], in: zone)[foreign] == 0)
            await #expect(throws: CloudError(.assetNotAvailable, "")) {
                try await database.download(foreign, in: zone, from: 0, count: 512)
            }
        }
    }

    @Test func `contents stay two after a move, a backup and a restoration, of a container and of its cloud`() async throws {
        let cloud = scratch["cloud"]
        for name in ["first", "second"] { try await importing(Self.both[name]!, as: name, into: scratch.container) }
        do {
            let test = try await TestCloud(scratch)
            let device = try Device(scratch.container, database: test.database())
            #expect(try await device.engine.sync().isComplete)
        }
        try await Device.gone(scratch.container)
        let moved = scratch["group/Moved.tidemark"]
        try StoreMover(from: scratch.container, to: moved).run()
        #expect(try contents(moved) == Self.both)
        let (backup, restored) = (scratch["Backup.tidemark"], scratch["Restored.tidemark"])
        try ContainerBackup(of: ContainerDirectory(openingAt: moved), to: backup).run()
        #expect(try contents(backup) == Self.both)
        try ContainerRestoration(of: ContainerDirectory(openingAt: backup), to: restored).run()
        #expect(try contents(restored) == Self.both)
        _ = try CloudBackup(of: cloud, to: scratch["cloud-backup"]).run()
        _ = try CloudRestoration(of: scratch["cloud-backup"], to: scratch["cloud-restored"]).run()
        let again = try EmbeddedCloud(at: scratch["cloud-restored"])
        let account = try await again.addAccount("anna@example.org")
        let database = try again.database(.private, of: TestCloud.container, account: account.id)
        let device = try Device(scratch["new.tidemark"], database: database)
        #expect(try await device.engine.sync().isComplete)
        #expect(try contents(device.container.url) == Self.both)
    }

    @Test func `a content that was set aside is restored as its own, beside another of the same digest`() async throws {
        let cloud = try await TestCloud(scratch)
        let device = try Device(scratch.container, database: cloud.database())
        try await device.set("known", ["caption": .string("known")])
        #expect(try await device.engine.sync().isComplete)
        try await LazyDevices.save(Self.first, as: "first", on: device)
        let before = try asset("first", on: device)
        let quarantine = try #require(try await device.engine.signOut())
        try await LazyDevices.save(Self.second, as: "second", on: device)
        // Without equal digests this test would prove nothing.
        #expect(try asset("second", on: device) == before)
        #expect(try await device.engine.sync().isComplete)
        try await device.engine.restore(quarantine)
        #expect(try contents(scratch.container) == Self.both)
        #expect(try await device.engine.sync().isComplete)
        let other = try Device(scratch["other.tidemark"], database: cloud.database())
        #expect(try await other.engine.sync().isComplete)
        #expect(try contents(other.container.url) == Self.both)
    }
}
