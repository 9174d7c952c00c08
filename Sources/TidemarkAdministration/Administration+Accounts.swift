import TidemarkCloud
package import TidemarkCloudEngine
package import TidemarkEmbeddedCloud
package import TidemarkIdentity
import TidemarkModel

/// Accounts, their devices and sessions, and operators.
extension Administration {
    /// Returns accounts whose address, name, phone number or identifier contains a text, by their addresses. O(accounts).
    package func accounts(matching text: String = "", limit: Int = 100) async throws(AdministrationError) -> [StoredAccount] {
        try demandOperator("the list of accounts")
        let wanted = text.lowercased()
        let all = try await wrapped { try await cloud.allAccounts() }
        let found = all.lazy.filter { account in
            wanted.isEmpty || account.email.contains(wanted) || account.id.lowercased().contains(wanted)
                || account.name?.title.lowercased().contains(wanted) ?? false || account.phone?.contains(wanted) ?? false
        }
        return Array(found.prefix(limit))
    }

    /// What is known of an account.
    package struct AccountDetails: Sendable {
        package let account: StoredAccount
        package let usage: [EmbeddedCloud.Usage]
        package let sessions: [Session]
        package let hasPassword: Bool
        package let role: Operator?
        /// Sign-ins and what was done to the account, the newest first.
        package let entries: [AuditEntry]
    }

    /// Returns what is known of an account.
    package func details(of name: String) async throws(AdministrationError) -> AccountDetails {
        try demandOperator("an account")
        let account = try await account(name)
        return try await wrapped {
            AccountDetails(
                account: account, usage: try await cloud.usage(of: account),
                sessions: try await credentials.sessions(of: account.id),
                hasPassword: try await credentials.accountsWithPassword().contains(account.id),
                role: try await credentials.operatorRole(of: account.id),
                entries: try await credentials.auditLog(account: account.id, limit: 50))
        }
    }

    /// Changes an account's name, quota or status.
    ///
    /// - Parameter change: Changes all that is to be another.
    package func update(
        _ name: String, _ change: @Sendable (inout StoredAccount) -> Void
    ) async throws(AdministrationError) -> StoredAccount {
        try demandOperator("changing an account")
        let before = try await account(name)
        var changed = before
        change(&changed)
        guard changed != before else { return before }
        let after = changed
        try await wrapped { try await cloud.update(after) }
        try await audit("account.set", account: after.id, before: Self.text(before), after: Self.text(after))
        return after
    }

    /// Makes a link with which the person sets a password in a browser: it is good once, and for a day.
    ///
    /// - Returns: The account, and the link's path below the server's address.
    package func passwordLink(of name: String) async throws(AdministrationError) -> (account: StoredAccount, path: String) {
        try demandOperator("a link for a password")
        let account = try await account(name)
        let key = try await wrapped { try await credentials.passwordLinkKey(of: account.id) }
        try await audit("account.password-link", account: account.id)
        return (account, PersonalAccount.passwordLinkPath(key))
    }

    /// Ends all sessions of an account, those of the console among them.
    ///
    /// - Returns: How many sessions of devices and browsers there were.
    package func signOutEverywhere(_ name: String) async throws(AdministrationError) -> Int {
        try demandOperator("ending sessions")
        let account = try await account(name)
        let count = try await wrapped { try await credentials.endSessions(of: account.id) }
        try await audit("session.end", account: account.id, subject: "all of the account", before: "\(count) sessions")
        return count
    }

    /// Ends one session.
    package func endSession(_ id: String, of name: String) async throws(AdministrationError) {
        try demandOperator("ending sessions")
        let account = try await account(name)
        let session = try await wrapped { try await credentials.sessions().first { $0.id == id && $0.account == account.id } }
        guard let session else { throw AdministrationError(.notFound, "there is no such session; it may have ended") }
        try await wrapped { try await credentials.endSession(id: id) }
        try await audit("session.end", account: account.id, subject: id, before: session.device)
    }

    /// Removes an account with all that is stored for it: records, shares, assets, password, sessions and role.
    ///
    /// When it fails midway, it goes on when it is called again.
    package func removeWithData(_ name: String) async throws(AdministrationError) -> EmbeddedCloud.Removed {
        try demandOperator("removing an account")
        let account = try await account(name)
        let removed = try await wrapped { try await PersonalAccount.remove(account, cloud, credentials) }
        try await audit(
            "account.remove", account: account.id, subject: "with \(removed.records) records in \(removed.zones) zones")
        return removed
    }

    private static func text(_ account: StoredAccount) -> String {
        var json = JSONWriter()
        json.object {
            $0.member("name", account.name?.title)
            $0.member("phone", account.phone)
            $0.member("quota", account.quota == .max ? nil : account.quota)
            $0.member("status", account.status.rawValue)
            $0.member("discoverable", account.isDiscoverable)
        }
        return String(decoding: json.bytes, as: UTF8.self)
    }

    // The audit log

    /// Returns entries of the audit log, the newest first: for a developer those of one of their containers.
    ///
    /// - Parameters:
    ///   - container: Only entries of this container; a developer names one.
    ///   - before: Only entries with a smaller number.
    package func auditLog(
        container: String? = nil, account: String? = nil, since: Int64 = 0, before: Int64? = nil, limit: Int = 100
    ) async throws(AdministrationError) -> [AuditEntry] {
        if let container { try await demand(container) } else { try demandOperator("the audit log of the whole cloud") }
        var only: String?
        if let account { only = try await self.account(account).id }
        let (wanted, from) = (only, since)
        return try await wrapped {
            try await credentials.auditLog(since: from, account: wanted, container: container, before: before, limit: limit)
        }
    }
}
