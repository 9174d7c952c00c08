import Foundation
import NIOCore
import NIOHTTP1
import TestSupport
import Testing
import TidemarkWire

@testable import TidemarkServer

/// Goal: the server limits the bytes of bodies, compressed or not, and the number of requests. Method: real connections, and a
/// rate as a value.
@Suite(.timeLimit(.minutes(30))) struct LimitTests {
    @Test func `a body that is too large is refused before it is read, or as soon as it is`() async throws {
        var limits = ServerLimits()
        limits.bodySize = 10_000
        try await StubbedServer.with(limits: limits) { server in
            let path = server.path("echo", query: server.api)
            #expect(try await server.send(.POST, path, body: [UInt8](repeating: 0x20, count: 10_000)).status == 200)
            let large = try await server.send(.POST, path, body: [UInt8](repeating: 0x20, count: 10_001))
            #expect(large.status == 413)
            #expect(large.code == "BAD_REQUEST")
            // The body comes in chunks without a known length; the connection goes on.
            let connection = try await RawConnection(port: server.port)
            let chunk = "1000\r\n\(String(repeating: " ", count: 0x1000))\r\n"
            try await connection.write(
                "POST \(path) HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\(chunk)\(chunk)\(chunk)0\r\n\r\n")
            try await connection.receive("HTTP/1.1 413 ")
            try await connection.write("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            try await connection.receive("ok\n")
            try await connection.close()
            // A client that asks first need not send the body.
            let asking = try await RawConnection(port: server.port)
            try await asking.write(
                "POST \(path) HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\nExpect: 100-continue\r\n\r\n")
            let answer = try await asking.closed()
            #expect(answer.hasPrefix("HTTP/1.1 413 "))
            #expect(answer.contains("Connection: close"))
        }
    }

    @Test func `a request with Expect: 100-continue gets an answer before its body`() async throws {
        try await StubbedServer.with { server in
            for path in [server.path("echo", query: server.api), "/assets/upload/x"] {
                let connection = try await RawConnection(port: server.port)
                try await connection.write(
                    "POST \(path) HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
                try await connection.receive("HTTP/1.1 100 Continue\r\n\r\n")
                try await connection.write("{}")
                try await connection.receive("HTTP/1.1 200 OK")
                try await connection.close()
            }
        }
    }

    @Test func `the bodies of all requests share one limit`() async throws {
        var limits = ServerLimits()
        limits.bodiesSize = 50_000
        try await StubbedServer.with(limits: limits) { server in
            let path = server.path("echo", query: server.api)
            let holding = try await RawConnection(port: server.port)
            try await holding.write("POST \(path) HTTP/1.1\r\nHost: x\r\nContent-Length: 40001\r\n\r\n")
            try await holding.write([UInt8](repeating: 0x20, count: 40_000))
            #expect(try await eventually { server.server.bodies.bytes == 40_000 })
            let refused = try await server.send(.POST, path, body: [UInt8](repeating: 0x20, count: 20_000))
            #expect(refused.status == 503)
            #expect(refused.code == "TRY_AGAIN_LATER")
            #expect(refused.json["retryAfter"] as? Int == 2)
            try await holding.write(" ")
            try await holding.receive("HTTP/1.1 200 OK")
            try await holding.close()
            #expect(try await server.send(.POST, path, body: [UInt8](repeating: 0x20, count: 20_000)).status == 200)
            #expect(server.server.bodies.bytes == 0)
            // A client that breaks off frees the bytes that were held for it.
            let leaving = try await RawConnection(port: server.port)
            try await leaving.write("POST \(path) HTTP/1.1\r\nHost: x\r\nContent-Length: 40001\r\n\r\n")
            try await leaving.write([UInt8](repeating: 0x20, count: 40_000))
            #expect(try await eventually { server.server.bodies.bytes == 40_000 })
            try await leaving.close()
            #expect(try await eventually { server.server.bodies.bytes == 0 })
        }
    }

    @Test func `a body that breaks off reaches no operation`() async throws {
        try await StubbedServer.with { server in
            let connection = try await RawConnection(port: server.port)
            try await connection.write(
                "POST \(server.path("echo", query: server.api)) HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{}")
            try await connection.close()
            #expect(try await eventually { server.logged.contains("status=499") })
            #expect(!server.logged.contains("status=200"))
        }
    }

    @Test func `compressed bodies are decompressed up to the limit`() async throws {
        var limits = ServerLimits()
        limits.bodySize = 100_000
        try await StubbedServer.with(limits: limits) { server in
            let (path, gzip): (String, HTTPHeaders) = (server.path("echo", query: server.api), ["Content-Encoding": "gzip"])
            let text = [UInt8](repeating: 0x20, count: 100_000)
            let packed = try #require(Gzip.packed(text))
            let answer = try await server.send(.POST, path, headers: gzip, body: packed)
            #expect(answer.status == 200)
            #expect(answer.body == text)
            // 20 MB of zeros in less than 100 KB: decompressing ends at the limit.
            let bomb = try #require(Gzip.packed([UInt8](repeating: 0, count: 20_000_000)))
            #expect(bomb.count <= 100_000)
            #expect(try await server.send(.POST, path, headers: gzip, body: bomb).status == 413)
            for broken in [Array(packed.dropLast(9)), packed + [0], Array("{}".utf8), []] {
                let answer = try await server.send(.POST, path, headers: gzip, body: broken)
                #expect(answer.status == (broken.isEmpty ? 200 : 400))
            }
            let other = try await server.send(.POST, path, headers: ["Content-Encoding": "br"], body: packed)
            #expect(other.status == 415)
            #expect(server.server.bodies.bytes == 0)
        }
    }

    @Test func `long answers are compressed if the client accepts it`() async throws {
        try await StubbedServer.with { server in
            let path = server.path("echo", query: server.api)
            let text = Array(String(repeating: "Södermalm ", count: 500).utf8)
            for (accepts, isPacked) in [
                ("gzip", true), ("deflate, gzip;q=0.5", true), ("gzip;q=0", false), ("br", false), ("identity", false),
            ] {
                let answer = try await server.send(.POST, path, headers: ["Accept-Encoding": accepts], body: text)
                #expect((answer.headers.first(name: "Content-Encoding") == "gzip") == isPacked)
                #expect(answer.headers.first(name: "Vary") == "Accept-Encoding")
                let bytes = isPacked ? try Gzip.unpacked(answer.body, limit: 100_000) { _ in } : answer.body
                #expect(bytes == text)
            }
            let short = try await server.send(.POST, path, headers: ["Accept-Encoding": "gzip"], body: Array(text.prefix(1_000)))
            #expect(short.headers["Content-Encoding"].isEmpty)
            let file = try await server.send(.GET, "/assets/download/x/y", headers: ["Accept-Encoding": "gzip"])
            #expect(file.text == "bytes")
            #expect(file.headers["Content-Encoding"].isEmpty)
        }
    }

    @Test func `too many requests of one address are throttled`() async throws {
        var limits = ServerLimits()
        (limits.requestsPerSecond, limits.burst) = (0.001, 3)
        try await StubbedServer.with(limits: limits, trustsProxy: true) { server in
            let path = server.path("records/query", query: server.api)
            var statuses: [Int] = []
            for _ in 0..<5 {
                let answer = try await server.send(.POST, path, headers: ["X-Forwarded-For": "10.0.0.1, 2001:db8::1:2"])
                statuses.append(answer.status)
                if answer.status == 429 { #expect((answer.json["retryAfter"] as? Int ?? 0) > 900) }
            }
            #expect(statuses.prefix(3) == [200, 200, 200])
            #expect(statuses.contains(429))
            // Another address of the same network counts with it, one of another network does not.
            let near = try await server.send(.POST, path, headers: ["X-Forwarded-For": "2001:db8::99"])
            let far = try await server.send(.POST, path, headers: ["X-Forwarded-For": "2001:db9::99"])
            #expect((near.status, far.status) == (429, 200))
            #expect(server.server.metrics.text(bodies: 0).contains("tidemark_throttled_total "))
        }
    }

    @Test func `a rate admits requests again after a pause, and no more if the clock goes back`() {
        let rate = RequestRate(perSecond: 2, burst: 4)
        for _ in 0..<4 { #expect(rate.wait(for: "a", at: 100) == nil) }
        #expect(rate.wait(for: "a", at: 100) == 0.5)
        #expect(rate.wait(for: "b", at: 100) == nil)
        #expect(rate.wait(for: "a", at: 100.5) == nil)
        #expect(rate.wait(for: "a", at: 100.5) == 0.5)
        // A clock that goes back admits no more.
        #expect(rate.wait(for: "a", at: 50) != nil)
        #expect(RequestRate(perSecond: 0, burst: 0).wait(for: "a", at: 0) == nil)
    }
}
