import Foundation
import Tidemark

/// A row of the list of trips.
public struct TripRow: Identifiable, Equatable, Sendable {
    public let trip: Trip
    public let stops: Int
    public let photos: Int
    public let access: Access

    public var id: UUID { trip.id }

    /// What the person may do with the trip: which buttons the row has.
    public struct Access: Equatable, Sendable {
        public var isShared = false
        /// The owner's name; `nil` for one's own trip.
        public var owner: String?
        public var canEdit = true
        /// Only the owner deletes a trip; others leave it.
        public var canDelete = true
        public var canLeave = false
        public var canShare = true
        /// Why not, for the person; `nil` where everything is possible.
        public var reason: String?

        init() {}

        init(_ permission: RecordPermission) {
            isShared = permission.isShared
            owner = permission.isOwner ? nil : permission.owner?.title
            (canEdit, canShare) = (permission.canEdit, permission.canShare)
            // By the rules of sharing, who may write may delete.
            canDelete = permission.canDelete && (permission.isOwner || !permission.isShared)
            canLeave = permission.decision(for: .leave).isAllowed
            let edit = permission.decision(for: .update)
            reason = edit.isAllowed ? nil : edit.sentence(in: .current)
        }
    }
}

/// What the list of trips shows, at one moment of both stores.
public struct TripListContent: Equatable, Sendable {
    public var rows: [TripRow] = []
    /// The number of trips of a newer version that this one can't read.
    public var unreadable = 0

    public init() {}

    /// Reads the rows: six queries, however many trips there are.
    init(of snapshot: ContainerSnapshot, where condition: RecordPredicate<Trip>?) async throws {
        let found = try await snapshot.fetchResult(
            Trip.self, where: condition,
            sortedBy: [.descending(\.begins), .ascending(\.title, order: .localized(.reisebuch))])
        let stops = try await snapshot.fetchAll(Trip.stops, of: found.records)
        let photos = try await snapshot.counts(Stop.photos, of: stops.values.joined())
        var access: [String: TripRow.Access] = [:]
        for try await permission in snapshot.permissions.report(on: Trip.self, where: condition) {
            access[permission.record.name] = TripRow.Access(permission)
        }
        rows = found.records.map { trip in
            let stops = stops[Reference(trip)] ?? []
            return TripRow(
                trip: trip, stops: stops.count, photos: stops.reduce(0) { $0 + (photos[Reference($1)] ?? 0) },
                access: access[trip.recordName] ?? TripRow.Access())
        }
        unreadable = found.unreadable.count
    }
}
