import Foundation
import ReisebuchModel
import Tidemark

/// The travel book of the tests: Norway with three stops, the Alps with one, and a tag that both have.
struct TestBook {
    let book: TravelBook
    let norway: Trip
    let alps: Trip
    let stops: [Stop]

    var container: PersistentContainer { book.container }

    init(_ book: TravelBook) async throws {
        self.book = book
        let norway = Trip(title: "Norwegen", begins: Date(year: 2025, month: 6, day: 3))
        let alps = Trip(title: "Alpen", begins: Date(year: 2024, month: 8, day: 1))
        let tags = try await book.tags(named: ["Wandern", "Fjord"])
        var stops = [("Ålesund", "Norwegen", 1), ("Reine", "Norwegen", 3), ("Tromsø", "Norwegen", 2)].enumerated().map {
            number, stop in
            var made = Stop(
                of: norway, at: number + 1, place: stop.0, country: stop.1, arrival: Date(year: 2025, month: 6, day: 3 + number))
            made.nights = stop.2
            return made
        }
        stops.append(Stop(of: alps, at: 1, place: "Königssee", country: "Deutschland", arrival: alps.begins))
        stops[1].tags = tags
        stops[3].tags = [tags[0]]
        (self.norway, self.alps, self.stops) = (norway, alps, stops)
        try await book.container.save([norway, alps] + stops as [any Record])
    }

    init() async throws { try await self.init(TravelBook.temporary(device: "test")) }

    func entry(_ heading: String, _ text: String, day: Int = 0) -> DiaryEntry {
        DiaryEntry(at: stops[1], on: stops[1].arrival + Double(day) * 86_400, heading: heading, text: text)
    }
}
