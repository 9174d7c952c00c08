import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkCloud
import TidemarkModel
import TidemarkTesting

/// Goal: one call says whether a container is in sync, and what is missing; sign-ins and sign-outs are events. Method: containers
/// of two people over a real cloud, in each of the states.
@Suite(.timeLimit(.minutes(30))) struct SyncStatusTests {
    private let scratch: Scratch
    private let fixture: TwoUserFixture

    init() throws {
        scratch = try Scratch()
        fixture = try TwoUserFixture(scratch)
    }

    @Test func `the status names the obstacles to being in sync, until there are none`() async throws {
        let (anna, other) = (try await fixture.person("anna"), try await fixture.person("anna", device: "2"))
        #expect(try anna.container.syncStatus().obstacles == [.noAccount])
        try await anna.container.save(Destination("a", caption: "a"))
        #expect(
            try anna.container.syncStatus().obstacles == [.noAccount, .changesToSend(.private, count: 1, blocked: 0)])
        try await anna.sync()
        #expect(try anna.container.isInSync())
        #expect(try SyncStatus(of: anna.container.directory).isInSync)
        try await other.sync()
        try await other.container.save(Destination("b", caption: "b"))
        #expect(try other.container.syncStatus().obstacles == [.changesToSend(.private, count: 1, blocked: 0)])
        #expect(try !other.container.isInSync())
    }

    @Test func `everything is fetched again on request, and pending changes are kept and sent`() async throws {
        let (anna, other) = (try await fixture.person("anna"), try await fixture.person("anna", device: "2"))
        try await anna.container.save([Destination("a", caption: "a"), Destination("b", caption: "b")])
        try await anna.sync()
        try await other.sync()
        try await other.container.save(Destination("a", caption: "of the other"))
        let sync = try await other.container.sync(with: other.databases)
        try await sync.refetch()
        #expect(try other.container.syncStatus().obstacles.contains(.changesToFetch(.private)))
        #expect(try await sync.sync().isComplete)
        sync.close()
        #expect(try other.container.isInSync())
        try await anna.sync()
        #expect(try await anna.captions() == ["a": "of the other", "b": "b"])
        #expect(try await other.captions() == ["a": "of the other", "b": "b"])
    }

    @Test func `the status reports records of a share that no engine synchronises`() async throws {
        let (anna, ben) = (try await fixture.person("anna"), try await fixture.person("ben"))
        let senja = Destination("senja", caption: "Senja")
        try await anna.container.save(senja)
        let (_, link) = try await anna.share(senja, with: ben)
        try await anna.sync()
        let share = try await ben.container.acceptInvitation(link, in: ben.databases)
        try await ben.sync()
        #expect(try ben.container.isInSync())
        let engine = try await ben.container.syncEngine(with: ben.databases.private)
        try await ben.container.save([Destination("beach", caption: "A beach")], in: share)
        _ = try await engine.sync()
        #expect(
            try ben.container.syncStatus().obstacles == [
                .changesToSend(.shared, count: 1, blocked: 0), .notSynchronized(.shared),
            ])
        #expect(try ben.container.syncIssues().map(\.record) == ["beach"])
        #expect(try ben.container.syncIssues(record: "beach").count == 1)
        #expect(try ben.container.syncIssues(record: "senja") == [])
        engine.close()
        try await ben.sync()
        #expect(try ben.container.isInSync())
    }

    @Test func `a signed-out account is told apart from an offline one, and changes of the account are events`() async throws {
        let anna = try await fixture.person("anna")
        let switches = LockedValue(AccountState(isSignedIn: true))
        let faulty = FaultyDatabase(anna.databases.private, plan: FaultPlan(seed: 1))
        var configuration = SyncConfiguration()
        configuration.accountState = { switches.withLock(\.self) }
        let engine = try await anna.container.syncEngine(
            with: faulty, configuration: configuration, environment: TestClock(movesWhenWaiting: true).environment)
        var events = engine.events.filter { $0.kind == .setup && $0.end != nil }.makeAsyncIterator()
        _ = try await engine.sync()
        let signedIn = try #require(await events.next())
        guard case .signedIn(let user) = signedIn.accountChange else {
            Issue.record("\(signedIn)")
            return
        }
        _ = try await engine.sync()
        #expect(await events.next()?.accountChange == nil)
        faulty.inject([.networkUnavailable])
        let offline = try await engine.sync(patience: .zero)
        #expect(offline.failure?.code == SyncErrorCode.noAccount)
        #expect(offline.failure?.cause == .offline)
        #expect(await events.next()?.accountChange == nil)
        switches.withLock { $0.isSignedIn = false }
        let out = try await engine.sync()
        #expect(out.failure?.code == SyncErrorCode.noAccount)
        #expect(out.failure?.cause == .signedOut)
        #expect(await events.next()?.accountChange == .signedOut(user: user))
        switches.withLock { $0 = AccountState(isSignedIn: true, appIsOn: false) }
        #expect(try await engine.sync().failure?.cause == .switchedOff)
        #expect(await events.next()?.accountChange == nil)
        switches.withLock { $0 = AccountState(isSignedIn: true) }
        _ = try await engine.sync()
        #expect(await events.next()?.accountChange == .signedIn(user: user))
        engine.close()

        let ben = try await fixture.person("ben")
        let bens = try await anna.container.syncEngine(with: ben.databases.private)
        var next = bens.events.filter { $0.kind == .setup && $0.end != nil }.makeAsyncIterator()
        _ = try await bens.sync()
        guard case .switched(from: user, to: _)? = await next.next()?.accountChange else {
            Issue.record("the change of the account is no event")
            return
        }
    }

    @Test func `two devices end equal over a cloud that fails a fifth of the requests, and pauses take no time`() async throws {
        let clock = TestClock(movesWhenWaiting: true)
        let environment = clock.environment
        func person(_ device: String, seed: UInt64) async throws -> Person {
            try await fixture.person("anna", device: device) {
                FaultyDatabase($0, plan: .all(rate: 0.2, seed: seed), sleep: clock.sleep)
            }
        }
        let devices = [try await person("1", seed: 7), try await person("2", seed: 8)]
        func sync(_ person: Person) async throws {
            let sync = try await person.container.sync(with: person.databases, environment: environment)
            defer { sync.close() }
            #expect(try await sync.sync(patience: .seconds(86_400)).isComplete)
        }
        for round in 0..<6 {
            for (number, device) in devices.enumerated() {
                for index in 0..<5 {
                    var place = Destination("\(number)-\(index)", caption: "round \(round)")
                    place.rating = round
                    place.image = Asset(data: Picture.png(index))
                    try await device.container.save(place)
                }
                try await sync(device)
            }
        }
        for device in devices + devices { try await sync(device) }
        let (one, other) = (try await devices[0].captions(), try await devices[1].captions())
        #expect(one == other)
        #expect(one.count == 10)
        #expect(Set(one.values) == ["round 5"])
        // In real time these pauses would take a minute.
        #expect(clock.elapsed > .seconds(10), "\(clock.elapsed)")
    }
}
