import Foundation
import Observation
import Tidemark

/// The sheet in which a trip and its stops are edited. Nothing is saved before the person says so, and then all of it or nothing.
@MainActor @Observable public final class TripEditor {
    /// What became of a save.
    public enum Outcome: Equatable, Sendable {
        case saved
        /// Something is missing or wrong, in words for the person; the sheet stays open.
        case invalid(String, field: String?)
        /// Others have changed the same fields meanwhile; the person decides.
        case conflict(fields: [String])
        /// It can't be saved, such as without the permission.
        case failed(String)
    }

    public var trip: Trip
    public private(set) var stops: [Stop]
    public let isNew: Bool

    private let context: EditingContext
    @ObservationIgnored private var removed: [Stop] = []
    @ObservationIgnored private var inserted: Set<Stop.ID> = []

    /// Edits a trip in the state that the stores have now, whatever others save meanwhile.
    ///
    /// - Returns: `nil` where the trip is gone.
    public init?(_ id: Trip.ID, in book: TravelBook) async throws {
        context = book.container.newContext()
        try await context.setQueryGeneration(.current)
        guard let trip = try await context.fetch(Trip.self, id: id) else { return nil }
        self.trip = trip
        stops = try await context.fetchAll(Stop.self, where: \.trip == trip, sortedBy: [.ascending(\.position)])
        isNew = false
    }

    /// Begins a new trip.
    ///
    /// - Parameter share: A share that the trip is to be in from the beginning, such as that of a family's trips; by default none.
    public init(newTripIn book: TravelBook, share: Share? = nil) async {
        context = book.container.newContext()
        if let share { await context.setInsertionTarget(.share(share)) }
        trip = Trip(title: "", begins: Date())
        stops = []
        isNew = true
    }

    /// Adds a stop at the end. Of a shared trip it will be in the share, because the trip owns it.
    @discardableResult
    public func addStop(_ place: String, country: String? = nil, arrival: Date) -> Stop {
        let stop = Stop(of: trip, at: (stops.map(\.position).max() ?? 0) + 1, place: place, country: country, arrival: arrival)
        stops.append(stop)
        inserted.insert(stop.id)
        return stop
    }

    public func update(_ stop: Stop) { if let index = stops.firstIndex(where: { $0.id == stop.id }) { stops[index] = stop } }

    public func remove(_ stop: Stop) {
        stops.removeAll { $0.id == stop.id }
        if inserted.remove(stop.id) == nil { removed.append(stop) }
    }

    /// Gives the stops another order, as a list does whose rows are dragged.
    public func move(from index: Int, to target: Int) {
        stops.insert(stops.remove(at: index), at: target)
        for index in stops.indices { stops[index].position = index + 1 }
    }

    /// Saves the trip, its new, changed and removed stops: one transaction.
    ///
    /// - Parameter isOverwriting: Whether these values go before what others have saved meanwhile.
    public func save(overwriting isOverwriting: Bool = false) async -> Outcome {
        do {
            try await apply()
            if isOverwriting { try await context.refreshAll() }
            try await context.save(mergePolicy: isOverwriting ? .mergeByPropertyObjectTrump : .error)
            (removed, inserted) = ([], [])
            return .saved
        } catch let error as ValidationError {
            return .invalid(error.message, field: error.field)
        } catch let conflicts as UnresolvedConflicts {
            return .conflict(fields: conflicts.records.flatMap(\.fields).sorted())
        } catch {
            return .failed(error.localizedDescription)
        }
    }

    private func apply() async throws {
        // A save checks the records, too, but not before it has made fields of their values: what can't be stored would be no text for a person.
        try trip.validate()
        for stop in stops { try stop.validate() }
        // What a save before this one has begun, and could not end.
        await context.rollback()
        if isNew { await context.insert(trip) } else { try await context.update(trip) }
        for stop in stops {
            if inserted.contains(stop.id) { await context.insert(stop) } else { try await context.update(stop) }
        }
        for stop in removed { try await context.delete(stop) }
    }
}
