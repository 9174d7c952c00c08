import Foundation
import Tidemark

/// What the widget on the home screen shows. It is another process, and opens the travel book for reading only.
public struct TravelWidget: Sendable {
    private let container: ReadOnlyContainer

    /// - Throws: `StoreError` `notFound` before the app was opened for the first time.
    public init(in folder: URL) throws {
        container = try ReadOnlyContainer(named: TravelBook.name, at: .directory(folder))
    }

    /// What has changed since a token can be asked for, to draw again only then.
    public func hasChanges(since token: ContainerToken?) throws -> Bool { try container.historyToken() != token }
    public func token() throws -> ContainerToken { try container.historyToken() }

    /// The newest trip, in a line: `Norwegen, 3 Halte`.
    public func line() async throws -> String {
        guard let trip = try await container.fetchAll(Trip.self, sortedBy: [.descending(\.begins)], limit: 1).first else {
            return "Noch keine Reise"
        }
        let stops = try await container.count(Stop.self, where: \.trip == trip)
        return "\(trip.title), \(stops) \(stops == 1 ? "Halt" : "Halte")"
    }
}
