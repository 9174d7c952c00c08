import Foundation
import Tidemark

/// A person's travel book: a container with trips, and what they own.
///
/// ```swift
/// let book = try await TravelBook(in: folder)
/// let list = TripList(book)
/// ```
public struct TravelBook: Sendable {
    /// The types of the travel book. The store keeps their relationships for all of them, also before the first one is saved.
    public static let types: [any Record.Type] = [
        Trip.self, Stop.self, Photo.self, DiaryEntry.self, Tag.self, Guide.self, Booking.self,
    ]

    public let container: PersistentContainer

    /// Opens the travel book in a folder, making it if there is none, and brings what an older version has made up to this one.
    ///
    /// - Parameter device: The name that history gives the changes that are made here.
    public init(in folder: URL, device: String = "reisebuch") async throws {
        let location = StoreLocation.directory(folder)
        try await self.init(PersistentContainer(named: Self.name, at: location, author: device))
    }

    /// Makes an empty book that goes with the last reference to it: for previews and tests.
    public static func temporary(device: String = "reisebuch") async throws -> TravelBook {
        try await TravelBook(PersistentContainer.temporary(author: device))
    }

    /// - Parameter container: An open container, which nothing synchronises yet.
    public init(_ container: PersistentContainer) async throws {
        try await SchemaEvolution.run(on: container)
        try await container.declare(Self.types)
        self.container = container
    }

    static let name = "Reisebuch"

    /// The trip with a title; else the newest one whose title begins with the text, whatever the case and accents.
    public func trip(_ text: String) async throws -> Trip? {
        if let trip = try await container.fetchAll(Trip.self, where: \.title == text, limit: 1).first { return trip }
        return try await container.fetchAll(
            Trip.self, where: .field(\.title).begins(with: text, options: .lenient), sortedBy: [.descending(\.begins)], limit: 1
        ).first
    }
}

extension TextOptions {
    /// Neither case nor accents count: `alesund` finds `Ålesund`.
    static let lenient: TextOptions = [.caseInsensitive, .diacriticInsensitive]
}
