public import TidemarkModel

/// A set of shared records and its participants. As `CKShare`.
///
/// A share is a record of its zone, of the type `cloudkit.share`. It is among the zone's changes as other records are.
public struct CloudShare: Hashable, Sendable {
    /// The type of the records that hold shares.
    public static let recordType = "cloudkit.share"
    /// The name of the record of a share of a whole zone.
    public static let zoneWideName = "cloudkit.zoneshare"
    /// The field with the title.
    public static let titleField = "cloudkit.title"

    /// What a share covers.
    public enum Coverage: Hashable, Sendable {
        /// All records of its zone.
        case zone
        /// A record, and all records below it: those that have it as their `parent`, and so on.
        case hierarchy(root: String)
    }

    /// The name and zone of the share's record.
    public let id: CloudRecordID
    /// The records that the share covers.
    public let coverage: Coverage
    /// The title that participants see.
    public var title: String?
    /// The permission of everybody with a link.
    public var publicPermission: ShareParticipant.Permission
    /// The participants, the owner first.
    ///
    /// An account that takes part sees all present participants. Only the owner and administrators, who can invite people again,
    /// see who was removed, declined or left, and the address by which somebody was invited. An account that is only invited sees
    /// the owner and itself.
    public var participants: [ShareParticipant]
    /// The participant of the calling account.
    public var currentUser: ShareParticipant?
    /// The version of the share's record.
    public var changeTag: String?
    /// The token of a permanent open link to the share; `nil` if no such link was asked for. Only accounts that may invite get
    /// it.
    public var shortGUID: String?

    /// Makes a share from its members.
    public init(
        _ id: CloudRecordID, coverage: Coverage, title: String? = nil, publicPermission: ShareParticipant.Permission = .none,
        participants: [ShareParticipant] = [], currentUser: ShareParticipant? = nil, changeTag: String? = nil
    ) {
        self.id = id
        self.coverage = coverage
        self.title = title
        self.publicPermission = publicPermission
        self.participants = participants
        self.currentUser = currentUser
        self.changeTag = changeTag
    }

    /// The participant that owns the share. O(n) in the participants.
    public var owner: ShareParticipant? { participants.first { $0.role == .owner } }
}

/// A change of a share. The changes of one call are all made, or none of them.
public enum ShareChange: Hashable, Sendable {
    /// Sets the title, or removes it.
    case setTitle(String?)
    /// Sets the permission of everyone who has the link. It removes participants who were invited and have not answered; `none`
    /// removes participants who came by a link.
    case setPublicPermission(ShareParticipant.Permission)
    /// Invites a person, or changes the participant with that address. The caller does not learn whether an account exists.
    case invite(UserLookUp, role: ShareParticipant.Role, permission: ShareParticipant.Permission)
    /// Sets what a participant may do.
    case setPermission(participant: String, ShareParticipant.Permission)
    /// Sets a participant's role: private user or administrator.
    case setRole(participant: String, ShareParticipant.Role)
    /// Removes a participant. The participant loses access at once.
    case remove(participant: String)
}

/// A link to a share.
public struct ShareLink: Hashable, Sendable {
    /// The link's identifier, for those who manage it. It gives no access.
    public let id: String
    /// The secret that gives access: at least 128 random bits, as text for an address. The cloud returns it once and does not
    /// keep it.
    public let token: String
    /// The identifier of the participant who alone can use the link; `nil` for a link without this limit.
    public let participant: String?

    /// Makes a link from its members.
    public init(id: String, token: String, participant: String?) {
        self.id = id
        self.token = token
        self.participant = participant
    }
}

/// The share that a link leads to. As `CKShare.Metadata`.
public struct ShareMetadata: Hashable, Sendable {
    /// The share. Its zone has the owner's name, as requests to the shared database need it.
    public var share: CloudShare
    /// The name of the root record of a shared hierarchy; `nil` for a share of a whole zone.
    public var root: String?
    /// The owner of the share.
    public var owner: UserIdentity
    /// The participant of the calling account; `nil` for an account that would join as a public user.
    public var participant: ShareParticipant?
    /// The database in which the calling account sees the share: private for the owner, shared for others.
    public var scope: DatabaseScope

    /// Makes metadata from its members.
    public init(
        share: CloudShare, root: String?, owner: UserIdentity, participant: ShareParticipant?, scope: DatabaseScope
    ) {
        self.share = share
        self.root = root
        self.owner = owner
        self.participant = participant
        self.scope = scope
    }
}

/// An entry of the audit log of shares: an event, the account that caused it, and its time.
public struct ShareAuditEntry: Hashable, Sendable {
    /// The kinds of events.
    public enum Kind: String, Codable, CaseIterable, Sendable {
        /// One kind of event: a change of the share, of its participants or of its links.
        case created, titleChanged, publicPermissionChanged, invited, permissionChanged, roleChanged, removed, linkMade,
            linkRevoked,
            accepted, declined, left, stopped
    }

    /// Microseconds since 1970 UTC.
    public let time: Int64
    /// The account that made the change.
    public let userRecordName: String
    /// The share that was changed.
    public let share: CloudRecordID
    /// The kind of event.
    public let kind: Kind
    /// The participant, or the link, that it was about.
    public let subject: String?
    /// The new value, such as `readWrite`. An invitation has the role, too, as in `administrator readOnly`.
    public let value: String?

    /// Makes an entry from its members.
    public init(
        time: Int64, userRecordName: String, share: CloudRecordID, kind: Kind, subject: String? = nil, value: String? = nil
    ) {
        self.time = time
        self.userRecordName = userRecordName
        self.share = share
        self.kind = kind
        self.subject = subject
        self.value = value
    }
}
