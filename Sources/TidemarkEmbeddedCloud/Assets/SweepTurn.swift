import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// This server's turn to go through the owners of a container. Another server goes on with it where this one is silent for too long.
final class SweepTurn: Sendable {
    private let storage: any CloudStorage
    /// `nil` where every caller has a turn of its own.
    private let claim: LockedValue<SweepClaim?>

    private init(_ storage: any CloudStorage, _ claim: SweepClaim?) {
        self.storage = storage
        self.claim = LockedValue(claim)
    }

    /// Begins a turn, or goes on with that of a server that is silent.
    ///
    /// - Parameter period: In such a time there is one turn; `nil` for one that nobody else knows of.
    /// - Returns: `nil` where it is not this server's turn.
    static func begin(over storage: any CloudStorage, every period: Duration?) async throws(CloudError) -> SweepTurn? {
        guard let period else { return SweepTurn(storage, nil) }
        guard let claim = try await storage.claimSweep(every: period) else { return nil }
        return SweepTurn(storage, claim)
    }

    /// Returns those of a container's owners whom the turn has not come to, in its order.
    func rest(of owners: [String]) -> [String] {
        let last = claim.withLock { $0?.last }
        return owners.sorted().filter { owner in last.map { $0 < owner } ?? true }
    }

    /// Says that this server is at work.
    ///
    /// - Parameter owner: The owner whose contents were swept; `nil` where it goes on with the same one.
    /// - Returns: `false` where another server has the turn by now.
    func renew(behind owner: String? = nil) async throws(CloudError) -> Bool {
        guard var next = claim.withLock({ $0 }) else { return true }
        if let owner { next.last = owner }
        guard let renewed = try await storage.renewSweep(next) else { return false }
        claim.withLock { $0 = renewed }
        return true
    }

    /// Ends the turn, unless another server has it.
    func end() async throws(CloudError) {
        guard let known = claim.withLock({ $0 }) else { return }
        try await storage.endSweep(known)
    }
}
