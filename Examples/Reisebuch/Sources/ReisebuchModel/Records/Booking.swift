import Foundation
import Tidemark

/// Something that was booked for a trip. While it is there, the trip can't be deleted.
public struct Booking: Record, Identifiable, Equatable {
    public enum Kind: String, Codable, CaseIterable, Sendable {
        case ticket, room, tour
    }

    public var id = UUID()
    public var trip: Reference<Trip>
    public var kind: Kind
    public var provider: String
    public var price: Decimal

    public init(of trip: Trip, _ kind: Kind, by provider: String, for price: Decimal) {
        self.trip = Reference(trip)
        self.kind = kind
        self.provider = provider
        self.price = price
    }

    /// Weak: whoever gets a share of the trip does not get what it cost.
    public static var relationships: [Relationship<Booking>] { [.weak(\.trip, onDelete: .deny)] }
}
