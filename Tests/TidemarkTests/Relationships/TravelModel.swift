import Foundation
import Tidemark

/// A model with each kind of relationship: trips own stops, stops own photos, stops have tags in an order and a guide, and a booking needs its
/// trip.
enum Travel {
    struct Trip: Tidemark.Record, Equatable {
        var id: String
        var title = ""
        var recordName: String { id }

        static let stops = ToMany<Trip, Stop>(by: \.trip, sortedBy: [.ascending(\.day)])
        static let bookings = ToMany<Trip, Booking>(by: \.trip)
    }

    struct Stop: Tidemark.Record, Equatable {
        var id: String
        var trip: Reference<Trip>
        var day = 1
        var title = ""
        var tags: [Reference<Tag>] = []
        var guide: Reference<Guide>?
        var recordName: String { id }

        static var relationships: [Relationship<Stop>] { [.owned(by: \.trip), .weak(\.tags), .weak(\.guide)] }
        static let photos = ToMany<Stop, Photo>(by: \.stop)
    }

    struct Photo: Tidemark.Record, Equatable {
        var id: String
        var stop: Reference<Stop>?
        var caption = ""
        var recordName: String { id }

        static var relationships: [Relationship<Photo>] { [.owned(by: \.stop)] }
    }

    struct Tag: Tidemark.Record, Equatable {
        var id: String
        var name: String
        var recordName: String { id }

        static var uniqueKeys: [UniqueKey] { [UniqueKey("name")] }
        static let stops = ToMany<Tag, Stop>(by: \.tags)
    }

    struct Guide: Tidemark.Record, Equatable {
        var id: String
        var recordName: String { id }
    }

    struct Booking: Tidemark.Record, Equatable {
        var id: String
        var trip: Reference<Trip>
        var recordName: String { id }

        static var relationships: [Relationship<Booking>] { [.weak(\.trip, onDelete: .deny)] }
    }

    static let types: [any Record.Type] = [Trip.self, Stop.self, Photo.self, Tag.self, Guide.self, Booking.self]
}
