/// One who takes part in a share. As `CKShare.Participant`; so are the raw values.
public struct ShareParticipant: Hashable, Codable, Sendable {
    /// As `CKShare.ParticipantRole`.
    public enum Role: Int, Codable, CaseIterable, Sendable {
        /// A role that this version does not know.
        case unknown = 0
        /// Owns the zone that is shared.
        case owner = 1
        /// May invite, change and remove users, but neither other administrators nor the owner.
        case administrator = 2
        /// Was invited.
        case privateUser = 3
        /// Came by a link that is open to everybody who has it.
        case publicUser = 4

        /// As people read it.
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

    /// As `CKShare.ParticipantPermission`.
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

    /// As `CKShare.ParticipantAcceptanceStatus`.
    public enum AcceptanceStatus: Int, Codable, CaseIterable, Sendable {
        /// A status that this version does not know.
        case unknown = 0
        /// Was invited, and has not answered.
        case pending = 1
        /// Has accepted the invitation.
        case accepted = 2
        /// Was removed, or has left.
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

    /// Names it within its share. Opaque.
    public let id: String
    /// Who takes part, as far as that is known.
    public var identity: UserIdentity
    /// The participant's role.
    public var role: Role
    /// What was given; of a public user, what the share gives to all.
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
