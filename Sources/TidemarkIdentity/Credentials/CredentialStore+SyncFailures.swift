package import TidemarkCloudEngine
import TidemarkModel

extension CredentialStore {
    /// Records refused requests of clients, each with the account of its session and the name of its device. A refused sign-in
    /// has no session, and keeps the device's name that it has.
    ///
    /// A failure gets the account of its session only in the session's own container, while that is served: a client can name any
    /// container. A failure without an account gets no device. For a session that has ended, the device's name is the one with
    /// which it signed in.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func record(_ failures: [SyncFailure]) async throws(CredentialError) {
        var places: [String: SignedInPlace?] = [:]
        var known: [SyncFailure: SyncFailure] = [:]
        for var failure in failures {
            if failure.account.isEmpty, !failure.session.isEmpty {
                let place = try await place(ofSession: failure.session, known: &places)
                if let place, place.holds(failure), try hasContainer(failure.container) { failure.account = place.account }
            }
            failure.session = ""
            if !failure.isSignInOfNobody {
                let hasDevice = !failure.account.isEmpty && !failure.sender.isEmpty
                failure.device = hasDevice ? try await place(ofSession: failure.sender, known: &places)?.device ?? "" : ""
            }
            failure.fit()
            if known[failure.kind]?.add(failure) == nil { known[failure.kind] = failure }
        }
        let (rows, now) = (Array(known.values), now())
        try await stored { try await storage.record(rows, at: now) }
    }

    /// Returns the refused requests of clients in the last 7 days, the newest first.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func syncFailures(_ filter: SyncFailureFilter, limit: Int = 1_000) async throws(CredentialError) -> [SyncFailure] {
        var filter = filter
        filter.since = max(filter.since, now() - SyncFailureLimits.age)
        let wanted = filter
        return try await stored { try await storage.syncFailures(wanted, limit: limit) }
    }

    /// Returns the different values of a column of the refused requests in the last 7 days.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func syncFailureValues(
        of column: SyncFailureColumn, _ filter: SyncFailureFilter = SyncFailureFilter()
    ) async throws(CredentialError) -> Set<String> {
        var filter = filter
        filter.since = max(filter.since, now() - SyncFailureLimits.age)
        let wanted = filter
        return try await stored { try await storage.syncFailureValues(of: column, wanted) }
    }

    /// Removes refused requests that are older than 7 days, and those of accounts that are gone: a server may have added them
    /// after the account's removal.
    ///
    /// - Parameter exists: Whether there is an account.
    /// - Throws: ``CredentialError`` `storage`, `busy`; and what `exists` throws.
    package func sweepSyncFailures(_ exists: (String) async throws -> Bool) async throws {
        let now = now()
        try await stored { try await storage.sweepSyncFailures(at: now) }
        let tried = try await syncFailures(
            SyncFailureFilter(account: ""), limit: SyncFailureLimits.ofNobodyInAll + SyncFailureLimits.ofSignInsInAll
        )
        .compactMap(\.triedAccount)
        for account in try await syncFailureValues(of: .account).union(tried) where !account.isEmpty {
            guard try await !exists(account) else { continue }
            try await stored { try await storage.removeSyncFailures(of: account) }
        }
    }

    /// The account, container and device of a session, which may have ended.
    private struct SignedInPlace {
        let account, container: String
        /// The name of the device; empty where it has none, or where it is not known any more.
        let device: String
        /// `nil` where only the audit log knows the session.
        var environment: StoreEnvironment?

        func holds(_ failure: SyncFailure) -> Bool {
            container == failure.container && (environment == nil || environment?.rawValue == failure.environment)
        }
    }

    /// Returns the account of a session that may have ended; `nil` where it is not known any more. The account may be gone.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func account(ofSession id: String) async throws(CredentialError) -> String? {
        try await place(ofSession: id)?.account
    }

    /// Returns the name with which a device signed in; `nil` where the audit log does not have the sign-in.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func device(atSignInOf session: String) async throws(CredentialError) -> String? {
        try await stored { try await storage.signIn(ofSession: session) }.map { AuditEvent.device(ofSignIn: $0.after) }
    }

    /// Returns the place of a session that may have ended; `nil` where it is not known any more.
    private func place(ofSession id: String) async throws(CredentialError) -> SignedInPlace? {
        guard let bytes = Hexadecimal.bytes(id) else { return nil }
        if let row = try await row(ofSession: bytes) {
            return SignedInPlace(
                account: row.account, container: row.container, device: row.device, environment: row.environment)
        }
        guard let found = try await stored({ try await storage.signIn(ofSession: id) }) else { return nil }
        return SignedInPlace(
            account: found.account, container: found.container, device: AuditEvent.device(ofSignIn: found.after))
    }

    /// As ``place(ofSession:)``, which it calls once for each session.
    ///
    /// - Parameter known: The places that were found before, by the sessions.
    private func place(
        ofSession id: String, known: inout [String: SignedInPlace?]
    ) async throws(CredentialError) -> SignedInPlace? {
        if let found = known[id] { return found }
        let place = try await place(ofSession: id)
        known.updateValue(place, forKey: id)
        return place
    }
}
