package import TidemarkCloud
package import TidemarkCloudEngine
import TidemarkEmbeddedCloud
package import TidemarkModel

/// Shares, their links, and who may do what.
extension Administration {
    /// Returns the shares of a zone, with their participants.
    package func shares(in place: RecordPlace) async throws(AdministrationError) -> [CloudShare] {
        guard place.scope != .public else {
            throw AdministrationError(.invalid, "nothing in the public database is shared: everybody sees it")
        }
        let opened = try await open(place)
        let shares = try await wrapped {
            place.zoneID.isDefault ? [] : try await opened.database.shares(in: place.zoneID)
        }
        try await auditReading(place, opened, "shares")
        return shares
    }

    /// Returns the shares of all zones of a database, with their participants. Each look into a zone is in the audit log.
    ///
    /// - Parameter place: Its zone has no effect. If it names a zone's owner, only the zones of that owner are searched.
    package func sharesOfAllZones(in place: RecordPlace) async throws(AdministrationError) -> [CloudShare] {
        var place = place
        let owner = place.zoneOwner
        (place.zone, place.zoneOwner) = (CloudZoneID.default.zoneName, "")
        guard place.scope != .public else { return try await shares(in: place) }
        var found: [CloudShare] = []
        for zone in try await otherZones(than: place) where owner.isEmpty || zone.ownerName == owner {
            place.zone = zone.zoneName
            place.zoneOwner = zone.ownerName == CloudZoneID.defaultOwner ? "" : zone.ownerName
            found += try await shares(in: place)
        }
        return found
    }

    // Links

    /// Returns the links to a share, by their identifiers. They lack the secrets that give access: the cloud has only digests of
    /// these.
    ///
    /// - Parameter share: The name of the share's record.
    package func links(to share: String, in place: RecordPlace) async throws(AdministrationError) -> [StoredLink] {
        let opened = try await open(place)
        let links = try await wrapped { try await opened.database.links(to: CloudRecordID(share, in: place.zoneID)) }
        try await auditReading(place, opened, "\(share)/links")
        return links
    }

    /// Revokes a link to a share. Participants who have accepted it stay.
    ///
    /// - Throws: ``AdministrationError`` `notFound` for a link that is not there; `forbidden` in a shared database, where the account may not
    ///   invite.
    package func revokeLink(_ link: String, to share: String, in place: RecordPlace) async throws(AdministrationError) {
        let opened = try await open(place)
        let id = CloudRecordID(share, in: place.zoneID)
        let known = try await wrapped { try await opened.database.links(to: id).first { $0.id == link } }
        guard let known else { throw AdministrationError(.notFound, "there is no such link; it may be revoked") }
        try await wrapped { try await opened.database.revokeLink(link, to: id) }
        try await audit(
            "share.link.revoke", account: opened.account, container: place.container, environment: place.environment,
            subject: "\(Self.subject(share, place))/\(link)", outcome: opened.done,
            before: known.participant.map { "for \($0)" } ?? "for everybody")
    }

    // Who may do what

    /// What a person may do in a zone, part by part.
    package struct PermissionReport: Sendable {
        /// The records of a share, or those that are in no share.
        package struct Part: Sendable {
            /// `nil` for records that are in no share.
            package let share: CloudShare?
            /// Describes the records.
            package let covers: String
            /// The person as a participant of the share; `nil` for a person who takes no part.
            package let participant: ShareParticipant?
            package let decisions: [ShareDecision]
        }

        /// The person as the report was asked for.
        package let person: String
        /// How the container knows the person; `nil` for somebody without an account.
        package let userRecordName: String?
        /// What keeps the person from everything, whatever the parts say.
        package let obstacle: String?
        package let parts: [Part]
    }

    private static let ofRecords: [SharePolicy.Operation] = [.read, .create, .update, .delete]
    private static let ofShares: [SharePolicy.Operation] = [
        .invite, .changeParticipant, .removeParticipant, .editShare, .changePublicPermission, .leave, .stopSharing,
    ]

    /// Returns what a person may do with the records and the shares of a zone, each with its reason.
    ///
    /// - Parameter person: An address, an identifier of an account, or a user record name.
    /// - Throws: ``AdministrationError`` `notFound`, `forbidden`, `invalid`, `busy`.
    package func permissions(
        of person: String, in place: RecordPlace
    ) async throws(AdministrationError) -> PermissionReport {
        let opened = try await open(place)
        let isName = person.hasPrefix("_") && Hexadecimal.isText(String(person.dropFirst()), ofBytes: 16)
        // A developer must not learn which addresses have accounts, nor their user record names. Accounts are those of the whole
        // cloud, and a user record name is the same in both environments.
        guard isOperator || isName else {
            throw AdministrationError(.invalid, "a developer names a person by the user record name")
        }
        let account = try await wrapped { () -> StoredAccount? in
            guard !isName else { return nil }
            if let account = try await cloud.account(id: person) { return account }
            return try await cloud.account(person)
        }
        let user = account.map { userRecordName(ofAccount: $0.id, in: place.container) } ?? (isName ? person : nil)
        let obstacle = account.flatMap { account in
            account.status == .available ? nil : "The account can't be used (\(account.status.rawValue)): it may do nothing."
        }
        func report(_ parts: [PermissionReport.Part]) -> PermissionReport {
            PermissionReport(person: person, userRecordName: user, obstacle: obstacle, parts: parts)
        }
        guard place.scope != .public else {
            let actor: SharePolicy.Actor = user == nil ? .nobody : .stranger
            return report(
                [("records that the person has made", true), ("records of others", false)].map { covers, isOwn in
                    PermissionReport.Part(
                        share: nil, covers: covers, participant: nil,
                        decisions: Self.ofRecords.map {
                            SharePolicy.decide($0, on: .init(scope: .public, isOwn: isOwn), by: actor)
                        })
                })
        }
        let shares = try await wrapped {
            place.zoneID.isDefault ? [] : try await opened.database.shares(in: place.zoneID)
        }
        try await auditReading(place, opened, "permissions", about: user ?? "")
        let owner =
            place.scope == .private ? userRecordName(ofAccount: opened.account, in: place.container) : place.zoneOwner
        let isOwner = user == owner
        var parts = shares.map { share in
            let covers =
                if case .hierarchy(let root) = share.coverage { "\(root) and the records below it" } else { "all records" }
            let participant = Self.participant(share, user, account, person)
            return PermissionReport.Part(
                share: share, covers: covers, participant: participant,
                decisions: Self.decisions(isOwner ? .owner : participant.map { .participant($0) } ?? .stranger, share))
        }
        if !shares.contains(where: { $0.coverage == .zone }) {
            parts.append(
                PermissionReport.Part(
                    share: nil, covers: shares.isEmpty ? "all records" : "all other records", participant: nil,
                    decisions: Self.ofRecords.map {
                        SharePolicy.decide($0, on: .init(scope: .private), by: isOwner ? .owner : .stranger)
                    }))
        }
        return report(parts)
    }

    /// Returns the person as a participant of a share. A person who has come and gone may be several: one who has accepted counts
    /// first, then one who is invited.
    private static func participant(
        _ share: CloudShare, _ user: String?, _ account: StoredAccount?, _ person: String
    ) -> ShareParticipant? {
        let found = share.participants.filter { participant in
            if let user, participant.identity.userRecordName == user { return true }
            // A participant who has not accepted is known by what the invitation names, with or without an account.
            switch participant.identity.lookUp {
            case .emailAddress(let address)?: return address == account?.email || address == UserLookUp.spelled(person)
            case .phoneNumber(let number)?: return number == account?.phone || number == person
            case .userRecordName(let name)?: return name == user
            case nil: return false
            }
        }
        return found.first { $0.acceptanceStatus == .accepted } ?? found.first { $0.acceptanceStatus == .pending } ?? found.first
    }

    private static func decisions(_ actor: SharePolicy.Actor, _ share: CloudShare) -> [ShareDecision] {
        (ofRecords + ofShares).map { operation in
            SharePolicy.decide(
                operation,
                on: .init(
                    scope: actor.role == .owner ? .private : .shared, isShared: true, publicPermission: share.publicPermission,
                    participant: operation == .changeParticipant || operation == .removeParticipant ? .privateUser : nil),
                by: actor)
        }
    }

    /// Returns what a participant may do with the records of a share, and with the share, each with its reason.
    package static func permissions(of person: ShareParticipant, in share: CloudShare) -> [ShareDecision] {
        decisions(person.role == .owner ? .owner : .participant(person), share)
    }
}
