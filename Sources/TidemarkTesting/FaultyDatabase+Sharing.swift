public import TidemarkCloud
public import TidemarkModel

/// Requests of sharing suffer faults, too. The wrapped database has to conform to `SharingDatabase`.
extension FaultyDatabase: SharingDatabase {
    private var sharing: any SharingDatabase {
        get throws(CloudError) {
            guard let sharing = base as? any SharingDatabase else {
                throw CloudError(.invalidArguments, "the database behind the faults shares nothing")
            }
            return sharing
        }
    }

    public func shares(in zone: CloudZoneID) async throws(CloudError) -> [CloudShare] {
        try await suffering { () async throws(CloudError) in try await sharing.shares(in: zone) }
    }

    public func createShare(
        in zone: CloudZoneID, coverage: CloudShare.Coverage, title: String?, publicPermission: ShareParticipant.Permission
    ) async throws(CloudError) -> CloudShare {
        try await suffering { () async throws(CloudError) in
            try await sharing.createShare(in: zone, coverage: coverage, title: title, publicPermission: publicPermission)
        }
    }

    public func changeShare(_ share: CloudRecordID, _ changes: [ShareChange]) async throws(CloudError) -> CloudShare {
        try await suffering { () async throws(CloudError) in try await sharing.changeShare(share, changes) }
    }

    public func deleteShare(_ share: CloudRecordID) async throws(CloudError) {
        try await suffering { () async throws(CloudError) in try await sharing.deleteShare(share) }
    }

    public func makeLink(to share: CloudRecordID, for participant: String?) async throws(CloudError) -> ShareLink {
        try await suffering { () async throws(CloudError) in try await sharing.makeLink(to: share, for: participant) }
    }

    public func revokeLink(_ id: String, to share: CloudRecordID) async throws(CloudError) {
        try await suffering { () async throws(CloudError) in try await sharing.revokeLink(id, to: share) }
    }

    public func resolveLink(_ token: String) async throws(CloudError) -> ShareMetadata {
        try await suffering { () async throws(CloudError) in try await sharing.resolveLink(token) }
    }

    public func acceptLink(_ token: String) async throws(CloudError) -> ShareMetadata {
        try await suffering { () async throws(CloudError) in try await sharing.acceptLink(token) }
    }

    public func declineLink(_ token: String) async throws(CloudError) {
        try await suffering { () async throws(CloudError) in try await sharing.declineLink(token) }
    }

    public func setDiscoverable(_ isDiscoverable: Bool) async throws(CloudError) {
        try await suffering { () async throws(CloudError) in try await sharing.setDiscoverable(isDiscoverable) }
    }

    public func users(matching lookUps: [UserLookUp]) async throws(CloudError) -> [UserIdentity] {
        try await suffering { () async throws(CloudError) in try await sharing.users(matching: lookUps) }
    }

    public func shareAudit(in zone: CloudZoneID, after time: Int64?) async throws(CloudError) -> [ShareAuditEntry] {
        try await suffering { () async throws(CloudError) in try await sharing.shareAudit(in: zone, after: time) }
    }
}
