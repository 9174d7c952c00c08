import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkCloud
import TidemarkModel
import TidemarkTesting

/// Goal: a container that is opened with its cloud synchronises by itself until it ends. Method: containers of one account over a
/// real cloud; a clock that the test moves, so that pauses take no time.
@Suite(.timeLimit(.minutes(30))) struct AutomaticSyncTests {
    private let scratch: Scratch
    private let fixture: TwoUserFixture
    private let clock = TestClock()

    init() throws {
        scratch = try Scratch()
        fixture = try TwoUserFixture(scratch)
    }

    /// Waits for the end of a wanted event.
    @discardableResult
    private func event(
        _ events: AsyncStream<ContainerEvent>, _ isWanted: (ContainerEvent) -> Bool
    ) async throws -> ContainerEvent {
        for await event in events where event.end != nil && isWanted(event) { return event }
        throw CancellationError()
    }

    @Test func `saves are sent together after half a second, and changes of others are fetched`() async throws {
        let (laptop, phone) = (try await fixture.person("anna", device: "1"), try await fixture.person("anna", device: "2"))
        let events = phone.container.events()
        phone.container.startSyncing(with: phone.databases, environment: clock.environment)
        #expect(phone.container.isSyncing)
        try await event(events) { $0.kind == .setup && $0.succeeded }
        var heard = phone.container.changes(since: try phone.container.historyToken()).makeAsyncIterator()
        try await laptop.container.save(Destination("theirs", caption: "from the laptop"))
        try await laptop.sync()
        #expect(try await heard.next()?.origin == .cloud)
        #expect(try await phone.captions() == ["theirs": "from the laptop"])

        // Both databases have sent their records. Later saves wait until the clock moves.
        await clock.waitForSleepers(2, within: .milliseconds(500))
        let before = clock.now
        try await phone.container.save(Destination("a", caption: "a"))
        try await phone.container.save(Destination("b", caption: "b"))
        await clock.waitForSleepers(within: .milliseconds(500))
        #expect(try phone.container.syncStatus().changesToSend == 2)
        clock.advance(by: .milliseconds(500))
        let sent = try await event(events) { $0.kind == .export && $0.records > 0 }
        #expect(sent.records == 2)
        #expect(clock.now - before < 501_000)
        try await laptop.sync()
        #expect(try await laptop.captions().count == 3)
        await phone.container.stopSyncing()
        #expect(!phone.container.isSyncing)
        #expect(try phone.container.isInSync())
    }

    @Test func `an unreachable cloud is an event, and is tried again when the network is back`() async throws {
        let faulty = LockedValue<[FaultyDatabase]>([])
        let anna = try await fixture.person("anna") { database in
            let new = FaultyDatabase(database, plan: FaultPlan(seed: 1, rates: [.networkUnavailable: 1]))
            faulty.withLock { $0.append(new) }
            return new
        }
        // Each of the two engines listens.
        let network = LockedValue<[AsyncStream<Void>.Continuation]>([])
        var environment = clock.environment
        environment.networkChanges = {
            let (changes, continuation) = AsyncStream.makeStream(of: Void.self)
            network.withLock { $0.append(continuation) }
            return changes
        }
        let (events, other) = (anna.container.events(), anna.container.events())
        anna.container.startSyncing(with: anna.databases, environment: environment)
        let failed = try await event(events) { $0.failure != nil }
        #expect(failed.failure?.cause == .offline)
        #expect(failed.failure?.code == SyncErrorCode.noAccount)
        for _ in 0..<6 {
            await clock.waitForSleepers(2)
            clock.advance(by: .seconds(300))
        }
        await clock.waitForSleepers(2)
        for database in faulty.withLock({ $0 }) { database.calm() }
        for engine in network.withLock({ $0 }) { engine.yield() }
        // After so many failures the pause is at least half a minute.
        await clock.waitForSleepers(2, within: .seconds(1))
        clock.advance(by: .seconds(1))
        try await event(events) { $0.kind == .setup && $0.succeeded }
        // Each listener gets all events.
        try await event(other) { $0.failure?.cause == .offline }
        try await event(other) { $0.kind == .setup && $0.succeeded }
        await anna.container.stopSyncing()
    }

    @Test func `the container waits for another process that synchronises it, and reports it once`() async throws {
        let anna = try await fixture.person("anna")
        let lock = try SyncLock(anna.container.directory)
        let events = anna.container.events()
        anna.container.startSyncing(with: anna.databases, environment: clock.environment)
        let waiting = try await event(events) { $0.failure != nil }
        #expect(waiting.failure?.code == SyncErrorCode.anotherSyncer)
        #expect(waiting.failure?.cause == .anotherSyncer)
        for _ in 0..<3 {
            await clock.waitForSleepers(within: .seconds(5))
            clock.advance(by: .seconds(5))
        }
        await clock.waitForSleepers(within: .seconds(5))
        lock.release()
        clock.advance(by: .seconds(5))
        let next = try await event(events) { _ in true }
        #expect(next.kind == .setup && next.succeeded)
        await anna.container.stopSyncing()
        try SyncLock(anna.container.directory).release()
    }

    @Test func `a container that is released or closed no longer synchronises`() async throws {
        let anna = try await fixture.person("anna")
        let place = scratch["released.tidemark"]
        func open() throws -> PersistentContainer {
            try PersistentContainer(directory: ContainerDirectory(openingOrCreatingAt: place), author: "test")
        }
        let released: AsyncStream<ContainerEvent>
        do {
            let container = try open()
            released = container.events()
            container.startSyncing(with: anna.databases, environment: clock.environment)
            try await event(released) { $0.kind == .setup }
        }
        // The stream ends with the container.
        for await _ in released {}
        let container = try open()
        #expect(
            try await eventually {
                do {
                    try SyncLock(container.directory).release()
                    return true
                } catch let failure as ContainerEvent.Failure where failure.code == SyncErrorCode.anotherSyncer {
                    return false
                }
            })
        let events = container.events()
        container.startSyncing(with: anna.databases, environment: clock.environment)
        try await event(events) { $0.kind == .setup }
        try await container.close()
        try SyncLock(container.directory).release()
        for await _ in events {}
        // A closed container does not start again.
        container.startSyncing(with: anna.databases, environment: clock.environment)
        #expect(!container.isSyncing)
    }

    @Test func `a container that synchronises by itself can't be synchronised by hand, and signing out ends it`() async throws {
        let anna = try await fixture.person("anna")
        try await anna.container.save(Destination("a", caption: "a"))
        let events = anna.container.events()
        anna.container.startSyncing(with: anna.databases, environment: clock.environment)
        try await event(events) { $0.kind == .export && $0.records == 1 }
        let failure = await #expect(throws: ContainerEvent.Failure.self) {
            _ = try await anna.container.sync(with: anna.databases)
        }
        #expect(failure?.code == SyncErrorCode.duplicateRequest)
        let quarantine = try await anna.container.signOut()
        #expect(quarantine?.records == 1)
        #expect(!anna.container.isSyncing)
        #expect(try await anna.captions().isEmpty)
    }

    @Test func `an invitation is accepted at once by a container that has just begun to synchronise by itself`() async throws {
        let anna = try await fixture.person("anna")
        try await anna.container.save(Destination("a", caption: "a"))
        let share = try await anna.container.share(Destination("a", caption: "a"), in: anna.databases)
        try await anna.sync()
        // Each time the synchronisation may have reached another point.
        for number in 0..<20 {
            let ben = try await fixture.person("ben\(number)")
            let invited = try await anna.container.updateParticipants(
                of: share, [.invite(.emailAddress("ben\(number)@example.org"), role: .privateUser, permission: .readOnly)],
                in: anna.databases)
            let link = try await anna.container.makeLink(to: invited, in: anna.databases)
            let events = ben.container.events()
            ben.container.startSyncing(with: ben.databases, environment: clock.environment)
            try await ben.container.acceptInvitation(link.token, in: ben.databases)
            await ben.container.stopSyncing()
            try await ben.container.close()
            for await event in events { #expect(event.failure == nil) }
        }
    }

    @Test func `accepting while another process synchronises is an error that says so`() async throws {
        let (anna, ben) = (try await fixture.person("anna"), try await fixture.person("ben"))
        let lock = try SyncLock(ben.container.directory)
        defer { lock.release() }
        ben.container.startSyncing(with: ben.databases, environment: clock.environment)
        try await anna.container.save(Destination("a", caption: "a"))
        let share = try await anna.container.share(
            Destination("a", caption: "a"), publicPermission: .readOnly, in: anna.databases)
        let link = try await anna.container.makeLink(to: share, in: anna.databases)
        let failure = await #expect(throws: ContainerEvent.Failure.self) {
            _ = try await ben.container.acceptInvitation(link.token, in: ben.databases)
        }
        #expect(failure?.code == SyncErrorCode.anotherSyncer)
        await ben.container.stopSyncing()
    }

    @Test func `a request makes the container try again before its pause is over`() async throws {
        let faulty = LockedValue<[FaultyDatabase]>([])
        let anna = try await fixture.person("anna") { database in
            let new = FaultyDatabase(database, plan: FaultPlan(seed: 1, rates: [.serviceUnavailable: 1]))
            faulty.withLock { $0.append(new) }
            return new
        }
        let events = anna.container.events()
        anna.container.startSyncing(with: anna.databases, environment: clock.environment)
        let failed = try await event(events) { $0.failure != nil }
        #expect(failed.failure?.cause == .cloudIsBusy)
        for _ in 0..<6 {
            await clock.waitForSleepers(2)
            clock.advance(by: .seconds(300))
        }
        await clock.waitForSleepers(2)
        for database in faulty.withLock({ $0 }) { database.calm() }
        anna.container.requestSync()
        await clock.waitForSleepers(2, within: .seconds(1))
        clock.advance(by: .seconds(1))
        try await event(events) { $0.kind == .setup && $0.succeeded }
        await anna.container.stopSyncing()
    }
}
