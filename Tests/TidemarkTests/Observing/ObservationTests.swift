import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: an observation delivers each state that lasts, fetches only when it has to, and delays no save.
/// Method: observations with a clock of the test. The test counts the fetches, and blocks one to see which calls wait for it.
@Suite(.timeLimit(.minutes(30))) struct ObservationTests {
    struct Place: Tidemark.Record, Equatable {
        var id: String
        var caption = ""
        var trip: String?
        var recordName: String { id }
    }

    struct Trip: Tidemark.Record, Equatable {
        var id: String
        var country = ""
        var recordName: String { id }
    }

    private let scratch: Scratch
    private let journal: PersistentContainer
    private let byCaption = [RecordSort<Place>.ascending(\.caption)]

    init() throws {
        scratch = try Scratch()
        journal = try scratch.journal()
    }

    /// Counts the fetches of each store, and can block one.
    private final class Fetches: Sendable {
        private let counts = LockedValue<[StoreScope: Int]>([:])
        private let blocked: Int?
        private let gate = DispatchSemaphore(value: 0)
        /// Signals that the fetch to be blocked has begun.
        let begun: AsyncStream<Void>
        private let begin: AsyncStream<Void>.Continuation

        /// - Parameter blocked: The number of the private store's fetch that waits.
        init(blocking blocked: Int? = nil) {
            self.blocked = blocked
            (begun, begin) = AsyncStream.makeStream(of: Void.self)
        }

        subscript(scope: StoreScope) -> Int { counts.withLock { $0[scope, default: 0] } }

        func note(_ scope: StoreScope) {
            let count = counts.withLock { counts in
                counts[scope, default: 0] += 1
                return counts[scope]
            }
            guard scope == .private, count == blocked else { return }
            begin.yield()
            gate.wait()
        }

        func open() { gate.signal() }

        /// A clock that stands still.
        var environment: ObservationEnvironment {
            ObservationEnvironment(now: { .zero }, sleep: { _ in }, willFetch: { [self] in note($0) })
        }
    }

    private func following<R>(_ observation: RecordObservation<R>, _ fetches: Fetches) -> RecordObservation<R> {
        var followed = observation
        followed.base.environment = fetches.environment
        return followed
    }

    // The content of a list

    @Test func `each list has the records that were inserted, deleted, moved and changed since the previous one`() async throws {
        var lists = journal.observe(Place.self, sortedBy: byCaption).makeAsyncIterator()
        #expect(try await lists.next()?.changes.isEmpty == true)
        try await journal.save(["a", "b", "c"].map { Place(id: $0, caption: $0) })
        let first = try #require(try await lists.next())
        #expect(first.changes.inserted.map(\.recordName) == ["a", "b", "c"] && first.changes.inserted.map(\.index) == [0, 1, 2])
        #expect(first.map(\.id) == ["a", "b", "c"] && first.unreadable.isEmpty)

        try await journal.save(Place(id: "a", caption: "z"))
        let second = try #require(try await lists.next()).changes
        #expect(second.moved.map { [$0.oldIndex, $0.newIndex] } == [[0, 2]])
        #expect(second.changed.map(\.recordName) == ["a"] && second.changed.map(\.index) == [2])
        #expect(second.inserted.isEmpty && second.deleted.isEmpty)

        try await journal.save(Place(id: "c", caption: "c", trip: "t"))
        let third = try #require(try await lists.next()).changes
        #expect(third.changed.map(\.index) == [1] && third.moved.isEmpty && third.inserted.isEmpty && third.deleted.isEmpty)

        try await journal.delete(Place.self, named: "b")
        let last = try #require(try await lists.next())
        #expect(last.changes.deleted.map(\.recordName) == ["b"] && last.changes.deleted.map(\.index) == [0])
        #expect(last.changes.changed.isEmpty && last.changes.moved.isEmpty && last.records.map(\.id) == ["c", "a"])
    }

    @Test func `both stores are one list, and only a store that has changed is fetched`() async throws {
        let share = try scratch.acceptedShare()
        let fetches = Fetches()
        var both = following(journal.observe(Place.self, sortedBy: byCaption), fetches).makeAsyncIterator()
        var shared = journal.observe(Place.self, in: .shared).makeAsyncIterator()
        #expect(try await both.next()?.isEmpty == true)
        #expect(try await shared.next()?.isEmpty == true)
        try await journal.save(Place(id: "b", caption: "b"))
        #expect(try await both.next()?.map(\.id) == ["b"])
        let before = (fetches[.private], fetches[.shared])
        try await journal.save([Place(id: "a", caption: "a"), Place(id: "c", caption: "c")], in: share)
        #expect(try await both.next()?.map(\.id) == ["a", "b", "c"])
        #expect(try await shared.next()?.map(\.id) == ["a", "c"])
        try await journal.save(Place(id: "a", caption: "z"))
        let list = try #require(try await both.next())
        #expect(list.map(\.id) == ["b", "c", "a"] && list.changes.moved.map(\.recordName) == ["a"])
        // The type was new in the shared store, so the private store was read again once.
        #expect(fetches[.private] == before.0 + 1 && fetches[.shared] == before.1 + 2)
    }

    @Test func `an observation of a store that is not there begins with an empty list`() async throws {
        try await journal.save(Place(id: "a"))
        // A container that is opened for reading does not get a store that it does not have.
        let alone = try Scratch()
        let container = try ContainerDirectory(openingOrCreatingAt: alone.container)
        _ = try RecordStore(container: container)
        let reader = try ReadOnlyContainer(directory: ContainerDirectory(openingAt: alone.container))
        for scope in [StoreScope.private, .shared] {
            var lists = reader.observe(Place.self, in: scope).makeAsyncIterator()
            #expect(try await lists.next()?.isEmpty == true)
            var counts = reader.observeCount(Place.self, in: scope).makeAsyncIterator()
            #expect(try await counts.next() == 0)
        }
    }

    @Test func `a limit counts the records that can be read`() async throws {
        struct Newer: Tidemark.Record {
            static let recordType = "Place"
            var id: String
            var caption: String?
            var recordName: String { id }
        }
        try await journal.save((0..<9).map { Place(id: "p\($0)", caption: "c\($0)") })
        try await journal.save(["p0", "p1", "p3"].map { Newer(id: $0, caption: nil) })
        var lists = journal.observe(Place.self, sortedBy: [.ascending("_name")], limit: 3).makeAsyncIterator()
        let list = try #require(try await lists.next())
        #expect(list.map(\.id) == ["p2", "p4", "p5"])
        #expect(list.unreadable.map(\.record.name) == ["p0", "p1", "p3"])
        #expect(try await journal.fetchAll(Place.self, sortedBy: [.ascending("_name")], limit: 3).map(\.id) == list.map(\.id))
    }

    @Test func `a record that can't be decoded is listed as unreadable, and as a record when it can be decoded`() async throws {
        struct Older: Tidemark.Record {
            static let recordType = "Place"
            var id: String
            var recordName: String { id }
        }
        try await journal.save(Older(id: "old"))
        try await journal.save(Place(id: "new", caption: "n"))
        var lists = journal.observe(Place.self, sortedBy: [.ascending("id")]).makeAsyncIterator()
        let first = try #require(try await lists.next())
        #expect(first.map(\.id) == ["new"] && first.changes.inserted.map(\.recordName) == ["new"])
        #expect(first.unreadable.map(\.record) == [RecordName(type: "Place", name: "old")])
        #expect(first.unreadable.allSatisfy { $0.error is DecodingError })
        try await journal.save(Older(id: "older"))
        let second = try #require(try await lists.next())
        #expect(second.changes.isEmpty && second.unreadable.map(\.record.name) == ["old", "older"])
        // A save would compare it with the record that is there, which can't be decoded.
        try await journal.updateAll(Place.self, where: .field("id") == "old", set: ["caption": "o"])
        let third = try #require(try await lists.next())
        #expect(third.map(\.id) == ["new", "old"] && third.changes.inserted.map(\.index) == [1])
        #expect(third.unreadable.map(\.record.name) == ["older"])
    }

    // Other observations

    @Test func `a record of a name, a count and a fetch of the program follow their records`() async throws {
        var senja = journal.observe(Place.self, named: "senja").makeAsyncIterator()
        var count = journal.observeCount(Place.self, where: .field("caption").begins(with: "f")).makeAsyncIterator()
        let journal = journal
        var joined = journal.observe(changesOf: [Place.self, Trip.self]) {
            let trips = try await journal.fetchAll(Trip.self, where: .field("country") == "NO").map(\.id)
            return try await journal.fetchAll(Place.self).filter { trips.contains($0.trip ?? "") }.map(\.id)
        }.makeAsyncIterator()
        await #expect(throws: StoreError(.schema, "")) {
            var wrong = journal.observe(Place.self, where: .field("nothing") == 1).makeAsyncIterator()
            try await journal.save(Place(id: "other", caption: "other"))
            _ = try await wrong.next()
        }
        try await journal.save(Trip(id: "north", country: "NO"))
        #expect(try await senja.next()?.first == nil)
        #expect(try await count.next() == 0)
        #expect(try await joined.next() == [])
        try await journal.save(Place(id: "senja", caption: "fjord", trip: "north"))
        #expect(try await senja.next()?.first?.caption == "fjord")
        #expect(try await count.next() == 1)
        #expect(try await joined.next() == ["senja"])
        // A change that leaves the results the same delivers nothing.
        try await journal.save(Place(id: "other", caption: "another"))
        try await journal.save(Trip(id: "north", country: "SE"))
        #expect(try await joined.next() == [])
        try await journal.delete(Place.self, named: "senja")
        #expect(try await senja.next()?.first == nil)
        #expect(try await count.next() == 0)
    }

    @Test func `an observation with a condition in SQL follows the other type that it names, too`() async throws {
        try await journal.save([Place(id: "senja", caption: "s", trip: "north"), Place(id: "oland", caption: "o", trip: "south")])
        try await journal.save([Trip(id: "north", country: "NO"), Trip(id: "south", country: "SE")])
        let fetches = Fetches()
        let norwegian = Tidemark.RecordPredicate<Place>.sql("trip IN (SELECT _name FROM _Trip WHERE country = ?)", "NO")
        var lists = following(journal.observe(Place.self, where: norwegian), fetches).makeAsyncIterator()
        var count = journal.observeCount(Place.self, where: norwegian).makeAsyncIterator()
        #expect(try await lists.next()?.map(\.id) == ["senja"])
        #expect(try await count.next() == 1)
        try await journal.save(Trip(id: "south", country: "NO"))
        #expect(try await lists.next()?.map(\.id) == ["senja", "oland"])
        #expect(try await count.next() == 2)
        #expect(fetches[.private] == 2)
    }

    // The times of fetches

    @Test func `changes that come during a fetch become one more fetch, and no save waits for it`() async throws {
        let fetches = Fetches(blocking: 2)
        let observation = following(journal.observe(Place.self, sortedBy: byCaption), fetches)
        try await journal.save(Place(id: "0", caption: "0"))
        let (lists, delivery) = AsyncStream.makeStream(of: RecordList<Place>.self)
        let task = Task { for try await list in observation { delivery.yield(list) } }
        var delivered = lists.makeAsyncIterator()
        #expect(await delivered.next()?.count == 1)
        try await journal.save(Place(id: "1", caption: "1"))
        for await _ in fetches.begun { break }
        // A fetch is blocked, and these saves return nevertheless.
        for number in 2..<22 { try await journal.save(Place(id: "\(number)", caption: "\(number)")) }
        fetches.open()
        #expect(await delivered.next()?.count == 2)
        let last = try #require(await delivered.next())
        #expect(last.count == 22 && last.changes.inserted.count == 20)
        #expect(fetches[.private] == 3)
        task.cancel()
        _ = await task.result
    }

    @Test(arguments: [(10, 40), (300, 100)])
    func `after a fetch an observation pauses as long as four of them, and 100 ms at most`(work: Int, pause: Int) async throws {
        let journal = journal
        final class Pauses: Sendable { let all = LockedValue<[Duration]>([]) }
        let (pauses, fetches) = (Pauses(), Fetches())
        final class Clock: Sendable { let time = LockedValue(Duration.zero) }
        let clock = Clock()
        var observation = journal.observe(Place.self, in: .private)
        observation.base.environment = ObservationEnvironment(
            now: { clock.time.withLock { $0 } },
            sleep: { duration in
                pauses.all.withLock { $0.append(duration) }
                // Changes in the meantime are fetched at once.
                for number in 0..<5 { try await journal.save(Place(id: "\(duration) \(number)")) }
                clock.time.withLock { $0 += duration }
            },
            willFetch: { scope in
                fetches.note(scope)
                clock.time.withLock { $0 += .milliseconds(work) }
            })
        var lists = observation.makeAsyncIterator()
        #expect(try await lists.next()?.count == 0)
        #expect(try await lists.next()?.count == 5)
        #expect(pauses.all.withLock { $0 } == [.milliseconds(pause)])
        #expect(fetches[.private] == 2)
        // After a rest of that length, the observation fetches at once.
        clock.time.withLock { $0 += .seconds(1) }
        try await journal.save(Place(id: "last"))
        #expect(try await lists.next()?.count == 6)
        #expect(pauses.all.withLock { $0.count } == 1 && fetches[.private] == 3)
    }

    @Test func `commits that leave the list as it is deliver nothing, and those of other types fetch nothing`() async throws {
        try await journal.save((0..<5).map { Place(id: "\($0)", caption: "\($0)") })
        try await journal.save(Trip(id: "t"))
        let fetches = Fetches()
        var lists = following(journal.observe(Place.self, sortedBy: byCaption, limit: 2), fetches).makeAsyncIterator()
        #expect(try await lists.next()?.map(\.id) == ["0", "1"])
        for number in 0..<3 { try await journal.save(Trip(id: "\(number) t")) }
        let next = Task { [lists] in
            var lists = lists
            return try await lists.next()
        }
        // The observation has looked at the commits, and waits.
        try await journal.save(Place(id: "4", caption: "9"))
        #expect(try await eventually { fetches[.private] == 2 })
        try await journal.save(Place(id: "a", caption: "00"))
        let list = try #require(try await next.value)
        #expect(
            list.map(\.id) == ["0", "a"] && list.changes.inserted.map(\.index) == [1] && list.changes.deleted.map(\.index) == [1])
        #expect(fetches[.private] == 3)
    }

    @Test func `a change whose history was purged before the observation looked is delivered`() async throws {
        let journal = journal
        var observation = journal.observe(Place.self)
        try await journal.save(Place(id: "a"))
        observation.base.environment = Fetches().environment
        var lists = observation.makeAsyncIterator()
        #expect(try await lists.next()?.count == 1)
        try await journal.save(Place(id: "b"))
        try await journal.save(Trip(id: "t"))
        try await journal.purgeHistory(olderThan: .zero, keepingAtLeast: .zero)
        #expect(try await lists.next()?.map(\.id) == ["a", "b"])
    }

    // The changes that it follows

    @Test func `an observation follows a type and a field that are added later`() async throws {
        struct Later: Tidemark.Record {
            static let recordType = "Place"
            var id: String
            var stars: Int?
            var recordName: String { id }
        }
        var lists = journal.observe(Place.self, sortedBy: byCaption).makeAsyncIterator()
        #expect(try await lists.next()?.isEmpty == true)
        try await journal.save(Place(id: "a", caption: "a"))
        #expect(try await lists.next()?.map(\.id) == ["a"])
        try await journal.save(Later(id: "b", stars: 3))
        let list = try #require(try await lists.next())
        #expect(list.map(\.id) == ["a"] && list.unreadable.map(\.record.name) == ["b"])
    }

    @Test func `an observation follows another process, also in a container that only reads`() async throws {
        try await journal.save(Place(id: "senja", caption: "Senja"))
        let reader = try ReadOnlyContainer(directory: ContainerDirectory(openingAt: scratch.container))
        var read = reader.observe(Place.self).makeAsyncIterator()
        var count = reader.observeCount(Place.self).makeAsyncIterator()
        var written = journal.observe(Place.self, named: "senja").makeAsyncIterator()
        #expect(try await read.next()?.map(\.caption) == ["Senja"])
        #expect(try await count.next() == 1)
        #expect(try await written.next()?.first?.caption == "Senja")
        let edit = try await Tool().run(["records", "set", scratch.container.path, "senja", "caption=Senja in winter"])
        #expect(edit.status == 0, "\(edit.errors)")
        #expect(try await read.next()?.map(\.caption) == ["Senja in winter"])
        #expect(try await written.next()?.first?.caption == "Senja in winter")
        try await journal.save(Place(id: "lofoten", caption: "Lofoten"))
        #expect(try await read.next()?.changes.inserted.map(\.recordName) == ["lofoten"])
        #expect(try await count.next() == 2)
    }

    // The end of an observation

    @Test func `an observation whose task is cancelled ends without an error, while it waits and while it fetches`() async throws
    {
        try await journal.save(Place(id: "a"))
        for blocked in [2, nil] {
            let fetches = Fetches(blocking: blocked)
            let observation = following(journal.observe(Place.self, in: .private), fetches)
            let (first, isFirst) = AsyncStream.makeStream(of: Void.self)
            let task = Task {
                for try await _ in observation { isFirst.yield() }
            }
            for await _ in first { break }
            try await journal.save(Place(id: blocked == nil ? "b" : "c"))
            if blocked != nil { for await _ in fetches.begun { break } } else { for await _ in first { break } }
            task.cancel()
            fetches.open()
            await #expect(throws: Never.self) { try await task.value }
        }
    }

    @Test func `an observation that can no longer read throws once, and then ends`() async throws {
        try await journal.save(Place(id: "a"))
        var lists = journal.observe(Place.self).makeAsyncIterator()
        #expect(try await lists.next()?.count == 1)
        try FileManager.default.moveItem(at: scratch.container, to: scratch["Elsewhere.tidemark"])
        await #expect(throws: StoreError(.moved, "")) { while try await lists.next() != nil {} }
        #expect(try await lists.next() == nil)
    }
}
