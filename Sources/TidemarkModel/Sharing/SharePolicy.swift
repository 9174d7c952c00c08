/// The rules of sharing: may X do Y to Z?
///
/// One pure function that clients and clouds both ask. A client asks it to inform its user; the cloud's decision counts.
///
/// ```swift
/// let decision = SharePolicy.decide(.update, on: .init(scope: .shared, isShared: true), by: .participant(.privateUser, .readOnly, .accepted))
/// decision.isAllowed          // false
/// decision.rule               // .readOnly
/// decision.remedy             // .askForReadWrite
/// ```
public enum SharePolicy {
    /// An operation that an actor wants to perform.
    public enum Operation: String, Codable, CaseIterable, Sendable {
        /// To look a record up, query it, receive its changes, and fetch the assets that it names.
        case read
        /// To add a record, and the assets that it names.
        case create
        /// To change fields of a record.
        case update
        /// To delete a record.
        case delete
        /// To move a record into another zone, or out of the shared hierarchy.
        case move
        /// To see the share and its participants.
        case readShare
        /// To share a record or a zone.
        case share
        /// To change the title and the other properties of the share.
        case editShare
        /// To change the permission of everyone who has the link.
        case changePublicPermission
        /// To invite a person.
        case invite
        /// To change the role or the permission of another participant.
        case changeParticipant
        /// To remove another participant.
        case removeParticipant
        /// To accept an invitation by its link.
        case accept
        /// To decline an invitation.
        case decline
        /// To end the actor's own participation.
        case leave
        /// To end the share for all.
        case stopSharing
        /// To delete a zone with all of its records.
        case deleteZone

        /// Whether the operation changes nothing.
        public var reads: Bool { self == .read || self == .readShare }
    }

    /// The actor of an operation.
    public struct Actor: Hashable, Sendable {
        /// Whether an account is signed in.
        public var isSignedIn: Bool
        /// The role in the share; `nil` for an account that is not a participant.
        public var role: ShareParticipant.Role?
        /// The permission in the share.
        public var permission: ShareParticipant.Permission
        /// Whether the invitation is accepted.
        public var acceptanceStatus: ShareParticipant.AcceptanceStatus
        /// Whether a removed participant has left on their own, or was removed with all public users.
        public var hasLeft = false

        /// The owner of the record's zone.
        public static let owner = Actor(isSignedIn: true, role: .owner, permission: .readWrite, acceptanceStatus: .accepted)
        /// A signed-in user who is not a participant.
        public static let stranger = Actor(isSignedIn: true, role: nil, permission: .none, acceptanceStatus: .unknown)
        /// An actor that is not signed in.
        public static let nobody = Actor(isSignedIn: false, role: nil, permission: .none, acceptanceStatus: .unknown)

        /// A present or former participant.
        public static func participant(
            _ role: ShareParticipant.Role, _ permission: ShareParticipant.Permission,
            _ acceptanceStatus: ShareParticipant.AcceptanceStatus, hasLeft: Bool = false
        ) -> Actor {
            Actor(
                isSignedIn: true, role: role, permission: permission, acceptanceStatus: acceptanceStatus,
                hasLeft: acceptanceStatus == .removed && hasLeft)
        }

        /// A participant of a share.
        public static func participant(_ participant: ShareParticipant) -> Actor {
            .participant(participant.role, participant.permission, participant.acceptanceStatus)
        }
    }

    /// The target of an operation.
    public struct Target: Hashable, Sendable {
        /// The database in which the actor sees the target.
        public var scope: DatabaseScope
        /// Whether the target is shared.
        public var isShared: Bool
        /// The permission of everyone who has the link.
        public var publicPermission: ShareParticipant.Permission
        /// Whether the target is the root of a shared hierarchy.
        public var isRoot: Bool
        /// Whether no cloud has the target yet.
        public var isUnsaved: Bool
        /// Whether the actor has made the target.
        public var isOwn: Bool
        /// The role of the participant that the operation is about; `nil` for other operations.
        public var participant: ShareParticipant.Role?
        /// Whether that participant is the actor.
        public var isOneself: Bool

        /// Makes a target. By default it is neither shared nor made by the actor.
        public init(
            scope: DatabaseScope, isShared: Bool = false, publicPermission: ShareParticipant.Permission = .none,
            isRoot: Bool = false,
            isUnsaved: Bool = false, isOwn: Bool = false, participant: ShareParticipant.Role? = nil, isOneself: Bool = false
        ) {
            self.scope = scope
            self.isShared = isShared
            self.publicPermission = publicPermission
            self.isRoot = isRoot
            self.isUnsaved = isUnsaved
            self.isOwn = isOwn
            self.participant = participant
            self.isOneself = isOneself
        }
    }

    /// The rules that decide. ``ShareDecision/reason`` has each in words.
    public enum Rule: String, Codable, CaseIterable, Sendable {
        // These allow.
        /// The operation is allowed; ``ShareDecision/reason`` has the sentence.
        case ownRecords, unsavedRecord, publicIsReadable, newPublicRecord, ownPublicRecord, owner, readWrite, readOnlyReads
        /// The operation is allowed to this participant.
        case administrator, ownParticipation, invited, openLink
        // These don't.
        /// The operation is refused for the actor's role, state or permission.
        case notSignedIn, stranger, notAccepted, removed, noPermission, readOnly, unknownParticipation, publicRecordOfAnother
        /// The operation is refused because it is left to others.
        case rootIsTheOwners, zonesAreTheOwners, sharingIsTheOwners, membersAreManaged, administratorsAreTheOwners, ownerStays
        /// The operation is refused for the state of the target.
        case notShared, alreadyShared, publicIsNotShared
    }

    /// Whether an actor may do something to a target.
    ///
    /// - Complexity: O(1); allocates nothing.
    public static func decide(_ operation: Operation, on target: Target, by actor: Actor) -> ShareDecision {
        ShareDecision(operation: operation, rule: rule(operation, target, actor))
    }

    private static func rule(_ operation: Operation, _ target: Target, _ actor: Actor) -> Rule {
        if target.scope == .public { return publicRule(operation, target, actor) }
        // A record that was never saved concerns no one else, and has no share.
        if target.isUnsaved, !target.isShared, operation == .update || operation == .delete || operation == .read {
            return .unsavedRecord
        }
        guard actor.isSignedIn else { return .notSignedIn }
        switch operation {
        case .read, .create, .update, .delete: return recordRule(operation, target, actor)
        case .move, .deleteZone: return actor.role == .owner ? .owner : refusal(of: actor) ?? .zonesAreTheOwners
        case .share:
            guard actor.role == .owner else { return refusal(of: actor) ?? .sharingIsTheOwners }
            return target.isShared ? .alreadyShared : .owner
        case .accept, .decline: return invitationRule(operation, target, actor)
        case .readShare, .editShare, .changePublicPermission, .invite, .changeParticipant, .removeParticipant, .leave,
            .stopSharing:
            return target.isShared ? shareRule(operation, target, actor) : actor.role == .owner ? .notShared : .stranger
        }
    }

    /// The rule in the public database.
    private static func publicRule(_ operation: Operation, _ target: Target, _ actor: Actor) -> Rule {
        switch operation {
        case .read: return .publicIsReadable
        case .create: return actor.isSignedIn ? .newPublicRecord : .notSignedIn
        case .update, .delete:
            guard actor.isSignedIn else { return .notSignedIn }
            return target.isUnsaved ? .unsavedRecord : target.isOwn ? .ownPublicRecord : .publicRecordOfAnother
        default: return .publicIsNotShared
        }
    }

    private static func recordRule(_ operation: Operation, _ target: Target, _ actor: Actor) -> Rule {
        if actor.role == .owner { return target.isShared ? .owner : .ownRecords }
        if let rule = refusal(of: actor) { return rule }
        if operation == .read { return permission(actor, target) == .readWrite ? .readWrite : .readOnlyReads }
        guard permission(actor, target) == .readWrite else { return .readOnly }
        if operation == .delete, target.isRoot { return .rootIsTheOwners }
        return .readWrite
    }

    /// The permission of a participant. A public user has the public permission at the most.
    private static func permission(_ actor: Actor, _ target: Target) -> ShareParticipant.Permission {
        guard actor.role == .publicUser else { return actor.permission }
        return target.publicPermission.rawValue < actor.permission.rawValue ? target.publicPermission : actor.permission
    }

    /// The rule that refuses everything to an actor who neither owns the records nor takes part in the share; `nil` for a participant.
    private static func refusal(of actor: Actor) -> Rule? {
        guard let role = actor.role else { return .stranger }
        guard role != .unknown else { return .unknownParticipation }
        switch actor.acceptanceStatus {
        case .accepted: break
        case .pending: return .notAccepted
        case .removed: return .removed
        case .unknown: return .unknownParticipation
        }
        switch actor.permission {
        case .readOnly, .readWrite: return nil
        case .none: return .noPermission
        case .unknown: return .unknownParticipation
        }
    }

    private static func invitationRule(_ operation: Operation, _ target: Target, _ actor: Actor) -> Rule {
        guard target.isShared else { return .stranger }
        if actor.role == .owner { return .ownerStays }
        // A participant that was removed can't come back by a link, however they first came.
        if actor.role != nil, actor.acceptanceStatus == .removed, !actor.hasLeft { return .removed }
        if let role = actor.role, role != .publicUser {
            switch actor.acceptanceStatus {
            case .pending, .accepted:
                if operation == .decline { return .invited }
                switch actor.permission {
                case .readOnly, .readWrite: return .invited
                case .none: return .noPermission
                case .unknown: return .unknownParticipation
                }
            // A participant who has left is treated like everyone.
            case .removed: break
            case .unknown: return .unknownParticipation
            }
        }
        switch target.publicPermission {
        case .readOnly, .readWrite: return .openLink
        case .none, .unknown: return .stranger
        }
    }

    private static func shareRule(_ operation: Operation, _ target: Target, _ actor: Actor) -> Rule {
        let isOwner = actor.role == .owner
        switch operation {
        case .leave:
            if isOwner { return .ownerStays }
            // Every participant may end their own participation.
            return actor.role == nil ? .stranger : actor.acceptanceStatus == .removed ? .removed : .ownParticipation
        case .readShare:
            return isOwner ? .owner : refusal(of: actor) ?? (actor.permission == .readWrite ? .readWrite : .readOnlyReads)
        case .stopSharing, .changePublicPermission: return isOwner ? .owner : refusal(of: actor) ?? .sharingIsTheOwners
        case .editShare:
            if isOwner { return .owner }
            return refusal(of: actor) ?? (actor.role == .administrator ? .administrator : .sharingIsTheOwners)
        default: break
        }
        // Participants.
        if target.participant == .owner { return isOwner || refusal(of: actor) == nil ? .ownerStays : refusal(of: actor)! }
        if isOwner { return .owner }
        if let rule = refusal(of: actor) { return rule }
        if target.isOneself { return operation == .removeParticipant ? .ownParticipation : .membersAreManaged }
        guard actor.role == .administrator else { return .membersAreManaged }
        return target.participant == .administrator ? .administratorsAreTheOwners : .administrator
    }
}
