/// One who takes part in a share. As `CKShare.Participant`; so are the raw values.
public struct ShareParticipant: Hashable, Codable, Sendable {
    /// As `CKShare.ParticipantRole`.
    public enum Role: Int, Codable, CaseIterable, Sendable {
        case unknown = 0
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
        case unknown = 0
        case none = 1
        case readOnly = 2
        case readWrite = 3

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
        case unknown = 0
        /// Was invited, and has not answered.
        case pending = 1
        case accepted = 2
        case removed = 3

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
    public var identity: UserIdentity
    public var role: Role
    /// What was given; of a public user, what the share gives to all.
    public var permission: Permission
    public var acceptanceStatus: AcceptanceStatus

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
