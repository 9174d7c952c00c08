import Foundation
import Tidemark
import TidemarkModel

/// The examples of the guide to models that change.
enum Evolution {
    struct Trip: Record, Identifiable {
        static let formerFieldNames = ["title": ["name"]]
        static var prototype: Trip? { Trip(title: "") }

        var id = UUID()
        var title: String // was called `name`
        var nights = 1 // is new
        var rating: Double? // was called `stars`, and a whole number
        var transport = Transport.train
    }

    struct Stop: Record, Identifiable {
        var id = UUID()
        var trip: Reference<Trip>

        static var relationships: [Relationship<Stop>] { [.owned(by: \.trip)] }
    }

    enum Transport: RawRepresentable, Codable, Sendable {
        case train, ship
        case other(String)

        init(rawValue: String) {
            switch rawValue {
            case "train": self = .train
            case "ship": self = .ship
            default: self = .other(rawValue)
            }
        }

        var rawValue: String {
            switch self {
            case .train: "train"
            case .ship: "ship"
            case .other(let value): value
            }
        }
    }

    static func open(_ journal: PersistentContainer, _ databases: CloudDatabases) async throws {
        try await journal.changeSchema([
            .retypeField("stars", of: "Trip", to: .init(name: "rating", type: .double)),
            .dropField("weather", of: "Trip"),
        ])
        try await journal.declare([Trip.self, Stop.self])
        journal.startSyncing(with: databases)
    }

    static func list(_ journal: PersistentContainer, tell: (String) -> Void) async throws -> [Trip] {
        let found = try await journal.fetchResult(Trip.self)
        if !found.unreadable.isEmpty { tell("\(found.unreadable.count) trips need a newer version of the app") }
        return found.records
    }
}
