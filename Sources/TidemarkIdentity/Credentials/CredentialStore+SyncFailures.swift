package import TidemarkCloudEngine
import TidemarkModel

extension CredentialStore {
    /// Adds what clients were refused, once the account of each ended session is looked up.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func record(_ failures: [SyncFailure]) async throws(CredentialError) {
        var accounts: [String: String] = [:]
        var known: [SyncFailure: SyncFailure] = [:]
        for var failure in failures {
            if failure.account.isEmpty, !failure.session.isEmpty {
                if let account = accounts[failure.session] {
                    failure.account = account
                } else {
                    failure.account = try await account(ofSession: failure.session) ?? ""
                    accounts[failure.session] = failure.account
                }
            }
            failure.session = ""
            failure.fit()
            if known[failure.kind]?.add(failure) == nil { known[failure.kind] = failure }
        }
        let (rows, now) = (Array(known.values), now())
        try await stored { try await storage.record(rows, at: now) }
    }

    /// Returns what clients were refused in the last 7 days, the newest first.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func syncFailures(_ filter: SyncFailureFilter, limit: Int = 1_000) async throws(CredentialError) -> [SyncFailure] {
        var filter = filter
        filter.since = max(filter.since, now() - SyncFailureLimits.age)
        let wanted = filter
        return try await stored { try await storage.syncFailures(wanted, limit: limit) }
    }

    /// Removes what clients were refused more than 7 days ago.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    package func sweepSyncFailures() async throws(CredentialError) {
        let now = now()
        try await stored { try await storage.sweepSyncFailures(at: now) }
    }

    /// The account of a session that may have ended; `nil` where nothing tells any more.
    private func account(ofSession id: String) async throws(CredentialError) -> String? {
        guard let bytes = Hexadecimal.bytes(id) else { return nil }
        if let row = try await row(ofSession: bytes) { return row.account }
        return try await stored { try await storage.account(ofSignIn: id) }
    }
}

extension SyncFailure {
    /// Cuts texts that came from a client to what a row has room for. No row has U+0000, which PostgreSQL can't store.
    fileprivate mutating func fit() {
        (container, operation, code) = (Self.cut(container, 255), Self.cut(operation, 255), Self.cut(code, 100))
        (record, recordType, zone) = (Self.cut(record, 255), Self.cut(recordType, 255), Self.cut(zone, 255))
        reason = Self.cut(reason, 1_000)
    }

    /// - Parameter limit: Bytes of UTF-8.
    private static func cut(_ text: String, _ limit: Int) -> String {
        var cut = ""
        for scalar in text.unicodeScalars {
            guard cut.utf8.count + UTF8.width(scalar) <= limit else { break }
            cut.unicodeScalars.append(scalar == "\0" ? "\u{fffd}" : scalar)
        }
        return cut
    }
}
