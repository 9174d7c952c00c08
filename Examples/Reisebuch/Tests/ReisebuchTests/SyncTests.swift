import Foundation
import ReisebuchModel
import Testing
import Tidemark
import TidemarkEmbeddedCloud
import TidemarkTesting

/// A book that synchronises by itself, on a clock that the test moves.
@Suite(.timeLimit(.minutes(30))) @MainActor struct SyncTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)

    private func databases() async throws -> CloudDatabases {
        let cloud = try EmbeddedCloud(at: folder)
        let account = try await cloud.addAccount("anna@example.org")
        return try cloud.databases(of: "org.example.reisebuch", account: account.id)
    }

    private func next(_ events: AsyncStream<ContainerEvent>, where isWanted: (ContainerEvent) -> Bool) async -> ContainerEvent? {
        for await event in events where event.end != nil && isWanted(event) { return event }
        return nil
    }

    /// The line, as soon as it is this: the cloud may tell of what was just sent, and that is fetched first.
    private func line(of container: PersistentContainer, becomes wanted: String) async throws -> String {
        for _ in 0..<6_000 {
            if SyncLine.text(try container.syncStatus()) == wanted { break }
            try await Task.sleep(for: .milliseconds(10))
        }
        return SyncLine.text(try container.syncStatus())
    }

    @Test func `the saves of half a second go out together, and the monitor tells it`() async throws {
        let clock = TestClock()
        let test = try await TestBook()
        let (monitor, events) = (SyncMonitor(test.book), test.container.events())
        #expect(SyncLine.text(try test.container.syncStatus()) == "Noch mit keinem Account abgeglichen")
        test.container.startSyncing(with: try await databases(), environment: clock.environment)
        _ = await next(events) { $0.kind == .export && $0.records > 0 }
        // Both databases have sent what there was. What is saved from now on waits until the clock moves.
        await clock.waitForSleepers(2, within: .milliseconds(500))
        try await test.container.save([test.entry("Eins", "a"), test.entry("Zwei", "b")])
        #expect(try await line(of: test.container, becomes: "2 Änderungen warten") == "2 Änderungen warten")
        clock.advance(by: .milliseconds(500))
        #expect(await next(events) { $0.kind == .export && $0.records > 0 }?.records == 2)
        // The monitor hears of it a moment later.
        for _ in 0..<6_000 {
            if monitor.isInSync { break }
            try await Task.sleep(for: .milliseconds(10))
        }
        #expect(monitor.isInSync && monitor.accountNews == ["Angemeldet"])
        await test.container.stopSyncing()
    }

    @Test func `without a network a line says so in German, and nothing is lost`() async throws {
        let (clock, databases) = (TestClock(), try await databases())
        let faulty = FaultyDatabase(databases.private, plan: FaultPlan(seed: 1, rates: [.networkUnavailable: 1]))
        let test = try await TestBook()
        let events = test.container.events()
        test.container.startSyncing(
            with: CloudDatabases(private: faulty, shared: databases.shared), environment: clock.environment)
        let failed = try #require(await next(events) { $0.failure?.cause == .offline })
        ErrorLanguage.$override.withValue(.german) {
            #expect(failed.failure?.localizedDescription == "Die Cloud ist nicht erreichbar.")
        }
        faulty.calm()
        // What the person does who sees the line: pulls the list down.
        SyncMonitor(test.book).refresh()
        await clock.waitForSleepers(within: .seconds(1))
        clock.advance(by: .seconds(1))
        #expect(await next(events) { $0.kind == .export && $0.records > 0 }?.succeeded == true)
        #expect(try test.container.syncStatus().changesToSend == 0)
        await test.container.stopSyncing()
    }

    @Test func `who signs out keeps nothing on the device that another account could see, and gets it back`() async throws {
        let (test, databases) = (try await TestBook(), try await databases())
        let sync = try await test.container.sync(with: databases, environment: TestClock(movesWhenWaiting: true).environment)
        #expect(try await sync.sync().failure == nil)
        try await test.container.save(test.entry("Noch nicht gesendet", "Text"))
        let aside = try #require(try await test.container.signOut())
        #expect(aside.pending == 1)
        #expect(try await test.container.count(Trip.self) == 0)
        #expect(try await sync.sync().failure == nil)
        try await test.container.restore(aside)
        #expect(try await test.container.fetchAll(DiaryEntry.self).map(\.heading) == ["Noch nicht gesendet"])
    }
}
