import Foundation
import Tidemark
import TidemarkModel

/// The examples of the guide to models.
enum Models {
    struct Trip: Record, Identifiable {
        var id = UUID()
        var title: String

        static let stops = ToMany<Trip, Stop>(by: \.trip, sortedBy: [.ascending(\.day)])
    }

    struct Stop: Record, Identifiable {
        var id = UUID()
        var trip: Reference<Trip>
        var day = 1
        var tags: [Reference<Tag>] = []
        var guide: Reference<Guide>?

        static var relationships: [Relationship<Stop>] { [.owned(by: \.trip), .weak(\.tags), .weak(\.guide)] }
        static let photos = ToMany<Stop, Photo>(by: \.stop)
    }

    struct Photo: Record, Identifiable {
        var id = UUID()
        var stop: Reference<Stop>

        static var relationships: [Relationship<Photo>] { [.owned(by: \.stop)] }
    }

    struct Tag: Record, Identifiable {
        var id = UUID()
    }

    struct Guide: Record, Identifiable {
        var id = UUID()
    }

    static func delete(_ trip: Trip, in journal: PersistentContainer) async throws {
        do {
            let result = try await journal.delete(trip)
            print("\(result.cascaded.count) records went with it")
        } catch let denied as DeletionDenied {
            for refusal in denied.refusals { print(refusal.record.name, refusal.reason) }
        }
    }

    static func along(
        _ trip: Trip, in journal: PersistentContainer, _ use: (Stop, [Photo], Int) -> Void
    ) async throws {
        func show(_ stop: Stop, _ photos: [Photo], badge: Int) { use(stop, photos, badge) }
        let stops = try await journal.fetchAll(Trip.stops, of: trip)
        let photos = try await journal.fetchAll(Stop.photos, of: stops)
        let badges = try await journal.counts(Stop.photos, of: stops)
        for stop in stops { show(stop, photos[Reference(stop)] ?? [], badge: badges[Reference(stop)] ?? 0) }
    }

    struct Country: Record, Identifiable {
        var id = UUID()
        var code: String

        static var uniqueKeys: [UniqueKey] { [UniqueKey("code")] }
    }

    static func save(_ trip: Trip, _ stop: Stop, in journal: PersistentContainer) async throws -> Trip {
        try await journal.save([trip, stop])
        return try await journal.saveAndFetch(trip)
    }

    static func declare(_ journal: PersistentContainer) async throws {
        try await journal.declare([Trip.self, Stop.self, Photo.self])
    }

    static func openAndDeclare() async throws -> PersistentContainer {
        let journal = try PersistentContainer(named: "Journal")
        try await journal.declare([Trip.self, Stop.self, Photo.self])
        return journal
    }
}
