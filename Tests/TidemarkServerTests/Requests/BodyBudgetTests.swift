import NIOCore
import NIOHTTP1
import TestSupport
import Testing
import TidemarkModel
import TidemarkPostgres
import TidemarkWire

@testable import TidemarkServer

/// Goal: one address may hold a share of what there is for all, and monitoring has limits of its own. Method: counters as values,
/// and a server over a connection.
@Suite(.timeLimit(.minutes(30))) struct BodyBudgetTests {
    @Test func `each address may hold a share of the bytes of bodies`() {
        let budget = BodyBudget(limit: 100, share: 60)
        #expect(budget.take(60, for: "a") == .taken)
        #expect(budget.take(1, for: "a") == .shareIsFull)
        #expect(budget.take(40, for: "b") == .taken)
        #expect(budget.take(1, for: "c") == .isFull)
        budget.giveBack(60, for: "a")
        #expect(budget.take(20, for: "b") == .taken)
        #expect(budget.take(1, for: "b") == .shareIsFull)
        budget.giveBack(60, for: "b")
        #expect(budget.bytes == 0)
    }

    @Test func `bodies from one address leave room for others`() async throws {
        var limits = ServerLimits()
        (limits.bodiesSize, limits.bodiesSizeOfAddress) = (100_000, 50_000)
        try await StubbedServer.with(limits: limits, trustsProxy: true) { server in
            let path = server.path("echo", query: server.api)
            let holding = try await RawConnection(port: server.port)
            try await holding.write(
                "POST \(path) HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 10.0.0.1\r\nContent-Length: 40001\r\n\r\n")
            try await holding.write([UInt8](repeating: 0x20, count: 40_000))
            #expect(try await eventually { server.server.bodies.bytes == 40_000 })
            let body = [UInt8](repeating: 0x20, count: 20_000)
            let same = try await server.send(.POST, path, headers: ["X-Forwarded-For": "10.0.0.1"], body: body)
            #expect(same.status == 429 && same.code == "THROTTLED")
            let other = try await server.send(.POST, path, headers: ["X-Forwarded-For": "10.0.0.2"], body: body)
            #expect(other.status == 200)
            try await holding.write(" ")
            try await holding.receive("HTTP/1.1 200 OK")
            try await holding.close()
            #expect(
                try await server.send(.POST, path, headers: ["X-Forwarded-For": "10.0.0.1"], body: body).status == 200)
        }
    }

    @Test func `health, readiness and figures have a rate apart from that of requests`() async throws {
        var limits = ServerLimits()
        (limits.requestsPerSecond, limits.burst) = (0.001, 3)
        try await StubbedServer.with(limits: limits) { server in
            let path = server.path("records/query", query: server.api)
            var requests: [Int] = []
            for _ in 0..<4 { requests.append(try await server.send(.POST, path).status) }
            #expect(requests == [200, 200, 200, 429])
            var watches: [Int] = []
            for page in ["/health", "/ready", "/metrics", "/ready"] { watches.append(try await server.send(.GET, page).status) }
            #expect(watches == [200, 200, 403, 429])
        }
    }

    /// Databases that a test breaks, and a clock that it sets.
    private final class Databases: Sendable {
        private let state = LockedValue((looks: 0, isBroken: false, time: 0.0))
        private let parts = LockedValue([Missing.Part?]())

        /// The missing parts that were reported, in order; `nil` for nothing missing.
        var told: [Missing.Part?] { parts.withLock { $0 } }
        func note(_ missing: Missing?) { parts.withLock { $0.append(missing?.part) } }

        var looks: Int { state.withLock { $0.looks } }
        var time: Double { state.withLock { $0.time } }
        func set(isBroken: Bool) { state.withLock { $0.isBroken = isBroken } }
        func set(time: Double) { state.withLock { $0.time = time } }

        func look() throws(Missing) {
            let isBroken = state.withLock { state in
                state.looks += 1
                return state.isBroken
            }
            if isBroken { throw Missing(part: .database, reason: "broken") }
        }
    }

    @Test func `readiness is checked once a second`() async {
        let databases = Databases()
        let readiness = Readiness(
            check: { () async throws(Missing) in try databases.look() },
            onChange: { databases.note($0) }, now: { databases.time })
        func isReady(at time: Double) async -> Bool {
            databases.set(time: time)
            return await readiness.missing() == nil
        }
        #expect(await isReady(at: 10))
        databases.set(isBroken: true)
        #expect(await isReady(at: 10.9))
        #expect(databases.looks == 1)
        #expect(await !isReady(at: 11.1))
        databases.set(isBroken: false)
        #expect(await !isReady(at: 11.2))
        #expect(await isReady(at: 12.2))
        #expect(databases.looks == 3)
        #expect(databases.told == [.database, nil])
    }

    @Test func `a database whose version can't be read is not reported as newer`() {
        #expect(Missing(database: PostgresError(.newerVersion, "a newer Tidemark has migrated it")).part == .version)
        for code in [.connectionLost, .poolExhausted, .refused, .statement] as [PostgresError.Code] {
            #expect(Missing(database: PostgresError(code, "it has ended the connection")).part == .database)
        }
    }

    @Test func `a database that takes no writes is called read-only`() {
        let missing = Missing(database: PostgresError(.readOnly, "it takes no writes"))
        #expect(missing.part == .writes && "\(missing.part)".contains("read-only"))
    }

    @Test func `many requests for readiness share one check, which counts from its end`() async {
        let databases = Databases()
        let readiness = Readiness(
            check: { () async throws(Missing) in
                for _ in 0..<1_000 { await Task.yield() }
                try databases.look()
                databases.set(time: 100)
            }, now: { databases.time })
        let answers = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<100 { group.addTask { await readiness.missing() == nil } }
            return await group.reduce(into: [Bool]()) { $0.append($1) }
        }
        #expect(answers == Array(repeating: true, count: 100))
        #expect(await readiness.missing() == nil)
        #expect(databases.looks == 1)
    }

    @Test func `a signature covers the uncompressed bytes`() async throws {
        try await StubbedServer.with { server in
            let (path, body) = (server.path("records/query"), [UInt8](repeating: 0x20, count: 5_000))
            let packed = try #require(Gzip.packed(body))
            for (signed, status) in [(body, 200), (packed, 401)] {
                var headers = server.signed(path, body: signed)
                headers.add(name: "Content-Encoding", value: "gzip")
                #expect(try await server.send(.POST, path, headers: headers, body: packed).status == status)
            }
        }
    }
}
