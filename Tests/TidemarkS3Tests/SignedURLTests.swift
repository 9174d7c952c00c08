import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkHTTP

@testable import TidemarkS3

/// Goal: servers of S3 accept the signed URL of a content, for a while, at the host where clients reach the bucket. Method: the
/// example that Amazon has published, a URL that another program has computed, and servers that check signatures.
@Suite("Signed URLs of contents", .timeLimit(.minutes(30)))
struct SignedURLTests {
    private let scratch = try! Scratch()

    private func configuration(
        _ bucket: String, _ endpoint: String?, region: String, style: S3Configuration.Style? = nil
    ) throws -> S3Configuration {
        try S3Configuration(bucket: bucket, endpoint: endpoint, region: region, style: style, credentials: .environment([:]))
    }

    private func signing(_ configuration: S3Configuration, at endpoint: String?) throws -> S3Configuration {
        var configuration = configuration
        try configuration.signReads(at: endpoint)
        return configuration
    }

    @Test func `the signature is that of the example that Amazon has published`() throws {
        let configuration = try configuration("examplebucket", "https://s3.amazonaws.com", region: "us-east-1")
        let url = configuration.signedURL(
            "test.txt", at: configuration.endpoint,
            keys: .init(id: "AKIAIOSFODNN7EXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", token: nil),
            now: Date(timeIntervalSince1970: 1_369_353_600), for: 86_400)
        #expect(
            url
                == "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE"
                + "%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
                + "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")
    }

    @Test func `a session's token and other headers of the answer are signed, in a path that is encoded`() throws {
        let configuration = try configuration("journal", "http://127.0.0.1:9000", region: "eu-central-1")
        let url = configuration.signedURL(
            "_a/ab c/x", at: configuration.endpoint, keys: .init(id: "AKTEST", secret: "geheim/+=x", token: "to/ken+="),
            now: Date(timeIntervalSince1970: 1_795_827_723), for: 120,
            answering: [("response-content-type", "application/octet-stream"), ("response-cache-control", "private")])
        #expect(
            url
                == "http://127.0.0.1:9000/journal/_a/ab%20c/x?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKTEST%2F20261128"
                + "%2Feu-central-1%2Fs3%2Faws4_request&X-Amz-Date=20261128T010203Z&X-Amz-Expires=120&X-Amz-Security-Token=to%2Fken%2B%3D"
                + "&X-Amz-SignedHeaders=host&response-cache-control=private&response-content-type=application%2Foctet-stream"
                + "&X-Amz-Signature=5713d329887ff9f66a7660a9786d007acd38c15be468e98f3efb7fd1f59097d9")
    }

    @Test func `URLs are at the public endpoint, with its host as clients write it`() throws {
        let configuration = try Buckets.configuration("http://10.0.0.5:8333", scratch)
        let asset = AssetDigest.asset(of: Data([1]))
        for (endpoint, beginning) in [
            (nil, "http://10.0.0.5:8333/journal/p/_a/"), ("https://S3.Example.org:443/", "https://s3.example.org/journal/p/_a/"),
            ("https://s3.example.org:8443", "https://s3.example.org:8443/journal/p/_a/"),
        ] as [(String?, String)] {
            let storage = S3AssetStorage(try signing(configuration, at: endpoint), prefix: "p")
            let url = try storage.signedURL(of: asset, owner: "_a")
            #expect(url?.hasPrefix(beginning) == true, "\(url ?? "")")
            #expect(url?.contains(SeaweedServer.secret) == false)
        }
        for endpoint in ["", "s3.example.org", "ftp://s3.example.org", "https://s3.example.org/path", "https://a:geheim@b"] {
            let error = #expect(throws: CloudError(.invalidArguments, "")) { try signing(configuration, at: endpoint) }
            #expect(error?.reason.contains("public endpoint") == true && error?.reason.contains("geheim") == false)
        }
    }

    @Test func `there is no URL if contents are read through the servers, and an error if there are no keys`() throws {
        let asset = AssetDigest.asset(of: Data([1]))
        let plain = try configuration("journal", "http://127.0.0.1:9000", region: "us-east-1")
        #expect(try S3AssetStorage(plain, prefix: "p").signedURL(of: asset, owner: "_a") == nil)
        var withoutKeys = try signing(plain, at: nil)
        withoutKeys.credentials = .file(scratch["none"])
        let storage = S3AssetStorage(withoutKeys, prefix: "p")
        #expect(storage.signsURLs)
        let error = #expect(throws: CloudError(.serviceUnavailable, "")) { try storage.signedURL(of: asset, owner: "_a") }
        #expect(error?.retryAfter != nil)
    }

    @Test func `a URL is valid for a while and for GET only, at a server in memory`() async throws {
        let bucket = try StubBucket()
        try await checkLimits(bucket.endpoint)
        #expect(bucket.problems == [])
        bucket.end()
    }

    @Test(.enabled(if: SeaweedServer.isInstalled, "\(SeaweedServer.whyNot)"))
    func `a URL is valid for a while and for GET only, at SeaweedFS`() async throws {
        let server = try await apart { try SeaweedServer.shared() }
        try await checkLimits("http://127.0.0.1:\(server.port)")
    }

    private func checkLimits(_ endpoint: String) async throws {
        let configuration = try Buckets.configuration(endpoint, scratch)
        let content = AssetStorageContract.content(100, 40)
        let (asset, prefix) = (AssetDigest.asset(of: content), "test/\(UUID().uuidString)")
        let storage = S3AssetStorage(configuration, prefix: prefix)
        _ = try await storage.add(content, to: asset, at: 0, owner: "_a", by: nil)
        // Signed two hours ago, for one.
        let before = S3AssetStorage(configuration, prefix: prefix, now: { Date() - 7200 })
        let (good, late) = (try storage.signedURL(of: asset, owner: "_a"), try before.signedURL(of: asset, owner: "_a"))
        #expect(try await status(.get, good) == 200)
        #expect(try await status(.get, late) == 403)
        #expect(try await status(.head, good) == 403)
        #expect(try await status(.delete, good) == 403)
        // The signature does not fit another expiry.
        #expect(try await status(.get, late?.replacingOccurrences(of: "Expires=3600", with: "Expires=9000")) == 403)
        #expect(try await status(.get, good) == 200)
    }

    private func status(_ method: HTTPMethod, _ url: String?) async throws -> Int {
        let times = HTTPTimes(
            connecting: .seconds(30), sendingSilence: .seconds(30), receivingSilence: .seconds(30), total: .seconds(60))
        let request = HTTPRequest(
            lane: .downloads, method: method, url: try #require(url), answerSizeMax: 1 << 20, times: times)
        return try await CurlTransport(trustRoots: .system, isSecure: false).send(request).status.code
    }
}
