import Foundation
import Tidemark

/// Numbers about all trips, at one moment.
public struct Statistics: Sendable {
    public struct Stay: Sendable {
        public let place: String
        public let trip: String
        public let nights: Int
    }

    public let trips, stops, nights: Int
    public let averageNights: Double?
    public let firstArrival: Date?
    public let countries: [String]
    public let nightsByCountry: [(country: String, nights: Int)]
    public let booked: Decimal
    public let longestStays: [Stay]
    public let tags: [(name: String, stops: Int)]

    /// Computes the numbers in the database. Both stores are read in the state of one moment, so that the numbers fit each other.
    public init(of book: TravelBook) async throws {
        let now = try book.container.snapshot()
        trips = try await now.count(Trip.self)
        let (stops, nights, average, first) = try await now.aggregate(
            Stop.self, .count, .sum(\.nights), .average(\.nights), .minimum(\.arrival))
        (self.stops, self.nights, averageNights, firstArrival) = (stops, nights, average, first)
        countries = try await now.distinctValues(of: \Stop.country)
        nightsByCountry = try await now.aggregates(Stop.self, .sum(\.nights), by: \.country, where: \.country != nil)
            .compactMap { group in group.group.map { ($0, group.values) } }
        booked = try await now.aggregate(Booking.self, .sum(\.price))
        longestStays = try await now.fetchAll(
            Stop.self, joining: \.trip, where: \.nights > 0, sortedBy: [.descending(\.nights), .ascending(\.place)], limit: 3
        ).map { Stay(place: $0.record.place, trip: $0.related?.title ?? "", nights: $0.record.nights) }
        let all = try await now.fetchAll(Tag.self, sortedBy: [.ascending(\.name, order: .localized(.reisebuch))])
        let counts = try await now.counts(Tag.stops, of: all)
        tags = all.map { ($0.name, counts[Reference($0)] ?? 0) }
    }
}
