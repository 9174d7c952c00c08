import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel

/// Goal: a content that is missing where a cloud's contents are comes again from a client that has it, and all records that name it are whole
/// then. Method: files of a cloud's directory that are removed.
@Suite(.timeLimit(.minutes(30))) struct MissingContentTests {
    private let content = Data((0..<1_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    private var asset: CloudAsset { AssetDigest.asset(of: content) }

    /// An owner with two records that name a content, whose bytes are removed then.
    private func fixture(quota: Int64 = .max) async throws -> (tenants: Tenants, owner: EmbeddedDatabase) {
        let tenants = try Tenants()
        let owner = try await tenants.journal("anna", quota: quota)
        _ = try await owner.upload(content, of: asset, at: 0, in: Tenants.zone)
        try await tenants.save(["a", "b"].map { tenants.record($0, ["image": .asset(asset)]) }, to: owner)
        let user = try #require(try await owner.account().userRecordName)
        let file = tenants.scratch[
            "cloud/containers/\(Tenants.container)/development/assets/\(user)/\(asset.digest.prefix(2))/\(asset.digest)"]
        try FileManager.default.removeItem(at: file)
        return (tenants, owner)
    }

    @Test func `a client is asked for a content that the rows name and whose bytes are missing`() async throws {
        let (tenants, owner) = try await fixture()
        let used = try await owner.account().used
        await #expect(throws: CloudError(.assetNotAvailable, "")) {
            try await owner.download(asset, in: Tenants.zone, from: 0, count: 1_000)
        }
        #expect(try await owner.missingAssets([asset], in: Tenants.zone) == [asset: 0])
        #expect(try await owner.upload(content[..<400], of: asset, at: 0, in: Tenants.zone) == 400)
        #expect(try await owner.missingAssets([asset], in: Tenants.zone) == [asset: 400])
        #expect(try await owner.upload(content[400...], of: asset, at: 400, in: Tenants.zone) == 1_000)
        #expect(try await owner.missingAssets([asset], in: Tenants.zone) == [:])
        #expect(try await owner.download(asset, in: Tenants.zone, from: 0, count: 1_000) == content)
        // It counts as before.
        #expect(try await owner.account().used == used)
        let account = try #require(try await tenants.cloud.account("anna@example.org"))
        #expect(try await tenants.cloud.usage(of: account).map(\.reserved) == [0])
    }

    @Test func `a content that counts already comes again where the account is full`() async throws {
        let (tenants, owner) = try await fixture()
        var account = try #require(try await tenants.cloud.account("anna@example.org"))
        account.quota = try #require(try await owner.account().used)
        try await tenants.cloud.update(account)
        #expect(try await owner.upload(content[..<400], of: asset, at: 0, in: Tenants.zone) == 400)
        #expect(try await owner.upload(content[400...], of: asset, at: 400, in: Tenants.zone) == 1_000)
        #expect(try await owner.download(asset, in: Tenants.zone, from: 0, count: 1_000) == content)
    }

    @Test func `a content that comes as a whole file takes the place of a missing one`() async throws {
        let (tenants, owner) = try await fixture()
        let file = try tenants.scratch.write(content, to: "cloud/incoming")
        try await owner.adopt(file, asset, in: Tenants.zone)
        #expect(!FileManager.default.fileExists(atPath: file.path))
        #expect(try await owner.download(asset, in: Tenants.zone, from: 0, count: 1_000) == content)
    }
}
