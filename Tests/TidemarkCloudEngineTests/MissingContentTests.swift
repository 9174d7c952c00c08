import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel

/// Goal: if a content of a cloud is missing, a client that has it uploads it again, and then all records that name it are whole.
/// Method: files are removed from a cloud's directory.
@Suite(.timeLimit(.minutes(30))) struct MissingContentTests {
    private let content = Data((0..<1_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    private var asset: CloudAsset { AssetDigest.asset(of: content) }

    /// An owner with two records that name a content whose file was removed.
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

    @Test func `a client is asked to upload a content that records name and whose bytes are missing`() async throws {
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
        // The quota counts it as before.
        #expect(try await owner.account().used == used)
        let account = try #require(try await tenants.cloud.account("anna@example.org"))
        #expect(try await tenants.cloud.usage(of: account).map(\.reserved) == [0])
    }

    @Test func `a missing content can be uploaded again though the account is full, because it counts already`() async throws {
        let (tenants, owner) = try await fixture()
        var account = try #require(try await tenants.cloud.account("anna@example.org"))
        account.quota = try #require(try await owner.account().used)
        try await tenants.cloud.update(account)
        #expect(try await owner.upload(content[..<400], of: asset, at: 0, in: Tenants.zone) == 400)
        #expect(try await owner.upload(content[400...], of: asset, at: 400, in: Tenants.zone) == 1_000)
        #expect(try await owner.download(asset, in: Tenants.zone, from: 0, count: 1_000) == content)
    }

    @Test func `a content that arrives as a whole file replaces a missing one`() async throws {
        let (tenants, owner) = try await fixture()
        let file = try tenants.scratch.write(content, to: "cloud/incoming")
        try await owner.adopt(file, asset, in: Tenants.zone)
        #expect(!FileManager.default.fileExists(atPath: file.path))
        #expect(try await owner.download(asset, in: Tenants.zone, from: 0, count: 1_000) == content)
    }
}
