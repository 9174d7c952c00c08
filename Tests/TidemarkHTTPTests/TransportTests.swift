import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import TestSupport
import Testing
import TidemarkCloud
import TidemarkHTTP
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: libcurl sends a change once, trusts only the given authorities, and gives up connections that stall at any point.
/// Method: servers that answer with bytes of the test's, real TLS with an authority of the test's, and time limits of
/// milliseconds.
@Suite(.timeLimit(.minutes(30))) struct TransportTests {
    private static let zone = CloudZoneID("Journal")
    private static let request = ModifyRecordsRequest(
        zone: zone,
        operations: [RecordOperation(.create, CloudRecord(CloudRecordID("a", in: zone), type: "Destination"))], clientToken: "t")

    private func cloud(
        _ address: ServerAddress, timeouts: HTTPTimeouts = HTTPTimeouts(), trustRoots: TrustRoots = .system
    ) -> HTTPCloud {
        HTTPCloud(
            address, container: "iCloud.org.example.journal", environment: .development, session: SessionMemory(),
            trustRoots: trustRoots, timeouts: timeouts)
    }

    private func failure<Value>(_ body: () async throws -> Value) async throws -> CloudError {
        do {
            let value = try await body()
            Issue.record("it did not fail: \(value)")
            return CloudError(.internalError, "")
        } catch {
            return try #require(error as? CloudError)
        }
    }

    // Sending once

    @Test func `a change over a reused connection is not sent again if the connection breaks`() async throws {
        let stub = try StubServer { request, number in
            request.line.hasSuffix("/zones/list") ? .json(#"{"zones":[]}"#) : .broken
        }
        let database = cloud(try stub.address).database(.private)
        _ = try await database.zones()
        let error = try await failure { try await database.modify(Self.request) }
        #expect(error.code == .networkFailure)
        #expect(stub.requests.map { $0.line.split(separator: "/").last } == ["list", "modify"])
    }

    @Test func `a change without an answer over a reused connection is not sent again`() async throws {
        let stub = try StubServer { request, number in
            request.line.hasSuffix("/zones/list") ? .json(#"{"zones":[]}"#) : .last([])
        }
        let database = cloud(try stub.address).database(.private)
        _ = try await database.zones()
        #expect(try await failure { try await database.modify(Self.request) }.code == .networkFailure)
        #expect(stub.requests.count == 2)
    }

    @Test func `a large body arrives unchanged, and so does its answer, compressed or not`() async throws {
        let text = (0..<40_000).map { "line \($0)\n" }.joined()
        let asset = CloudAsset(digest: String(repeating: "a", count: 64), size: Int64(text.utf8.count))
        let stub = try StubServer { request, _ in
            if request.line.hasPrefix("GET") {
                let range = "Content-Range: bytes 0-\(text.utf8.count - 1)/\(text.utf8.count)"
                return .json(text, status: "206 Partial Content", headers: [range])
            }
            return .json(request.body == text ? #"{"received":\#(text.utf8.count)}"# : "{}")
        }
        let database = cloud(try stub.address).database(.private)
        #expect(try await database.upload(Data(text.utf8), of: asset, at: 0, in: Self.zone) == asset.size)
        #expect(try await database.download(asset, in: Self.zone, from: 0, count: text.utf8.count) == Data(text.utf8))
    }

    @Test func `more requests than there are connections are all answered`() async throws {
        let stub = try StubServer { _, _ in .json(#"{"zones":[{"zoneID":{"zoneName":"Journal"}}]}"#) }
        let database = cloud(try stub.address).database(.private)
        let answers = try await withThrowingTaskGroup(of: [CloudZoneID].self) { group in
            for _ in 0..<100 { group.addTask { try await database.zones() } }
            return try await group.reduce(into: 0) { $0 += $1.count }
        }
        #expect(answers == 100)
    }

    @Test func `a cancelled request does not affect other requests`() async throws {
        let (arrivals, arrival) = AsyncStream.makeStream(of: Void.self)
        let stub = try StubServer { request, _ in
            guard request.line.hasSuffix("/zones/list") else { return .json(#"{"records":[]}"#) }
            arrival.yield()
            return .silence
        }
        let database = cloud(try stub.address).database(.private)
        let asking = (0..<20).map { _ in Task { try await database.zones() } }
        for await _ in arrivals { break }
        // Requests that wait for a connection end as well as those that wait for an answer.
        for task in asking { task.cancel() }
        for task in asking { #expect(try await failure { try await task.value }.code == .networkFailure) }
        #expect(try await database.lookup([], in: Self.zone, desiredKeys: nil).isEmpty)
    }

    @Test func `no request is sent after a shutdown, and those under way fail`() async throws {
        let (arrivals, arrival) = AsyncStream.makeStream(of: Void.self)
        let stub = try StubServer { _, _ in
            arrival.yield()
            return .silence
        }
        let cloud = cloud(try stub.address)
        let asking = Task { try await cloud.database(.private).zones() }
        for await _ in arrivals { break }
        await cloud.shutdown()
        _ = try await failure { try await asking.value }
        let error = try await failure { try await cloud.database(.private).zones() }
        #expect(error.code == .networkUnavailable && error.reason.contains("closed by this program"))
        await cloud.shutdown()
    }

    // Time

    @Test(arguments: [
        "", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{", "HTTP/1.1 100 Continue\r\n\r\n",
    ])
    func `a connection that goes silent is given up, at any point`(start: String) async throws {
        let stub = try StubServer { _, _ in start.isEmpty ? .silence : .bytes(Array(start.utf8)) }
        var timeouts = HTTPTimeouts()
        timeouts.answerSilence = .milliseconds(50)
        let database = cloud(try stub.address, timeouts: timeouts).database(.private)
        #expect(try await failure { try await database.zones() }.code == .networkFailure)
        #expect(try await failure { try await database.modify(Self.request) }.code == .networkFailure)
        #expect(stub.requests.count <= 2)
    }

    @Test func `a server without TLS is unavailable, and the error asks about https`() async throws {
        let stub = try StubServer { _, _ in .silence }
        var timeouts = HTTPTimeouts()
        timeouts.connecting = .milliseconds(100)
        let secure = cloud(try ServerAddress("https://127.0.0.1:\(stub.port)"), timeouts: timeouts)
        let error = try await failure { try await secure.database(.private).zones() }
        #expect(error.code == .networkUnavailable && error.reason.contains("does it speak https at this port?"), "\(error)")
    }

    @Test func `a synchronisation with little patience ends in seconds if the server goes silent during an answer`() async throws
    {
        let stub = try StubServer { _, _ in .bytes(Array("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{".utf8)) }
        let scratch = try Scratch()
        let directory = try ContainerDirectory(openingOrCreatingAt: scratch["anna.tidemark"])
        let address = try stub.address.description
        try await RecordStore(container: directory).updateAccountSettings { settings in
            settings.cloud = address
            settings.email = "anna@example.org"
            settings.userRecordName = "_anna"
        }
        let container = try StoreReader(container: directory).accountSettings().cloudContainer
        let name = try HTTPCloud(stub.address, container: container).name
        try SessionFile(at: directory.session).keep(CloudSession(cloud: name, userRecordName: "_anna", token: "token"))
        let result = try await Tool().run(["sync", scratch["anna.tidemark"].path, "--patience", "1"])
        #expect(result.status == 75, "\(result.errors)")
        #expect(result.errors.contains("has not answered within 3 s"), "\(result.errors)")
    }

    // Headers

    @Test func `endless headers are given up`() async throws {
        let lines: [StubServer.Reply] = [
            .endless(start: Array("HTTP/1.1 200 OK\r\n".utf8), Array("X-A: \(String(repeating: "a", count: 1000))\r\n".utf8)),
            .endless(start: Array("HTTP/1.1 200 OK\r\nX-A: ".utf8), Array(String(repeating: "a", count: 1000).utf8)),
            .endless(start: [], Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)),
        ]
        let stub = try StubServer { _, number in lines[number % lines.count] }
        let database = cloud(try stub.address).database(.private)
        for _ in lines { _ = try await failure { try await database.modify(Self.request) } }
        #expect(stub.requests.count == lines.count)
    }

    @Test func `the environment sets neither proxies nor authorities`() async throws {
        let proxy = try StubServer { _, _ in .page("502 Bad Gateway") }
        let server = try StubServer { _, _ in .page("404 Not Found") }
        let scratch = try Scratch()
        let input = try scratch.write("a\n", to: "password")
        let place = "http://127.0.0.1:\(proxy.port)"
        let result = try await Tool().run(
            [
                "account", "sign-in", scratch["anna.tidemark"].path, "--server", "http://127.0.0.1:\(server.port)", "--email",
                "anna@example.org", "--container", "iCloud.org.example.journal", "--password-stdin",
            ], input: input, environment: ["http_proxy": place, "HTTP_PROXY": place, "all_proxy": place, "ALL_PROXY": place])
        #expect(result.status != 0)
        #expect(proxy.requests.isEmpty)
        #expect(server.requests.count == 1)
    }

    // TLS

    /// A server that accepts some versions of TLS, and answers no request.
    private final class SecureServer: Sendable {
        let port: Int
        private let channel: any Channel

        init(_ first: TLSVersion, _ last: TLSVersion, ciphers: String? = nil) async throws {
            let certificate = try NIOSSLCertificate.fromPEMBytes(Array(TestCertificate.certificate.utf8))
            var configuration = TLSConfiguration.makeServerConfiguration(
                certificateChain: certificate.map { .certificate($0) },
                privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(TestCertificate.key.utf8), format: .pem)))
            (configuration.minimumTLSVersion, configuration.maximumTLSVersion) = (first, last)
            if let ciphers { configuration.cipherSuites = ciphers }
            let context = try NIOSSLContext(configuration: configuration)
            channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
                    }
                }
                .bind(host: "0.0.0.0", port: 0).get()
            port = try #require(channel.localAddress?.port)
        }

        deinit { channel.close(promise: nil) }
    }

    private func spoken(_ server: SecureServer, _ host: String = "localhost") async throws -> CloudError {
        var timeouts = HTTPTimeouts()
        timeouts.answerSilence = .milliseconds(200)
        let own = try TrustRoots(pem: TestCertificate.certificate)
        let cloud = cloud(try ServerAddress("https://\(host):\(server.port)"), timeouts: timeouts, trustRoots: own)
        return try await failure { try await cloud.database(.private).zones() }
    }

    @Test func `TLS below 1.2, and without forward secrecy, is refused`() async throws {
        let old = try await spoken(SecureServer(.tlsv1, .tlsv11))
        #expect(old.code == .networkUnavailable && old.reason.contains("TLS of version 1.2"), "\(old)")
        let open = try await spoken(SecureServer(.tlsv12, .tlsv12, ciphers: "AES128-GCM-SHA256:AES256-SHA"))
        #expect(open.code == .networkUnavailable, "\(open)")
        // With these versions the connection gets as far as a request, which is not answered.
        for version in [TLSVersion.tlsv12, .tlsv13] {
            let error = try await spoken(SecureServer(version, version))
            #expect(error.code == .networkFailure, "\(error)")
        }
    }

    @Test func `a certificate for another host is not trusted`() async throws {
        let server = try await SecureServer(.tlsv12, .tlsv13)
        let error = try await spoken(server, "127.0.0.2")
        #expect(error.code == .networkUnavailable && error.reason.contains("for another host"), "\(error)")
    }
}
