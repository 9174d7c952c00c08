import Foundation
import NIOHTTP1
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel

@testable import TidemarkIdentity
@testable import TidemarkServer

/// Goal: strangers can't keep an owner from signing in, and malformed requests are refused before an operation sees them. Method:
/// turns are counted instead of time; a real server, and bytes on a connection.
@Suite(.timeLimit(.minutes(30))) struct RefusedRequestTests {
    private final class Order: Sendable {
        private let names = LockedValue<[String]>([])
        var all: [String] { names.withLock { $0 } }
        func add(_ name: String) { names.withLock { $0.append(name) } }
    }

    private final class Port: Sendable {
        private let port = LockedValue<Int?>(nil)
        var number: Int? { port.withLock { $0 } }
        @Sendable func keep(_ number: Int) { port.withLock { $0 = number } }
    }

    @Test func `while 100 addresses flood, an owner on a known device signs in within three hashes`() async throws {
        let scratch = try Scratch()
        let access = try CredentialStore(at: scratch.url, now: Timestamp.now, passwordLogN: 4)
        let cloud = try EmbeddedCloud(at: scratch.url)
        try await access.addContainer("journal")
        let anna = try await cloud.addAccount("anna@example.org")
        try await access.setPassword("correct horse", of: anna.id)
        let deviceToken = access.deviceToken(of: anna.id)
        let signIn = SignIn(
            cloud: cloud, access: access, metrics: ServerMetrics(), limits: SignInLimits(perMinute: 1_000), now: { 100 },
            pause: { _ in })
        @Sendable func attempt(
            _ email: String, _ password: String, from address: String, _ deviceToken: String? = nil
        ) async throws -> Bool {
            try await signIn.token(
                email: email, password: password, container: "journal", environment: .development, kind: .device, device: "",
                address: address, deviceToken: deviceToken
            ).grant != nil
        }
        let (order, refused) = (Order(), Order())
        try await withThrowingTaskGroup(of: Void.self) { group in
            let (gate, open) = AsyncStream<Void>.makeStream()
            let (held, hold) = AsyncStream<Void>.makeStream()
            // The only hasher is blocked until all attempts have come.
            group.addTask {
                try await access.hashers.withTurn(of: .own) { _ throws(CredentialError) in
                    hold.finish()
                    for await _ in gate {}
                }
            }
            for await _ in held {}
            for number in 0..<300 {
                group.addTask {
                    do {
                        _ = try await attempt("p\(number)@example.org", "wrong horse", from: "203.0.\(number % 100).1")
                        order.add("stranger")
                    } catch let error as CredentialError where error.code == .busy {
                        refused.add("stranger")
                    }
                }
            }
            // All attempts have come: 32 wait.
            #expect(try await eventually { access.hashers.waiting == 32 && refused.all.count == 268 })
            group.addTask {
                let isIn = try await attempt("anna@example.org", "correct horse", from: "198.51.100.1", deviceToken)
                #expect(isIn)
                order.add("anna")
            }
            #expect(try await eventually { access.hashers.waiting == 33 })
            open.finish()
            try await group.waitForAll()
        }
        let place = try #require(order.all.firstIndex(of: "anna"))
        #expect(place <= 3, "\(order.all)")
        #expect(order.all.count == 33)
        // From then on the address itself is known.
        #expect(try await access.isKnown("198.51.100.1", to: anna.id))
    }

    @Test func `a device's session begins with a token by which the device is known`() async throws {
        try await StubbedServer.with { server in
            let path = "/tidemark/1/\(StubbedServer.container)/development/session"
            let answer = try await server.send(
                .POST, path, body: Array(#"{"email":"anna@example.org","password":"correct horse"}"#.utf8))
            let token = try #require(answer.json["deviceToken"] as? String)
            let session = try await server.access.session(try #require(answer.json["token"] as? String)).get()
            #expect(try server.access.device(token, of: session.account) != nil)
            let again = try await server.send(
                .POST, path,
                body: Array("{\"email\":\"anna@example.org\",\"password\":\"correct horse\",\"deviceToken\":\"\(token)\"}".utf8))
            #expect(again.status == 200)
        }
    }

    @Test func `a device need not name its system, and a long system name is truncated`() async throws {
        try await StubbedServer.with { server in
            let path = "/tidemark/1/\(StubbedServer.container)/development/session"
            for (said, device, system) in [
                ("", "Old/1.0", ""), (#","device":"Phone","system":null"#, "Phone", ""),
                (#","device":"Phone","system":"Debian\u0000 GNU\u202e/Linux\n12""#, "Phone", "Debian  GNU/Linux 12"),
                (
                    #","device":"Phone","system":"\#(String(repeating: "x", count: 5_000))""#, "Phone",
                    String(repeating: "x", count: 100)
                ),
            ] {
                let body = "{\"email\":\"anna@example.org\",\"password\":\"correct horse\"\(said)}"
                let answer = try await server.send(.POST, path, headers: ["User-Agent": "Old/1.0"], body: Array(body.utf8))
                let session = try await server.access.session(try #require(answer.json["token"] as? String)).get()
                #expect(session.device == device && session.system == system, "\(said)")
            }
            let wrong = #"{"email":"anna@example.org","password":"correct horse","system":3}"#
            let refused = try await server.send(.POST, path, body: Array(wrong.utf8))
            #expect(refused.status == 400)
        }
    }

    private func status(_ server: StubbedServer, _ head: String) async throws -> Int {
        let connection = try await RawConnection(port: server.port)
        try await connection.write(head)
        try await connection.receive("\r\n\r\n")
        // The server may have closed the connection by now.
        try? await connection.close()
        return try #require(Int(try await connection.closed().split(separator: " ")[1]))
    }

    @Test func `a request with no Host, with two, or with an invalid one is refused`() async throws {
        try await StubbedServer.with { server in
            let line = "GET /openapi.json HTTP/1.1\r\n"
            for (hosts, expected) in [
                ("", 400), ("Host: a\r\nHost: a\r\n", 400), ("Host: a\r\nhost: b\r\n", 400), ("Host: a b\r\n", 400),
                ("Host: \r\n", 400),
                ("Host: a/b\r\n", 400), ("Host: a@b\r\n", 400), ("Host: [::1\r\n", 400), ("Host: a:99999\r\n", 400),
                ("Host: [::1%<b>\"]\r\n", 400), ("Host: [127.0.0.1]\r\n", 400),
                ("Host: cloud.example.org:8080\r\n", 200), ("Host: [::1]:80\r\n", 200), ("Host: 127.0.0.1\r\n", 200),
            ] {
                let found = try await status(server, "\(line)\(hosts)\r\n")
                #expect(found == expected, "\(hosts)")
            }
            // Monitoring may send requests without a Host.
            let health = try await status(server, "GET /health HTTP/1.0\r\n\r\n")
            #expect(health == 200)
        }
    }

    @Test func `with a public URL, requests for other hosts are refused, and browsers are told to use TLS`() async throws {
        try await StubbedServer.with(publicURL: "https://Cloud.example.org") { server in
            for (host, expected) in [
                ("cloud.example.org", 200), ("CLOUD.example.org:443", 200), ("cloud.example.org:80", 421),
                ("evil.example.org", 421),
                ("127.0.0.1:\(server.port)", 421),
            ] {
                #expect(try await status(server, "GET /openapi.json HTTP/1.1\r\nHost: \(host)\r\n\r\n") == expected, "\(host)")
            }
            let health = try await server.send(.GET, "/health")
            #expect(health.status == 200 && health.headers.first(name: "Strict-Transport-Security") == "max-age=63072000")
        }
        try await StubbedServer.with(trustsProxy: true) { server in
            for (proto, isSecure) in [("https", true), ("http", false), ("https, http", false), ("http,HTTPS", true)] {
                let answer = try await server.send(.GET, "/health", headers: ["X-Forwarded-Proto": proto])
                #expect((answer.headers.first(name: "Strict-Transport-Security") != nil) == isSecure, "\(proto)")
            }
        }
    }

    @Test func `the client's address behind a proxy is the last one in the header, with or without a port`() async throws {
        try await StubbedServer.with(trustsProxy: true) { server in
            for (text, shown) in [
                ("203.0.113.9, 192.0.2.7:4711", "192.0.2.7"), ("[2001:db8::7]:4711", "2001:db8::7"),
                ("::ffff:192.0.2.8", "192.0.2.8"),
                ("192.0.2.9, unknown", "127.0.0.1"), ("_hidden", "127.0.0.1"),
            ] {
                _ = try await server.send(
                    .POST, server.path("records/query", query: server.api), headers: ["X-Forwarded-For": text])
                #expect(
                    try await eventually {
                        server.logged.split(separator: "\n").last { $0.contains("message=request ") }?.contains(
                            "address=\(shown)") == true
                    }, "\(text)")
            }
        }
    }

    @Test func `a sign-in form of another page is refused by its origin`() async throws {
        try await StubbedServer.with { server in
            for (origin, expected) in [
                ("https://evil.example.org", 403), ("null", 403), ("http://127.0.0.1", 403),
                ("http://127.0.0.1:\(server.port)", 400),
            ] {
                // A form of the server's own page without its fields is reported as expired.
                let answer = try await server.send(.POST, "/signin", headers: ["Origin": origin], body: Array("form=x".utf8))
                #expect(answer.status == expected, "\(origin)")
            }
        }
    }

    @Test func `figures are served at a port of their own, or with a token`() async throws {
        let found = Port()
        try await StubbedServer.with(metricsToken: "0123456789abcdef", metricsPort: 0, onMetrics: found.keep) { server in
            #expect(try await server.send(.GET, "/metrics").status == 401)
            #expect(try await server.send(.GET, "/metrics", headers: ["Authorization": "Bearer 0123456789abcdeF"]).status == 401)
            #expect(try await server.send(.GET, "/metrics", headers: ["Authorization": "Bearer 0123456789abcdef"]).status == 200)
            #expect(try await eventually { found.number != nil })
            let own = try #require(found.number)
            #expect(own != server.port)
            let connection = try await RawConnection(port: own)
            try await connection.write("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            try await connection.receive("tidemark_connections ")
            try await connection.write("GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n")
            try await connection.receive("404 Not Found")
            try await connection.close()
        }
        try await StubbedServer.with { server in
            let answer = try await server.send(.GET, "/metrics")
            #expect(answer.status == 403)
        }
    }

    @Test func `a connection that was answered before the end of its request is idle, and is closed to make room`() async throws {
        var limits = ServerLimits()
        limits.connections = 2
        try await StubbedServer.with(limits: limits) { server in
            let early = try await RawConnection(port: server.port)
            try await early.write("POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n")
            try await early.receive("404 Not Found")
            try await early.write("{}  ")
            // The test can't see when the server has read that, so it opens connections until there is room.
            for _ in 0..<50 where early.isOpen {
                let other = try await RawConnection(port: server.port)
                try await other.write("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                try await other.receive("ok\n")
                try await other.close()
            }
            #expect(try await eventually { !early.isOpen })
            if early.isOpen { try await early.close() }
        }
    }

    @Test func `idle connections are closed if there is no room for more`() async throws {
        var limits = ServerLimits()
        limits.connections = 4
        try await StubbedServer.with(limits: limits) { server in
            var resting: [RawConnection] = []
            for number in 1...3 {
                let connection = try await RawConnection(port: server.port)
                try await connection.write("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                try await connection.receive("ok\n")
                #expect(try await eventually { server.server.idle.restingCount == number })
                resting.append(connection)
            }
            // A connection that waits for its answer stays.
            try await resting[0].write(
                "POST \(server.path("echo", query: server.api)) HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n{}")
            #expect(try await eventually { server.server.metrics.requestsInFlight == 1 })
            let other = try await RawConnection(port: server.port)
            _ = try await resting[1].closed()
            try await other.write("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            try await other.receive("ok\n")
            #expect(resting[0].isOpen && resting[2].isOpen)
            try await resting[0].write("  ")
            try await resting[0].receive("{}  ")
            #expect(server.server.metrics.text(bodies: 0).contains("\ntidemark_connections_gave_way_total 1\n"))
            for connection in [resting[0], resting[2], other] { try await connection.close() }
        }
    }

    @Test func `TLS begins with version 1.2, and without forward secrecy there is none`() throws {
        let scratch = try Scratch()
        let (certificate, key) = (scratch["c.pem"].path, scratch["k.pem"].path)
        let status = try ChildProcess.run(
            "/usr/bin/openssl",
            [
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", key, "-out", certificate,
                "-days", "2",
            ])
        #expect(status == 0)
        let configuration = try ServerConfiguration.TLS(certificateChain: certificate, privateKey: key).checked()
        #expect(configuration.minimumTLSVersion == .tlsv12)
        #expect(!configuration.cipherSuiteValues.isEmpty)
        // ECDHE with AES-GCM, and with ChaCha20-Poly1305.
        for cipher in configuration.cipherSuiteValues {
            #expect(
                (0xc02b...0xc030).contains(cipher.rawValue) || [0xcca8, 0xcca9].contains(cipher.rawValue), "\(cipher.rawValue)")
        }
    }
}
