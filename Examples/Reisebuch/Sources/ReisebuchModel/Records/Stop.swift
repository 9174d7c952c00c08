import Foundation
import Tidemark

/// A stop of a trip. It belongs to the trip, owns its photos and its diary entries, and refers to tags and to a guide.
public struct Stop: Record, Identifiable, Equatable {
    public var id = UUID()
    public var trip: Reference<Trip>
    /// The place in the order of the trip, which the traveller may change.
    public var position: Int
    public var place: String
    public var country: String?
    public var location: Location?
    public var arrival: Date
    public var nights = 1
    public var cost: Decimal?
    /// Many-to-many, in the order in which they were given.
    public var tags: [Reference<Tag>] = []
    public var guide: Reference<Guide>?

    public init(of trip: Trip, at position: Int, place: String, country: String? = nil, arrival: Date) {
        self.trip = Reference(trip)
        self.position = position
        self.place = place
        self.country = country
        self.arrival = arrival
    }

    public static var relationships: [Relationship<Stop>] {
        // With the trip goes the stop. A tag or a guide that is deleted is taken off the stop.
        [.owned(by: \.trip), .weak(\.tags, onDelete: .nullify), .weak(\.guide, onDelete: .nullify)]
    }

    public static let photos = ToMany<Stop, Photo>(by: \.stop, sortedBy: [.ascending(\.takenAt)])
    public static let entries = ToMany<Stop, DiaryEntry>(by: \.stop, sortedBy: [.ascending(\.day)])
    public static var indexes: [RecordIndex<Stop>] { [.on(\.country, \.arrival)] }

    public func validate() throws {
        try place.mustNotBeBlank("Der Halt braucht einen Ort.", field: "place")
        if let location, abs(location.latitude) > 90 || abs(location.longitude) > 180 {
            throw ValidationError("Diesen Ort gibt es auf der Erde nicht.", field: "location")
        }
        if nights < 0 { throw ValidationError("Weniger als null Nächte gibt es nicht.", field: "nights") }
    }
}

extension Location {
    /// The place for the person: `67,9° N, 13,1° O`.
    public var text: String {
        func degrees(_ value: Double, _ positive: String, _ negative: String) -> String {
            let number = abs(value).formatted(.number.precision(.fractionLength(1)).locale(.reisebuch))
            return "\(number)° \(value < 0 ? negative : positive)"
        }
        return "\(degrees(latitude, "N", "S")), \(degrees(longitude, "O", "W"))"
    }
}
