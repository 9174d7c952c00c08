import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloudEngine
import TidemarkPostgres

@Suite("Notifications", .enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct ListenerTests {
    private func listener(
        _ fixture: Fixture, port: Int? = nil, pace: Duration = .seconds(600), metrics: PostgresMetrics? = nil
    ) async throws -> PostgresListener {
        let address = try PostgresAddress(fixture.server.address(fixture.name, port: port))
        return try PostgresListener(PostgresConfiguration(address), pace: pace, metrics: metrics)
    }

    /// Counts the elements of a stream.
    private func count(_ stream: AsyncStream<Void>) -> Shared<Int> {
        let count = Shared(0)
        Task { for await _ in stream { count.change { $0 += 1 } } }
        return count
    }

    @Test("Streams at another server are woken by their topic alone, mostly at once, and so are those of the server that posts")
    func wakes() async throws {
        let fixture = try await Fixture()
        let (here, there) = (try await listener(fixture), try await listener(fixture))
        let (own, others, unrelated) = (
            count(here.changes(of: "a")), count(there.changes(of: "a")), count(there.changes(of: "b"))
        )
        #expect(try await eventually { here.isConnected && there.isConnected && others.value > 0 && unrelated.value > 0 })
        let quiet = unrelated.value
        var times: [Duration] = []
        for _ in 0..<50 {
            let (before, ownBefore, began) = (others.value, own.value, ContinuousClock.now)
            PostgresChangeSignal(here, topic: "a").post()
            while others.value == before, ContinuousClock.now < began + .seconds(10) {
                try await Task.sleep(for: .microseconds(500))
            }
            times.append(began.duration(to: .now))
            #expect(try await eventually { own.value > ownBefore })
        }
        #expect(times.allSatisfy { $0 < .seconds(10) })
        #expect(times.sorted()[25] < .milliseconds(500))
        #expect(unrelated.value == quiet)
        if ProcessInfo.processInfo.environment["TIDEMARK_FIGURES"] != nil {
            print("notification: median \(times.sorted()[25]), slowest \(times.max()!)")
        }
        await here.close()
        await there.close()
        await fixture.database.close()
    }

    @Test("A broken connection is made again, and all streams are woken, since a notification may have been missed")
    func connectsAgain() async throws {
        let fixture = try await Fixture()
        let proxy = try TCPProxy(to: fixture.server.port)
        let factory = RecordingFactory(prefix: "tidemark_database_")
        let here = try await listener(fixture)
        let there = try await listener(fixture, port: proxy.port, metrics: PostgresMetrics(factory))
        let heard = count(there.changes(of: "a"))
        _ = count(here.changes(of: "a"))
        #expect(try await eventually { here.isConnected && there.isConnected })
        proxy.set(.refuse)
        proxy.cut()
        #expect(try await eventually { !there.isConnected && factory.value("listening") == 0 })
        here.post("a")
        let missed = heard.value
        proxy.set(.pass)
        #expect(try await eventually { there.isConnected && factory.value("listening") == 1 && heard.value > missed })
        let before = heard.value
        here.post("a")
        #expect(try await eventually { heard.value > before })
        await here.close()
        await there.close()
        proxy.end()
        await fixture.database.close()
    }

    @Test("Topics that are posted without a connection are sent over the next one")
    func postsLater() async throws {
        let fixture = try await Fixture()
        let proxy = try TCPProxy(to: fixture.server.port)
        proxy.set(.refuse)
        let (here, there) = (try await listener(fixture, port: proxy.port), try await listener(fixture))
        let heard = count(there.changes(of: "a"))
        #expect(try await eventually { there.isConnected && heard.value > 0 })
        let before = heard.value
        here.post("a")
        try await Task.sleep(for: .milliseconds(300))
        #expect(heard.value == before)
        proxy.set(.pass)
        #expect(try await eventually { heard.value > before })
        await here.close()
        await there.close()
        proxy.end()
        await fixture.database.close()
    }

    @Test("In a network that swallows everything the slow pace wakes the streams, and the connection is given up")
    func polls() async throws {
        let fixture = try await Fixture()
        let proxy = try TCPProxy(to: fixture.server.port)
        let there = try await listener(fixture, port: proxy.port, pace: .milliseconds(200))
        let heard = count(there.changes(of: "a"))
        #expect(try await eventually { there.isConnected && heard.value > 3 })
        proxy.set(.stall)
        #expect(try await eventually { !there.isConnected })
        let before = heard.value
        #expect(try await eventually { heard.value > before })
        proxy.set(.pass)
        #expect(try await eventually { there.isConnected })
        await there.close()
        proxy.end()
        await fixture.database.close()
    }

    @Test("Closing ends all streams, and later streams have ended")
    func closes() async throws {
        let fixture = try await Fixture()
        let here = try await listener(fixture)
        let stream = here.changes(of: "a")
        #expect(try await eventually { here.isConnected })
        await here.close()
        for await _ in stream {}
        for await _ in here.changes(of: "a") { Issue.record("it has ended") }
        here.post("a")
        let backends: Int64 = try await fixture.database.query(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'")[0].value(0)
        #expect(backends == 0)
        await fixture.database.close()
    }
}
