/// The decision about an operation, with its rule and a remedy.
public struct ShareDecision: Hashable, Sendable {
    /// The operation that was asked about.
    public let operation: SharePolicy.Operation
    /// The rule that decides.
    public let rule: SharePolicy.Rule

    /// Makes a decision that was made elsewhere, as by a server.
    public init(operation: SharePolicy.Operation, rule: SharePolicy.Rule) {
        self.operation = operation
        self.rule = rule
    }

    /// Whether the rule allows the operation.
    public var isAllowed: Bool { rule.allows }

    /// The step that would allow the operation; `nil` if it is allowed, or no step would allow it.
    public var remedy: Remedy? { rule.remedy(for: operation) }

    /// The reason, as a sentence for people.
    public var reason: String { rule.reason }

    /// A step that would allow a refused operation.
    public enum Remedy: String, Codable, CaseIterable, Sendable {
        /// An account has to sign in.
        case signIn
        /// The owner, or an administrator, has to invite.
        case askForInvitation
        /// The person has to accept the invitation.
        case acceptInvitation
        /// The owner, or an administrator, has to give the permission Read-Write.
        case askForReadWrite
        /// The owner has to do it.
        case askOwner
        /// The owner or an administrator has to do it.
        case askAdministrator
        /// The record has to be taken out of its share.
        case stopSharing
        /// The participant has to leave the share, instead of ending it for all.
        case leave

        /// The remedy as words that follow an error: “ask the owner to do it”.
        public var text: String {
            switch self {
            case .signIn: "sign in"
            case .askForInvitation: "ask the owner for an invitation"
            case .acceptInvitation: "accept the invitation"
            case .askForReadWrite: "ask the owner for the permission Read-Write"
            case .askOwner: "ask the owner to do it"
            case .askAdministrator: "ask the owner or an administrator to do it"
            case .stopSharing: "stop the sharing that it takes part in first"
            case .leave: "leave the share instead"
            }
        }
    }
}

extension SharePolicy.Rule {
    /// Whether the rule allows the operation.
    public var allows: Bool {
        switch self {
        case .ownRecords, .unsavedRecord, .publicIsReadable, .ownPublicRecord, .owner, .readWrite, .readOnlyReads, .administrator,
            .ownParticipation, .invited, .openLink, .newPublicRecord:
            true
        case .notSignedIn, .stranger, .notAccepted, .removed, .noPermission, .readOnly, .unknownParticipation,
            .publicRecordOfAnother,
            .rootIsTheOwners, .zonesAreTheOwners, .sharingIsTheOwners, .membersAreManaged, .administratorsAreTheOwners,
            .ownerStays,
            .notShared, .alreadyShared, .publicIsNotShared:
            false
        }
    }

    fileprivate func remedy(for operation: SharePolicy.Operation) -> ShareDecision.Remedy? {
        switch self {
        case .notSignedIn: .signIn
        case .stranger, .removed: .askForInvitation
        case .notAccepted: .acceptInvitation
        case .noPermission: operation.reads ? .askForInvitation : .askForReadWrite
        case .readOnly: .askForReadWrite
        case .rootIsTheOwners: operation == .delete ? .askOwner : nil
        case .zonesAreTheOwners, .sharingIsTheOwners, .administratorsAreTheOwners: .askOwner
        case .membersAreManaged: .askAdministrator
        case .alreadyShared: .stopSharing
        default: nil
        }
    }

    /// The reason, as a sentence for people.
    public var reason: String {
        switch self {
        case .ownRecords: "it is in your own database"
        case .unsavedRecord: "no cloud has it yet"
        case .publicIsReadable: "everybody may read public records"
        case .newPublicRecord: "every signed-in account may add public records"
        case .ownPublicRecord: "it is public, and your own"
        case .owner: "the owner may"
        case .readWrite: "the permission is Read-Write"
        case .readOnlyReads: "the permission is Read-Only"
        case .administrator: "an administrator may"
        case .ownParticipation: "it is your own participation"
        case .invited: "there is an invitation"
        case .openLink: "the link is open to everybody who has it"
        case .notSignedIn: "no account is signed in"
        case .stranger: "it is not shared with this person"
        case .notAccepted: "the invitation is not accepted"
        case .removed: "this person was removed from the share"
        case .noPermission: "the permission is None"
        case .readOnly: "the permission is Read-Only"
        case .unknownParticipation: "the person's permission is not known"
        case .publicRecordOfAnother: "it is public and belongs to another owner"
        case .rootIsTheOwners: "only the owner may delete the root record of a share"
        case .zonesAreTheOwners: "only the owner may move records out of a share, or create and delete zones"
        case .sharingIsTheOwners: "only the owner may share, or stop it"
        case .membersAreManaged: "only the owner and administrators manage participants"
        case .administratorsAreTheOwners: "only the owner manages administrators"
        case .ownerStays: "the owner always takes part, with all permissions"
        case .notShared: "it is not shared"
        case .alreadyShared: "it takes part in a share already, and a record is in one at the most"
        case .publicIsNotShared: "what is public can't be shared with persons"
        }
    }
}

extension ShareDecision.Remedy {
    /// The remedy as a sentence for a person, in English.
    public var sentence: String { text.prefix(1).uppercased() + text.dropFirst() + "." }
}
