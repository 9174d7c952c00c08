import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel

/// Goal: unneeded data do not accumulate in a cloud. Method: many leftovers are made, and looked for.
@Suite(.timeLimit(.minutes(30))) struct LeftoverTests {
    private let scratch = try! Scratch()
    private let container = "iCloud.org.example.journal"
    private let zone = CloudZoneID("Journal")

    private func owner(_ cloud: EmbeddedCloud, quota: Int64 = .max) async throws -> EmbeddedDatabase {
        let account = try await cloud.addAccount("anna@example.org", quota: quota).id
        let owner = try cloud.database(.private, of: container, account: account)
        try await owner.modifyZones(saving: [zone], deleting: [])
        return owner
    }

    @Test func `of invited people who never came and were removed, a cloud remembers the last ones`() async throws {
        let owner = try await owner(try EmbeddedCloud(inMemoryBeside: scratch["cloud"], now: { 1 }))
        let most = try await owner.limits().participantsPerShare
        let share = try await owner.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
        for round in 0..<5 {
            let invited = try await owner.changeShare(
                share.id,
                (0..<50).map { .invite(.emailAddress("p\(round)-\($0)@example.org"), role: .privateUser, permission: .readOnly) })
            let pending = invited.participants.filter { $0.acceptanceStatus == .pending }
            #expect(pending.count == 50)
            _ = try await owner.changeShare(share.id, pending.map { .remove(participant: $0.id) })
        }
        let left = try await owner.shares(in: zone)[0].participants
        #expect(left.map(\.role) == [.owner] + Array(repeating: .privateUser, count: most))
        #expect(left.last?.identity.lookUp == .emailAddress("p4-49@example.org"))
    }

    @Test func `no file of the cloud has the data of a removed account`() async throws {
        let cloud = try EmbeddedCloud(at: scratch["cloud"])
        let owner = try await owner(cloud)
        let account = try #require(try await cloud.account("anna@example.org"))
        let text = "the diary of a person"
        let record = CloudRecord(CloudRecordID("diary", in: zone), type: "Note", fields: ["text": .string(text)])
        _ = try await owner.modify(ModifyRecordsRequest(zone: zone, operations: [.save(record)]))
        /// The files that contain the bytes of a text.
        func files(with text: String) throws -> [String] {
            let folder = scratch["cloud"]
            return try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { path in
                guard let contents = try? Data(contentsOf: folder.appendingPathComponent(path)) else { return false }
                return contents.range(of: Data(text.utf8)) != nil
            }
        }
        #expect(try !files(with: text).isEmpty && !files(with: account.email).isEmpty)
        _ = try await cloud.removeWithData(account)
        await cloud.emptyLogs()
        #expect(try files(with: text).isEmpty)
        #expect(try files(with: account.email).isEmpty)
    }

    @Test func `an unfinished upload is removed after a week, and makes room`() async throws {
        let owner = try await owner(try EmbeddedCloud(at: scratch["cloud"]), quota: 100_000)
        let contents = (1...2).map { Data(repeating: $0, count: 80_000) }
        let assets = contents.map { AssetDigest.asset(of: $0) }
        _ = try await owner.upload(contents[0][0..<60_000], of: assets[0], at: 0, in: zone)
        let user = try #require(try await owner.account().userRecordName)
        let part = scratch["cloud/containers/\(container)/development/assets/\(user)/uploads/\(assets[0].digest)"].path
        func begin() async throws -> Int64 { try await owner.upload(contents[1][0..<60_000], of: assets[1], at: 0, in: zone) }
        for (days, isKept) in [(6.9, true), (7.1, false)] {
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSinceNow: -days * 86_400)], ofItemAtPath: part)
            if isKept {
                await #expect(throws: CloudError(.quotaExceeded, "")) { try await begin() }
            } else {
                #expect(try await begin() == 60_000)
            }
            #expect(FileManager.default.fileExists(atPath: part) == isKept)
        }
        #expect(try await owner.missingAssets([assets[0]], in: zone) == [assets[0]: 0])
    }

    @Test func `an upload that no record names is removed after a day, and makes room`() async throws {
        let cloud = try EmbeddedCloud(at: scratch["cloud"])
        let owner = try await owner(cloud)
        let names = ["named", "left", "fresh", "asked for"]
        var assets: [String: CloudAsset] = [:]
        for name in names {
            let asset = AssetDigest.asset(of: Data(name.utf8))
            assets[name] = asset
            _ = try await owner.upload(Data(name.utf8), of: asset, at: 0, in: zone)
        }
        let (named, left) = (try #require(assets["named"]), try #require(assets["left"]))
        let asked = try #require(assets["asked for"])
        let record = CloudRecord(CloudRecordID("a", in: zone), type: "Picture", fields: ["image": .asset(named)])
        _ = try await owner.modify(ModifyRecordsRequest(zone: zone, operations: [RecordOperation(.create, record)]))
        let before = try await owner.account()
        let user = try #require(before.userRecordName)
        let assetStorage = scratch["cloud/containers/\(container)/development/assets/\(user)"]
        func age(_ asset: CloudAsset, hours: Double) throws {
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSinceNow: -hours * 3_600)],
                ofItemAtPath: assetStorage.appendingPathComponent("\(asset.digest.prefix(2))/\(asset.digest)").path)
        }
        for (name, asset) in assets { try age(asset, hours: name == "fresh" ? 24.5 : 25.5) }
        #expect(try await owner.missingAssets([asked], in: zone).isEmpty)

        #expect(try await cloud.removeLeftovers() == 1)
        #expect(try await owner.missingAssets(Array(assets.values), in: zone) == [left: 0])
        let used = try #require(before.used)
        // The content, and the bytes that are stored with it.
        #expect(try await owner.account().used == used - 4 - StoredUpload.overhead)
        #expect(try await owner.download(named, in: zone, from: 0, count: 9) == Data("named".utf8))
        let files = try FileManager.default.subpathsOfDirectory(atPath: assetStorage.path)
        #expect(!files.contains { $0.hasSuffix(left.digest) })
        #expect(try await cloud.removeLeftovers() == 0)
        // The content can be uploaded again.
        #expect(try await owner.upload(Data("left".utf8), of: left, at: 0, in: zone) == 4)
    }

    /// An owner with contents: one that a record names, one that no record names, and one whose file was never counted.
    private func fixture() async throws -> (cloud: EmbeddedCloud, owner: EmbeddedDatabase, assetStorage: URL) {
        let cloud = try EmbeddedCloud(at: scratch["cloud"])
        let owner = try await owner(cloud)
        let contents = ["named", "unnamed"].map { Data($0.utf8) }
        for content in contents {
            _ = try await owner.upload(content, of: AssetDigest.asset(of: content), at: 0, in: zone)
        }
        let fields = ["image": CloudValue.asset(AssetDigest.asset(of: contents[0]))]
        let record = CloudRecord(CloudRecordID("a", in: zone), type: "Picture", fields: fields)
        _ = try await owner.modify(ModifyRecordsRequest(zone: zone, operations: [RecordOperation(.create, record)]))
        let user = try #require(try await owner.account().userRecordName)
        let assetStorage = scratch["cloud/containers/\(container)/development/assets/\(user)"]
        let unknown = assetStorage.appendingPathComponent("00/\(String(repeating: "0", count: 64))")
        try FileManager.default.createDirectory(at: unknown.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data([1]).write(to: unknown)
        // The clock of files is coarse.
        try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSinceNow: 1)], ofItemAtPath: unknown.path)
        return (cloud, owner, assetStorage)
    }

    private func contents(_ assetStorage: URL) throws -> Set<String> {
        Set(try FileManager.default.subpathsOfDirectory(atPath: assetStorage.path).filter { $0.utf8.count == 67 })
    }

    private var aDayAhead: Date { Date(timeIntervalSinceNow: 25.5 * 3_600) }

    @Test func `a content that was never counted is removed after a day`() async throws {
        let (cloud, _, assetStorage) = try await fixture()
        #expect(try contents(assetStorage).count == 3)
        #expect(await cloud.sweepLeftovers(at: Date(timeIntervalSinceNow: 24.5 * 3_600)).removed == 0)
        #expect(await cloud.sweepLeftovers(at: aDayAhead).removed == 2)
        let named = AssetDigest.asset(of: Data("named".utf8)).digest
        #expect(try contents(assetStorage) == ["\(named.prefix(2))/\(named)"])
    }

    @Test func `a directory without other servers is swept whenever a sweep is requested`() async throws {
        let cloud = try await fixture().cloud
        for (time, removed) in [(Date(), 0), (aDayAhead, 2)] {
            #expect(await cloud.sweepLeftovers(at: time, every: .seconds(3_600)).removed == removed)
        }
    }

    @Test func `an empty database in the place of another one does not remove contents that were there before it`() async throws {
        let assetStorage = try await fixture().assetStorage
        let before = try contents(assetStorage)
        #expect(before.count == 3)
        let folder = scratch["cloud/containers/\(container)/development"]
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where name.hasPrefix("records.sqlite") {
            try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
        }
        // As files whose times were set when they were copied, a while before.
        for name in before {
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSinceNow: -1)], ofItemAtPath: assetStorage.appendingPathComponent(name).path)
        }
        let again = try EmbeddedCloud(at: scratch["cloud"])
        _ = try again.database(.public, of: container, account: nil)
        let sweep = await again.sweepLeftovers(at: aDayAhead)
        #expect(sweep.removed == 0 && sweep.failure == nil)
        #expect(try contents(assetStorage) == before)
    }

    @Test func `an aged content that is sent again stays for another day`() async throws {
        let (cloud, owner, assetStorage) = try await fixture()
        let content = Data("unnamed".utf8)
        let asset = AssetDigest.asset(of: content)
        let file = assetStorage.appendingPathComponent("\(asset.digest.prefix(2))/\(asset.digest)").path
        try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSinceNow: -25.5 * 3_600)], ofItemAtPath: file)
        let before = try await owner.account().used
        #expect(try await owner.upload(content[0..<1], of: asset, at: 0, in: zone) == asset.size)
        #expect(await cloud.sweepLeftovers().removed == 0)
        #expect(try await owner.missingAssets([asset], in: zone).isEmpty)
        #expect(try await owner.account().used == before)
        #expect(await cloud.sweepLeftovers(at: aDayAhead).removed == 2)
    }

    @Test func `a damaged container is reported, and does not keep others from being swept`() async throws {
        let (cloud, _, assetStorage) = try await fixture()
        let containers = scratch["cloud/containers"]
        let damaged = containers.appendingPathComponent("aaa.damaged/development")
        for folder in [damaged, containers.appendingPathComponent("no name/development")] {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        }
        try Data(repeating: 7, count: 10_000).write(to: damaged.appendingPathComponent("records.sqlite"))
        let sweep = await cloud.sweepLeftovers(at: aDayAhead)
        #expect(sweep.removed == 2)
        #expect(sweep.failure?.reason.hasPrefix("container aaa.damaged (development): ") == true)
        #expect(try contents(assetStorage).count == 1)
        await #expect(throws: CloudError.self) { try await cloud.removeLeftovers() }
        // A folder with an invalid name is not a container.
        try FileManager.default.removeItem(at: damaged)
        #expect(try await cloud.removeLeftovers() == 0)
    }

    @Test func `only the given containers are looked at, and opened`() async throws {
        let (cloud, _, assetStorage) = try await fixture()
        let other = scratch["cloud/containers/iCloud.org.example.other/development"]
        try FileManager.default.createDirectory(at: other, withIntermediateDirectories: true)
        #expect(await cloud.sweepLeftovers(of: ["iCloud.org.example.none"], at: aDayAhead).removed == 0)
        #expect(try contents(assetStorage).count == 3)
        #expect(await cloud.sweepLeftovers(of: [container], at: aDayAhead).removed == 2)
        #expect(try FileManager.default.contentsOfDirectory(atPath: other.path).isEmpty)
    }

    @Test func `a content of several owners is removed for each owner by that owner's records`() async throws {
        let cloud = try EmbeddedCloud(at: scratch["cloud"])
        let content = Data("the same".utf8)
        let asset = AssetDigest.asset(of: content)
        var databases: [EmbeddedDatabase] = []
        for name in ["anna", "ben"] {
            let account = try await cloud.addAccount("\(name)@example.org").id
            let database = try cloud.database(.private, of: container, account: account)
            try await database.modifyZones(saving: [zone], deleting: [])
            _ = try await database.upload(content, of: asset, at: 0, in: zone)
            databases.append(database)
        }
        let publicZone = CloudZoneID("_defaultZone")
        let everybody = try cloud.database(.public, of: container, account: try await cloud.addAccount("anna@example.org").id)
        _ = try await everybody.upload(content, of: asset, at: 0, in: publicZone)
        for (database, zone) in [(databases[0], zone), (everybody, publicZone)] {
            let record = CloudRecord(CloudRecordID("a", in: zone), type: "Picture", fields: ["image": .asset(asset)])
            _ = try await database.modify(ModifyRecordsRequest(zone: zone, operations: [RecordOperation(.create, record)]))
        }
        // Only Ben's copy is not named by a record of its owner.
        #expect(await cloud.sweepLeftovers(at: aDayAhead).removed == 1)
        #expect(try await databases[0].download(asset, in: zone, from: 0, count: 100) == content)
        #expect(try await everybody.download(asset, in: publicZone, from: 0, count: 100) == content)
        #expect(try await databases[1].missingAssets([asset], in: zone) == [asset: 0])
    }
}
