public import TidemarkModel

/// A set of shared records and its participants. As `CKShare`.
///
/// It is a record of its zone, of the type `cloudkit.share`, and comes with the zone's changes as other records do.
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
        /// A record, and all that have it as their `parent`, or as the parent of that, and so on.
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
    /// The owner first. Participants see everybody. By what others were invited, and who was removed, declined or left, is told to the owner
    /// and administrators, who can invite them again. Who is only invited sees the owner and themselves.
    public var participants: [ShareParticipant]
    /// Who asks.
    public var currentUser: ShareParticipant?
    /// The version of the share's record.
    public var changeTag: String?
    /// The token of a link for all that leads to the share, where one was asked for that stays the same. For those who may invite.
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

/// One change of a share. What is done together is done whole or not at all.
public enum ShareChange: Hashable, Sendable {
    /// Sets the title, or removes it.
    case setTitle(String?)
    /// Drops those who were invited and have not answered; `none` drops those who came by a link.
    case setPublicPermission(ShareParticipant.Permission)
    /// Adds a participant, or changes the one whom it finds. The caller does not learn whether an account exists.
    case invite(UserLookUp, role: ShareParticipant.Role, permission: ShareParticipant.Permission)
    /// Sets what a participant may do.
    case setPermission(participant: String, ShareParticipant.Permission)
    /// Private user or administrator.
    case setRole(participant: String, ShareParticipant.Role)
    /// Is out at once.
    case remove(participant: String)
}

/// The way into a share, for whoever is given it.
public struct ShareLink: Hashable, Sendable {
    /// Names the link to those who manage it; gives no access.
    public let id: String
    /// What gives access: 128 random bits and more, as text for an address. The cloud does not keep it and tells it once.
    public let token: String
    /// The participant to whom it is limited.
    public let participant: String?

    /// Makes a link from its members.
    public init(id: String, token: String, participant: String?) {
        self.id = id
        self.token = token
        self.participant = participant
    }
}

/// What a link leads to. As `CKShare.Metadata`.
public struct ShareMetadata: Hashable, Sendable {
    /// With the owner's name, as it is to be asked for in the shared database.
    public var share: CloudShare
    /// The name of the root record of a shared hierarchy; `nil` for a share of a whole zone.
    public var root: String?
    /// The owner of the share.
    public var owner: UserIdentity
    /// What the person is who asks; `nil` for one who would come as a public user.
    public var participant: ShareParticipant?
    /// Private for the owner.
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

/// What was done to a share, by whom, and when.
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
    /// What it is now, as `readWrite`; of an invitation the role as well, as `administrator readOnly`.
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
