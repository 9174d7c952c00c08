import TidemarkCloud
package import TidemarkCloudEngine
import TidemarkEmbeddedCloud
package import TidemarkIdentity
package import TidemarkModel

/// Operators, API tokens, and keys of servers.
extension Administration {
    // Operators

    /// An operator with its account; `nil` where the account is gone.
    package struct NamedOperator: Sendable {
        package let role: Operator
        package let account: StoredAccount?
    }

    /// Returns all operators, by the addresses of their accounts.
    package func operators() async throws(AdministrationError) -> [NamedOperator] {
        try demandOperator("the list of operators")
        return try await wrapped {
            var found: [NamedOperator] = []
            for role in try await credentials.operators() {
                found.append(NamedOperator(role: role, account: try await cloud.account(id: role.id)))
            }
            return found.sorted { ($0.account?.email ?? $0.role.id) < ($1.account?.email ?? $1.role.id) }
        }
    }

    /// Returns whether an account is an operator, and no other operator can use their account.
    package func isLastOperator(_ name: String) async throws(AdministrationError) -> Bool {
        try demandOperator("the list of operators")
        let id = try await account(name).id
        let all = try await operators().filter { $0.role.role == .operator }
        return all.contains { $0.role.id == id } && !all.contains { $0.role.id != id && $0.account?.status == .available }
    }

    /// Gives an account a role.
    ///
    /// - Parameter containers: The containers of a developer.
    /// - Throws: ``AdministrationError`` `invalid` where the last operator would become a developer.
    package func setOperator(
        _ name: String, role: Operator.Role, containers: [String] = []
    ) async throws(AdministrationError) -> StoredAccount {
        try demandOperator("giving roles")
        let account = try await account(name)
        if case .console(let person, _) = actor, person.id == account.id {
            throw AdministrationError(
                .invalid, "nobody changes their own role; another operator does, or 'tidemark admin operator add'")
        }
        if role != .operator, try await isLastOperator(account.id) { throw Self.lastOperator(account) }
        let before = try await wrapped { try await credentials.operatorRole(of: account.id) }
        try await wrapped { try await credentials.setOperator(account.id, role: role, containers: containers) }
        let after = try await wrapped { try await credentials.operatorRole(of: account.id) }
        try await audit(
            "operator.add", account: account.id, subject: account.email, before: before.map(Self.text) ?? "",
            after: after.map(Self.text) ?? "")
        return account
    }

    /// Takes an account's role away, and ends its sessions of the console.
    ///
    /// - Parameter evenIfLast: Whether to remove the role even if no operator is left then. The caller has warned the person.
    /// - Throws: ``AdministrationError`` `notFound`; `invalid` for the last operator, unless `evenIfLast` is set.
    package func removeOperator(
        _ name: String, evenIfLast: Bool = false
    ) async throws(AdministrationError) -> StoredAccount {
        try demandOperator("taking roles")
        let account = try await account(name)
        if !evenIfLast, try await isLastOperator(account.id) { throw Self.lastOperator(account) }
        let before = try await wrapped { try await credentials.operatorRole(of: account.id) }
        try await wrapped { try await credentials.removeOperator(account.id) }
        try await audit("operator.remove", account: account.id, subject: account.email, before: before.map(Self.text) ?? "")
        return account
    }

    /// Removes an account's second factor, for an owner who has lost it, and ends the account's sessions: whoever has the device
    /// that shows the codes may have begun some.
    ///
    /// - Returns: The account, and whether it had a second factor.
    package func removeSecondFactor(
        of name: String
    ) async throws(AdministrationError) -> (account: StoredAccount, hadOne: Bool) {
        try demandOperator("removing second factors")
        let account = try await account(name)
        guard let factor = try await wrapped({ try await credentials.secondFactor(of: account.id) }) else {
            return (account, false)
        }
        // Sessions end first, since this can be tried again only as long as there is a factor.
        try await wrapped {
            _ = try await credentials.endSessions(of: account.id)
            try await credentials.removeSecondFactor(of: account.id)
        }
        try await audit(
            "second-factor.remove", account: account.id, subject: account.email, before: factor.text, after: "none")
        // Sessions may have begun meanwhile.
        try await wrapped { _ = try await credentials.endSessions(of: account.id) }
        return (account, true)
    }

    private static func lastOperator(_ account: StoredAccount) -> AdministrationError {
        AdministrationError(
            .invalid,
            "\(account.email) is the last operator: give another account the role first, by 'tidemark admin operator add'")
    }

    /// Makes sure that an account has no role in the console, before it is removed.
    ///
    /// - Throws: ``AdministrationError`` `forbidden` with the command that takes the role away.
    package func demandNoRole(of account: StoredAccount) async throws(AdministrationError) {
        guard let role = try await wrapped({ try await credentials.operatorRole(of: account.id) }) else { return }
        throw AdministrationError(
            .forbidden,
            "\(account.email) is \(role.role == .operator ? "an operator" : "a developer") of the console, and stays; take the role away "
                + "first: tidemark admin operator remove \(account.email)\(placeOptions)")
    }

    private static func text(_ role: Operator) -> String {
        role.role == .operator ? role.role.rawValue : "\(role.role.rawValue) of \(role.containers.joined(separator: ", "))"
    }

    // Tokens and keys

    /// Returns the API tokens of the actor's containers; to an operator also those of containers that are not served any more.
    package func apiTokens() async throws(AdministrationError) -> [APIToken] {
        let containers = Set(try await containers())
        return try await wrapped { try credentials.apiTokens().filter { isOperator || containers.contains($0.container) } }
    }

    /// Returns the keys of the actor's containers; to an operator also those of containers that are not served any more.
    package func keys() async throws(AdministrationError) -> [ServerKey] {
        let containers = Set(try await containers())
        return try await wrapped { try credentials.keys().filter { isOperator || containers.contains($0.container) } }
    }

    /// Revokes an API token of one of the actor's containers.
    package func revokeAPIToken(_ id: String) async throws(AdministrationError) {
        guard let token = try await apiTokens().first(where: { $0.id == id }) else {
            throw AdministrationError(.notFound, "there is no such token; it may be revoked")
        }
        try await wrapped { try await credentials.revokeAPIToken(id: id) }
        try await audit(
            "token.revoke", container: token.container, environment: token.environment, subject: id, before: token.name)
    }

    /// Revokes a server's key of one of the actor's containers.
    package func revokeKey(_ id: String) async throws(AdministrationError) {
        guard let key = try await keys().first(where: { $0.id == id }) else {
            throw AdministrationError(.notFound, "there is no such key; it may be revoked")
        }
        try await wrapped { try await credentials.revokeKey(id: id) }
        try await audit("key.revoke", container: key.container, environment: key.environment, subject: id, before: key.name)
    }

    /// Makes an API token of one of the actor's containers.
    ///
    /// - Returns: The token, and its text, which is not stored.
    package func addAPIToken(
        of container: String, environment: StoreEnvironment, name: String, callback: SignInCallback, origins: [String]
    ) async throws(AdministrationError) -> (token: APIToken, text: String) {
        try await demand(container)
        let made = try await wrapped {
            try await credentials.addAPIToken(
                container: container, environment: environment, name: name, callback: callback, origins: origins)
        }
        try await audit("token.add", container: container, environment: environment, subject: made.token.id, after: name)
        return made
    }

    /// Adds the key of a server to one of the actor's containers, with an account of its own.
    ///
    /// - Parameter pem: An ECDSA key on the curve P-256.
    package func addKey(
        of container: String, environment: StoreEnvironment, name: String, publicKeyPEM pem: String
    ) async throws(AdministrationError) -> ServerKey {
        try await demand(container)
        let key = try await wrapped {
            let id = try ServerKey.id(of: pem, container: container, environment: environment)
            // No mail reaches an address in server.invalid, so nobody signs in to the account, and no invitation reaches it.
            let address = "key-\(id.prefix(32))@server.invalid"
            let isNew = try await cloud.account(address) == nil
            let account = try await cloud.addAccount(address, name: name.isEmpty ? nil : PersonName(givenName: name))
            do {
                return try await credentials.addKey(
                    container: container, environment: environment, name: name, publicKeyPEM: pem, account: account.id)
            } catch {
                // The first error is thrown. An account that stays has no data.
                if isNew { try? await cloud.removeIfUnused(account) }
                throw error
            }
        }
        try await audit(
            "key.add", account: key.account, container: container, environment: environment, subject: key.id, after: name)
        return key
    }
}
