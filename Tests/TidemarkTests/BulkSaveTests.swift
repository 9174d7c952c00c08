import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: a save of many records works like a save of few, and other saves run between its batches.
/// Method: real containers; the whole content of the store is compared. `make bench-store` measures the time.
@Suite(.timeLimit(.minutes(30))) struct BulkSaveTests {
    struct Trip: Tidemark.Record, Identifiable, Equatable {
        var id: String
        var title: String
        var days: Int?

        func validate() throws {
            if title.isEmpty { throw ValidationError("a trip needs a title", field: "title") }
        }
    }

    struct Tag: Tidemark.Record, Identifiable, Equatable {
        var id: String
        var trips: [Reference<Trip>]
    }

    struct Peak: Tidemark.Record, Identifiable, Equatable {
        var id: String
        var height: Double
    }

    private static func trips(_ count: Int) -> [Trip] {
        (0..<count).map { Trip(id: "t\($0)", title: "trip \($0)", days: $0 % 9) }
    }

    // Contexts

    @Test func `a context saves many inserts and many updates, each once`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let trips = Self.trips(20_000)
        let context = journal.newContext()
        for trip in trips { await context.insert(trip) }
        #expect(try await context.save().counts == ChangeCounts(inserted: trips.count))
        for trip in trips { try await context.update(Trip(id: trip.id, title: trip.title, days: 10)) }
        #expect(try await context.save().counts == ChangeCounts(updated: trips.count))
        #expect(await !context.hasChanges)
        #expect(try await journal.count(Trip.self, where: \.days == 10) == trips.count)
    }

    @Test func `a context writes its edits in their order, even if some were withdrawn in between`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let context = journal.newContext()
        let trips = Self.trips(200)
        for trip in trips { await context.insert(trip) }
        // A second edit of a record keeps its place; an edit that was withdrawn and made again is the last.
        for trip in trips where trip.days == 3 { try await context.update(Trip(id: trip.id, title: "edited")) }
        for trip in trips[..<150] { try await context.delete(trip) }
        await context.insert(trips[7])
        await context.insert(trips[2])
        try await context.save()
        #expect(try await journal.fetchAll(Trip.self).map(\.id) == trips[150...].map(\.id) + ["t7", "t2"])
        for trip in trips[150...] { try await context.update(Trip(id: trip.id, title: "again")) }
        await context.rollback()
        #expect(await !context.hasChanges)
        #expect(try await context.save().counts == ChangeCounts())
        #expect(try await context.fetch(Trip.self, named: "t199")?.title == "trip 199")
    }

    // Hooks

    @Test func `hooks get the stored record, even if nothing changes`() async throws {
        struct Asked: Tidemark.Record, Identifiable, Equatable {
            static let told = LockedValue<[String]>([])
            var id: String
            var n: Int
            func validateForInsert() throws { Self.told.withLock { $0.append("insert \(id) \(n)") } }
            func validateForUpdate(from previous: Self) throws {
                Self.told.withLock { $0.append("update \(id) \(previous.n) \(n)") }
                if previous.n > n { throw ValidationError("n may only rise", field: "n") }
            }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save([Asked(id: "a", n: 1), Asked(id: "b", n: 1)])
        let result = try await journal.save([Asked(id: "a", n: 1), Asked(id: "b", n: 2), Asked(id: "c", n: 1)])
        #expect(result.counts == ChangeCounts(inserted: 1, updated: 1, unchanged: 1))
        #expect(
            Asked.told.withLock { $0 } == ["insert a 1", "insert b 1", "update a 1 1", "update b 1 2", "insert c 1"])
        await #expect(throws: ValidationError.self) { try await journal.save([Asked(id: "d", n: 1), Asked(id: "b", n: 0)]) }
        #expect(try await journal.fetchAll(Asked.self).map(\.n) == [1, 2, 1])
    }

    // Several types

    @Test func `records of several types are saved in one transaction, or none of them`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let trip = Trip(id: "north", title: "To the north")
        let tag = Tag(id: "fjord", trips: [Reference(trip)])
        let result = try await journal.save([trip, tag])
        #expect(result.counts == ChangeCounts(inserted: 2))
        #expect(try journal.history().transactions().count == 1)
        #expect(try await journal.fetchAll(Trip.self) == [trip])
        #expect(try await journal.fetchAll(Tag.self) == [tag])
        await #expect(throws: ValidationError.self) {
            try await journal.save([Tag(id: "snow", trips: []), Trip(id: "south", title: "")])
        }
        #expect(try await journal.fetchAll(Tag.self) == [tag])
        #expect(try await journal.save([trip, tag]).counts == ChangeCounts(unchanged: 2))
        #expect(try await journal.save([] as [any Tidemark.Record]).counts == ChangeCounts())
    }

    @Test func `of several records of one name in a save, the last one counts`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save([Trip(id: "a", title: "one", days: 1), Trip(id: "a", title: "two")])
        #expect(try await journal.fetchAll(Trip.self) == [Trip(id: "a", title: "two")])
        try await journal.save([Trip(id: "a", title: "three"), Trip(id: "a", title: "two")])
        #expect(try await journal.fetchAll(Trip.self) == [Trip(id: "a", title: "two")])
    }

    // What is stored

    @Test func `a record that is saved and fetched equals its fetch, down to the last part of a second`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let picture = Picture.png(1)
        let file = try scratch.write(Picture.png(2), to: "two.png")
        let records = (0..<200).map { number in
            var it = Destination("d\(number)", caption: "c", createdAt: Date(timeIntervalSince1970: 1.7e9 + Double(number) / 7))
            it.image = number % 2 == 0 ? Asset(data: picture) : Asset(fileURL: file)
            return it
        }
        let saved = try await journal.saveAndFetch(records)
        #expect(saved == (try await journal.fetchAll(Destination.self)))
        #expect(saved.map(\.id) == records.map(\.id))
        // Most of the given dates differ; rounded dates are equal, and so are assets of the same content.
        #expect(zip(saved, records).contains { $0.createdAt != $1.createdAt })
        #expect(saved.map(\.createdAt) == records.map(\.createdAt.stored))
        #expect(saved.map(\.image) == records.map(\.image))
        #expect(try await journal.save(records).counts == ChangeCounts(unchanged: 200))
        #expect(try await journal.saveAndFetch(saved[3]) == saved[3])
    }

    @Test func `an asset equals another of the same content, wherever the files are`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let (one, other) = (Data(repeating: 7, count: 5000), Data(repeating: 7, count: 4999) + [8])
        let file = try scratch.write(one, to: "one.bin")
        let copy = try scratch.write(one, to: "copy.bin")
        var record = Destination("a", caption: "a")
        record.image = Asset(data: one)
        let stored = try #require(try await journal.saveAndFetch(record).image)
        #expect(stored.identifier != nil)
        let same = [stored, Asset(data: one), Asset(fileURL: file), Asset(fileURL: copy)]
        for (left, right) in same.flatMap({ one in same.map { (one, $0) } }) { #expect(left == right) }
        #expect(Set(same).count == 1)
        let gone = Asset(fileURL: scratch.url.appendingPathComponent("gone.bin"))
        for different in [Asset(data: other), Asset(data: Data()), gone] {
            for it in same { #expect(it != different) }
        }
        #expect(gone == gone)
    }

    @Test func `saveAndFetch returns the record that a unique key merges with`() async throws {
        struct Named: Tidemark.Record, Identifiable, Equatable {
            static let uniqueKeys = [UniqueKey("name")]
            var id: String
            var name: String
            var n: Int?
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(Named(id: "a", name: "fjord", n: 1))
        let saved = try await journal.saveAndFetch(Named(id: "b", name: "fjord", n: 2))
        #expect(saved == Named(id: "a", name: "fjord", n: 2))
        #expect(try await journal.fetchAll(Named.self) == [saved])
        // A UUID is the same record in either case of its letters.
        let id = "0F0F0F0F-AAAA-4BBB-8CCC-123456789ABC"
        try await journal.save(Named(id: id, name: "snow"))
        #expect(try await journal.saveAndFetch(Named(id: id.lowercased(), name: "ice")) == Named(id: id, name: "ice"))
    }

    // Batches

    @Test func `each batch is a separate transaction, and reports the progress`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let trips = Self.trips(250)
        let progress = LockedValue<[Int]>([])
        let result = try await journal.saveInBatches(trips, batchSize: 100) { saved in progress.withLock { $0.append(saved) } }
        #expect(result.counts == ChangeCounts(inserted: 250))
        #expect(progress.withLock { $0 } == [100, 200, 250])
        #expect(try journal.history().transactions().map(\.inserted) == [50, 100, 100])
        #expect(try await journal.fetchAll(Trip.self) == trips)
        #expect(try await journal.saveInBatches(trips, batchSize: 1000).counts == ChangeCounts(unchanged: 250))
        #expect(try await journal.saveInBatches([] as [Trip]).counts == ChangeCounts())
    }

    @Test func `a cancelled save in batches keeps its complete batches, and the same call saves the rest`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let trips = Self.trips(100)
        let task = LockedValue<Task<SaveResult, any Error>?>(nil)
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let saving = Task {
            for await _ in begun { break }
            return try await journal.saveInBatches(trips, batchSize: 10) { saved in
                if saved == 30 { task.withLock { $0?.cancel() } }
            }
        }
        task.withLock { $0 = saving }
        begin.yield()
        await #expect(throws: CancellationError.self) { try await saving.value }
        #expect(try await journal.fetchAll(Trip.self) == Array(trips[..<30]))
        #expect(try await journal.saveInBatches(trips).counts == ChangeCounts(inserted: 70, unchanged: 30))
    }

    @Test func `a batch that fails ends the save, and the batches before it stay saved`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        var trips = Self.trips(30)
        trips[15].title = ""
        await #expect(throws: ValidationError.self) { try await journal.saveInBatches(trips, batchSize: 10) }
        #expect(try await journal.fetchAll(Trip.self) == Array(trips[..<10]))
    }

    @Test(arguments: [255, 512, 8_191, 8_193, 20_001])
    func `many records are saved in order, and of two that can't be stored the error names the first`(count: Int) async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let peaks = (0..<count).map { Peak(id: "p\($0)", height: Double($0)) }
        var broken = peaks
        broken[count / 3].height = .nan
        broken[count - 1].height = .infinity
        let context = journal.newContext()
        for peak in broken { await context.insert(peak) }
        for save in [{ try await journal.save(broken) }, { try await context.save() }] {
            let error = await #expect(throws: EncodingError.self) { try await save() }
            guard case .invalidValue(_, let place) = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
            #expect(place.debugDescription == "nan can't be stored")
        }
        #expect(try await journal.count(Peak.self) == 0)
        try await journal.save(peaks)
        #expect(try await journal.fetchAll(Peak.self) == peaks)
    }

    @Test func `other saves run between the batches`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        // Each batch admits one other save, which waits for its turn.
        let (turns, next) = AsyncStream.makeStream(of: Int.self)
        let others = Task {
            for await turn in turns { try await journal.save(Tag(id: "\(turn)", trips: [])) }
        }
        try await journal.saveInBatches(Self.trips(200), batchSize: 1) { next.yield($0) }
        next.finish()
        try await others.value
        let types = try await journal.reader().read { db in
            try Int.fetchAll(db, sql: "SELECT type_id FROM tide_changes ORDER BY id")
        }
        let trip = try #require(types.first)
        #expect(types.count { $0 == trip } == 200 && types.count == 400)
        let last = try #require(types.lastIndex(of: trip))
        #expect(last >= 200, "\(last - 199) saves of others before the last of 200 batches")
    }

    @Test func `an asynchronous sequence is saved as it arrives, and other saves run while it waits`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let (records, source) = AsyncStream.makeStream(of: Trip.self)
        let trips = Self.trips(5)
        let saving = Task { try await journal.saveInBatches(records, batchSize: 2) }
        for trip in trips[..<3] { source.yield(trip) }
        while try await journal.count(Trip.self) < 2 { await Task.yield() }
        // The third record waits until its batch is complete.
        try await journal.save(Tag(id: "meanwhile", trips: []))
        #expect(try await journal.fetchAll(Trip.self) == Array(trips[..<2]))
        for trip in trips[3...] { source.yield(trip) }
        source.finish()
        #expect(try await saving.value.counts == ChangeCounts(inserted: 5))
        #expect(try await journal.fetchAll(Trip.self) == trips)
    }
}
