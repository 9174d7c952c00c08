import TidemarkCloud
package import TidemarkModel

/// The state that a client wants a share to have. The client does not have to read the share first, as it would to name changes.
package struct DesiredShare: Sendable {
    package struct Participant: Sendable {
        /// The participant's identifier in the share; `nil` where the identity alone tells which participant is meant.
        package var id: String?
        package var identity: UserIdentity
        package var role: ShareParticipant.Role
        package var permission: ShareParticipant.Permission
        /// Whether the client names the participant as removed.
        package var isRemoved: Bool

        package init(
            id: String?, identity: UserIdentity, role: ShareParticipant.Role, permission: ShareParticipant.Permission,
            isRemoved: Bool
        ) {
            (self.id, self.identity, self.role, self.permission) = (id, identity, role, permission)
            self.isRemoved = isRemoved
        }
    }

    /// `nil` to keep the present title.
    package var title: String?
    /// `nil` to keep the present permission; a new share then has `none`.
    package var publicPermission: ShareParticipant.Permission?
    /// All participants except the owner; `nil` to keep the present ones.
    package var participants: [Participant]?

    package init(title: String?, publicPermission: ShareParticipant.Permission?, participants: [Participant]?) {
        (self.title, self.publicPermission, self.participants) = (title, publicPermission, participants)
    }

    /// Returns the changes that bring a share into the desired state.
    ///
    /// - Throws: `CloudError` `invalidArguments` for a new participant whose identity has nothing to find a person by.
    func changes(of share: CloudShare) throws(CloudError) -> [ShareChange] {
        var changes: [ShareChange] = []
        if let title, title != share.title { changes.append(.setTitle(title)) }
        if let publicPermission, publicPermission != share.publicPermission {
            changes.append(.setPublicPermission(publicPermission))
        }
        guard let participants else { return changes }
        let there = Known(share.participants)
        var kept: Set<String> = []
        for wanted in participants where wanted.role != .owner {
            guard let known = there.participant(meantBy: wanted) else {
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

extension DesiredShare {
    /// Finds participants of a share without comparing each desired participant with each stored one.
    private struct Known {
        private let participants: [ShareParticipant]
        // Each value is the index of the first participant with the key.
        private var byID: [String: Int] = [:]
        private var byUser: [String: Int] = [:]
        private var byLookUp: [UserLookUp: Int] = [:]

        init(_ participants: [ShareParticipant]) {
            self.participants = participants
            for (place, known) in participants.enumerated() {
                if byID[known.id] == nil { byID[known.id] = place }
                if let user = known.identity.userRecordName, byUser[user] == nil { byUser[user] = place }
                if let lookUp = known.identity.lookUp?.normalized, byLookUp[lookUp] == nil { byLookUp[lookUp] = place }
            }
        }

        func participant(meantBy wanted: Participant) -> ShareParticipant? {
            if let id = wanted.id { return byID[id].map { participants[$0] } }
            var places: [Int] = []
            if let user = wanted.identity.userRecordName, let place = byUser[user] { places.append(place) }
            if let lookUp = wanted.identity.lookUp?.normalized, let place = byLookUp[lookUp] { places.append(place) }
            return places.min().map { participants[$0] }
        }
    }
}
