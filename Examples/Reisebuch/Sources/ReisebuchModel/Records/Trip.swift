import Foundation
import Tidemark

/// A trip. It owns its stops: they are shared with it, and deleted with it.
public struct Trip: Record, Identifiable, Equatable {
    public var id = UUID()
    /// Was called `name` in version 1.
    public var title: String
    public var begins: Date
    public var ends: Date?
    /// Is new in version 2: older trips have the value of ``prototype``.
    public var transport = Transport.train
    /// From 1 to 5. Was a whole number in version 1.
    public var rating: Double?
    public var budget: Decimal?
    public var currency = Currency.eur

    public init(title: String, begins: Date, ends: Date? = nil) {
        self.title = title
        self.begins = begins
        self.ends = ends
    }

    public static let stops = ToMany<Trip, Stop>(by: \.trip, sortedBy: [.ascending(\.position)])
    public static let bookings = ToMany<Trip, Booking>(by: \.trip, sortedBy: [.descending(\.price, order: .decimal)])
    public static var indexes: [RecordIndex<Trip>] { [.on(\.begins)] }
    /// A share is called like its trip, also when the trip gets another title.
    public static var shareTitle: KeyPath<Trip, String>? { \.title }

    // How version 1 called it, and what it did not have; `SchemaEvolution` has the rest.
    public static let formerFieldNames = ["title": ["name"]]
    public static var prototype: Trip? { Trip(title: "", begins: .distantPast) }

    public func validate() throws {
        try title.mustNotBeBlank("Die Reise braucht einen Titel.", field: "title")
        if let ends, ends < begins { throw ValidationError("Die Reise endet, bevor sie beginnt.", field: "ends") }
        if let budget, budget < 0 { throw ValidationError("Ein Budget ist nicht negativ.", field: "budget") }
        if let rating, !(1...5).contains(rating) { throw ValidationError("Eine Reise hat 1 bis 5 Sterne.", field: "rating") }
    }
}

extension String {
    /// Throws a validation error with a text for the person if the string has nothing but white space.
    func mustNotBeBlank(_ message: String, field: String) throws {
        if allSatisfy(\.isWhitespace) { throw ValidationError(message, field: field) }
    }
}
