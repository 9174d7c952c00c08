/// A participant of a share. As `CKShare.Participant`; so are the raw values.
public struct ShareParticipant: Hashable, Codable, Sendable {
    /// The role of a participant. As `CKShare.ParticipantRole`.
    public enum Role: Int, Codable, CaseIterable, Sendable {
        /// A role that this version does not know.
        case unknown = 0
        /// The owner of the shared zone.
        case owner = 1
        /// A participant that may invite, change and remove users, but neither other administrators nor the owner.
        case administrator = 2
        /// An invited participant.
        case privateUser = 3
        /// A participant that came by a public link.
        case publicUser = 4

        /// The role as people read it.
        public var title: String {
            switch self {
            case .owner: "Owner"
            case .administrator: "Administrator"
            case .privateUser: "Private User"
            case .publicUser: "Public User"
            case .unknown: "Unknown"
            }
        }
    }

    /// The permission of a participant. As `CKShare.ParticipantPermission`.
    public enum Permission: Int, Codable, CaseIterable, Sendable {
        /// A permission that this version does not know: it allows nothing.
        case unknown = 0
        /// Nothing, not even reading.
        case none = 1
        /// Reading.
        case readOnly = 2
        /// Reading, adding, changing and deleting records.
        case readWrite = 3

        /// The permission as people read it.
        public var title: String {
            switch self {
            case .none: "None"
            case .readOnly: "Read-Only"
            case .readWrite: "Read-Write"
            case .unknown: "Unknown"
            }
        }
    }

    /// The state of an invitation. As `CKShare.ParticipantAcceptanceStatus`.
    public enum AcceptanceStatus: Int, Codable, CaseIterable, Sendable {
        /// A status that this version does not know.
        case unknown = 0
        /// The invitation has no answer yet.
        case pending = 1
        /// The invitation is accepted.
        case accepted = 2
        /// The participant was removed, or has left.
        case removed = 3

        /// The status as people read it.
        public var title: String {
            switch self {
            case .pending: "Invited"
            case .accepted: "Accepted"
            case .removed: "Removed"
            case .unknown: "Unknown"
            }
        }
    }

    /// The participant's identifier within the share. Opaque.
    public let id: String
    /// The participant's identity, as far as it is known.
    public var identity: UserIdentity
    /// The participant's role.
    public var role: Role
    /// The permission that was given; for a public user, the share's public permission.
    public var permission: Permission
    /// Whether the invitation is accepted.
    public var acceptanceStatus: AcceptanceStatus

    /// Makes a participant.
    ///
    /// - Parameter id: Unique within the share.
    public init(
        id: String, identity: UserIdentity, role: Role, permission: Permission, acceptanceStatus: AcceptanceStatus
    ) {
        self.id = id
        self.identity = identity
        self.role = role
        self.permission = permission
        self.acceptanceStatus = acceptanceStatus
    }
}
