package import TidemarkCloud
package import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
package import TidemarkModel

/// A zone of a database, as administrators name it.
package struct RecordPlace: Hashable, Sendable {
    package var container: String
    package var environment: StoreEnvironment
    package var scope: DatabaseScope
    /// The account that has the private or shared database: an address or an identifier. Without effect for the public database.
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

/// A record that an administrator has changed.
package struct RecordChange: Hashable, Sendable {
    /// What was done to the record.
    package enum Event: Sendable { case created, updated, deleted }

    package let place: RecordPlace
    /// The user record name of the zone's owner; empty in the public database.
    package let zoneOwner: String
    package let record: String
    /// The record's type; empty where a deletion does not know it.
    package let type: String
    package let event: Event
}

extension Administration {
    /// A database that was opened, and its account.
    struct OpenedPlace: Sendable {
        let database: AdministeredDatabase
        /// The account's identifier; empty for the public database.
        let account: String
        /// In a shared database, the identifier of the account that owns the zone; `nil` where it is the account's own, or not
        /// known.
        var owner: String?
        /// The consent by which a developer has access in production.
        var consent: Consent?

        /// The accounts that get the entry in the audit log: the account, and the owner of the zone.
        var persons: [String] { [account] + (owner.map { $0 == account ? [] : [$0] } ?? []) }

        /// The outcome in the audit log of what was done.
        var done: String { consent == nil ? "done" : "done with consent" }
    }

    /// Whether the actor sees private records without an account's consent: operators always, developers in development.
    package func maySeePrivate(_ environment: StoreEnvironment) -> Bool { isOperator || environment == .development }

    /// Whether an account has something in an environment of a container, or is signed in there. A developer learns of no other account.
    private func isUsed(_ container: String, _ environment: StoreEnvironment, by account: StoredAccount) async throws -> Bool {
        let sessions = try await credentials.sessions(of: account.id)
        if sessions.contains(where: { $0.container == container && $0.environment == environment }) { return true }
        let used = try await cloud.usage(of: account)
        return used.contains { $0.container == container && $0.environment == environment }
    }

    /// Returns the account whose private or shared records are looked at, if the actor may do so.
    ///
    /// - Returns: The account, and the consent by which a developer has access.
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
            // Consent is also looked up without an account, since the time of the answer would tell.
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

    /// Returns an account whose own data are looked at, and records that in the audit log.
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

    /// Opens the database of a place, if the actor may see it.
    ///
    /// Private records in production are for operators, and for developers with the account's consent.
    ///
    /// - Throws: ``AdministrationError`` `notFound`, `forbidden`, `invalid`, `busy`, `failed`.
    func open(_ place: RecordPlace) async throws(AdministrationError) -> OpenedPlace {
        try await demand(place.container)
        guard place.scope != .public else {
            // The account that changes records of the public database.
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

    /// Returns the owner of a zone in a shared database. In production a developer needs the owner's consent as well: a
    /// participant can't give consent for the owner's records.
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

    /// Records in the audit log that somebody's own records were looked at.
    ///
    /// - Parameter person: The person whom the look is about, if that is not the account.
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
