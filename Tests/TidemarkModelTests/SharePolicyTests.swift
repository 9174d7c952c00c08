import Testing

@testable import TidemarkModel

/// Goal: permissions are decided as documented, for each actor and operation. Method: all combinations of role, permission,
/// acceptance, public permission, root or child, scope and operation, against the sentences of the documentation written as sets.
@Suite(.timeLimit(.minutes(30))) struct SharePolicyTests {
    private typealias Actor = SharePolicy.Actor
    private typealias Target = SharePolicy.Target

    private static let actors: [Actor] =
        [.nobody, .stranger]
        + ShareParticipant.Role.allCases.flatMap { role in
            ShareParticipant.Permission.allCases.flatMap { permission in
                ShareParticipant.AcceptanceStatus.allCases.map { .participant(role, permission, $0) }
                    + [.participant(role, permission, .removed, hasLeft: true)]
            }
        }

    private static let targets: [Target] = DatabaseScope.allCases.flatMap { scope in
        [false, true].flatMap { isShared in
            ShareParticipant.Permission.allCases.flatMap { permission in
                [false, true].flatMap { isRoot in
                    [nil, ShareParticipant.Role.owner, .administrator, .privateUser, .publicUser].flatMap { participant in
                        [(false, false, false), (true, false, false), (false, true, false), (false, false, true)].map {
                            Target(
                                scope: scope, isShared: isShared, publicPermission: permission, isRoot: isRoot, isUnsaved: $0.0,
                                isOwn: $0.1, participant: participant, isOneself: $0.2)
                        }
                    }
                }
            }
        }
    }

    /// The sentences of the documentation, as sets.
    private static func isAllowed(_ operation: SharePolicy.Operation, _ target: Target, _ actor: Actor) -> Bool {
        let isOwner = actor.isSignedIn && actor.role == .owner
        let known: Set<ShareParticipant.Role?> = [.administrator, .privateUser, .publicUser]
        let given: Set<ShareParticipant.Permission> = [.readOnly, .readWrite]
        let takesPart = known.contains(actor.role) && actor.acceptanceStatus == .accepted && given.contains(actor.permission)
        let writes =
            takesPart && actor.permission == .readWrite && (actor.role != .publicUser || target.publicPermission == .readWrite)
        let manages = takesPart && actor.role == .administrator
        let unsaved = target.isUnsaved && !target.isShared
        if target.scope == .public {
            switch operation {
            case .read: return true
            case .create: return actor.isSignedIn
            case .update, .delete: return actor.isSignedIn && (target.isOwn || target.isUnsaved)
            default: return false
            }
        }
        switch operation {
        case .read: return unsaved || isOwner || takesPart
        case .create: return isOwner || writes
        case .update: return unsaved || isOwner || writes
        case .delete: return unsaved || isOwner || writes && !target.isRoot
        case .move, .deleteZone: return isOwner
        case .share: return isOwner && !target.isShared
        case .readShare: return target.isShared && (isOwner || takesPart)
        case .editShare: return target.isShared && (isOwner || manages)
        case .changePublicPermission, .stopSharing: return target.isShared && isOwner
        case .invite, .changeParticipant, .removeParticipant:
            guard target.isShared, target.participant != .owner else { return false }
            if isOwner { return true }
            if target.isOneself { return takesPart && operation == .removeParticipant }
            return manages && target.participant != .administrator
        case .leave:
            return target.isShared && actor.isSignedIn && actor.role != nil && !isOwner && actor.acceptanceStatus != .removed
        case .accept, .decline:
            guard target.isShared, actor.isSignedIn, !isOwner else { return false }
            let isInvited =
                actor.role != nil && actor.role != .publicUser && [.pending, .accepted].contains(actor.acceptanceStatus)
                && (operation == .decline || given.contains(actor.permission))
            // A participant who left counts as anyone with the link; a removed participant does not.
            let isAsEverybody = actor.role == nil || actor.role == .publicUser || actor.acceptanceStatus == .removed
            let isByLink =
                isAsEverybody && given.contains(target.publicPermission)
                && (actor.role == nil || actor.acceptanceStatus != .removed || actor.hasLeft)
            return isInvited || isByLink
        }
    }

    @Test func `each actor may do what the rules say, and nothing else`() {
        var (count, wrong): (Int, [String]) = (0, [])
        for actor in Self.actors {
            for target in Self.targets {
                for operation in SharePolicy.Operation.allCases {
                    count += 1
                    let decision = SharePolicy.decide(operation, on: target, by: actor)
                    if decision.isAllowed != Self.isAllowed(operation, target, actor), wrong.count < 5 {
                        wrong.append("\(operation) on \(target) by \(actor): \(decision.rule)")
                    }
                }
            }
        }
        #expect(wrong == [])
        #expect(count > 500_000)
    }

    @Test func `a greater permission never forbids what a smaller one allows`() {
        var wrong: [String] = []
        for target in Self.targets {
            for operation in SharePolicy.Operation.allCases {
                for role in [ShareParticipant.Role.administrator, .privateUser, .publicUser] {
                    func decide(_ permission: ShareParticipant.Permission) -> Bool {
                        SharePolicy.decide(operation, on: target, by: .participant(role, permission, .accepted)).isAllowed
                    }
                    let steps = [decide(.none), decide(.readOnly), decide(.readWrite)]
                    if steps != steps.sorted(by: { !$0 && $1 }) { wrong.append("\(operation) on \(target) by \(role)") }
                }
            }
        }
        #expect(wrong == [])
    }

    @Test func `the remedy in a refusal does allow the operation`() {
        let shared = Target(scope: .shared, isShared: true)
        func decision(_ operation: SharePolicy.Operation, _ actor: Actor) -> ShareDecision {
            SharePolicy.decide(operation, on: shared, by: actor)
        }
        let refused = decision(.update, .participant(.privateUser, .readOnly, .accepted))
        #expect(refused.rule == .readOnly && refused.remedy == .askForReadWrite)
        #expect(decision(.update, .participant(.privateUser, .readWrite, .accepted)).isAllowed)
        let waiting = decision(.read, .participant(.privateUser, .readWrite, .pending))
        #expect(waiting.rule == .notAccepted && waiting.remedy == .acceptInvitation)
        #expect(decision(.read, .participant(.privateUser, .readWrite, .accepted)).isAllowed)
        #expect(decision(.read, .stranger).remedy == .askForInvitation)
        #expect(decision(.read, .nobody).remedy == .signIn)
        #expect(decision(.invite, .participant(.privateUser, .readWrite, .accepted)).remedy == .askAdministrator)
        #expect(decision(.stopSharing, .participant(.administrator, .readWrite, .accepted)).remedy == .askOwner)
        let root = SharePolicy.decide(
            .delete, on: .init(scope: .shared, isShared: true, isRoot: true),
            by: .participant(.privateUser, .readWrite, .accepted))
        #expect(root.rule == .rootIsTheOwners && root.remedy == .askOwner)
        let again = SharePolicy.decide(.share, on: .init(scope: .private, isShared: true), by: .owner)
        #expect(again.rule == .alreadyShared && again.remedy == .stopSharing)
    }

    @Test(arguments: [SharePolicy.Operation.read, .readShare])
    func `the reason for a read says whether the participant may write, too`(operation: SharePolicy.Operation) {
        let shared = Target(scope: .shared, isShared: true)
        for (permission, rule) in [
            (ShareParticipant.Permission.readOnly, SharePolicy.Rule.readOnlyReads), (.readWrite, .readWrite),
        ] {
            let decision = SharePolicy.decide(operation, on: shared, by: .participant(.privateUser, permission, .accepted))
            #expect(decision.rule == rule, "\(permission)")
        }
    }

    @Test func `a removal holds even with an open link, and leaving does not`() {
        for role in [ShareParticipant.Role.administrator, .privateUser, .publicUser] {
            let open = Target(scope: .shared, isShared: true, publicPermission: .readWrite)
            let closed = Target(scope: .shared, isShared: true)
            func rule(_ target: Target, _ hasLeft: Bool) -> SharePolicy.Rule {
                SharePolicy.decide(.accept, on: target, by: .participant(role, .readWrite, .removed, hasLeft: hasLeft)).rule
            }
            #expect([rule(open, false), rule(closed, false)] == [.removed, .removed])
            #expect([rule(open, true), rule(closed, true)] == [.openLink, .stranger])
        }
    }

    @Test func `each rule has a reason of its own, and an allowed operation needs no remedy`() {
        #expect(Set(SharePolicy.Rule.allCases.map(\.reason)).count >= SharePolicy.Rule.allCases.count - 1)
        for rule in SharePolicy.Rule.allCases where rule.allows {
            for operation in SharePolicy.Operation.allCases {
                #expect(ShareDecision(operation: operation, rule: rule).remedy == nil)
            }
        }
    }

    @Test func `role, permission and acceptance have readable names`() {
        #expect(
            ShareParticipant.Role.allCases.map(\.title) == ["Unknown", "Owner", "Administrator", "Private User", "Public User"])
        #expect(ShareParticipant.Permission.allCases.map(\.title) == ["Unknown", "None", "Read-Only", "Read-Write"])
        #expect(ShareParticipant.AcceptanceStatus.allCases.map(\.title) == ["Unknown", "Invited", "Accepted", "Removed"])
        #expect(ShareParticipant.Role.allCases.map(\.rawValue) == [0, 1, 2, 3, 4])
    }
}

/// Goal: people are found by any notation of an address or a number, and invalid ones find nobody.
@Suite(.timeLimit(.minutes(30))) struct UserLookUpTests {
    @Test(
        arguments: [
            (UserLookUp.emailAddress("Ben@Example.org"), UserLookUp.emailAddress("ben@example.org")),
            (.phoneNumber("+46 (70) 123-45 67"), .phoneNumber("+46701234567")), (.userRecordName("_a1"), .userRecordName("_a1")),
            (.emailAddress("ben"), nil), (.emailAddress("a@b@c"), nil), (.emailAddress("@b"), nil), (.emailAddress("a b@c"), nil),
            (.phoneNumber("0701234567"), nil), (.phoneNumber("+"), nil), (.phoneNumber("+46x701234567"), nil),
            (.userRecordName(""), nil),
        ] as [(UserLookUp, UserLookUp?)])
    func `an address is normalised to one form`(given: UserLookUp, normal: UserLookUp?) { #expect(given.normalized == normal) }

    @Test func `a person is shown by name, or else by the address of the invitation`() {
        var identity = UserIdentity(userRecordName: "_a1", lookUp: .emailAddress("ben@example.org"))
        #expect(identity.title == "ben@example.org")
        identity.name = PersonName(givenName: "Ben", familyName: "Berg")
        #expect(identity.title == "Ben Berg")
        #expect(UserIdentity().title == "Unknown")
    }
}
