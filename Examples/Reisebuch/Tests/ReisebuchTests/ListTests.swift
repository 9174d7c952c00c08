import Foundation
import ReisebuchModel
import Testing
import Tidemark

/// What lists show, and how they follow.
@Suite(.timeLimit(.minutes(30))) @MainActor struct ListTests {
    @Test func `the list has badges, and follows what is saved`() async throws {
        let test = try await TestBook()
        let list = TripList(test.book)
        try await list.loaded()
        #expect(list.rows.map(\.trip.title) == ["Norwegen", "Alpen"])
        #expect(list.rows.map(\.stops) == [3, 1])
        #expect(list.rows.allSatisfy { $0.access.canDelete && !$0.access.isShared })
        try await test.container.save(
            Photo(of: test.stops[1], caption: "Berge", takenAt: test.stops[1].arrival, image: Asset(data: Data("jpeg".utf8))))
        try await list.changed { $0.rows.first?.photos == 1 }
        list.filter = .visiting(country: "Deutschland")
        try await list.changed { $0.rows.map(\.trip.title) == ["Alpen"] }
        list.filter = .empty
        try await list.changed { $0.rows.isEmpty }
        try await test.container.save(Trip(title: "Später", begins: .distantFuture))
        try await list.changed { $0.rows.map(\.trip.title) == ["Später"] }
    }

    @Test func `a page of a trip has everything in order, of one moment`() async throws {
        let test = try await TestBook()
        let guide = Guide("Ingrid")
        var reine = test.stops[1]
        reine.guide = Reference(guide)
        try await test.container.save([guide, reine, test.entry("Zwei", "b", day: 1), test.entry("Eins", "a")] as [any Record])
        let before = try test.container.snapshot()
        try await test.container.delete(guide)
        let page = try #require(try await TripPage(of: test.norway.id, in: before))
        #expect(page.parts.map(\.stop.place) == ["Ålesund", "Reine", "Tromsø"])
        #expect(page.parts[1].tags == ["Wandern", "Fjord"] && page.parts[1].guide == "Ingrid")
        #expect(page.parts[1].entries.map(\.heading) == ["Eins", "Zwei"])
        #expect(try await TripPage(of: test.norway.id, in: test.container)?.parts[1].guide == nil)
    }

    @Test func `a table of stops is told which rows to insert, to move and to delete`() async throws {
        let test = try await TestBook()
        var lists = test.container.observe(Stop.self, where: \.trip == test.norway, sortedBy: [.ascending(\.position)])
            .makeAsyncIterator()
        #expect(try await lists.next()?.map(\.place) == ["Ålesund", "Reine", "Tromsø"])
        var last = test.stops[2]
        last.position = 0
        try await test.container.save(last)
        let moved = try #require(try await lists.next())
        #expect(moved.map(\.place) == ["Tromsø", "Ålesund", "Reine"])
        #expect(moved.changes.moved.map(\.oldIndex) == [2] && moved.changes.moved.map(\.newIndex) == [0])
        try await test.container.delete(test.stops[0])
        #expect(try await lists.next()?.changes.deleted.map(\.index) == [1])
    }

    @Test func `the diary is scrolled page by page, whatever is written meanwhile`() async throws {
        let test = try await TestBook()
        try await test.container.save((0..<45).map { test.entry("Tag \($0)", "Text", day: $0) })
        let feed = DiaryFeed(test.book, pageSize: 20)
        try await feed.loadMore()
        try await test.container.save(test.entry("Ganz neu", "Text", day: 99))
        try await feed.loadMore()
        try await feed.loadMore()
        #expect(feed.isComplete)
        #expect(feed.entries.map(\.heading) == (0..<45).reversed().map { "Tag \($0)" })
        let months = try await test.book.diaryByMonth()
        #expect(months.map(\.month) == ["Juni 2025", "Juli 2025", "September 2025"])
        #expect(months.map(\.entries.count) == [27, 18, 1])
    }

    @Test func `German words are found by their beginnings, and marked`() async throws {
        let test = try await TestBook()
        try await test.container.save([
            test.entry("Oben", "Die Bergtour war lang, der Ausblick übers Meer schön."), test.entry("Unten", "Nur Meer."),
        ])
        #expect(
            try await test.book.search("berg").map(\.excerpt.text) == ["Die Bergtour war lang, der Ausblick übers Meer schön."])
        #expect(try await test.book.search("\"nur meer\"").map { $0.excerpt.marked("<b>", "</b>") } == ["<b>Nur Meer</b>."])
        #expect(try await test.book.search("SCHON meer").map(\.place) == ["Reine"])
        #expect(try await test.book.search("meer", in: "Deutschland").isEmpty)
        #expect(try await test.container.count(DiaryEntry.self, where: .matching("meer") && \.heading == "Unten") == 1)
    }

    @Test func `numbers are those of the trips`() async throws {
        let test = try await TestBook()
        try await test.container.save(Booking(of: test.norway, .room, by: "Rorbuer", for: 119.9))
        let numbers = try await Statistics(of: test.book)
        #expect(numbers.trips == 2 && numbers.stops == 4 && numbers.nights == 7)
        #expect(numbers.averageNights == 1.75 && numbers.firstArrival == test.alps.begins)
        #expect(numbers.countries == ["Deutschland", "Norwegen"])
        #expect(numbers.nightsByCountry.map(\.nights) == [1, 6])
        #expect(numbers.longestStays.map(\.place) == ["Reine", "Tromsø", "Königssee"])
        #expect(numbers.longestStays[0].trip == "Norwegen")
        #expect(numbers.tags.map(\.name) == ["Fjord", "Wandern"] && numbers.tags.map(\.stops) == [1, 2])
        #expect(numbers.booked == 119.9)
    }

    @Test func `a widget reads what the app has saved, and knows whether it has to draw`() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        #expect(throws: StoreError(.notFound, "")) { try TravelWidget(in: folder) }
        let book = try await TravelBook(in: folder)
        let widget = try TravelWidget(in: folder)
        #expect(try await widget.line() == "Noch keine Reise")
        let token = try widget.token()
        _ = try await TestBook(book)
        #expect(try widget.hasChanges(since: token))
        #expect(try await widget.line() == "Norwegen, 3 Halte")
        try await book.container.destroy()
    }
}
