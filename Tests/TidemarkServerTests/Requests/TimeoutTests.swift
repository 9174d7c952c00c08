import Foundation
import NIOCore
import NIOHTTP1
import TestSupport
import Testing

@testable import TidemarkServer

/// Goal: clients that keep the server waiting are disconnected. Method: real connections with short times, and the deadlines as a
/// value with times of the test's own.
@Suite(.timeLimit(.minutes(30))) struct TimeoutTests {
    @Test func `a connection with an incomplete head is closed`() async throws {
        var limits = ServerLimits()
        // Long enough for a whole request on a busy machine.
        limits.headTime = .seconds(10)
        try await StubbedServer.with(limits: limits) { server in
            let connection = try await RawConnection(port: server.port)
            try await connection.write("GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: ")
            #expect(try await connection.closed() == "")
            // A second request has as little time as the first.
            let second = try await RawConnection(port: server.port)
            try await second.write("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            try await second.receive("ok\n")
            try await second.write("G")
            #expect(try await second.closed().hasSuffix("ok\n"))
            #expect(server.server.metrics.text(bodies: 0).contains("tidemark_connections_given_up_total 2\n"))
        }
    }

    @Test func `a connection whose body does not continue is closed`() async throws {
        var limits = ServerLimits()
        limits.bodyTime = .milliseconds(200)
        try await StubbedServer.with(limits: limits) { server in
            for path in [server.path("echo", query: server.api), "/assets/upload/x"] {
                let connection = try await RawConnection(port: server.port)
                try await connection.write("POST \(path) HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
                #expect(try await connection.closed() == "")
            }
        }
    }

    @Test func `a connection that is idle after an answer is closed`() async throws {
        var limits = ServerLimits()
        // It counts from the beginning of the connection: long enough to send a request on a busy machine.
        limits.idleTime = .seconds(10)
        limits.headTime = .seconds(600)
        try await StubbedServer.with(limits: limits) { server in
            let connection = try await RawConnection(port: server.port)
            try await connection.write("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(try await connection.closed().hasSuffix("ok\n"))
        }
    }

    @Test func `a connection without a request has as much time as a head`() async throws {
        var limits = ServerLimits()
        limits.idleTime = .seconds(600)
        limits.headTime = .milliseconds(200)
        try await StubbedServer.with(limits: limits) { server in
            let connection = try await RawConnection(port: server.port)
            #expect(try await connection.closed() == "")
        }
    }

    @Test func `a head that is too large is refused`() async throws {
        try await StubbedServer.with { server in
            for head in [
                "X: " + String(repeating: "a", count: 40_000),
                (0..<200).map { "X-\($0): a" }.joined(separator: "\r\n"),
            ] {
                let connection = try await RawConnection(port: server.port)
                try await connection.write("GET /health HTTP/1.1\r\nHost: x\r\n\(head)\r\n\r\n")
                let answer = try await connection.closed()
                #expect(answer.hasPrefix("HTTP/1.1 400 ") || answer.hasPrefix("HTTP/1.1 431 "))
            }
        }
    }

    @Test func `invalid HTTP closes only its own connection`() async throws {
        try await StubbedServer.with { server in
            for text in [
                "\u{16}\u{3}\u{1}", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
                "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "\0\0\0\0\r\n\r\n",
            ] {
                let connection = try await RawConnection(port: server.port)
                try await connection.write(text)
                let answer = try await connection.closed()
                #expect(answer.isEmpty || answer.hasPrefix("HTTP/1.1 4"), "\(text.debugDescription): \(answer)")
            }
            #expect(try await server.send(.GET, "/health").status == 200)
        }
    }

    // As a value

    private func timeouts() -> (ConnectionTimeouts, NIODeadline) {
        (ConnectionTimeouts(limits: ServerLimits()), .uptimeNanoseconds(1 << 40))
    }

    private func expect(
        _ timeouts: inout ConnectionTimeouts, at now: NIODeadline, isOver expected: Bool,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let isOver = timeouts.expire(at: now)
        #expect(isOver == expected, sourceLocation: sourceLocation)
    }

    @Test func `between requests there is no deadline`() {
        var (timeouts, start) = timeouts()
        #expect(timeouts.deadline == nil)
        timeouts.receive(10, at: start)
        #expect(timeouts.deadline == start + .seconds(10))
        timeouts.receive(10, at: start + .seconds(9))
        #expect(timeouts.deadline == start + .seconds(10))
        timeouts.receiveHead(at: start + .seconds(9))
        timeouts.receiveEnd()
        #expect(timeouts.deadline == nil)
        expect(&timeouts, at: start + .seconds(10), isOver: false)
        timeouts.receive(1, at: start + .seconds(100))
        expect(&timeouts, at: start + .seconds(109), isOver: false)
        expect(&timeouts, at: start + .seconds(110), isOver: true)
    }

    @Test func `a body needs a minimum rate, however fast it begins`() {
        var (timeouts, start) = timeouts()
        timeouts.receive(10, at: start)
        timeouts.receiveHead(at: start)
        timeouts.receive(30_000, at: start + .seconds(1))
        expect(&timeouts, at: start + .seconds(20), isOver: false)
        #expect(timeouts.deadline == start + .seconds(40))
        for second in 20..<40 { timeouts.receive(1_000, at: start + .seconds(Int64(second))) }
        expect(&timeouts, at: start + .seconds(40), isOver: true)
    }

    @Test func `a client must send enough in each extension of its time`() {
        var timeouts = ConnectionTimeouts(limits: ServerLimits(), allowance: 0.25)
        let start = NIODeadline.uptimeNanoseconds(1 << 40)
        timeouts.begin(at: start)
        #expect(timeouts.deadline == start + .milliseconds(12_500))
        expect(&timeouts, at: start + .milliseconds(12_499), isOver: false)
        timeouts.receiveHead(at: start)
        #expect(timeouts.deadline == start + .seconds(25))
        timeouts.receive(25_600, at: start + .seconds(1))
        expect(&timeouts, at: start + .seconds(25), isOver: false)
        #expect(timeouts.deadline == start + .seconds(50))
        timeouts.receive(25_599, at: start + .seconds(26))
        expect(&timeouts, at: start + .seconds(50), isOver: true)
    }

    @Test func `the server's own time does not count against the client`() {
        var (timeouts, start) = timeouts()
        timeouts.receive(10, at: start)
        timeouts.receiveHead(at: start)
        timeouts.setReading(false, at: start + .seconds(5))
        expect(&timeouts, at: start + .seconds(20), isOver: false)
        timeouts.setReading(true, at: start + .seconds(30))
        #expect(timeouts.deadline == start + .seconds(50))
        // Pauses of no length, as after every read, give no extra time.
        for second in 30..<50 {
            timeouts.receive(1, at: start + .seconds(Int64(second)))
            timeouts.setReading(false, at: start + .seconds(Int64(second)))
            timeouts.setReading(true, at: start + .seconds(Int64(second)))
        }
        expect(&timeouts, at: start + .seconds(50), isOver: true)
    }

    @Test func `a connection whose client does not read the answer is closed`() {
        var (timeouts, start) = timeouts()
        timeouts.setTaking(false, at: start)
        timeouts.setTaking(false, at: start + .seconds(30))
        #expect(timeouts.deadline == start + .seconds(60))
        timeouts.setTaking(true, at: start + .seconds(59))
        expect(&timeouts, at: start + .seconds(60), isOver: false)
        timeouts.setTaking(false, at: start + .seconds(60))
        expect(&timeouts, at: start + .seconds(120), isOver: true)
    }
}
