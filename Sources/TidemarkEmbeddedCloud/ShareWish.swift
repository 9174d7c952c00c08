import TidemarkCloud
import TidemarkModel

/// What somebody wants a share to be: who says that, and not what is to change, is spared the look at what there is.
package struct ShareWish: Sendable {
    package struct Participant: Sendable {
        /// As the cloud names them in the share; `nil` where only the identity tells who is meant.
        package var id: String?
        package var identity: UserIdentity
        package var role: ShareParticipant.Role
        package var permission: ShareParticipant.Permission
        /// Whether they are named as one who is out.
        package var isRemoved: Bool

        package init(
            id: String?, identity: UserIdentity, role: ShareParticipant.Role, permission: ShareParticipant.Permission,
            isRemoved: Bool
        ) {
            (self.id, self.identity, self.role, self.permission) = (id, identity, role, permission)
            self.isRemoved = isRemoved
        }
    }

    /// `nil` for whatever it is.
    package var title: String?
    /// `nil` for whatever it is; of a new share, `none`.
    package var publicPermission: ShareParticipant.Permission?
    /// All who are to take part, but for the owner; `nil` for whoever does.
    package var participants: [Participant]?

    package init(title: String?, publicPermission: ShareParticipant.Permission?, participants: [Participant]?) {
        (self.title, self.publicPermission, self.participants) = (title, publicPermission, participants)
    }

    /// What makes a share what is wished for.
    ///
    /// - Throws: `CloudError` `invalidArguments` for a new participant by whom nobody can be found.
    func changes(of share: CloudShare) throws(CloudError) -> [ShareChange] {
        var changes: [ShareChange] = []
        if let title, title != share.title { changes.append(.setTitle(title)) }
        if let publicPermission, publicPermission != share.publicPermission {
            changes.append(.setPublicPermission(publicPermission))
        }
        guard let participants else { return changes }
        var kept: Set<String> = []
        for wanted in participants where wanted.role != .owner {
            guard let known = share.participants.first(where: wanted.isMeant) else {
                guard let lookUp = wanted.identity.lookUp ?? wanted.identity.userRecordName.map(UserLookUp.userRecordName) else {
                    throw CloudError(.invalidArguments, "a participant has neither lookupInfo nor userRecordName")
                }
                changes.append(.invite(lookUp, role: wanted.role, permission: wanted.permission))
                continue
            }
            guard !wanted.isRemoved else { continue }
            kept.insert(known.id)
            if known.role != wanted.role, known.role != .owner, known.role != .publicUser {
                changes.append(.setRole(participant: known.id, wanted.role))
            }
            if known.permission != wanted.permission, known.role != .owner {
                changes.append(.setPermission(participant: known.id, wanted.permission))
            }
        }
        for known in share.participants
        where known.role != .owner && known.acceptanceStatus != .removed && !kept.contains(known.id) {
            changes.append(.remove(participant: known.id))
        }
        return changes
    }
}

extension ShareWish.Participant {
    /// Whether one of a share is this one.
    fileprivate func isMeant(_ known: ShareParticipant) -> Bool {
        if let id { return known.id == id }
        if let user = identity.userRecordName, known.identity.userRecordName == user { return true }
        guard let lookUp = identity.lookUp?.normalized else { return false }
        return known.identity.lookUp?.normalized == lookUp
    }
}
