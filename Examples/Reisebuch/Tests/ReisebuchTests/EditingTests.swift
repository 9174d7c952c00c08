import Foundation
import ReisebuchModel
import Testing
import Tidemark

/// The sheet for a trip, deletions and the way back.
@Suite(.timeLimit(.minutes(30))) @MainActor struct EditingTests {
    @Test func `new, changed and removed stops are saved in one step, and taken back in one`() async throws {
        let test = try await TestBook()
        let editor = try #require(try await TripEditor(test.norway.id, in: test.book))
        editor.trip.title = "Norden"
        editor.addStop("Nordkap", arrival: Date(year: 2025, month: 6, day: 9))
        editor.remove(editor.stops[0])
        editor.move(from: 2, to: 0)
        #expect(try await test.container.fetchAll(Trip.stops, of: test.norway).count == 3)
        #expect(await editor.save() == .saved)
        #expect(try await test.container.fetchAll(Trip.stops, of: test.norway).map(\.place) == ["Nordkap", "Reine", "Tromsø"])
        let history = EditHistory(of: test.book)
        let last = try #require(try history.steps().first)
        #expect(last.inserted == 1 && last.updated == 1 && last.deleted == 1)
        #expect(try history.titles(of: test.norway).map(\.title).first == "Norden")
        try await history.undo(last)
        #expect(try await test.container.fetchAll(Trip.stops, of: test.norway).map(\.place) == ["Ålesund", "Reine", "Tromsø"])
        #expect(try await test.book.trip("Norwegen") == test.norway)
        // And the other way round.
        try await history.undo(try #require(try history.steps().first))
        #expect(try await test.book.trip("Norden") != nil)
    }

    @Test func `a sheet shows one moment, and tells what others have changed meanwhile`() async throws {
        let test = try await TestBook()
        let editor = try #require(try await TripEditor(test.norway.id, in: test.book))
        var theirs = test.norway
        (theirs.title, theirs.rating) = ("Von ihnen", 3)
        try await test.container.save(theirs)
        #expect(editor.trip.title == "Norwegen")
        editor.trip.title = "Von mir"
        #expect(await editor.save() == .conflict(fields: ["title"]))
        #expect(await editor.save(overwriting: true) == .saved)
        let now = try #require(try await test.container.fetch(Trip.self, id: test.norway.id))
        #expect(now.title == "Von mir" && now.rating == 3)
    }

    @Test func `what is missing is said in words, and nothing is saved`() async throws {
        let test = try await TestBook()
        let editor = await TripEditor(newTripIn: test.book)
        editor.addStop("Irgendwo", arrival: Date())
        #expect(await editor.save() == .invalid("Die Reise braucht einen Titel.", field: "title"))
        #expect(try await test.container.count(Stop.self) == 4)
    }

    @Test func `a trip goes with all that it owns, a tag goes from its stops, and a booking stands against it`() async throws {
        let test = try await TestBook()
        try await test.container.save(test.entry("Eins", "Text"))
        let booking = Booking(of: test.norway, .ticket, by: "Hurtigruten", for: 200)
        try await test.container.save(booking)
        #expect(try await test.book.delete(test.norway) == .booked(providers: ["Hurtigruten"]))
        let hiking = try #require(try await test.container.fetchAll(Tag.self, where: \.name == "Wandern").first)
        #expect(try await test.container.fetchAll(Tag.stops, of: hiking).map(\.place) == ["Reine", "Königssee"])
        try await test.container.delete(hiking)
        #expect(try await test.container.fetch(Stop.self, id: test.stops[1].id)?.tags.count == 1)
        try await test.container.delete(booking)
        #expect(try await test.book.delete(test.norway) == .deleted(along: 4))
        #expect(try await test.container.count(DiaryEntry.self) == 0)
    }

    @Test func `the same tag is one, whoever makes it`() async throws {
        let test = try await TestBook()
        let first = try await test.book.tags(named: ["Fjord", "See", "Fjord"])
        #expect(first.count == 2)
        let result = try await test.container.save(Tag("See"))
        #expect(try await test.container.count(Tag.self, where: \.name == "See") == 1)
        #expect(result.replaced.count == 1 || result.counts.updated == 1)
    }

    @Test func `an import shows how far it is, and what is saved stays when it is cancelled`() async throws {
        let test = try await TestBook()
        let stops = (0..<2000).map {
            Stop(of: test.alps, at: $0, place: "Punkt \($0)", arrival: test.alps.begins + Double($0))
        }
        let running = StopImport()
        async let saved = running.run(stops, in: test.book, batchSize: 50)
        for try await count in test.container.observeCount(Stop.self) where count > 4 { break }
        running.cancel()
        let count = try await saved
        #expect(count > 0 && count.isMultiple(of: 50))
        #expect(try await running.run(stops, in: test.book) == 2000)
        #expect(try await test.container.count(Stop.self) == 2004 && !running.isRunning)
    }
}
