import TidemarkAdministration
import TidemarkModel

/// Limits the number of archives of people's data that are made or downloaded at once. Until it is downloaded, an archive takes
/// as much disk space as the person's data.
final class ArchiveTurns: Sendable {
    private static let most = 2

    /// The accounts whose archives are being made or downloaded.
    private let accounts = LockedValue<Set<String>>([])

    /// An archive's turn, which ends when the object is freed.
    private final class Turn: Sendable {
        private let turns: ArchiveTurns
        private let account: String

        init(of account: String, _ turns: ArchiveTurns) { (self.account, self.turns) = (account, turns) }

        deinit { turns.accounts.withLock { [account] in _ = $0.remove(account) } }
    }

    /// Makes an archive if there is room for its turn, and answers with it.
    ///
    /// - Throws: ``AdministrationError`` `busy` while other archives, or one of the same account, are made or downloaded; and the
    ///   errors of the body.
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
