public import Foundation
public import TidemarkCloud
public import TidemarkModel

/// The rows of a storage that belong to sharing, within a transaction. The rules of ``CloudTransaction`` hold.
public protocol SharingTransaction {
    // Shares

    /// Returns a share by its owner and number, also one that has ended.
    ///
    /// - Throws: `CloudError` `recordDamaged` where its row is not what was written.
    func share(_ id: StoredShare.ID) throws(CloudError) -> StoredShare?
    /// Returns the share whose record has a name, unless it has ended. A zone has one such share at the most.
    ///
    /// - Throws: `CloudError` `recordDamaged` where its row is not what was written.
    func share(named name: String, in zone: StoredZone.ID) throws(CloudError) -> StoredShare?
    /// Returns the shares of a zone that have not ended, in the order in which they were made. Shares whose rows are damaged are left
    /// out: see ``DamageTransaction/damagedShares(in:)``.
    func shares(in zone: StoredZone.ID) throws(CloudError) -> [StoredShare]
    /// Inserts a share whose number is 0, or replaces the share of its number. Returns the share with its number.
    func save(_ share: StoredShare) throws(CloudError) -> StoredShare

    // Participants

    /// Returns the participants of a share, removed ones among them, in the order in which they were added.
    ///
    /// - Throws: `CloudError` `recordDamaged` where one of the rows is not what was written.
    func participants(of share: StoredShare.ID) throws(CloudError) -> [StoredParticipant]
    /// Returns an account's participants in the shares of a zone: those who take part, and those who took part. They come in the order in
    /// which they were added. Participants whose rows are damaged are left out.
    ///
    /// - Parameter user: The account's user record name.
    func participants(called user: String, in zone: StoredZone.ID) throws(CloudError) -> [StoredParticipant]
    /// Inserts a participant, or replaces the participant of its identifier, which keeps its place in the order.
    func save(_ participant: StoredParticipant) throws(CloudError)
    /// Removes a participant's row, by the participant's share and identifier. The engine removes rows of invitations that nobody
    /// answered, and of accounts that have another row. The rows of other people who leave or are removed stay, with the
    /// acceptance status `removed`.
    func removeParticipant(_ id: String, of share: StoredShare.ID) throws(CloudError)

    /// Returns the zones of other owners in which an account takes part or took part, sorted by owner and number. They come from
    /// the account's own rows (``noteSharedZone(_:for:)``), so the account may no longer be a participant of some zones.
    func sharedZones(of user: String) throws(CloudError) -> [StoredZone.ID]
    /// Records among an account's rows that it takes part in a share of another owner's zone. Doing so again changes nothing.
    func noteSharedZone(_ zone: StoredZone.ID, for user: String) throws(CloudError)

    // Links

    /// Returns the owner of the share to which a link leads, by ``StoredLink/digest``; `nil` where there is no such link. It is
    /// the only look-up without an owner: a client that has a link knows nothing else.
    func ownerOfLink(_ digest: Data) throws(CloudError) -> String?
    /// Returns an owner's link by ``StoredLink/digest``.
    func link(_ digest: Data, of owner: String) throws(CloudError) -> StoredLink?
    /// Returns the links to a share, sorted by ``StoredLink/id``.
    func links(to share: StoredShare.ID) throws(CloudError) -> [StoredLink]
    /// Counts the links of a share.
    func linkCount(of share: StoredShare.ID) throws(CloudError) -> Int
    /// Adds a link.
    ///
    /// - Throws: `CloudError` `internalError` where a link has the digest, or a link to the share has the identifier.
    func add(_ link: StoredLink) throws(CloudError)
    /// Removes a link by ``StoredLink/id``. Returns whether there was one.
    func removeLink(_ id: String, to share: StoredShare.ID) throws(CloudError) -> Bool
    /// Removes the links to a share that are limited to a participant; all links for `nil`. Returns their identifiers, sorted.
    func removeLinks(to share: StoredShare.ID, participant: String?) throws(CloudError) -> [String]

    // Hierarchies

    /// Returns the numbers of the shares that cover records, by the records' names; other names are left out. A record is in one share
    /// at the most.
    func shares(covering names: [String], in zone: StoredZone.ID) throws(CloudError) -> [String: StoredShare.ID]
    /// Returns the first entries of some shares of one zone that changed after a number, in the order of ``CoveredRecord/change``, records that
    /// have left among them. A record that moves from one of these shares to another does so with one number: it is returned once, for
    /// the share that covers it now.
    func covered(by shares: [StoredShare.ID], after change: Int64, limit: Int) throws(CloudError) -> [CoveredRecord]
    /// Inserts entries, or replaces those of equal share and name. A record may leave one share and enter another in the same call.
    func save(_ records: [CoveredRecord], in zone: StoredZone.ID) throws(CloudError)
    /// Removes all entries of a share.
    func removeCovered(by share: StoredShare.ID) throws(CloudError)

    // Assets

    /// Records that a participant has uploaded one of the owner's assets, so that the participant's records may name it. Doing so
    /// again changes nothing.
    func noteUpload(_ digest: String, owner: String, by user: String) throws(CloudError)
    /// Returns those of the digests that a user has uploaded for an owner.
    func uploads(_ digests: Set<String>, owner: String, by user: String) throws(CloudError) -> Set<String>
    /// Returns those of the digests that records of a zone name. With `shares`, only records count that one of these shares covers.
    func named(_ digests: Set<String>, in zone: StoredZone.ID, shares: [StoredShare.ID]?) throws(CloudError) -> Set<String>

    // The audit of sharing

    /// Returns the time of the newest entry of an owner's zones; `nil` where there is none. The engine gives each entry a later time.
    func lastAuditTime(of owner: String) throws(CloudError) -> Int64?
    /// Adds an entry.
    ///
    /// - Throws: `CloudError` `internalError` where an entry of the owner has the same time.
    func add(_ entry: StoredAuditEntry) throws(CloudError)
    /// Returns a zone's entries after a time (microseconds since 1970 UTC), in the order of their times. Entries of a kind that this
    /// version does not know are left out.
    func auditEntries(in zone: StoredZone.ID, after time: Int64) throws(CloudError) -> [StoredAuditEntry]
}

/// A share, as a storage keeps it. Participants, links and covered records are rows of their own.
public struct StoredShare: Hashable, Sendable {
    /// Identifies a share by its owner, and by a number that no other share of the owner has.
    public struct ID: Hashable, Sendable {
        /// The user record name of the zone's owner.
        public let owner: String
        /// The share's number.
        public let number: Int64

        /// Makes an identifier from its members.
        public init(owner: String, number: Int64) { (self.owner, self.number) = (owner, number) }
    }

    /// Unique among the owner's shares; 0 before the share is saved.
    public var number: Int64
    /// The share's owner and number.
    public var id: ID { ID(owner: zone.owner, number: number) }
    /// The zone that the share belongs to.
    public let zone: StoredZone.ID
    /// The name of the share's record.
    public let name: String
    /// The name of the record whose hierarchy is shared; `nil` for a share of the whole zone.
    public let root: String?
    /// The title that participants see, as `CKShare.SystemFieldKey.title`.
    public var title: String?
    /// The permission of everybody who has the link, as `CKShare.publicPermission`.
    public var publicPermission: ShareParticipant.Permission
    /// The last change of the share or of the hierarchy that it covers.
    public var touched: Int64
    /// Whether the share was stopped. Its row stays, so that participants' devices learn of it.
    public var isEnded: Bool

    package init(
        number: Int64 = 0, zone: StoredZone.ID, name: String, root: String?, title: String? = nil,
        publicPermission: ShareParticipant.Permission,
        touched: Int64, isEnded: Bool
    ) {
        self.number = number
        self.zone = zone
        self.name = name
        self.root = root
        self.title = title
        self.publicPermission = publicPermission
        self.touched = touched
        self.isEnded = isEnded
    }
}

/// A participant, as a storage keeps it. Participants who left or were removed stay, so that their devices learn of it.
public struct StoredParticipant: Hashable, Sendable {
    /// A random UUID that identifies the participant.
    public let id: String
    /// The share.
    public let share: StoredShare.ID
    /// The share's zone.
    public let zone: StoredZone.ID
    /// The account's user record name; `nil` until an account accepts or declines the invitation. While an invitation is pending this
    /// is the earlier account, if any: the invitation is for the account that has the address now.
    public var user: String?
    /// The person's name when the account accepted the invitation or made the share.
    public var name: PersonName?
    /// The address, number or user record name that was invited; `nil` for the owner, and for a participant who came by an open link.
    public var lookUp: UserLookUp?
    /// As `CKShare.Participant.role`.
    public var role: ShareParticipant.Role
    /// As `CKShare.Participant.permission`. For a public user it follows the share's ``StoredShare/publicPermission``.
    public var permission: ShareParticipant.Permission
    /// As `CKShare.Participant.acceptanceStatus`.
    public var acceptanceStatus: ShareParticipant.AcceptanceStatus
    /// The change since which the participant sees what is shared; 0 for never.
    public var began: Int64
    /// The change since which the participant no longer sees it; 0 for never.
    public var ended: Int64
    /// The change of the last invitation; 0 for never.
    public var invited: Int64
    /// The change in which another person last removed the participant; 0 for never, and again once the participant accepts a later
    /// invitation.
    public var expelled: Int64

    package init(
        id: String, share: StoredShare.ID, zone: StoredZone.ID, user: String? = nil, name: PersonName? = nil,
        lookUp: UserLookUp? = nil,
        role: ShareParticipant.Role, permission: ShareParticipant.Permission, acceptanceStatus: ShareParticipant.AcceptanceStatus,
        began: Int64, ended: Int64, invited: Int64, expelled: Int64
    ) {
        self.id = id
        self.share = share
        self.zone = zone
        self.user = user
        self.name = name
        self.lookUp = lookUp
        self.role = role
        self.permission = permission
        self.acceptanceStatus = acceptanceStatus
        self.began = began
        self.ended = ended
        self.invited = invited
        self.expelled = expelled
    }
}

/// A link, as a storage keeps it. The link's token itself is not stored.
public struct StoredLink: Hashable, Sendable {
    /// The SHA-256 of the link's token: 64 hexadecimal digits in UTF-8. Unique.
    public let digest: Data
    /// Identifies the link within its share, to revoke it. Not secret.
    public let id: String
    /// The share that the link leads to.
    public let share: StoredShare.ID
    /// The participant who alone may use the link; `nil` for a link that is not limited.
    public let participant: String?

    package init(
        digest: Data, id: String, share: StoredShare.ID, participant: String?
    ) {
        self.digest = digest
        self.id = id
        self.share = share
        self.participant = participant
    }
}

/// An entry that a record is, or was, in the hierarchy that a share covers. The share's own record has one, too.
public struct CoveredRecord: Hashable, Sendable {
    /// The share.
    public let share: StoredShare.ID
    /// The record's name.
    public let name: String
    /// The record type's name.
    public let type: String
    /// The change in which the record entered the hierarchy, last changed there, or left it. Unique in its share.
    public let change: Int64
    /// Whether the record has left the hierarchy.
    public let isGone: Bool

    package init(
        share: StoredShare.ID, name: String, type: String, change: Int64, isGone: Bool
    ) {
        self.share = share
        self.name = name
        self.type = type
        self.change = change
        self.isGone = isGone
    }
}

/// One change of a share, as a storage keeps it for the audit of sharing.
public struct StoredAuditEntry: Hashable, Sendable {
    /// Microseconds since 1970 UTC. No two entries of an owner have the same time.
    public let time: Int64
    /// The share's zone.
    public let zone: StoredZone.ID
    /// The share by its number, and not by its name: a later share of the zone can have the same name.
    public let share: StoredShare.ID
    /// The user record name of the account that made the change.
    public let user: String
    /// What was changed.
    public let kind: ShareAuditEntry.Kind
    /// The participant or the link that was changed; `nil` for a change of the share itself.
    public let subject: String?
    /// The value after the change, at most 100 characters; `nil` where the kind says all.
    public let value: String?

    package init(
        time: Int64, zone: StoredZone.ID, share: StoredShare.ID, user: String, kind: ShareAuditEntry.Kind, subject: String?,
        value: String?
    ) {
        self.time = time
        self.zone = zone
        self.share = share
        self.user = user
        self.kind = kind
        self.subject = subject
        self.value = value
    }
}
