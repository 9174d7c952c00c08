import Foundation
import Logging
import NIOCore
import NIOHTTP1
import ServiceLifecycle
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkServer

/// Goal: a server finishes its requests when it ends, reports its state, and logs without secrets.
@Suite(.timeLimit(.minutes(30))) struct RunningTests {
    /// A gate that a test opens.
    private final class Gate: Sendable {
        private let stream: AsyncStream<Void>
        private let continuation: AsyncStream<Void>.Continuation

        init() { (stream, continuation) = AsyncStream<Void>.makeStream() }

        func open() { continuation.finish() }
        func pass() async { for await _ in stream {} }
    }

    @Test func `a server that ends finishes running requests, and ends waiting ones at once`() async throws {
        let (entered, told) = AsyncStream<Void>.makeStream()
        let gate = Gate()
        let operations = [
            Operation("runs", .post, "/assets/upload/{capability}", body: .none) { _ in
                told.yield()
                await gate.pass()
                return .json(Array("{\"done\":true}".utf8))
            },
            Operation("waits", .post, "/courier/{capability}", body: .none) { _ in
                told.yield()
                do {
                    return try await cancelWhenGracefulShutdown {
                        try await Task.sleep(for: .seconds(600))
                        return .json(Array("{\"never\":true}".utf8))
                    }
                } catch is CancellationError {
                    return .json(Array("{\"waited\":true}".utf8))
                }
            },
        ]
        try await StubbedServer.with(operations: operations) { server in
            var iterator = entered.makeAsyncIterator()
            async let running = server.send(.POST, "/assets/upload/x")
            await iterator.next()
            async let waiting = server.send(.POST, "/courier/x")
            await iterator.next()
            let idle = try await RawConnection(port: server.port)
            try await idle.write("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            try await idle.receive("ok\n")

            await server.shutDown()
            #expect(try await idle.closed().hasSuffix("ok\n"))
            #expect(try await waiting.text == "{\"waited\":true}")
            // Whether the port is free can't be checked here: another server may have it by now.
            gate.open()
            let answer = try await running
            #expect(answer.status == 200)
            #expect(answer.text == "{\"done\":true}")
        }
    }

    @Test func `a request whose handler throws, or whose client goes away, leaves nothing running`() async throws {
        struct Broken: Error {}
        final class Handlers: Sendable {
            private let entered = LockedValue(0)
            var running: Int { entered.withLock { $0 } }
            func count(_ more: Int) { entered.withLock { $0 += more } }
        }
        let handlers = Handlers()
        let operations = [
            Operation("takes", .post, "/assets/upload/{capability}", body: .stream) { call in
                handlers.count(1)
                defer { handlers.count(-1) }
                for try await _ in call.stream! where call.parameters["capability"] == "broken" { throw Broken() }
                return .json(Array("{}".utf8))
            }
        ]
        try await StubbedServer.with(operations: operations) { server in
            func begun(_ name: String) async throws -> RawConnection {
                let connection = try await RawConnection(port: server.port)
                try await connection.write("POST /assets/upload/\(name) HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab")
                return connection
            }
            let broken = try await begun("broken")
            try await broken.receive("HTTP/1.1 500 ")
            #expect(handlers.running == 0)
            let leaving = try await begun("whole")
            #expect(try await eventually { handlers.running == 1 })
            try await leaving.close()
            #expect(try await eventually { handlers.running == 0 && server.server.metrics.requestsInFlight == 0 })
            // The server may have closed the connection by now.
            try? await broken.close()
        }
    }

    @Test func `figures count requests by operation and status`() async throws {
        let token = "figures-for-prometheus"
        try await StubbedServer.with(metricsToken: token) { server in
            for _ in 0..<3 { _ = try await server.send(.POST, server.path("records/query", query: server.api)) }
            _ = try await server.send(.POST, server.path("records/query"))
            _ = try await server.send(.POST, "/nowhere")
            #expect(try await eventually { server.server.metrics.requestsInFlight == 0 })
            let answer = try await server.send(.GET, "/metrics", headers: ["Authorization": "Bearer \(token)"])
            #expect(answer.headers.first(name: "Content-Type")?.hasPrefix("text/plain; version=0.0.4") == true)
            for line in [
                "tidemark_requests_total{operation=\"records.query\",status=\"200\"} 3",
                "tidemark_requests_total{operation=\"records.query\",status=\"401\"} 1",
                "tidemark_requests_total{operation=\"none\",status=\"404\"} 1",
                "tidemark_request_duration_seconds_count{operation=\"records.query\"} 4",
                "tidemark_request_duration_seconds_bucket{operation=\"records.query\",le=\"+Inf\"} 4",
                "tidemark_requests_in_flight 1", "tidemark_bodies_bytes 0",
            ] {
                #expect(answer.text.contains("\n\(line)\n"), "\(line)")
            }
        }
    }

    @Test func `health, readiness and the description of the protocol need no credentials`() async throws {
        try await StubbedServer.with { server in
            #expect(try await server.send(.GET, "/health").text == "ok\n")
            #expect(try await server.send(.GET, "/ready").text == "ready\n")
            let description = try await server.send(.GET, "/openapi.json")
            #expect((description.json["openapi"] as? String)?.hasPrefix("3.1") == true)
            #expect(try await server.send(.POST, "/health").status == 405)
        }
    }

    @Test func `a log has one line for a request, and no secrets`() async throws {
        try await StubbedServer.with { server in
            let path = server.path("records/query", query: server.web + "&secret=inquery")
            _ = try await server.send(.POST, path, body: Array("{\"secret\":\"inbody\"}".utf8))
            _ = try await server.send(.POST, server.path("records/query"), headers: server.bearer)
            let body = Array("{}".utf8)
            let signed = server.signed(server.path("records/query"), body: body)
            _ = try await server.send(.POST, server.path("records/query"), headers: signed, body: body)
            _ = try await server.send(
                .POST, "/tidemark/1/\(StubbedServer.container)/development/session",
                body: Array("{\"email\":\"anna@example.org\",\"password\":\"correct horse\"}".utf8))
            _ = try await server.send(.POST, server.path("fails", query: server.web))
            _ = try await server.send(.POST, server.path("records/query", query: "ckAPIToken=wrongtoken"))
            #expect(try await eventually { server.server.metrics.requestsInFlight == 0 })
            let lines = server.logged.split(separator: "\n")
            #expect(lines.filter { $0.contains("message=request ") }.count == 6)
            let first = try #require(lines.first { $0.contains("operation=records.query") })
            #expect(first.contains("status=200") && first.contains(" who=_") && first.contains("address=127.0.0.1"))
            #expect(lines.contains { $0.contains("who=key:\(server.keyID)") })
            let secrets = [
                server.apiToken, server.webToken, server.deviceToken, "inquery", "inbody", "anna@", "horse", "wrongtoken",
                signed.first(name: "X-Apple-CloudKit-Request-SignatureV1")!, "ckAPIToken",
            ]
            for secret in secrets { #expect(!server.logged.contains(secret), "\(secret)") }
        }
    }

    @Test func `text with line breaks stays on one line of the log`() {
        let lines = StubbedServer.Log()
        var handler = LogfmtHandler(level: .info) { line in lines.lines.withLock { $0.append(line) } }
        handler.metadata = ["b": "x y", "a": "plain"]
        handler.log(
            event: .init(
                level: .info, message: "two\nlines \"quoted\"", metadata: ["c": "\u{1b}[31m", "b": ""], source: "s", file: "f",
                function: "f", line: 1))
        let line = lines.lines.withLock { $0.joined() }
        #expect(line.prefix { $0 != " " }.wholeMatch(of: /time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) != nil)
        #expect(line.hasSuffix(" level=info message=\"two\\nlines \\\"quoted\\\"\" a=plain b=\"\" c=\"?[31m\"\n"))
    }

    @Test func `the Date header has the current second`() {
        let seconds = { Timestamp.now() / 1_000_000 }
        let (before, header, after) = (seconds(), ServerTime.header(), seconds())
        #expect((before...after).map(HTTPDate.text(second:)).contains(header))
    }

    @Test func `a stream that ends too early does not look whole`() async throws {
        let operations = [
            Operation("short", .get, "/assets/download/{capability}/{name}", body: .none) { _ in
                Reply(body: .stream(type: "text/plain", count: 10) { try await $0.write(ByteBuffer(string: "bytes")) })
            }
        ]
        try await StubbedServer.with(operations: operations) { server in
            let connection = try await RawConnection(port: server.port)
            try await connection.write("GET /assets/download/x/y HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(try await connection.closed().hasSuffix("\r\n\r\nbytes"))
        }
    }

    @Test func `a directory that other users can read is reported in the log, with the remedy`() async throws {
        try await StubbedServer.with { server in
            let directory = server.directory
            for (mode, isTold) in [(0o755, true), (0o710, true), (0o700, false)] {
                try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: directory.path)
                let log = StubbedServer.Log()
                let logger = Logger(label: "test") { _ in
                    LogfmtHandler(level: .info) { line in log.lines.withLock { $0.append(line) } }
                }
                // The second server ends because it can't listen.
                let second = try CloudServer(ServerConfiguration(directory: directory, port: server.port), logger: logger)
                await #expect(throws: ServerError.self) { try await second.run() }
                let lines = log.lines.withLock { $0.joined() }
                #expect(lines.contains("chmod 700 \(directory.path)") == isTold)
            }
        }
    }

    @Test func `a place to which a cloud is being moved is reported as that, not as empty`() throws {
        let scratch = try Scratch()
        try FileManager.default.createDirectory(at: scratch[".cloud.moving"], withIntermediateDirectories: true)
        for path in ["cloud", "cloud/"] {
            let directory = scratch.url.appendingPathComponent(path, isDirectory: true)
            #expect {
                _ = try CloudServer(ServerConfiguration(directory: directory), logger: .init(label: "test"))
            } throws: { error in
                (error as? ServerError)?.code == .noData && "\(error)".contains("run the same 'tidemark admin move' to its end")
                    && !"\(error)".contains("container add")
            }
        }
    }

    @Test func `a place that can't be served is reported with the remedy`() async throws {
        let scratch = try Scratch()
        #expect {
            _ = try CloudServer(ServerConfiguration(directory: scratch.url), logger: .init(label: "test"))
        } throws: { error in
            (error as? ServerError)?.code == .noData && "\(error)".contains("tidemark admin container add")
        }
        try await StubbedServer.with { server in
            let second = try CloudServer(
                ServerConfiguration(directory: server.directory, port: server.port), logger: .init(label: "test"))
            await #expect {
                try await second.run()
            } throws: { error in
                (error as? ServerError)?.code == .address && "\(error)".contains("in use")
            }
            for tls in [
                ServerConfiguration.TLS(certificateChain: "/nowhere.pem", privateKey: "/nowhere.pem"),
                .init(certificateChain: #filePath, privateKey: #filePath),
            ] {
                #expect {
                    _ = try CloudServer(
                        ServerConfiguration(directory: server.directory, port: 0, tls: tls), logger: .init(label: "test"))
                } throws: { ($0 as? ServerError)?.code == .certificate }
            }
        }
    }
}
