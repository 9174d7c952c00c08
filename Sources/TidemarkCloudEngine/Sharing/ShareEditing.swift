import TidemarkCloud
import TidemarkModel

/// A share with its participants, while a request changes it.
///
/// It decides which changes to make and collects them. ``CloudEngine`` writes them, all or none.
struct ShareEditing {
    let scope: DatabaseScope
    let caller: CloudEngine.Caller
    /// The role in which the caller acts.
    let actor: SharePolicy.Actor
    /// Makes the identifier of a new participant.
    let newID: () -> String
    /// The participant that the caller's link is limited to.
    let limit: String?
    private let addresses: Set<UserLookUp>
    private(set) var share: StoredShare
    private(set) var participants: [StoredParticipant]
    private(set) var dropped: [StoredParticipant] = []
    private(set) var entries: [(kind: ShareAuditEntry.Kind, subject: String?, value: String?)] = []

    init(
        _ share: StoredShare, _ participants: [StoredParticipant], scope: DatabaseScope, caller: CloudEngine.Caller,
        actor: SharePolicy.Actor, limit: String? = nil, newID: @escaping () -> String
    ) {
        self.share = share
        self.participants = participants
        self.scope = scope
        self.caller = caller
        self.actor = actor
        self.limit = limit
        self.newID = newID
        addresses = caller.addresses
    }

    /// Stands for the number of this change, until the change has one.
    static let thisChange = Int64.max

    var isChanged: Bool { !entries.isEmpty }

    /// The number of participants who take part or are invited.
    var count: Int { participants.count { $0.acceptanceStatus != .removed } }

    func demand(_ operation: SharePolicy.Operation, _ participant: StoredParticipant? = nil) throws(CloudError) {
        let target = SharePolicy.Target(
            scope: scope, isShared: true, publicPermission: share.publicPermission, participant: participant?.role,
            isOneself: participant != nil && participant?.user == caller.user)
        let decision = SharePolicy.decide(operation, on: target, by: actor)
        guard decision.isAllowed else { throw CloudError(decision) }
    }

    /// Checks that the caller may give somebody a role.
    private func demand(
        _ operation: SharePolicy.Operation, making role: ShareParticipant.Role
    ) throws(CloudError) {
        let target = SharePolicy.Target(scope: scope, isShared: true, participant: role)
        let decision = SharePolicy.decide(operation, on: target, by: actor)
        guard decision.isAllowed else { throw CloudError(decision) }
    }

    mutating func apply(_ change: ShareChange) throws(CloudError) {
        switch change {
        case .setTitle(let title): try set(title: title)
        case .setPublicPermission(let permission): try set(publicPermission: permission)
        case .invite(let lookUp, let role, let permission): try invite(lookUp, role, permission)
        case .setPermission(let id, let permission): try set(permission, of: id)
        case .setRole(let id, let role): try set(role, of: id)
        case .remove(let id):
            let index = try self.index(id, for: .removeParticipant)
            guard participants[index].acceptanceStatus != .removed else { return }
            if isCallers(participants[index]) { return leave() }
            remove(index, as: .removed)
            participants[index].expelled = Self.thisChange
        }
    }

    private mutating func set(title: String?) throws(CloudError) {
        try demand(.editShare)
        let title = try Self.stored(title: title)
        guard title != share.title else { return }
        share.title = title
        entries.append((.titleChanged, nil, title))
    }

    private static let titleMax = 10_000

    /// Returns a title in the form that every storage can keep: it ends at U+0000, where SQLite ends a text.
    static func stored(title: String?) throws(CloudError) -> String? {
        guard (title?.utf8.count ?? 0) <= titleMax else {
            throw CloudError(.limitExceeded, "a title has \(titleMax) bytes at the most")
        }
        return title.map { String(decoding: $0.utf8.prefix { $0 != 0 }, as: UTF8.self) }
    }

    private mutating func set(publicPermission: ShareParticipant.Permission) throws(CloudError) {
        try demand(.changePublicPermission)
        guard publicPermission != .unknown else { throw Self.noPermission }
        guard publicPermission != share.publicPermission else { return }
        share.publicPermission = publicPermission
        entries.append((.publicPermissionChanged, nil, "\(publicPermission)"))
        for (index, participant) in participants.enumerated().reversed() {
            switch (participant.role, participant.acceptanceStatus) {
            case (.publicUser, .accepted) where publicPermission == .none: remove(index, as: .removed)
            case (.publicUser, .accepted): participants[index].permission = publicPermission
            case (_, .pending) where participant.began == 0 && participant.expelled == 0:
                entries.append((.removed, participant.id, nil))
                dropped.append(participants.remove(at: index))
            // A participant who took part before learns of the removal, and one who was removed stays removed.
            case (_, .pending): remove(index, as: .removed)
            default: break
            }
        }
    }

    private static let noPermission = CloudError(.invalidArguments, "that is no permission to give")

    private mutating func invite(
        _ lookUp: UserLookUp, _ role: ShareParticipant.Role, _ permission: ShareParticipant.Permission
    ) throws(CloudError) {
        try demand(.invite)
        guard let lookUp = lookUp.normalized else {
            throw CloudError(.invalidArguments, "nobody can be found by '\(lookUp.value.prefix(100))'")
        }
        guard role == .privateUser || role == .administrator else {
            throw CloudError(.invalidArguments, "people are invited as private users or administrators")
        }
        guard permission == .readOnly || permission == .readWrite else { throw Self.noPermission }
        try demand(.invite, making: role)
        let index = participants.firstIndex {
            $0.lookUp == lookUp || $0.acceptanceStatus != .pending && $0.user.map { .userRecordName($0) == lookUp } ?? false
                || $0.user == caller.user && addresses.contains(lookUp)
        }
        guard let index else {
            let new = StoredParticipant(
                id: newID(), share: share.id, zone: share.zone, user: nil, name: nil, lookUp: lookUp, role: role,
                permission: permission, acceptanceStatus: .pending, began: 0, ended: 0, invited: Self.thisChange,
                expelled: 0)
            participants.append(new)
            entries.append((.invited, new.id, "\(role) \(permission)"))
            return
        }
        try demand(.invite, participants[index])
        // A removal may have ended the invitation. It is then made again.
        let isOver =
            participants[index].acceptanceStatus == .pending
            && participants.contains { $0.expelled > participants[index].invited }
        if participants[index].acceptanceStatus == .removed || isOver {
            participants[index].acceptanceStatus = .pending
            participants[index].invited = Self.thisChange
            participants[index].lookUp = lookUp
            participants[index].role = role
            participants[index].permission = permission
            entries.append((.invited, participants[index].id, "\(role) \(permission)"))
            return
        }
        if participants[index].permission != permission {
            participants[index].permission = permission
            entries.append((.permissionChanged, participants[index].id, "\(permission)"))
        }
        if participants[index].role != role {
            participants[index].role = role
            entries.append((.roleChanged, participants[index].id, "\(role)"))
        }
    }

    private mutating func set(_ permission: ShareParticipant.Permission, of id: String) throws(CloudError) {
        let index = try present(id)
        guard permission != .unknown else { throw Self.noPermission }
        guard participants[index].role != .publicUser else {
            throw CloudError(
                .invalidArguments,
                "a participant who joined by a link has the link's permission. Invite the participant by name first")
        }
        guard participants[index].permission != permission else { return }
        participants[index].permission = permission
        entries.append((.permissionChanged, id, "\(permission)"))
    }

    private mutating func set(_ role: ShareParticipant.Role, of id: String) throws(CloudError) {
        let index = try present(id)
        guard role == .privateUser || role == .administrator, participants[index].role != .publicUser else {
            throw CloudError(
                .invalidArguments, "an invited participant is a private user or an administrator; no other role is possible")
        }
        try demand(.changeParticipant, making: role)
        guard participants[index].role != role else { return }
        participants[index].role = role
        entries.append((.roleChanged, id, "\(role)"))
    }

    /// Returns the index of a participant whom the caller may change in this way.
    private func index(_ id: String, for operation: SharePolicy.Operation) throws(CloudError) -> Int {
        let index = participants.firstIndex { $0.id == id }
        try demand(operation, index.map { participants[$0] })
        guard let index else { throw Self.noParticipant }
        return index
    }

    private func present(_ id: String) throws(CloudError) -> Int {
        let index = try index(id, for: .changeParticipant)
        guard participants[index].acceptanceStatus != .removed else {
            throw CloudError(.invalidArguments, "the participant was removed. Invite them again")
        }
        return index
    }

    static let noParticipant = CloudError(.unknownItem, "there is no such participant")

    private mutating func remove(_ index: Int, as kind: ShareAuditEntry.Kind) {
        participants[index].acceptanceStatus = .removed
        entries.append((kind, participants[index].id, nil))
    }

    // The caller's own participation

    /// Returns whether a row is the caller's participation, or an invitation for the caller. An invitation to an address is for
    /// the account that has the address now.
    private func isCallers(_ participant: StoredParticipant) -> Bool {
        guard let user = participant.user, participant.acceptanceStatus != .pending else {
            return participant.lookUp.map { addresses.contains($0) } ?? false
        }
        return user == caller.user
    }

    /// The change in which another person removed the caller; 0 for never.
    private var expelled: Int64 {
        participants.filter { $0.user == caller.user || isCallers($0) }.map(\.expelled).max() ?? 0
    }

    /// The index of the caller's row: the one that a limited link names, or else the most favourable participation or invitation.
    var own: Int? {
        func rank(_ participant: StoredParticipant) -> Int {
            switch (participant.acceptanceStatus, participant.role) {
            case (.accepted, .publicUser): 2
            case (.accepted, _): 0
            case (.pending, _): 1
            default: 3
            }
        }
        let expelled = expelled
        let rows = participants.indices.filter { index in
            let participant = participants[index]
            // A removal ends the invitations from before it.
            return isCallers(participant) && (participant.acceptanceStatus != .pending || participant.invited > expelled)
        }
        if let limit { return rows.first { participants[$0].id == limit } }
        return rows.min { rank(participants[$0]) < rank(participants[$1]) }
    }

    /// The caller's role when they come by a link.
    var comer: SharePolicy.Actor {
        let isExpelled = expelled > 0
        guard let own else { return isExpelled ? .participant(.privateUser, .none, .removed) : .stranger }
        let participant = participants[own]
        return .participant(
            participant.role, participant.permission, participant.acceptanceStatus, hasLeft: !isExpelled)
    }

    /// Makes the caller a participant, in exactly one row.
    mutating func accept() {
        let own = own
        if let own, participants[own].acceptanceStatus == .accepted { return }
        // A person who comes back by an open link gets what everybody gets who has the link.
        let invitation = own.flatMap { participants[$0].acceptanceStatus == .pending ? participants[$0].id : nil }
        for index in participants.indices.reversed() where isCallers(participants[index]) && participants[index].id != invitation
        {
            if participants[index].user != caller.user { take(index) }
            dropped.append(participants.remove(at: index))
        }
        // The caller was invited again, or was never removed.
        for index in participants.indices where participants[index].user == caller.user { participants[index].expelled = 0 }
        if let index = participants.firstIndex(where: { $0.id == invitation }) {
            take(index)
            participants[index].name = caller.account?.name
            participants[index].acceptanceStatus = .accepted
            entries.append((.accepted, participants[index].id, "\(participants[index].permission)"))
        } else {
            let new = StoredParticipant(
                id: newID(), share: share.id, zone: share.zone, user: caller.user, name: caller.account?.name, lookUp: nil,
                role: .publicUser, permission: share.publicPermission, acceptanceStatus: .accepted, began: 0, ended: 0,
                invited: 0,
                expelled: 0)
            participants.append(new)
            entries.append((.accepted, new.id, "\(new.permission)"))
        }
    }

    /// Ends the caller's participation, and all of the caller's invitations.
    mutating func leave() {
        for index in participants.indices where isCallers(participants[index]) && participants[index].acceptanceStatus != .removed
        {
            let isIn = participants[index].acceptanceStatus == .accepted
            take(index)
            remove(index, as: isIn ? .left : .declined)
        }
    }

    /// Makes a row the caller's. An account that had the row before gets another one, so that its devices learn that it no longer
    /// takes part.
    private mutating func take(_ index: Int) {
        let before = participants[index]
        participants[index].user = caller.user
        guard let user = before.user, user != caller.user else { return }
        participants.append(
            StoredParticipant(
                id: newID(), share: share.id, zone: share.zone, user: user, name: before.name, lookUp: nil, role: before.role,
                permission: before.permission, acceptanceStatus: .removed, began: before.began, ended: before.ended, invited: 0,
                expelled: before.expelled))
        participants[index].name = nil
        (participants[index].began, participants[index].ended, participants[index].expelled) = (0, 0, 0)
    }
}

extension CloudEngine.Caller {
    /// The look-ups by which the caller may have been invited.
    var addresses: Set<UserLookUp> {
        var found: [UserLookUp] = [.userRecordName(user)]
        if let account { found.append(.emailAddress(account.email)) }
        if let phone = account?.phone { found.append(.phoneNumber(phone)) }
        return Set(found.compactMap(\.normalized))
    }
}
