/// A share with its participants, as a store knows it. As `CKShare`.
///
/// The values are the last state that the cloud has sent. When an operation is performed, the cloud decides whether it is
/// allowed.
public struct Share: Hashable, Codable, Sendable {
    /// Private for the owner, shared for every participant.
    public let scope: StoreScope
    /// The zone whose records, or whose hierarchy, are shared.
    public let zone: ZoneName
    /// The name of the share's record.
    public let name: String
    /// The root of the shared hierarchy; `nil` if the whole zone is shared.
    public let root: String?
    /// The title that invitations show. As `CKShare.SystemFieldKey.title`.
    public var title: String?
    /// The permission of everyone who has the link.
    public var publicPermission: ShareParticipant.Permission
    /// The participants, the owner first.
    public var participants: [ShareParticipant]
    /// The participant whose container this is.
    public var currentUser: ShareParticipant?
    /// The change tag of the share's record; `nil` if the cloud does not have it yet.
    public var changeTag: String?

    /// Makes a share; see the properties.
    public init(
        scope: StoreScope, zone: ZoneName, name: String, root: String? = nil, title: String? = nil,
        publicPermission: ShareParticipant.Permission = .none, participants: [ShareParticipant] = [],
        currentUser: ShareParticipant? = nil, changeTag: String? = nil
    ) {
        self.scope = scope
        self.zone = zone
        self.name = name
        self.root = root
        self.title = title
        self.publicPermission = publicPermission
        self.participants = participants
        self.currentUser = currentUser
        self.changeTag = changeTag
    }

    /// The owner; `nil` if the cloud has not named one.
    public var owner: ShareParticipant? { participants.first { $0.role == .owner } }

    /// The current user as an actor, for ``SharePolicy``. In a private database that is always the owner.
    public var actor: SharePolicy.Actor {
        if scope == .private { return .owner }
        return currentUser.map { .participant($0) } ?? .stranger
    }

    /// A record that the share covers, as a target for ``SharePolicy``.
    public func target(record: String? = nil, isUnsaved: Bool = false) -> SharePolicy.Target {
        SharePolicy.Target(
            scope: scope.databaseScope, isShared: true, publicPermission: publicPermission,
            isRoot: record != nil && record == root,
            isUnsaved: isUnsaved)
    }
}
