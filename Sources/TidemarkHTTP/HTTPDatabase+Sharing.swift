public import TidemarkCloud
public import TidemarkModel
import TidemarkWire

extension HTTPDatabase {
    /// Returns the shares of a zone. `SharingDatabase` has the contract of `shares(in:)`.
    public func shares(in zone: CloudZoneID) async throws(CloudError) -> [CloudShare] {
        try await own(.look, "shares/list") {
            $0.member("zoneID") { zone.writeMembers(&$0) }
        } reading: { node throws(CloudError) in
            var shares: [CloudShare] = []
            var names: Set<String> = []
            for given in try node.required("shares").asArray() {
                let share = try CloudShare(given, in: zone)
                guard try isAnswer(share.id.zone, to: zone), names.insert(share.id.recordName).inserted else {
                    throw Self.foreign
                }
                shares.append(share)
            }
            return shares
        }
    }

    /// Shares a zone or a hierarchy. `SharingDatabase` has the contract of `createShare(in:coverage:title:publicPermission:)`.
    public func createShare(
        in zone: CloudZoneID, coverage: CloudShare.Coverage, title: String?, publicPermission: ShareParticipant.Permission
    ) async throws(CloudError) -> CloudShare {
        try await own(.change, "shares/create") {
            $0.member("zoneID") { zone.writeMembers(&$0) }
            $0.member("rootRecordName", coverage.root)
            $0.member("title", title)
            $0.member("publicPermission", publicPermission.wireName)
        } reading: { node throws(CloudError) in
            let share = try CloudShare(node, in: zone)
            guard try isAnswer(share.id.zone, to: zone), share.coverage == coverage else { throw Self.foreign }
            return share
        }
    }

    /// Changes a share. `SharingDatabase` has the contract of `changeShare(_:_:)`.
    public func changeShare(_ share: CloudRecordID, _ changes: [ShareChange]) async throws(CloudError) -> CloudShare {
        try await own(.change, "shares/change") {
            $0.writeShare(share)
            $0.list("changes") { for change in changes { change.write(&$0) } }
        } reading: { node throws(CloudError) in
            let changed = try CloudShare(node, in: share.zone)
            guard try isAnswer(changed.id.zone, to: share.zone), changed.id.recordName == share.recordName else {
                throw Self.foreign
            }
            return changed
        }
    }

    /// Ends a share, or the account's part in it. `SharingDatabase` has the contract of `deleteShare(_:)`.
    public func deleteShare(_ share: CloudRecordID) async throws(CloudError) {
        try await own(.change, "shares/delete", { $0.writeShare(share) }, reading: Self.nothing)
    }

    // Links

    /// Makes a link to a share. `SharingDatabase` has the contract of `makeLink(to:for:)`.
    public func makeLink(to share: CloudRecordID, for participant: String?) async throws(CloudError) -> ShareLink {
        try await own(.change, "links/make") {
            $0.writeShare(share)
            $0.member("participantId", participant)
        } reading: { node throws(CloudError) in
            let link = try ShareLink(node)
            // A link for everybody in place of a link for one person would give access to anyone who gets it.
            guard link.participant == participant else { throw Self.foreign }
            return link
        }
    }

    /// Revokes a link to a share. `SharingDatabase` has the contract of `revokeLink(_:to:)`.
    public func revokeLink(_ id: String, to share: CloudRecordID) async throws(CloudError) {
        try await own(.change, "links/revoke") {
            $0.writeShare(share)
            $0.member("id", id)
        } reading: { node throws(CloudError) in
            try Self.nothing(node)
        }
    }

    /// Returns the share that a link leads to. `SharingDatabase` has the contract of `resolveLink(_:)`.
    public func resolveLink(_ token: String) async throws(CloudError) -> ShareMetadata {
        try await own(.look, "links/resolve") {
            $0.member("token", token)
        } reading: { node throws(CloudError) in
            try ShareMetadata(node)
        }
    }

    /// Accepts the share that a link leads to. `SharingDatabase` has the contract of `acceptLink(_:)`.
    public func acceptLink(_ token: String) async throws(CloudError) -> ShareMetadata {
        try await own(.change, "links/accept") {
            $0.member("token", token)
        } reading: { node throws(CloudError) in
            try ShareMetadata(node)
        }
    }

    /// Ends the account's part in the share that a link leads to. `SharingDatabase` has the contract of `declineLink(_:)`.
    public func declineLink(_ token: String) async throws(CloudError) {
        try await own(.change, "links/decline", { $0.member("token", token) }, reading: Self.nothing)
    }

    // People

    /// Finds discoverable accounts. `SharingDatabase` has the contract of `users(matching:)`.
    public func users(matching lookUps: [UserLookUp]) async throws(CloudError) -> [UserIdentity] {
        let wanted = Set(lookUps.map { $0.normalized ?? $0 })
        return try await own(.look, "users/find") {
            $0.list("lookupInfos") { for lookUp in lookUps { lookUp.write(&$0) } }
        } reading: { node throws(CloudError) in
            var users: [UserIdentity] = []
            for user in try node.required("users").asArray(most: lookUps.count) {
                let identity = try UserIdentity(answered: user)
                if let lookUp = identity.lookUp {
                    guard wanted.contains(lookUp.normalized ?? lookUp) else { throw Self.foreign }
                }
                users.append(identity)
            }
            return users
        }
    }

    // Looking back

    /// Returns the events of a zone's shares. `SharingDatabase` has the contract of `shareAudit(in:after:)`.
    public func shareAudit(in zone: CloudZoneID, after time: Int64?) async throws(CloudError) -> [ShareAuditEntry] {
        try await own(.look, "shares/audit") {
            $0.member("zoneID") { zone.writeMembers(&$0) }
            $0.member("after", time)
        } reading: { node throws(CloudError) in
            var entries: [ShareAuditEntry] = []
            for given in try node.required("entries").asArray() {
                // Events of a newer server that this version does not know are skipped.
                guard let entry = try ShareAuditEntry(answered: given) else { continue }
                guard try isAnswer(entry.share.zone, to: zone), time.map({ entry.time > $0 }) ?? true else { throw Self.foreign }
                entries.append(entry)
            }
            return entries
        }
    }

    /// Whether a zone of an answer is the requested zone. The account's own zones may have its name as the owner. In the shared
    /// database, zones of the same name differ by their owners.
    private func isAnswer(_ zone: CloudZoneID, to asked: CloudZoneID) throws(CloudError) -> Bool {
        guard zone.zoneName == asked.zoneName else { return false }
        guard scope == .private, zone.ownerName != asked.ownerName else { return zone.ownerName == asked.ownerName }
        let own: [String?] = [CloudZoneID.defaultOwner, try cloud.userRecordName]
        return own.contains(zone.ownerName) && own.contains(asked.ownerName)
    }

    /// The error for an answer with items that were not requested.
    private static var foreign: CloudError {
        CloudError(.internalError, "the server answers with what was not asked for")
    }

    /// Reads an answer without contents.
    private static func nothing(_ node: JSONNode) throws(CloudError) {
        guard node.isObject else { throw node.refusal("is not an object") }
    }
}

extension JSONWriter {
    /// The members that name a share.
    fileprivate mutating func writeShare(_ share: CloudRecordID) {
        member("zoneID") { share.zone.writeMembers(&$0) }
        member("recordName", share.recordName)
    }
}
