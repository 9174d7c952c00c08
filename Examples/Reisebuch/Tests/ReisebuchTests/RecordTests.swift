import Foundation
import Testing
import Tidemark

@testable import ReisebuchModel

/// What the types refuse, and how they read what older and newer versions of the app have written.
@Suite(.timeLimit(.minutes(30))) struct RecordTests {
    @Test func `a trip that ends before it begins is refused, with the field`() async throws {
        let book = try await TravelBook.temporary()
        let begins = Date(year: 2025, month: 6, day: 3)
        do {
            try await book.container.save(Trip(title: "Rückwärts", begins: begins, ends: begins - 86_400))
            Issue.record("it was saved")
        } catch let error as ValidationError {
            #expect(error.field == "ends" && error.message == "Die Reise endet, bevor sie beginnt.")
        }
        #expect(try await book.container.count(Trip.self) == 0)
    }

    @Test func `what version 1 has saved is read, found, sorted and shown as version 2 has it`() async throws {
        let container = try PersistentContainer.temporary(author: "version 1")
        let old = [
            Version1.Trip(name: "Norwegen", begins: Date(year: 2023, month: 1, day: 1), stars: 4),
            Version1.Trip(name: "Alpen", begins: Date(year: 2024, month: 1, day: 1), stars: nil),
        ]
        try await container.save(old)
        let book = try await TravelBook(container)
        let trips = try await container.fetchAll(Trip.self, where: \.transport == .train, sortedBy: [.ascending(\.title)])
        #expect(trips.map(\.title) == ["Alpen", "Norwegen"])
        #expect(trips.map(\.rating) == [nil, 4] && trips.map(\.currency) == [.eur, .eur])
        var norway = try #require(try await book.trip("Norwegen"))
        norway.rating = 4.5
        try await container.save(norway)
        #expect(try await container.count(Trip.self, where: \.rating > 4) == 1)
        // The next launch has nothing to do.
        #expect(try await container.changeSchema(SchemaEvolution.changes).isDone)
    }

    @Test func `an unknown value of an open enumeration stays as it is`() async throws {
        let book = try await TravelBook.temporary()
        let trip = Trip(title: "Alpen", begins: Date(year: 2030, month: 1, day: 1))
        try await book.container.save(trip)
        try await book.container.updateAll(Trip.self, set: ["transport": "airship"])
        var read = try #require(try await book.container.fetch(Trip.self, id: trip.id))
        #expect(read.transport == .other("airship") && read.transport.label == "anders")
        read.title = "Alpen von oben"
        try await book.container.save(read)
        #expect(try await book.container.fetch(Trip.self, id: trip.id)?.transport.rawValue == "airship")
    }

    @Test func `an unknown value of a closed enumeration hides its record, and nothing else`() async throws {
        let test = try await TestBook()
        let (room, tour) = (
            Booking(of: test.norway, .room, by: "Rorbuer", for: 120), Newer.Booking(trip: Reference(test.norway), kind: "balloon")
        )
        try await test.container.save([room, tour] as [any Record])
        let found = try await test.container.fetchResult(Booking.self)
        #expect(found.records == [room])
        #expect(found.unreadable.map(\.record.name) == [tour.recordName])
        // Its rule counts all the same.
        try await test.container.delete(room)
        await #expect(throws: DeletionDenied.self) { try await test.container.delete(test.norway) }
    }

    @Test @MainActor func `a place is on Earth, and reads as people write it`() async throws {
        let test = try await TestBook()
        var reine = test.stops[1]
        reine.location = Location(latitude: 167.93, longitude: 13.09)
        let editor = try #require(try await TripEditor(test.norway.id, in: test.book))
        editor.update(reine)
        #expect(await editor.save() == .invalid("Diesen Ort gibt es auf der Erde nicht.", field: "location"))
        reine.location = Location(latitude: -67.93, longitude: 13.09, altitude: 3)
        try await test.container.save(reine)
        let saved = try await test.container.fetch(Stop.self, id: reine.id)?.location
        #expect(saved == reine.location && saved?.text == "67,9° S, 13,1° O")
    }

    @Test func `money is exact`() async throws {
        let test = try await TestBook()
        let prices: [Decimal] = [0.1, 0.2, 1_234_567_890_123.45]
        try await test.container.save(prices.map { Booking(of: test.norway, .ticket, by: "Hurtigruten", for: $0) })
        let (sum, least) = try await test.container.aggregate(Booking.self, .sum(\.price), .minimum(\.price))
        #expect(sum == prices.reduce(0, +) && least == 0.1)
        #expect(try await test.container.fetchAll(Trip.bookings, of: test.norway).map(\.price) == prices.reversed())
    }
}

/// Types as version 1 of the app had them.
private enum Version1 {
    struct Trip: Record, Identifiable {
        static let recordType = "Trip"
        var id = UUID()
        var name: String
        var begins: Date
        var stars: Int?
    }
}

/// Types as a version will have them that this one does not know.
private enum Newer {
    struct Booking: Record, Identifiable {
        static let recordType = "Booking"
        var id = UUID()
        var trip: Reference<ReisebuchModel.Trip>
        var kind: String
        var provider = "Ballonfahrten"
        var price: Decimal = 300
    }
}
