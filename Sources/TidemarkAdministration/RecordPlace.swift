package import TidemarkCloud
package import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
package import TidemarkModel

/// A zone of a database, as those name it who administer a cloud.
package struct RecordPlace: Hashable, Sendable {
    package var container: String
    package var environment: StoreEnvironment
    package var scope: DatabaseScope
    /// Whose private or shared database: an address or an identifier. Without effect for the public database.
    package var account: String
    /// The zone's name.
    package var zone: String
    /// The user record name of the zone's owner, in a shared database; empty otherwise.
    package var zoneOwner: String

    package init(
        container: String, environment: StoreEnvironment = .development, scope: DatabaseScope = .public, account: String = "",
        zone: String = CloudZoneID.default.zoneName, zoneOwner: String = ""
    ) {
        (self.container, self.environment, self.scope) = (container, environment, scope)
        (self.account, self.zone, self.zoneOwner) = (account, zone, zoneOwner)
    }

    /// The zone's identifier.
    package var zoneID: CloudZoneID { zoneOwner.isEmpty ? CloudZoneID(zone) : CloudZoneID(zone, owner: zoneOwner) }
}

/// A record that somebody who administers a cloud has changed.
package struct RecordChange: Hashable, Sendable {
    /// What became of it.
    package enum Event: Sendable { case created, updated, deleted }

    package let place: RecordPlace
    /// The user record name of whose zone it is; empty in the public database.
    package let zoneOwner: String
    package let record: String
    /// Empty where a deletion does not know it.
    package let type: String
    package let event: Event
}

extension Administration {
    /// A database that was opened, and whose it is.
    struct OpenedPlace: Sendable {
        let database: AdministeredDatabase
        /// The account's identifier; empty for the public database.
        let account: String
        /// Whose zone it is, by the identifier, in a shared database; `nil` where it is the account's own, or not known.
        var owner: String?
        /// What has let a developer in, in production.
        var consent: Consent?

        /// Those in whose logs stands what is done: the account, and the owner of the zone.
        var persons: [String] { [account] + (owner.map { $0 == account ? [] : [$0] } ?? []) }

        /// How what is done ends in the audit log.
        var done: String { consent == nil ? "done" : "done with consent" }
    }

    /// Whether the actor sees private records without being asked by whose consent: operators always, developers in development.
    package func maySeePrivate(_ environment: StoreEnvironment) -> Bool { isOperator || environment == .development }

    /// Whether an account has something in an environment of a container, or is signed in there. A developer learns of no other account.
    private func isUsed(_ container: String, _ environment: StoreEnvironment, by account: StoredAccount) async throws -> Bool {
        let sessions = try await credentials.sessions(of: account.id)
        if sessions.contains(where: { $0.container == container && $0.environment == environment }) { return true }
        let used = try await cloud.usage(of: account)
        return used.contains { $0.container == container && $0.environment == environment }
    }

    /// Returns the account whose private or shared records are looked at, for who may do so.
    ///
    /// - Returns: The account, and what has let a developer in.
    /// - Throws: ``AdministrationError`` `forbidden` for a developer in production without consent, whether or not there is such an account;
    ///   `notFound`, `busy`, `failed`.
    private func demandAccount(
        _ name: String, in container: String, _ environment: StoreEnvironment
    ) async throws(AdministrationError) -> (account: StoredAccount, consent: Consent?) {
        if isOperator { return (try await account(name), nil) }
        if environment == .development {
            let found = try await wrapped { () -> StoredAccount? in
                guard let account = try await namedAccount(name, in: container),
                    try await isUsed(container, environment, by: account)
                else { return nil }
                return account
            }
            guard let found else {
                throw AdministrationError(
                    .notFound,
                    "no account \(name.prefix(255)) has anything in \(container) (development), or is signed in there")
            }
            return (found, nil)
        }
        let found = try await wrapped { () -> (account: StoredAccount, consent: Consent?)? in
            let account = try await namedAccount(name, in: container)
            // Asked as well where there is no account: the time would tell.
            let consents = try await Consent.all(of: account?.id ?? "", credentials)
            guard let account, let consent = consents.first(where: { $0.container == container }) else { return nil }
            return (account, consent)
        }
        guard let found else {
            throw AdministrationError(
                .forbidden,
                "private records in production are for operators; a developer sees them in development, or with the account's consent, which people give on the page of their account"
            )
        }
        return found
    }

    /// Returns the account of an identifier, an address or a user record name in a container; `nil` where there is none.
    private func namedAccount(_ name: String, in container: String) async throws -> StoredAccount? {
        if let account = try await cloud.account(id: name) { return account }
        if let account = try await cloud.account(name) { return account }
        guard name.hasPrefix("_") else { return nil }
        return try await cloud.account(userRecordName: name, in: container)
    }

    /// Returns an account of which something is looked at that is its own, and notes that in the audit log.
    ///
    /// - Parameter what: What is looked at.
    package func accountForReading(
        _ name: String, in container: String, _ environment: StoreEnvironment, what: String
    ) async throws(AdministrationError) -> StoredAccount {
        try await demand(container)
        let (account, consent) = try await demandAccount(name, in: container, environment)
        try await audit(
            "\(what).read", account: account.id, container: container, environment: environment,
            outcome: consent == nil ? "done" : "done with consent")
        return account
    }

    /// Opens the database of a place for who may see it.
    ///
    /// Private records in production are for operators, and for developers with the account's consent.
    ///
    /// - Throws: ``AdministrationError`` `notFound`, `forbidden`, `invalid`, `busy`, `failed`.
    func open(_ place: RecordPlace) async throws(AdministrationError) -> OpenedPlace {
        try await demand(place.container)
        guard place.scope != .public else {
            // Who changes records of the public database.
            let person: String? = if case .console(let person, _) = actor { person.id } else { nil }
            let database = try await wrapped {
                let account = try await person.mapped { try await cloud.account(id: $0) } ?? nil
                return try await cloud.administeredDatabase(
                    .public, of: place.container, environment: place.environment, account: account)
            }
            return OpenedPlace(database: database, account: "")
        }
        guard !place.account.isEmpty else {
            throw AdministrationError(.invalid, "say whose \(place.scope.name) database: name an account")
        }
        let (account, consent) = try await demandAccount(place.account, in: place.container, place.environment)
        let owner = try await demandOwner(of: place)
        let database = try await wrapped {
            try await cloud.administeredDatabase(
                place.scope, of: place.container, environment: place.environment, account: account)
        }
        return OpenedPlace(database: database, account: account.id, owner: owner, consent: consent)
    }

    /// Returns whose zone of a shared database it is. A developer sees it in production with that person's consent as well: who takes part in a
    /// share can't allow others what is in it.
    private func demandOwner(of place: RecordPlace) async throws(AdministrationError) -> String? {
        guard place.scope == .shared, !place.zoneOwner.isEmpty, place.zoneOwner != CloudZoneID.defaultOwner else { return nil }
        let owner = try await wrapped { try await cloud.account(userRecordName: place.zoneOwner, in: place.container) }
        guard !maySeePrivate(place.environment) else { return owner?.id }
        let allowed = try await wrapped { try await Consent.all(of: owner?.id ?? "", credentials).map(\.container) }
        guard let owner, allowed.contains(place.container) else {
            throw AdministrationError(
                .forbidden,
                "the zone is shared by another account: in production a developer sees it with that account's consent as well")
        }
        return owner.id
    }

    /// Notes that somebody's own records were looked at.
    ///
    /// - Parameter person: Whom it is about, where that is not whose they are.
    func auditReading(
        _ place: RecordPlace, _ opened: OpenedPlace, _ subject: String, about person: String = ""
    ) async throws(AdministrationError) {
        guard place.scope != .public else { return }
        for account in opened.persons {
            try await audit(
                "records.read", account: account, container: place.container, environment: place.environment,
                subject: Self.subject(subject, place), outcome: opened.done, after: person)
        }
    }
}

extension Optional {
    fileprivate func mapped<Result>(_ transform: (Wrapped) async throws -> Result) async throws -> Result? {
        guard let self else { return nil }
        return try await transform(self)
    }
}
