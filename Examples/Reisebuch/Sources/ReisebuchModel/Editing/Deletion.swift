import Foundation
import Tidemark

extension TravelBook {
    /// What a deletion did, for the person.
    public enum Deletion: Equatable, Sendable {
        /// With the number of stops, photos and entries that went along.
        case deleted(along: Int)
        /// Bookings stand against it: `Hurtigruten`.
        case booked(providers: [String])
        /// The person may not.
        case refused(String)
    }

    /// Deletes a trip with what it owns. It is refused while something is booked.
    public func delete(_ trip: Trip) async throws -> Deletion {
        do {
            return .deleted(along: try await container.delete(trip).cascaded.count)
        } catch let denial as DeletionDenied {
            let bookings = denial.refusals.compactMap { refusal -> Reference<Booking>? in
                guard case .isReferredTo(let other, _) = refusal.reason else { return nil }
                return Reference(other.name)
            }
            guard !bookings.isEmpty else { return .refused(denial.localizedDescription) }
            return .booked(providers: try await container.fetchAll(bookings).values.map(\.provider).sorted())
        } catch let denial as PermissionDenied {
            return .refused(denial.localizedDescription)
        }
    }
}
