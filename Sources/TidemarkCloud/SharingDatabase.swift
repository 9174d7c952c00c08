public import TidemarkModel

/// What a database of a cloud does for sharing, beside ``CloudDatabase``.
///
/// Whatever a caller claims, the cloud decides by ``SharePolicy``. What somebody may not see does not exist for them: `zoneNotFound` for
/// zones, `unknownItem` for records, shares and links. What they see and may not do is `permissionFailure`, with the decision.
public protocol SharingDatabase: CloudDatabase {
    /// Shares of a zone, as the account may see them.
    func shares(in zone: CloudZoneID) async throws(CloudError) -> [CloudShare]

    /// Shares a zone, or a record with its hierarchy. Private database only, and no default zone. The share is a record of the zone.
    ///
    /// - Throws: `alreadyShared` where something of it is in a share; `unknownItem` where the root is not there; `limitExceeded`.
    func createShare(
        in zone: CloudZoneID, coverage: CloudShare.Coverage, title: String?, publicPermission: ShareParticipant.Permission
    ) async throws(CloudError) -> CloudShare

    /// Changes a share, all or nothing.
    ///
    /// - Throws: `permissionFailure`, `unknownItem` for a share or a participant that is not there, `limitExceeded` with too many
    ///   participants, or more changes than a request may have operations; `invalidArguments`.
    func changeShare(_ share: CloudRecordID, _ changes: [ShareChange]) async throws(CloudError) -> CloudShare

    /// Ends a share: of the owner's, for everybody; of somebody else's, for oneself. The owner's records stay where they are. The share of a
    /// hierarchy ends, too, when its owner deletes the root.
    func deleteShare(_ share: CloudRecordID) async throws(CloudError)

    // Links: in whichever database they are asked for

    /// - Parameter participant: To whom it is limited; else everybody may use it who is invited, or all if the share is open to all.
    func makeLink(to share: CloudRecordID, for participant: String?) async throws(CloudError) -> ShareLink

    /// Revokes a link.
    ///
    /// - Parameters:
    ///   - id: ``ShareLink/id`` of the link.
    ///   - share: The share that the link leads to.
    func revokeLink(_ id: String, to share: CloudRecordID) async throws(CloudError)

    /// What a link leads to: for its owner, for who takes part or is invited, and for everybody if the share is open to all.
    ///
    /// - Throws: `unknownItem` for a link that is none, is revoked, or is somebody else's.
    func resolveLink(_ token: String) async throws(CloudError) -> ShareMetadata

    /// Takes part. Who does already is told the same again. Who was removed by somebody else needs another invitation, whatever the link.
    func acceptLink(_ token: String) async throws(CloudError) -> ShareMetadata

    /// Ends one's part in a share, and all invitations to it. To come back one needs another, unless the share is open to all.
    func declineLink(_ token: String) async throws(CloudError)

    // People

    /// Finds persons who have an account here and have agreed to be found, by ``setDiscoverable(_:)``; others are left out.
    func users(matching lookUps: [UserLookUp]) async throws(CloudError) -> [UserIdentity]

    /// Says whether others can find the person by an address, a phone number or a user record name. At first nobody can.
    ///
    /// - Throws: `notAuthenticated`; `invalidArguments` where the cloud has no such setting.
    func setDiscoverable(_ isDiscoverable: Bool) async throws(CloudError)

    // Looking back

    /// What was done to the shares of a zone, from the oldest on; no two have the same time. The owner sees all of it, an administrator what
    /// was done to the shares that they administer.
    func shareAudit(in zone: CloudZoneID, after time: Int64?) async throws(CloudError) -> [ShareAuditEntry]
}

extension SharingDatabase {
    /// Throws `invalidArguments`: a cloud without this setting uses this implementation.
    public func setDiscoverable(_ isDiscoverable: Bool) async throws(CloudError) {
        throw CloudError(.invalidArguments, "this cloud has no setting by which people can be found")
    }
}
