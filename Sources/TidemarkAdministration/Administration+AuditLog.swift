import Foundation
import TidemarkCloudEngine
package import TidemarkIdentity
import TidemarkModel

/// The audit log, as operators and developers see it.
extension Administration {
    /// Returns entries of the audit log, the newest first: for a developer those of one of their containers.
    ///
    /// A developer sees accounts by their user record names. Entries of an account in production, and its sign-ins, have no
    /// details, such as the device's name, without the account's consent. A failed sign-in names no account.
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
            let entries = try await credentials.auditLog(
                since: from, account: wanted, container: container, before: before, limit: limit)
            guard !isOperator, let container else { return entries }
            return try await visibleToDevelopers(entries, of: container)
        }
    }

    /// Returns the addresses of the accounts that entries name, by their identifiers. A developer gets no address but their own.
    package func addresses(in entries: [AuditEntry]) async throws(AdministrationError) -> [String: String] {
        var addresses: [String: String] = [:]
        for id in Set(entries.flatMap { [$0.event.actor, $0.event.account] }) where UUID(uuidString: id) != nil {
            if case .console(let person, _) = actor, !isOperator, person.id != id { continue }
            addresses[id] = try await email(of: id)
        }
        return addresses
    }

    private func visibleToDevelopers(_ entries: [AuditEntry], of container: String) async throws -> [AuditEntry] {
        var consents: [String: Bool] = [:]
        let production = Consent.place(container)
        var visible: [AuditEntry] = []
        for entry in entries {
            var event = entry.event
            // Sign-ins name the device, and not the environment.
            if !event.account.isEmpty, event.container == production || event.action == .signIn {
                let account = event.account
                if consents[account] == nil {
                    consents[account] =
                        UUID(uuidString: account) != nil
                        ? try await Consent.all(of: account, credentials).contains { $0.container == container } : false
                }
                if consents[account] == false { (event.subject, event.before, event.after) = ("", "", "") }
            }
            // The account of a failed sign-in would tell which addresses have an account.
            if event.action == .signIn, event.outcome != "done" {
                (event.actor, event.account, event.subject) = ("", "", "")
            }
            (event.actor, event.account) = (known(event.actor, in: container), known(event.account, in: container))
            visible.append(AuditEntry(id: entry.id, at: entry.at, event: event))
        }
        return visible
    }

    /// Returns the user record name of an account. The developer's own identifier, and a text that is no identifier, stay as they
    /// are.
    private func known(_ id: String, in container: String) -> String {
        if case .console(let person, _) = actor, person.id == id { return id }
        return UUID(uuidString: id) == nil ? id : userRecordName(ofAccount: id, in: container)
    }
}
