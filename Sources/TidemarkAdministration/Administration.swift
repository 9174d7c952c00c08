import TidemarkCloud
package import TidemarkCloudEngine
package import TidemarkEmbeddedCloud
package import TidemarkIdentity
import TidemarkModel

/// The functions of administering a served cloud, for one actor. Each checks the actor's right, does its work, and adds an entry
/// to the audit log.
///
/// The commands of `tidemark admin` and the console use it, over a directory or a database alike. A container that the actor may
/// not use looks like one that does not exist: functions throw ``AdministrationError`` `notFound`.
package struct Administration: Sendable {
    /// Who administers.
    package enum Actor: Sendable {
        /// A user of the machine's system, who runs a command.
        case system(name: String)
        /// An operator in the console, and from where.
        case console(Operator, address: String)
    }

    package let cloud: EmbeddedCloud
    package let credentials: CredentialStore
    package let actor: Actor
    /// Is called for each record that was changed, so that a server can notify devices.
    let changed: (@Sendable (RecordChange) -> Void)?
    /// The options of the command line that name the cloud, quoted for a shell, with a space before each. Commands in error
    /// messages end with them. Pages have none.
    package var placeOptions = ""

    package init(
        _ cloud: EmbeddedCloud, _ credentials: CredentialStore, by actor: Actor,
        changed: (@Sendable (RecordChange) -> Void)? = nil
    ) {
        (self.cloud, self.credentials, self.actor, self.changed) = (cloud, credentials, actor, changed)
    }

    // Who may do what

    /// Whether the actor may do what concerns the cloud as a whole: accounts, operators, and all containers.
    package var isOperator: Bool {
        switch actor {
        case .system: true
        case .console(let person, _): person.role == .operator
        }
    }

    /// Returns the served containers that the actor may use, by name.
    package func containers() async throws(AdministrationError) -> [String] {
        try await wrapped {
            try await credentials.refresh()
            return try credentials.containers().filter(mayUse)
        }
    }

    private func mayUse(_ container: String) -> Bool {
        switch actor {
        case .system: true
        case .console(let person, _): person.mayUse(container)
        }
    }

    /// Makes sure that a container is served, and that the actor may use it.
    func demand(_ container: String) async throws(AdministrationError) {
        let isThere = try await wrapped {
            try await credentials.refresh()
            return try credentials.hasContainer(container)
        }
        guard isThere, mayUse(container) else {
            throw AdministrationError(
                .notFound, "no container '\(container.prefix(100))' is served; add it with 'tidemark admin container add'")
        }
    }

    /// Makes sure that the actor administers the whole cloud.
    func demandOperator(_ what: String) throws(AdministrationError) {
        guard isOperator else { throw AdministrationError(.forbidden, "\(what) is for operators; you are a developer") }
    }

    // Accounts by name

    /// Returns the account of an address or an identifier.
    package func account(_ name: String) async throws(AdministrationError) -> StoredAccount {
        let found: StoredAccount? = try await wrapped {
            if let account = try await cloud.account(id: name) { return account }
            return try await cloud.account(name)
        }
        guard let found else { throw Self.noAccount(name) }
        return found
    }

    static func noAccount(_ name: String) -> AdministrationError {
        AdministrationError(.notFound, "the cloud has no account \(name.prefix(255)); see 'tidemark admin account list'")
    }

    /// Returns the name by which a container knows an account.
    package func userRecordName(ofAccount id: String, in container: String) -> String {
        StoredAccount.userRecordName(of: id, in: container)
    }

    /// Returns the address of an account by its identifier; `nil` for no account.
    package func email(of id: String) async throws(AdministrationError) -> String? {
        try await wrapped { try await cloud.account(id: id)?.email }
    }

    /// Returns the addresses of accounts, by the names by which a container knows them. Names that lead to no account are left out.
    package func addresses(
        ofUserRecordNames names: Set<String>, in container: String
    ) async throws(AdministrationError) -> [String: String] {
        try demandOperator("who is behind a user record name")
        return try await wrapped {
            var addresses: [String: String] = [:]
            for name in names {
                if let account = try await cloud.account(userRecordName: name, in: container) { addresses[name] = account.email }
            }
            return addresses
        }
    }

    // The audit log

    /// Adds an entry.
    ///
    /// - Parameters:
    ///   - action: Such as `records.save`.
    ///   - before: What was there; empty for nothing.
    func audit(
        _ action: String, account: String = "", container: String = "", environment: StoreEnvironment? = nil,
        subject: String = "",
        outcome: String = "done", before: String = "", after: String = ""
    ) async throws(AdministrationError) {
        let (name, address): (String, String) =
            switch actor {
            case .system(let name): (name, "")
            case .console(let person, let address): (person.id, address)
            }
        try await wrapped {
            try await credentials.audit(
                AuditEvent(
                    .administration(action), actor: name, account: account, address: address,
                    container: environment.map { "\(container)/\($0.rawValue)" } ?? container, subject: subject, outcome: outcome,
                    before: before, after: after))
        }
    }

    /// Adds an entry about the actor's own account.
    package func auditOwn(_ action: String) async throws(AdministrationError) {
        let account: String = if case .console(let person, _) = actor { person.id } else { "" }
        try await audit(action, account: account)
    }

    /// Calls a body, and throws its errors as ``AdministrationError``.
    func wrapped<Result>(_ body: () async throws -> Result) async throws(AdministrationError) -> Result {
        do {
            return try await body()
        } catch {
            throw AdministrationError(error)
        }
    }
}
