import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel

/// Goal: what nobody needs any more does not gather in a cloud. Method: leave much of it behind, and look for it.
@Suite struct LeftoverTests {
    private let scratch = try! Scratch()
    private let container = "iCloud.org.example.journal"
    private let zone = CloudZoneID("Journal")

    private func owner(_ cloud: EmbeddedCloud, quota: Int64 = .max) async throws -> EmbeddedDatabase {
        let account = try await cloud.addAccount("anna@example.org", quota: quota).id
        let owner = try cloud.database(.private, of: container, account: account)
        try await owner.modifyZones(saving: [zone], deleting: [])
        return owner
    }

    @Test func `of people who were invited, never came and were removed the last are remembered`() async throws {
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

    @Test func `what was begun and left is gone after a week, and makes room`() async throws {
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

    @Test func `what was uploaded and no record names is gone after a day, and makes room`() async throws {
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
        let shelf = scratch["cloud/containers/\(container)/development/assets/\(user)"]
        func age(_ asset: CloudAsset, hours: Double) throws {
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSinceNow: -hours * 3_600)],
                ofItemAtPath: shelf.appendingPathComponent("\(asset.digest.prefix(2))/\(asset.digest)").path)
        }
        for (name, asset) in assets { try age(asset, hours: name == "fresh" ? 24.5 : 25.5) }
        // Nobody counted this one before whoever sent it was gone.
        let unknown = CloudAsset(digest: String(left.digest.prefix(2)) + String(repeating: "0", count: 62), size: 1)
        try Data([1]).write(to: shelf.appendingPathComponent("\(unknown.digest.prefix(2))/\(unknown.digest)"))
        try age(unknown, hours: 25.5)
        #expect(try await owner.missingAssets([asked], in: zone).isEmpty)

        #expect(try await cloud.removeLeftovers() == 2)
        #expect(try await owner.missingAssets(Array(assets.values), in: zone) == [left: 0])
        let used = try #require(before.used)
        #expect(try await owner.account().used == used - 4)
        #expect(try await owner.download(named, in: zone, from: 0, count: 9) == Data("named".utf8))
        let files = try FileManager.default.subpathsOfDirectory(atPath: shelf.path)
        #expect(!files.contains { $0.hasSuffix(left.digest) || $0.hasSuffix(unknown.digest) })
        #expect(try await cloud.removeLeftovers() == 0)
        // It can come again.
        #expect(try await owner.upload(Data("left".utf8), of: left, at: 0, in: zone) == 4)
    }
}
