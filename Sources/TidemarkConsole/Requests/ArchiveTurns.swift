import TidemarkAdministration
import TidemarkModel

/// Has archives of persons' data made and downloaded some at once: each takes as much room, until it is downloaded, as the person's data.
final class ArchiveTurns: Sendable {
    private static let most = 2

    /// The accounts whose archives are being made or downloaded.
    private let accounts = LockedValue<Set<String>>([])

    /// An archive's turn, which ends with it.
    private final class Turn: Sendable {
        private let turns: ArchiveTurns
        private let account: String

        init(of account: String, _ turns: ArchiveTurns) { (self.account, self.turns) = (account, turns) }

        deinit { turns.accounts.withLock { [account] in _ = $0.remove(account) } }
    }

    /// Makes an archive when it is its turn, and answers with it.
    ///
    /// - Throws: ``AdministrationError`` `busy` while others are being made, or one of the same account; what the body throws.
    func reply(
        with account: String, _ make: () async throws(AdministrationError) -> ArchiveFile
    ) async throws(AdministrationError) -> ConsoleReply {
        let isTurn = accounts.withLock { $0.count < Self.most && $0.insert(account).inserted }
        guard isTurn else {
            throw AdministrationError(.busy, "other archives are being made or downloaded; try again in some minutes")
        }
        let turn = Turn(of: account, self)
        let file = try await make()
        var reply = ConsoleReply(
            200, type: "application/x-tar",
            .pieces(file.count) { offset, most in
                // The turn lasts as long as the answer.
                defer { withExtendedLifetime(turn) {} }
                return try await file.read(at: offset, most: most)
            })
        reply.headers.append(("Content-Disposition", "attachment; filename=\"\(file.name).tar\""))
        return reply
    }
}
