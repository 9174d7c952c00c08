import Foundation
import Tidemark

/// The examples of queries along references.
enum References {
    struct Trip: Tidemark.Record, Identifiable {
        var id = UUID()
        var title = ""
    }

    struct Stop: Tidemark.Record, Identifiable {
        var id = UUID()
        var day = 1
        var nights = 0
        var trip: Reference<Trip>?
    }

    struct Photo: Tidemark.Record, Identifiable {
        var id = UUID()
        var stop: Reference<Stop>
    }

    static func titles(_ journal: PersistentContainer) async throws -> [String] {
        let stops = try await journal.fetchAll(Stop.self)
        let trips = try await journal.fetchAll(stops.compactMap(\.trip))
        let titles = stops.map { stop in stop.trip.flatMap { trips[$0]?.title } ?? "" }
        return titles
    }

    static func lists(_ journal: PersistentContainer, _ use: (Trip, [Stop]) -> Void) async throws {
        func show(_ trip: Trip, with stops: [Stop]) { use(trip, stops) }
        let trips = try await journal.fetchAll(Trip.self)
        let stops = try await journal.fetchAll(Stop.self, referringTo: trips, by: \.trip, sortedBy: [.ascending(\.day)])
        for trip in trips { show(trip, with: stops[Reference(trip)] ?? []) }
    }

    static func badge(_ journal: PersistentContainer, _ stops: [Stop], of stop: Stop) async throws -> Int {
        let counts = try await journal.counts(Photo.self, referringTo: stops, by: \.stop)
        let badge = counts[Reference(stop)] ?? 0
        return badge
    }

    static func predicates(_ journal: PersistentContainer) async throws -> ([Stop], [Trip], [Trip]) {
        let stops = try await journal.fetchAll(Stop.self, where: .field(\.trip).matches(\.title == "Lofoten"))
        let begun = try await journal.fetchAll(Trip.self, where: .isReferenced(by: \Stop.trip, where: \.nights > 0))
        let empty = try await journal.fetchAll(Trip.self, where: !.isReferenced(by: \Stop.trip))
        return (stops, begun, empty)
    }
}
