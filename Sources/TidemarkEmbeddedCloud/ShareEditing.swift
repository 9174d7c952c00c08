import TidemarkCloud
import TidemarkModel

/// A share with its participants, while somebody changes it.
///
/// It decides and collects; ``CloudEngine`` writes down what has come of it, whole or not at all.
struct ShareEditing {
    let scope: DatabaseScope
    let caller: CloudEngine.Caller
    /// As what the caller acts.
    let actor: SharePolicy.Actor
    /// Names for new participants.
    let newID: () -> String
    private(set) var share: StoredShare
    private(set) var participants: [StoredParticipant]
    private(set) var dropped: [StoredParticipant] = []
    private(set) var entries: [(kind: ShareAuditEntry.Kind, subject: String?, value: String?)] = []

    init(
        _ share: StoredShare, _ participants: [StoredParticipant], scope: DatabaseScope, caller: CloudEngine.Caller,
        actor: SharePolicy.Actor, newID: @escaping () -> String
    ) {
        self.share = share
        self.participants = participants
        self.scope = scope
        self.caller = caller
        self.actor = actor
        self.newID = newID
    }

    var isChanged: Bool { !entries.isEmpty }

    /// Those who take part or may.
    var count: Int { participants.count { $0.acceptanceStatus != .removed } }

    func demand(_ operation: SharePolicy.Operation, _ participant: StoredParticipant? = nil) throws(CloudError) {
        let target = SharePolicy.Target(
            scope: scope, isShared: true, publicPermission: share.publicPermission, participant: participant?.role,
            isOneself: participant != nil && participant?.user == caller.user)
        let decision = SharePolicy.decide(operation, on: target, by: actor)
        guard decision.isAllowed else { throw CloudError(decision) }
    }

    /// That the caller may make somebody what they are to be.
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
            remove(index, as: .removed)
        }
    }

    private mutating func set(title: String?) throws(CloudError) {
        try demand(.editShare)
        guard (title?.utf8.count ?? 0) <= Self.titleMax else {
            throw CloudError(.limitExceeded, "a title has \(Self.titleMax) bytes at the most")
        }
        guard title != share.title else { return }
        share.title = title
        entries.append((.titleChanged, nil, title))
    }

    static let titleMax = 10_000

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
            case (_, .pending):
                entries.append((.removed, participant.id, nil))
                dropped.append(participants.remove(at: index))
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
            $0.lookUp == lookUp || $0.user.map { .userRecordName($0) == lookUp } ?? false
                || $0.user == caller.user && caller.addresses.contains(lookUp)
        }
        guard let index else {
            let new = StoredParticipant(
                id: newID(), share: share.id, zone: share.zone, user: nil, name: nil, lookUp: lookUp, role: role,
                permission: permission, acceptanceStatus: .pending, began: 0, ended: 0)
            participants.append(new)
            entries.append((.invited, new.id, "\(permission)"))
            return
        }
        try demand(.invite, participants[index])
        if participants[index].acceptanceStatus == .removed {
            participants[index].acceptanceStatus = .pending
            participants[index].lookUp = lookUp
            participants[index].role = role
            participants[index].permission = permission
            entries.append((.invited, participants[index].id, "\(permission)"))
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
                .invalidArguments, "who came by a link may do what everybody may who has it. Invite them by name first")
        }
        guard participants[index].permission != permission else { return }
        participants[index].permission = permission
        entries.append((.permissionChanged, id, "\(permission)"))
    }

    private mutating func set(_ role: ShareParticipant.Role, of id: String) throws(CloudError) {
        let index = try present(id)
        guard role == .privateUser || role == .administrator, participants[index].role != .publicUser else {
            throw CloudError(.invalidArguments, "who was invited is a private user or an administrator, and nobody else can be")
        }
        try demand(.changeParticipant, making: role)
        guard participants[index].role != role else { return }
        participants[index].role = role
        entries.append((.roleChanged, id, "\(role)"))
    }

    /// Where a participant is whom the caller may change so.
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

    // One's own part

    /// Where the caller takes part, or is invited to: by their account, or else by one of its addresses.
    var own: Int? {
        func rank(_ participant: StoredParticipant) -> Int {
            switch (participant.acceptanceStatus, participant.role) {
            case (.accepted, .publicUser): 2
            case (.accepted, _): 0
            case (.pending, _): 1
            default: 3
            }
        }
        return participants.indices.filter { index in
            let participant = participants[index]
            if let user = participant.user { return user == caller.user }
            return participant.lookUp.map { caller.addresses.contains($0) } ?? false
        }.min { rank(participants[$0]) < rank(participants[$1]) }
    }

    /// The caller takes part from now on.
    mutating func accept() {
        let own = own
        if let own, participants[own].acceptanceStatus == .accepted { return }
        // Who comes back by the open link comes as everybody does.
        let isInvited = own.map { participants[$0].acceptanceStatus == .pending } ?? false
        for (index, participant) in participants.enumerated().reversed()
        where participant.user == caller.user && (!isInvited || index != own) {
            dropped.append(participants.remove(at: index))
        }
        if isInvited, let index = self.own {
            participants[index].user = caller.user
            participants[index].name = caller.account?.name
            participants[index].acceptanceStatus = .accepted
            entries.append((.accepted, participants[index].id, "\(participants[index].permission)"))
        } else {
            let new = StoredParticipant(
                id: newID(), share: share.id, zone: share.zone, user: caller.user, name: caller.account?.name, lookUp: nil,
                role: .publicUser, permission: share.publicPermission, acceptanceStatus: .accepted, began: 0, ended: 0)
            participants.append(new)
            entries.append((.accepted, new.id, "\(new.permission)"))
        }
    }

    /// The caller takes part no longer.
    mutating func leave(as kind: ShareAuditEntry.Kind) {
        guard let own, participants[own].acceptanceStatus != .removed else { return }
        participants[own].user = caller.user
        remove(own, as: kind)
    }
}

extension CloudEngine.Caller {
    /// By what the caller may have been invited.
    var addresses: Set<UserLookUp> {
        var found: [UserLookUp] = [.userRecordName(user)]
        if let account { found.append(.emailAddress(account.email)) }
        if let phone = account?.phone { found.append(.phoneNumber(phone)) }
        return Set(found.compactMap(\.normalized))
    }
}
