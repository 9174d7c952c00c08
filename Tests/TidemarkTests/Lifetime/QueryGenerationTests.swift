import Dispatch
import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkCloud
import TidemarkModel

/// Goal: a context can read both stores at one moment, and puts new records into the given place. Method: other saves in the
/// meantime; a writer to both stores runs beside the snapshots.
@Suite(.timeLimit(.minutes(30))) struct QueryGenerationTests {
    private let scratch: Scratch
    private let fixture: TwoUserFixture

    init() throws {
        scratch = try Scratch()
        fixture = try TwoUserFixture(scratch)
    }

    /// Ben, with a record of his own, `own`, and one of Anna's that he may edit, `senja`.
    private func participant() async throws -> (anna: Person, ben: Person, share: Share) {
        let (anna, ben) = (try await fixture.person("anna"), try await fixture.person("ben"))
        let senja = Destination("senja", caption: "Senja")
        try await anna.container.save(senja)
        let (_, link) = try await anna.share(senja, with: ben)
        try await anna.sync()
        let share = try await ben.container.acceptInvitation(link, in: ben.databases)
        try await ben.sync()
        try await ben.container.save(Destination("own", caption: "own"))
        return (anna, ben, share)
    }

    @Test func `a pinned context reads one state until it saves, refreshes or is reset`() async throws {
        let journal = try scratch.journal()
        try await journal.save([Destination("a", caption: "a"), Destination("b", caption: "b")])
        let context = journal.newContext()
        func captions() async throws -> [String] { try await context.fetchAll(Destination.self).map(\.caption) }
        try await context.setQueryGeneration(.current)
        #expect(await context.isPinned)
        try await journal.save([Destination("c", caption: "c")])
        try await journal.delete(Destination("a", caption: "a"))
        #expect(try await captions() == ["a", "b"])
        #expect(try await context.fetch(Destination.self, named: "c") == nil)
        try await context.refreshAll()
        #expect(try await captions() == ["b", "c"])
        try await journal.save([Destination("d", caption: "d")])
        #expect(try await captions() == ["b", "c"])
        // An edit of the pinned state is merged with what others have saved since.
        var mine = try #require(try await context.fetch(Destination.self, named: "b"))
        mine.caption = "mine"
        var theirs = Destination("b", caption: "b")
        theirs.rating = 5
        try await journal.save(theirs)
        try await context.update(mine)
        try await context.save()
        #expect(try await journal.fetch(Destination.self, named: "b")?.rating == 5)
        #expect(try await captions() == ["mine", "c", "d"])
        let snapshot = try journal.snapshot()
        try await journal.deleteAll(Destination.self)
        await context.reset()
        #expect(try await captions() == [])
        try await context.setQueryGeneration(.snapshot(snapshot))
        #expect(try await captions() == ["mine", "c", "d"])
        await context.reset()
        try await context.setQueryGeneration(.unpinned)
        #expect(await !context.isPinned)
        try await journal.save([Destination("e", caption: "e")])
        #expect(try await captions() == ["e"])
        let other = try PersistentContainer.temporary(in: scratch.url)
        await #expect(throws: StoreError(.invalid, "")) {
            try await context.setQueryGeneration(.snapshot(try other.snapshot()))
        }
    }

    @Test func `snapshots show both stores at one moment, beside a writer to both`() async throws {
        let (_, ben, _) = try await participant()
        let container = ben.container
        let isDone = LockedValue(false)
        // Each save writes the shared store first, then the private one: at any moment the shared one is at most one ahead.
        let writer = Task {
            var number = 0
            while !isDone.withLock(\.self), number < 20_000 {
                number += 1
                var (own, senja) = (Destination("own", caption: "own"), Destination("senja", caption: "Senja"))
                (own.rating, senja.rating) = (number, number)
                try await container.save([own, senja])
            }
            return number
        }
        var differences: [Int: Int] = [:]
        var ratings: Set<Int> = []
        for _ in 0..<300 {
            let snapshot = try container.snapshot()
            let own = try await snapshot.fetch(Destination.self, named: "own")?.rating ?? 0
            let senja = try await snapshot.fetch(Destination.self, named: "senja")?.rating ?? 0
            differences[senja - own, default: 0] += 1
            ratings.insert(own)
        }
        isDone.withLock { $0 = true }
        let saves = try await writer.value
        #expect(Set(differences.keys).isSubset(of: [0, 1]), "\(differences) after \(saves) saves")
        #expect(ratings.count > 10, "the writer has written beside the snapshots: \(saves) saves")
    }

    @Test func `a context puts new records into the share or zone that it was given`() async throws {
        let (anna, ben, share) = try await participant()
        let context = ben.container.newContext()
        await context.setInsertionTarget(.share(share))
        await context.insert(Destination("beach", caption: "A beach"))
        await context.insert(Destination("home", caption: "Home"), in: .private)
        await context.insert(Destination("harbour", caption: "A harbour"), into: .zone(share.zone, in: .shared))
        try await context.save()
        try await ben.sync()
        try await anna.sync()
        #expect(try await anna.captions() == ["senja": "Senja", "beach": "A beach", "harbour": "A harbour"])
        await context.insert(Destination("nowhere", caption: "x"), into: .zone(ZoneName("none"), in: .private))
        await #expect(throws: StoreError(.notFound, "")) { try await context.save() }
    }

    @Test func `a fetch of many records reports its progress, and ends when it is cancelled`() async throws {
        let journal = try scratch.journal()
        try await journal.save((0..<2000).map { Destination("n\($0)", caption: "\($0)") })
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await journal.fetchAll(Destination.self).count
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        let counts = LockedValue<[Int]>([])
        let all = try await journal.fetchAll(Destination.self) { count in counts.withLock { $0.append(count) } }
        #expect(all.count == 2000)
        #expect(counts.withLock(\.self) == [500, 1000, 1500, 2000])
        // A fetch that is cancelled while it reads ends there.
        let (reports, report) = AsyncStream.makeStream(of: Int.self)
        let goOn = DispatchSemaphore(value: 0)
        let halted = Task {
            try await journal.fetchAll(Destination.self) { count in
                report.yield(count)
                goOn.wait()
            }.count
        }
        for await count in reports {
            #expect(count == 500)
            break
        }
        halted.cancel()
        for _ in 0..<4 { goOn.signal() }
        await #expect(throws: CancellationError.self) { try await halted.value }
        #expect(try await journal.count(Destination.self) == 2000)
    }
}
