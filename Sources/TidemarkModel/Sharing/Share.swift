/// What is shared with whom, as a store knows it. As `CKShare`.
///
/// It is what the cloud said last: what somebody may do, the cloud decides when they do it.
public struct Share: Hashable, Codable, Sendable {
    /// Private for the owner, shared for everybody else.
    public let scope: StoreScope
    /// The zone whose records, or whose hierarchy, are shared.
    public let zone: ZoneName
    /// The name of the share's record.
    public let name: String
    /// The root of the hierarchy that is shared; `nil` where the whole zone is.
    public let root: String?
    /// The title that invitations show. As `CKShare.SystemFieldKey.title`.
    public var title: String?
    /// The permission of everybody with a link.
    public var publicPermission: ShareParticipant.Permission
    /// The owner first.
    public var participants: [ShareParticipant]
    /// Whose container this is.
    public var currentUser: ShareParticipant?
    /// The change tag of the share's record; `nil` where the cloud does not have it yet.
    public var changeTag: String?

    /// Makes a share of what is known of it.
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

    /// The owner; `nil` where the cloud has not named one.
    public var owner: ShareParticipant? { participants.first { $0.role == .owner } }

    /// Who asks, for ``SharePolicy``. In one's own database one is the owner, whatever is known.
    public var actor: SharePolicy.Actor {
        if scope == .private { return .owner }
        return currentUser.map { .participant($0) } ?? .stranger
    }

    /// A record that it covers, for ``SharePolicy``.
    public func target(record: String? = nil, isUnsaved: Bool = false) -> SharePolicy.Target {
        SharePolicy.Target(
            scope: scope.databaseScope, isShared: true, publicPermission: publicPermission,
            isRoot: record != nil && record == root,
            isUnsaved: isUnsaved)
    }
}
