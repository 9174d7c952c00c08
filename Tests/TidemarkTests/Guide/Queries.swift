import Foundation
import Tidemark

/// The examples of pages, groups, sections, joins, indexes and searches.
enum Queries {
    struct Trip: Tidemark.Record, Identifiable {
        var id = UUID()
        var title = ""
    }

    struct Stop: Tidemark.Record, Identifiable {
        var id = UUID()
        var day = 1
        var nights = 0
        var title = ""
        var country = ""
        var trip: Reference<Trip>?
    }

    struct Destination: Tidemark.Record, Identifiable {
        static var indexes: [RecordIndex<Destination>] {
            [.on(\.rating, \.createdAt), .fullText(\.caption, \.details, language: "en")]
        }
        var id = UUID()
        var createdAt = Date()
        var caption = ""
        var details = ""
        var rating: Int?
    }

    static func conditions(_ journal: PersistentContainer) async throws -> [Destination] {
        let norwegian = TextOrder.localized(Locale(identifier: "nb_NO"))
        let good = try await journal.fetchAll(
            Destination.self, where: \.rating >= 4 && .field(\.caption).contains("fjord", options: .caseInsensitive),
            sortedBy: [.ascending(\.caption, order: norwegian)])
        return good
    }

    static func pages(_ journal: PersistentContainer, _ show: ([Destination]) -> Void) async throws {
        var page = try await journal.fetchPage(Destination.self, sortedBy: [.descending(\.createdAt)], limit: 50)
        show(page.records)
        while let next = page.next {
            page = try await journal.fetchPage(Destination.self, sortedBy: [.descending(\.createdAt)], after: next, limit: 50)
            show(page.records)
        }
    }

    static func aggregates(_ journal: PersistentContainer) async throws -> (Int, Int?) {
        let (nights, longest) = try await journal.aggregate(Stop.self, .sum(\.nights), .maximum(\.nights))
        let byTrip = try await journal.aggregates(Stop.self, .count, .sum(\.nights), by: \.trip)
        for (trip, (stops, nights)) in byTrip { print(trip, stops, nights) }
        return (nights, longest)
    }

    static func print(_ items: Any?...) {}

    static func counts(_ journal: PersistentContainer) async throws -> ([Stop], [String]) {
        let sections = try await journal.counts(Stop.self, by: \.day)
        let first = sections.first?.value ?? 1
        let stops = try await journal.fetchAll(Stop.self, where: \.day == first)
        let countries = try await journal.distinctValues(of: \Stop.country)
        return (stops, countries)
    }

    static func sections(_ journal: PersistentContainer) async throws -> Int {
        let days = try await journal.sections(Stop.self, by: \.day, sortedBy: [.ascending(\.day), .ascending(\.title)])
        let letters = try await journal.sections(Stop.self, by: { $0.title.prefix(1) }, sortedBy: [.ascending(\.title)])
        return days.count + letters.count
    }

    static func joins(_ journal: PersistentContainer) async throws {
        for (stop, trip) in try await journal.fetchAll(Stop.self, joining: \.trip, sortedBy: [.ascending(\.day)]) {
            print(stop.title, trip?.title ?? "")
        }
    }

    static func search(_ journal: PersistentContainer) async throws -> [Destination] {
        for result in try await journal.search(Destination.self, "fjord", limit: 20) {
            print(result.record.caption, result.excerpt.marked("[", "]"))
        }
        let found = try await journal.fetchAll(
            Destination.self, where: .matching("fjord") && \.rating >= 4, sortedBy: [.descending(\.createdAt)])
        return found
    }
}
