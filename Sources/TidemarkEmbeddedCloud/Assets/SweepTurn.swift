import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// A server's turn to sweep the owners of a container. If the server does not renew it in time, another one continues the turn.
final class SweepTurn: Sendable {
    private let storage: any CloudStorage
    /// `nil` for a turn that no other server knows of.
    private let claim: LockedValue<SweepClaim?>

    private init(_ storage: any CloudStorage, _ claim: SweepClaim?) {
        self.storage = storage
        self.claim = LockedValue(claim)
    }

    /// Begins a turn, or continues that of a server which has not renewed it in time.
    ///
    /// - Parameter period: The time in which there is one turn; `nil` for a turn that no other server knows of.
    /// - Returns: `nil` where it is not this server's turn.
    static func begin(over storage: any CloudStorage, every period: Duration?) async throws(CloudError) -> SweepTurn? {
        guard let period else { return SweepTurn(storage, nil) }
        guard let claim = try await storage.claimSweep(every: period) else { return nil }
        return SweepTurn(storage, claim)
    }

    /// Returns the owners that the turn has yet to reach, in its order.
    func rest(of owners: [String]) -> [String] {
        let last = claim.withLock { $0?.last }
        return owners.sorted().filter { owner in last.map { $0 < owner } ?? true }
    }

    /// Renews the turn: this server is still at work.
    ///
    /// - Parameter owner: The owner whose contents were swept; `nil` where the sweep is still at the same owner.
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
