import TidemarkAdministration
import TidemarkModel

/// Has archives of persons' data made some at once: each takes as much room for a while as the person's data.
final class ArchiveTurns: Sendable {
    private static let most = 2

    /// The accounts whose archives are being made.
    private let accounts = LockedValue<Set<String>>([])

    /// Makes an archive when it is its turn, and answers with it.
    ///
    /// - Throws: ``AdministrationError`` `busy` while others are being made, or one of the same account; what the body throws.
    func reply(
        with account: String, _ make: () async throws(AdministrationError) -> ArchiveFile
    ) async throws(AdministrationError) -> ConsoleReply {
        let isTurn = accounts.withLock { $0.count < Self.most && $0.insert(account).inserted }
        guard isTurn else { throw AdministrationError(.busy, "other archives are being made; try again in some minutes") }
        defer { accounts.withLock { _ = $0.remove(account) } }
        let file = try await make()
        var reply = ConsoleReply(
            200, type: "application/x-tar", .pieces(file.count) { offset, most in try file.read(at: offset, most: most) })
        reply.headers.append(("Content-Disposition", "attachment; filename=\"tidemark-export.tar\""))
        return reply
    }
}
