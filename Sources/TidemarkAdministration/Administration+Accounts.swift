package import Foundation
import TidemarkCloud
package import TidemarkCloudEngine
package import TidemarkEmbeddedCloud
package import TidemarkIdentity
package import TidemarkModel

/// Accounts.
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
        /// Sessions of the console, and of the person's own pages.
        package let pages: [PageSession]
        package let hasPassword: Bool
        /// `nil` where it has none.
        package let secondFactor: SecondFactor?
        /// The identities of identity providers that sign in to the account.
        package let identities: [Identity]
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
                pages: try await credentials.pageSessions(of: account.id),
                hasPassword: try await credentials.hasPassword(account.id),
                secondFactor: try await credentials.secondFactor(of: account.id),
                identities: try await credentials.identities(of: account.id),
                role: try await credentials.operatorRole(of: account.id),
                entries: try await credentials.auditLog(account: account.id, limit: 50))
        }
    }

    /// Adds an account.
    ///
    /// - Parameters:
    ///   - password: `nil` for none: signing in needs one first.
    ///   - quota: The bytes that it may store in each container and environment.
    /// - Throws: ``AdministrationError`` `exists` where the address has an account; `invalid` for a value that is not allowed.
    ///   Nothing is added then.
    package func addAccount(
        _ email: String, phone: String? = nil, name: PersonName? = nil, quota: Int64 = StoredAccount.servedQuota,
        password: String?
    ) async throws(AdministrationError) -> StoredAccount {
        try await checkNewAccount(email)
        let account = try await wrapped {
            if let password { try CredentialStore.check(password: password) }
            let account = try await cloud.addAccount(email, phone: phone, name: name, quota: quota)
            do {
                if let password { try await credentials.setPassword(password, of: account.id) }
            } catch {
                // The first error is thrown. An account that stays has no data.
                try? await cloud.removeIfUnused(account)
                throw error
            }
            return account
        }
        try await audit("account.add", account: account.id, after: Self.text(account))
        return account
    }

    /// Checks that an account can be added with an address.
    ///
    /// - Throws: ``AdministrationError`` `exists` where the address has an account, `invalid` for a text that is no address;
    ///   `forbidden`.
    package func checkNewAccount(_ email: String) async throws(AdministrationError) {
        try demandOperator("adding accounts")
        try await wrapped {
            try EmbeddedCloud.check(email: email, container: "default")
            if let known = try await cloud.account(email) {
                throw AdministrationError(
                    .exists, "there is an account \(known.email) already; change that one, or take another address",
                    field: "email")
            }
        }
    }

    /// Changes an account's name, quota or status.
    ///
    /// - Parameter change: Changes the account's values in place.
    package func update(
        _ name: String, _ change: @Sendable (inout StoredAccount) -> Void
    ) async throws(AdministrationError) -> StoredAccount {
        try demandOperator("changing an account")
        let id = try await account(name).id
        guard let (before, after) = try await wrapped({ try await cloud.update(id: id, change) }) else {
            throw Self.noAccount(name)
        }
        guard after != before else { return before }
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

    /// Gives an account another password, and ends its sessions.
    ///
    /// - Parameter password: `nil` removes the password, and nobody can sign in with one then.
    /// - Returns: The account.
    package func setPassword(_ password: String?, of name: String) async throws(AdministrationError) -> StoredAccount {
        try demandOperator("setting passwords")
        let account = try await account(name)
        let had = try await wrapped { try await credentials.accountsWithPassword().contains(account.id) }
        try await wrapped {
            if let password {
                try await credentials.setPassword(password, of: account.id)
            } else {
                try await credentials.removePassword(of: account.id)
            }
        }
        // The entry says whether there is a password, and nothing of it.
        try await audit(
            "account.password", account: account.id, subject: password == nil ? "removed" : "", before: had ? "set" : "none",
            after: password == nil ? "none" : "set")
        return account
    }

    /// Counts the data that are removed together with an account.
    package func holdings(of name: String) async throws(AdministrationError) -> EmbeddedCloud.Holdings {
        try demandOperator("what an account has")
        let account = try await account(name)
        return try await wrapped { try await cloud.holdings(of: account) }
    }

    /// Removes an account with all that is stored for it: records, shares, assets, password and sessions.
    ///
    /// After a failure midway, another call continues the removal.
    ///
    /// - Throws: ``AdministrationError`` `forbidden` for an account that has a role in the console, which stays.
    package func removeWithData(_ name: String) async throws(AdministrationError) -> EmbeddedCloud.Removed {
        try demandOperator("removing an account")
        let account = try await account(name)
        try await demandNoRole(of: account)
        let removed = try await wrapped { try await PersonalAccount.remove(account, cloud, credentials) }
        try await audit(
            "account.remove", account: account.id, subject: removed.auditSubject,
            before: Self.text(account))
        await PersonalAccount.emptyLogs(cloud, credentials)
        return removed
    }

    /// Removes an account that has no records.
    ///
    /// - Throws: ``AdministrationError`` `forbidden` for an account that has records, or a role in the console. It stays.
    package func removeIfUnused(_ name: String) async throws(AdministrationError) {
        try demandOperator("removing an account")
        let account = try await account(name)
        try await demandNoRole(of: account)
        let isThere = try await wrapped {
            try await cloud.removeIfUnused(account)
            return try await cloud.account(id: account.id) != nil
        }
        guard !isThere else {
            throw AdministrationError(
                .forbidden,
                "\(account.email) has zones or records, and stays; remove them as well with --with-data, or keep everybody out with 'tidemark admin account set \(account.email) --status restricted'"
            )
        }
        try await wrapped { try await credentials.removeAccount(account.id) }
        try await audit("account.remove", account: account.id, before: Self.text(account))
        await PersonalAccount.emptyLogs(cloud, credentials)
    }

    /// Counts again what accounts use, and corrects wrong counts. O(records).
    package func recountUsage() async throws(AdministrationError) -> [EmbeddedCloud.Recount] {
        try demandOperator("counting what accounts use")
        let counted = try await wrapped { try await cloud.recountUsage() }
        for recount in counted where !recount.corrected.isEmpty {
            let corrected = recount.corrected.sorted { $0.key < $1.key }
            try await audit(
                "account.recount", container: recount.container, environment: recount.environment,
                before: corrected.map { "\($0.key) \($0.value.counted)" }.joined(separator: ", "),
                after: corrected.map { "\($0.key) \($0.value.found)" }.joined(separator: ", "))
        }
        return counted
    }

    /// Writes all that the cloud has of an account to a file.
    package func archive(of name: String) async throws(AdministrationError) -> ArchiveFile {
        try demandOperator("the data of an account")
        let account = try await account(name)
        let made = try await wrapped { try await PersonArchive.file(all: account, of: cloud, credentials) }
        try await audit("account.export", account: account.id, subject: counted(made.summary.records, "record"))
        return made.file
    }

    /// Writes all that the cloud has of an account to a folder that is there and empty.
    package func export(_ account: StoredAccount, to folder: URL) async throws(AdministrationError) -> PersonArchive.Summary {
        try demandOperator("the data of an account")
        let summary = try await wrapped { try await PersonArchive.write(all: account, of: cloud, credentials, to: folder) }
        try await audit("account.export", account: account.id, subject: counted(summary.records, "record"))
        return summary
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
}
