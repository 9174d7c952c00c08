import Foundation
import Tidemark

/// A trip with all that its page shows. Each relationship is one query, however many stops there are.
public struct TripPage: Sendable {
    public struct Part: Sendable {
        public let stop: Stop
        public let tags: [String]
        public let guide: String?
        public let photos: [Photo]
        public let entries: [DiaryEntry]
    }

    public let trip: Trip
    public let parts: [Part]
    public let bookings: [Booking]

    /// - Returns: `nil` where the trip is gone.
    public init?(of id: Trip.ID, in source: some RecordReading) async throws {
        guard let trip = try await source.fetch(Trip.self, id: id) else { return nil }
        let stops = try await source.fetchAll(Trip.stops, of: trip)
        let photos = try await source.fetchAll(Stop.photos, of: stops)
        let entries = try await source.fetchAll(Stop.entries, of: stops)
        let tags = try await source.fetchAll(stops.flatMap(\.tags))
        let guides = try await source.fetchAll(stops.compactMap(\.guide))
        self.trip = trip
        bookings = try await source.fetchAll(Trip.bookings, of: trip)
        parts = stops.map { stop in
            Part(
                stop: stop, tags: stop.tags.compactMap { tags[$0]?.name }, guide: stop.guide.flatMap { guides[$0]?.name },
                photos: photos[Reference(stop)] ?? [], entries: entries[Reference(stop)] ?? [])
        }
    }
}

extension TravelBook {
    /// The stops of a trip as a table view wants them: a list that follows the store, with the rows that were inserted, moved and deleted.
    @MainActor public func stopList(of trip: Trip) -> ObservedRecords<Stop> {
        ObservedRecords(container, Stop.self, where: \.trip == trip, sortedBy: [.ascending(\.position)])
    }
}
