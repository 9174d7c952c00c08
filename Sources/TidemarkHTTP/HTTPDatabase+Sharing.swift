import TidemarkCloud
import TidemarkModel
import TidemarkWire

extension HTTPDatabase {
    public func shares(in zone: CloudZoneID) async throws(CloudError) -> [CloudShare] {
        try await own(.look, "shares/list") {
            $0.member("zoneID") { zone.writeMembers(&$0) }
        } reading: { node throws(CloudError) in
            var shares: [CloudShare] = []
            for share in try node.required("shares").asArray() { shares.append(try CloudShare(share, in: zone)) }
            return shares
        }
    }

    public func createShare(
        in zone: CloudZoneID, coverage: CloudShare.Coverage, title: String?, publicPermission: ShareParticipant.Permission
    ) async throws(CloudError) -> CloudShare {
        try await own(.change, "shares/create") {
            $0.member("zoneID") { zone.writeMembers(&$0) }
            $0.member("rootRecordName", coverage.root)
            $0.member("title", title)
            $0.member("publicPermission", publicPermission.wireName)
        } reading: { node throws(CloudError) in
            try CloudShare(node, in: zone)
        }
    }

    public func changeShare(_ share: CloudRecordID, _ changes: [ShareChange]) async throws(CloudError) -> CloudShare {
        try await own(.change, "shares/change") {
            $0.writeShare(share)
            $0.list("changes") { for change in changes { change.write(&$0) } }
        } reading: { node throws(CloudError) in
            try CloudShare(node, in: share.zone)
        }
    }

    public func deleteShare(_ share: CloudRecordID) async throws(CloudError) {
        try await own(.change, "shares/delete", { $0.writeShare(share) }, reading: Self.nothing)
    }

    // Links

    public func makeLink(to share: CloudRecordID, for participant: String?) async throws(CloudError) -> ShareLink {
        try await own(.change, "links/make") {
            $0.writeShare(share)
            $0.member("participantId", participant)
        } reading: { node throws(CloudError) in
            try ShareLink(node)
        }
    }

    public func revokeLink(_ id: String, to share: CloudRecordID) async throws(CloudError) {
        try await own(.change, "links/revoke") {
            $0.writeShare(share)
            $0.member("id", id)
        } reading: { node throws(CloudError) in
            try Self.nothing(node)
        }
    }

    public func resolveLink(_ token: String) async throws(CloudError) -> ShareMetadata {
        try await own(.look, "links/resolve") {
            $0.member("token", token)
        } reading: { node throws(CloudError) in
            try ShareMetadata(node)
        }
    }

    public func acceptLink(_ token: String) async throws(CloudError) -> ShareMetadata {
        try await own(.change, "links/accept") {
            $0.member("token", token)
        } reading: { node throws(CloudError) in
            try ShareMetadata(node)
        }
    }

    public func declineLink(_ token: String) async throws(CloudError) {
        try await own(.change, "links/decline", { $0.member("token", token) }, reading: Self.nothing)
    }

    // People

    public func users(matching lookUps: [UserLookUp]) async throws(CloudError) -> [UserIdentity] {
        try await own(.look, "users/find") {
            $0.list("lookupInfos") { for lookUp in lookUps { lookUp.write(&$0) } }
        } reading: { node throws(CloudError) in
            var users: [UserIdentity] = []
            for user in try node.required("users").asArray() { users.append(try UserIdentity(user)) }
            return users
        }
    }

    // Looking back

    public func shareAudit(in zone: CloudZoneID, after time: Int64?) async throws(CloudError) -> [ShareAuditEntry] {
        try await own(.look, "shares/audit") {
            $0.member("zoneID") { zone.writeMembers(&$0) }
            $0.member("after", time)
        } reading: { node throws(CloudError) in
            var entries: [ShareAuditEntry] = []
            for entry in try node.required("entries").asArray() { entries.append(try ShareAuditEntry(entry)) }
            return entries
        }
    }

    /// An answer that says only that it was done.
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
