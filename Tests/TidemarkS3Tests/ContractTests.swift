import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkS3

@Suite("The contract of asset storages, over S3", .timeLimit(.minutes(30)))
struct ContractTests {
    private let scratch = try! Scratch()

    @Test("A server in memory, which checks the requests", arguments: AssetStorageContract.all)
    func stub(_ check: AssetStorageContract) async throws {
        let bucket = try StubBucket()
        try await check.run(Buckets.subject(try Buckets.configuration(bucket.endpoint, scratch), scratch))
        #expect(bucket.problems == [])
        #expect(bucket.uploadCount == 0)
        bucket.end()
    }

    @Test("SeaweedFS", .enabled(if: SeaweedServer.isInstalled, "\(SeaweedServer.whyNot)"), arguments: AssetStorageContract.all)
    func seaweed(_ check: AssetStorageContract) async throws {
        let server = try await apart { try SeaweedServer.shared() }
        let configuration = try Buckets.configuration("http://127.0.0.1:\(server.port)", scratch)
        try await check.run(Buckets.subject(configuration, scratch))
    }

    @Test(
        "SeaweedFS refuses wrong keys and a missing bucket with a sentence",
        .enabled(if: SeaweedServer.isInstalled, "\(SeaweedServer.whyNot)"))
    func refuses() async throws {
        let server = try await apart { try SeaweedServer.shared() }
        let endpoint = "http://127.0.0.1:\(server.port)"
        try await S3AssetStorage(try Buckets.configuration(endpoint, scratch), prefix: "checked").check()
        for (configuration, word) in [
            (try Buckets.configuration(endpoint, scratch, secret: "falsch"), "keys"),
            (try Buckets.configuration(endpoint, scratch, bucket: "nothing-here"), "not there"),
        ] {
            let error = await #expect(throws: CloudError(.serviceUnavailable, "")) {
                try await S3AssetStorage(configuration, prefix: "").check()
            }
            #expect(error?.reason.contains(word) == true, "\(error?.reason ?? "")")
            #expect(error?.reason.contains(configuration.bucket) == true)
            #expect(error?.reason.contains("falsch") == false)
        }
    }
}
