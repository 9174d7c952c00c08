import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkS3

/// Goal: a content that is missing in a bucket comes again from a client that has it, and a bucket that can't be reached keeps no
/// client from saving records. Method: a cloud over a bucket in memory, from which objects are removed.
@Suite(.timeLimit(.minutes(30))) struct MissingContentTests {
    private let scratch = try! Scratch()
    private let bucket = try! StubBucket()
    private let zone = CloudZoneID("Journal")
    private let content = AssetStorageContract.content(1_000, 1)
    private var asset: CloudAsset { AssetDigest.asset(of: content) }

    /// A database over the bucket, with a content that the rows have.
    private func owner() async throws -> EmbeddedDatabase {
        var configuration = try Buckets.configuration(bucket.endpoint, scratch)
        configuration.patience = .milliseconds(300)
        configuration.blockingPatience = .milliseconds(300)
        let storage = S3AssetStorage(configuration, prefix: "p")
        let cloud = try EmbeddedCloud(at: scratch["cloud"], now: { 1 }, assets: { _ in storage })
        let account = try await cloud.addAccount("anna@example.org")
        let owner = try cloud.database(.private, of: "iCloud.org.example.journal", account: account.id)
        try await owner.modifyZones(saving: [zone], deleting: [])
        _ = try await owner.upload(content, of: asset, at: 0, in: zone)
        let record = CloudRecord(CloudRecordID("a", in: zone), type: "Note", fields: ["image": .asset(asset)])
        _ = try await owner.modify(ModifyRecordsRequest(zone: zone, operations: [RecordOperation(.create, record)]))
        return owner
    }

    @Test func `a client is asked for a content that the bucket lacks, by one request for each content`() async throws {
        let owner = try await owner()
        #expect(try await owner.missingAssets([asset], in: zone) == [:])
        let key = try #require(bucket.keys.first)
        bucket.remove(key)
        #expect(try await owner.missingAssets([asset], in: zone) == [asset: 0])
        #expect(try await owner.upload(content, of: asset, at: 0, in: zone) == 1_000)
        #expect(bucket.keys == [key])
        let before = bucket.arrivals.count
        #expect(try await owner.missingAssets([asset], in: zone) == [:])
        #expect(bucket.arrivals[before...].map(\.method) == ["HEAD"])
        #expect(try await owner.download(asset, in: zone, from: 0, count: 1_000) == content)
        bucket.end()
    }

    @Test func `a client is asked for a content that was cut in the bucket`() async throws {
        let owner = try await owner()
        let key = try #require(bucket.keys.first)
        bucket.replace(key, Data(content.prefix(999)))
        #expect(try await owner.missingAssets([asset], in: zone) == [asset: 0])
        #expect(try await owner.upload(content, of: asset, at: 0, in: zone) == 1_000)
        #expect(try await owner.missingAssets([asset], in: zone) == [:])
        #expect(try await owner.download(asset, in: zone, from: 0, count: 1_000) == content)
        bucket.end()
    }

    @Test func `while the bucket can't be reached, contents that the rows have count as stored`() async throws {
        let owner = try await owner()
        bucket.fail(.status(503, code: "SlowDown"), times: 100)
        #expect(try await owner.missingAssets([asset], in: zone) == [:])
        bucket.end()
    }

    @Test func `while the bucket itself is missing, contents that the rows have count as stored`() async throws {
        let owner = try await owner()
        bucket.fail(.status(404, code: "NoSuchBucket"), times: 100)
        #expect(try await owner.missingAssets([asset], in: zone) == [:])
        bucket.end()
    }

    @Test func `a server starts while its bucket is down or fails, and not if the bucket refuses it`() async throws {
        func storage(bucket name: String = "journal") throws -> S3AssetStorage {
            var configuration = try Buckets.configuration(bucket.endpoint, scratch, bucket: name)
            configuration.patience = .milliseconds(300)
            return S3AssetStorage(configuration, prefix: "")
        }
        #expect(try await storage().checkAtStart() == nil)
        bucket.fail(.status(503, code: "SlowDown"), times: 100)
        #expect(try await storage().checkAtStart()?.reason.contains("SlowDown") == true)
        bucket.forgetFaults()
        bucket.fail(.status(403, code: "AccessDenied"), times: 100)
        let refused = await #expect(throws: CloudError(.serviceUnavailable, "")) { try await storage().checkAtStart() }
        #expect(refused?.reason.contains("refuses the keys") == true && refused?.isOutOfReach == false)
        bucket.forgetFaults()
        let missing = await #expect(throws: CloudError(.serviceUnavailable, "")) {
            try await storage(bucket: "nothing-here").checkAtStart()
        }
        #expect(missing?.reason.contains("aws s3 mb s3://nothing-here") == true, "\(missing?.reason ?? "")")
        bucket.end()
        #expect(try await storage().checkAtStart()?.isOutOfReach == true)
    }

    @Test func `a public endpoint without https brings a warning, unless it is on the server's own machine`() throws {
        for (endpoint, isWarned) in [
            ("http://assets.example.org", true), ("http://10.0.0.7:8333", true), ("https://assets.example.org", false),
            ("http://127.0.0.1:8333", false), ("http://localhost:8333", false), ("http://[::1]:8333", false),
        ] {
            var configuration = try Buckets.configuration(bucket.endpoint, scratch)
            try configuration.signReads(at: endpoint)
            #expect((configuration.warningOfReads != nil) == isWarned, "\(endpoint)")
        }
        bucket.end()
    }
}
