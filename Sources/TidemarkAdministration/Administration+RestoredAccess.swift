import TidemarkCloud
import TidemarkCloudEngine
import TidemarkIdentity
import TidemarkModel

/// Accounts that have access again after whole requests of theirs were refused.
extension Administration {
    /// The codes with which whole requests are refused until a person acts. Other refusals pass by themselves, or devices expect
    /// them.
    private static let lastingCodes: Set = ["AUTHENTICATION_FAILED", "AUTHENTICATION_REQUIRED", SyncFailure.quotaExceeded]

    /// Tells whether a failure refused a whole request, until a person acts.
    static func isOfAccess(_ failure: SyncFailure) -> Bool { failure.record.isEmpty && lastingCodes.contains(failure.code) }

    /// Returns the failures whose reason is gone.
    ///
    /// - The account can be used, and the session that was refused is valid, or its device has signed in again since. The name of
    ///   the device tells that.
    /// - Or the account's own quota was full, and has room for the refused bytes now.
    ///
    /// This looks at accounts and sessions as they are, since servers record nothing of successful requests.
    ///
    /// - Parameter accounts: The accounts of the failures, by their identifiers.
    func failuresWithRestoredAccess(
        _ failures: [SyncFailure], _ accounts: [String: StoredAccount]
    ) async throws -> Set<SyncFailure> {
        var (restored, sessions): (Set<SyncFailure>, [String: [Session]]) = ([], [:])
        var room = FreeRoom(cloud)
        for failure in failures where Self.isOfAccess(failure) {
            guard let account = accounts[failure.account], account.status == .available else { continue }
            guard failure.code != SyncFailure.quotaExceeded else {
                if await room.fits(failure, account) { restored.insert(failure) }
                continue
            }
            if sessions[account.id] == nil { sessions[account.id] = try await credentials.sessions(of: account.id) }
            for session in sessions[account.id, default: []] where try await restores(session, failure) {
                restored.insert(failure)
                break
            }
        }
        return restored
    }

    /// Tells whether a session allows its device the request that was refused.
    private func restores(_ session: Session, _ failure: SyncFailure) async throws -> Bool {
        guard session.container == failure.container, session.environment.rawValue == failure.environment else { return false }
        if session.id == failure.sender { return session.expires > credentials.time }
        guard session.began > failure.at else { return false }
        // A device of a session that has ended has the name with which it signed in. The person may have renamed it since.
        if failure.device == session.device { return true }
        return try await credentials.device(atSignInOf: session.id) == failure.device
    }
}
