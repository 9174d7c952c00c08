import TidemarkModel

/// The memory for bodies: of all requests, and of the requests from one address, so that one address leaves room for the others.
final class BodyBudget: Sendable {
    /// The answer to a request for room.
    enum Answer {
        case taken
        /// The address has as much as it may have.
        case shareIsFull
        case isFull
    }

    private let limit, share: Int
    private let taken = LockedValue<(all: Int, byAddress: [String: Int])>((0, [:]))

    /// - Parameter share: The most bytes of one address.
    init(limit: Int, share: Int) { (self.limit, self.share) = (limit, share) }

    var bytes: Int { taken.withLock { $0.all } }

    /// Takes room for some bytes, if there is any.
    func take(_ count: Int, for address: String) -> Answer {
        taken.withLock { taken in
            guard taken.all + count <= limit else { return .isFull }
            let own = taken.byAddress[address] ?? 0
            guard own + count <= share else { return .shareIsFull }
            taken.all += count
            taken.byAddress[address] = own + count
            return .taken
        }
    }

    func giveBack(_ count: Int, for address: String) {
        guard count > 0 else { return }
        taken.withLock { taken in
            taken.all -= count
            let left = (taken.byAddress[address] ?? 0) - count
            taken.byAddress[address] = left > 0 ? left : nil
        }
    }
}
