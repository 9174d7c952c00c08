import Foundation
import ReisebuchModel
import Tidemark

extension Story {
    @MainActor func disagreeing() async throws {
        chapter("5. Laptop and tablet disagree")
        try await tablet.waits { try await $0.trip("Norwegen im Juni") != nil }
        for device in [laptop, tablet] { await device.goOffline() }
        for (device, rating) in [(laptop, 4.5), (tablet, 5)] {
            var trip = try await device.trip("Norwegen")
            trip.rating = rating
            if device.name == "tablet" { trip.transport = .train }
            try await device.container.save(trip)
        }
        laptop.goOnline()
        try await laptop.sent()
        tablet.goOnline()
        try await laptop.waits { try await $0.trip("Norwegen")?.transport == .train }
        tells("Both gave stars, the tablet also another means of transport. What both have now:")
        for device in [laptop, tablet] { Screen.heading(of: try await device.trip("Norwegen")) }
        for conflict in try tablet.container.history().conflicts() {
            tells("The log: \(conflict.type) \(conflict.field ?? ""), \(conflict.winner) won")
        }
    }

    @MainActor func finding() async throws {
        chapter("6. Anna looks for things")
        for words in ["Berg", "\"ruhige See\""] {
            tells("In the diary: \(words)")
            Screen.hits(try await tablet.book.search(words))
        }
        tells(
            "Stops with the tag Wandern: \(try await tablet.book.stops(tagged: "Wandern").map(\.place).joined(separator: ", "))")
        Screen.statistics(try await Statistics(of: tablet.book))
        tells("The widget: \(try await TravelWidget(in: tablet.folder).line())")
    }

    @MainActor func deleting() async throws {
        chapter("7. Anna deletes, and takes it back")
        let (book, alps) = (laptop.book, try await laptop.trip("Alpen"))
        tells(Screen.text(try await book.delete(alps), of: alps))
        let bookings = try await laptop.container.fetchAll(Trip.bookings, of: alps)
        for booking in bookings { try await laptop.container.delete(booking) }
        tells("Without the booking: \(Screen.text(try await book.delete(alps), of: alps))")
        if let last = try EditHistory(of: book).steps().first { try await EditHistory(of: book).undo(last) }
        try await laptop.sent()
        try await tablet.waits(for: 0, Booking.self)
        try await tablet.waits { try await $0.trip("Alpen") != nil }
        try await shows(tablet)
    }
}
