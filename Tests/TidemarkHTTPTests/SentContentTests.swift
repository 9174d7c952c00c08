import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkHTTP

/// Goal: a client follows one redirection to a content, without sending its token there, and no other redirection. Method: a
/// server that redirects, and one that has contents, both with answers of the test's.
@Suite(.timeLimit(.minutes(30))) struct SentContentTests {
    private static let secret = "c2VjcmV0LXRva2VuLTEyMw"
    private static let signature = "X-Amz-Signature=abcdef012345"
    private static let zone = CloudZoneID("Journal")
    private static let asset = CloudAsset(digest: String(repeating: "a", count: 64), size: 100)
    private static let partial = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 10-13/100\r\nContent-Length: 4\r\n\r\nabcd"

    private static var timeouts: HTTPTimeouts {
        var timeouts = HTTPTimeouts()
        timeouts.pause = .milliseconds(1)
        timeouts.pauseMax = .milliseconds(5)
        return timeouts
    }

    private static func place(_ bucket: StubServer) -> String {
        "http://127.0.0.1:\(bucket.port)/journal/a%20b/c?\(signature)&x=%2F"
    }

    private static func redirection(_ place: String?) -> StubServer.Reply {
        let lines =
            ["HTTP/1.1 307 Temporary Redirect", "Content-Length: 0", "Set-Cookie: a=b"]
            + (place.map { ["Location: \($0)"] } ?? [])
        return .bytes(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8))
    }

    private static func error(_ status: String, _ code: String, _ headers: [String] = []) -> StubServer.Reply {
        .json("<?xml version=\"1.0\"?><Error><Code>\(code)</Code></Error>", status: status, headers: headers)
    }

    /// Reads a piece as a client that is signed in.
    private func piece(from server: StubServer, timeouts: HTTPTimeouts = Self.timeouts) async throws -> Data {
        let store = SessionMemory()
        let cloud = HTTPCloud(
            try server.address, container: "iCloud.org.example.journal", environment: .development, session: store,
            timeouts: timeouts)
        store.keep(try CloudSession(cloud: cloud.name, userRecordName: "_anna", token: Self.secret))
        return try await cloud.database(.private).download(Self.asset, in: Self.zone, from: 10, count: 4)
    }

    private func failure(of body: () async throws -> Data) async throws -> CloudError {
        do {
            _ = try await body()
            Issue.record("it did not fail")
            return CloudError(.internalError, "")
        } catch {
            let failure = try #require(error as? CloudError)
            // The address gives access to the content, so no error contains it.
            for secret in [Self.secret, Self.signature] { #expect(!failure.description.contains(secret)) }
            return failure
        }
    }

    @Test func `a piece is read from the redirected address, with its range, and without the token or a cookie`() async throws {
        let bucket = try StubServer { _, _ in .bytes(Array(Self.partial.utf8)) }
        let server = try StubServer { _, _ in Self.redirection(Self.place(bucket)) }
        for _ in 0..<2 { #expect(try await piece(from: server) == Data("abcd".utf8)) }
        #expect(server.requests.count == 2 && bucket.requests.count == 2)
        #expect(server.requests.allSatisfy { $0.header("Authorization") == "Bearer \(Self.secret)" })
        for request in bucket.requests {
            #expect(request.line == "GET /journal/a%20b/c?\(Self.signature)&x=%2F")
            #expect(request.header("Range") == "bytes=10-13")
            for name in ["Authorization", "Cookie", "Referer", "X-Tidemark-Extensions"] { #expect(request.header(name) == nil) }
            #expect(!request.head.contains(Self.secret))
        }
    }

    @Test(
        arguments: [
            nil, "", "/journal/c", "//127.0.0.1:1/c", "file:///etc/passwd", "ftp://127.0.0.1/c", "http://anna:x@127.0.0.1/c",
            "http://127.0.0.1/c#d", "http://127.0.0.1:99999/c", "http:///c", "http://10.0.0.1/c", "http://bücket/c", "data:,abcd",
        ] as [String?])
    func `the client does not follow a redirection to a forbidden address`(place: String?) async throws {
        let server = try StubServer { _, _ in Self.redirection(place) }
        let error = try await failure { try await piece(from: server) }
        #expect(error.code == .permissionFailure && error.reason.contains("not followed"), "\(error)")
        #expect(server.requests.count == 1)
    }

    @Test func `from https the client follows only to https, and from http to both`() throws {
        let (secure, open) = (try ServerAddress("https://a.example"), try ServerAddress("http://a.example", allowsInsecure: true))
        let own = try ServerAddress("http://localhost:8080")
        for server in [secure, open, own] {
            let target = try RedirectTarget("https://b.example:443/c?d=e", from: server)
            #expect(target.host.isSecure && target.url == "https://b.example/c?d=e")
        }
        for place in ["http://b.example/c", "http://localhost/c", "http://127.0.0.1/c"] {
            #expect(throws: CloudError(.permissionFailure, "")) { try RedirectTarget(place, from: secure) }
            #expect(try RedirectTarget(place, from: open).url == place)
        }
        #expect(throws: CloudError(.permissionFailure, "")) { try RedirectTarget("http://b.example/c", from: own) }
        #expect(try RedirectTarget("http://[::1]:9000/c", from: own).url == "http://[::1]:9000/c")
    }

    @Test func `a second redirection is not followed`() async throws {
        let third = try StubServer { _, _ in .bytes(Array(Self.partial.utf8)) }
        let bucket = try StubServer { _, _ in Self.redirection(Self.place(third)) }
        let server = try StubServer { _, _ in Self.redirection(Self.place(bucket)) }
        let error = try await failure { try await piece(from: server) }
        #expect(error.code == .permissionFailure && error.reason.contains("not followed"), "\(error)")
        #expect(server.requests.count == 1 && bucket.requests.count == 1 && third.requests.isEmpty)
    }

    @Test func `the client asks the server once more if the address has expired`() async throws {
        let bucket = try StubServer { _, number in
            number == 0 ? Self.error("403 Forbidden", "AccessDenied") : .bytes(Array(Self.partial.utf8))
        }
        let server = try StubServer { _, _ in Self.redirection(Self.place(bucket)) }
        #expect(try await piece(from: server) == Data("abcd".utf8))
        #expect(server.requests.count == 2 && bucket.requests.count == 2)
    }

    @Test func `the client asks the server again if the bucket fails for a moment`() async throws {
        let bucket = try StubServer { _, number in
            number < 2 ? Self.error("503 Slow Down", "SlowDown") : .bytes(Array(Self.partial.utf8))
        }
        let server = try StubServer { _, _ in Self.redirection(Self.place(bucket)) }
        #expect(try await piece(from: server) == Data("abcd".utf8))
        #expect(server.requests.count == 3 && bucket.requests.count == 3)
    }

    @Test(arguments: [
        ("403 Forbidden", "AccessDenied", CloudError.Code.serviceUnavailable, 2),
        ("400 Bad Request", "ExpiredToken", .serviceUnavailable, 2),
        ("404 Not Found", "NoSuchKey", .assetNotAvailable, 1), ("404 Not Found", "NoSuchBucket", .serviceUnavailable, 1),
        ("416 Range Not Satisfiable", "InvalidRange", .serviceUnavailable, 1),
        ("500 Internal Server Error", "InternalError", .serviceUnavailable, 3),
        ("429 Too Many Requests", "SlowDown", .serviceUnavailable, 3), ("418 I'm a teapot", "Other", .internalError, 1),
    ])
    func `a refusal by the bucket is an error of the contract`(
        status: String, code: String, expected: CloudError.Code, times: Int
    ) async throws {
        let bucket = try StubServer { _, _ in Self.error(status, code) }
        let server = try StubServer { _, _ in Self.redirection(Self.place(bucket)) }
        let error = try await failure { try await piece(from: server) }
        #expect(error.code == expected, "\(error)")
        #expect(server.requests.count == times && bucket.requests.count == times)
    }

    @Test func `the bucket's Retry-After is reported, and the bucket is not asked before`() async throws {
        let bucket = try StubServer { _, _ in Self.error("503 Slow Down", "SlowDown", ["Retry-After: 7"]) }
        let server = try StubServer { _, _ in Self.redirection(Self.place(bucket)) }
        let error = try await failure { try await piece(from: server) }
        #expect(error.code == .serviceUnavailable && error.retryAfter == .seconds(7))
        #expect(bucket.requests.count == 1)
    }

    @Test func `an answer that is too long, silent, or of another piece is refused`() async throws {
        let replies: [(StubServer.Reply, CloudError.Code)] = [
            (.bytes(Array("HTTP/1.1 206 Partial Content\r\nContent-Length: 99999999\r\n\r\na".utf8)), .internalError),
            (.bytes(Array(Self.partial.replacing("10-13", with: "11-14").utf8)), .internalError),
            (.bytes(Array("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd".utf8)), .internalError),
            (.silence, .networkFailure), (.last(Array("SSH-2.0-OpenSSH_9.9\r\n\r\n".utf8)), .internalError),
        ]
        var timeouts = Self.timeouts
        timeouts.silence = .milliseconds(200)
        for (reply, code) in replies {
            let bucket = try StubServer { _, _ in reply }
            let server = try StubServer { _, _ in Self.redirection(Self.place(bucket)) }
            let error = try await failure { try await piece(from: server, timeouts: timeouts) }
            #expect(error.code == code || error.code == .networkFailure, "\(error)")
        }
    }

    @Test func `a bucket that can't be reached is named`() async throws {
        let bucket = try ReservedPort()
        let server = try StubServer { _, _ in Self.redirection("http://127.0.0.1:\(bucket.number)/c?\(Self.signature)") }
        let error = try await failure { try await piece(from: server) }
        #expect(error.code == .networkUnavailable && error.reason.contains("http://127.0.0.1:\(bucket.number) can't be reached"))
    }

    @Test func `nothing is read from the bucket after a shutdown`() async throws {
        let bucket = try StubServer { _, _ in .bytes(Array(Self.partial.utf8)) }
        let target = try RedirectTarget(Self.place(bucket), from: ServerAddress("http://127.0.0.1:1"))
        let cloud = HTTPCloud(
            try bucket.address, container: "iCloud.org.example.journal", environment: .development, session: SessionMemory(),
            timeouts: Self.timeouts)
        await cloud.shutdown()
        for transport in [cloud.contentTransports.plain, cloud.contentTransports.secure] {
            let request = HTTPRequest(
                lane: .downloads, method: .get, url: target.url, answerSizeMax: 100,
                times: HTTPTimes(
                    connecting: .seconds(1), sendingSilence: .seconds(1), receivingSilence: .seconds(1), total: .seconds(1)))
            await #expect(throws: TransportFailure.closed) { try await transport.send(request) }
        }
        #expect(bucket.requests.isEmpty)
    }
}
