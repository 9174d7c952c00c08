public import TidemarkModel

/// A database of a cloud that can share records.
///
/// The cloud decides every operation by ``SharePolicy``, whatever the caller claims. Items that an account may not see do not
/// exist for it: the error is `zoneNotFound` for zones, and `unknownItem` for records, shares and links. An operation that the
/// account may not perform on an item that it sees fails with `permissionFailure`, with the decision.
public protocol SharingDatabase: CloudDatabase {
    /// Returns the shares of a zone, as the account may see them.
    func shares(in zone: CloudZoneID) async throws(CloudError) -> [CloudShare]

    /// Shares a zone, or a record with its hierarchy. The zone must be in the private database, and not the default zone. The
    /// share becomes a record of the zone.
    ///
    /// - Throws: `alreadyShared` if a part of the zone or hierarchy is in a share; `unknownItem` if the root does not exist;
    ///   `limitExceeded`.
    func createShare(
        in zone: CloudZoneID, coverage: CloudShare.Coverage, title: String?, publicPermission: ShareParticipant.Permission
    ) async throws(CloudError) -> CloudShare

    /// Changes a share, all or nothing.
    ///
    /// - Throws: `permissionFailure`; `unknownItem` for a share or a participant that does not exist; `limitExceeded` with too
    ///   many participants, or more changes than a request may have operations; `invalidArguments`.
    func changeShare(_ share: CloudRecordID, _ changes: [ShareChange]) async throws(CloudError) -> CloudShare

    /// Ends a share. For its owner, the share ends for everybody, and the records stay where they are. For a participant, it ends
    /// the participant's own part. The share of a hierarchy also ends when its owner deletes the root.
    func deleteShare(_ share: CloudRecordID) async throws(CloudError)

    // Links. They can be used in either database.

    /// Makes a link to a share.
    ///
    /// - Parameters:
    ///   - share: The share.
    ///   - participant: The identifier of the participant who alone can use the link. `nil` for a link that every invited person
    ///     can use, and everybody if the share has a public permission.
    func makeLink(to share: CloudRecordID, for participant: String?) async throws(CloudError) -> ShareLink

    /// Revokes a link.
    ///
    /// - Parameters:
    ///   - id: ``ShareLink/id`` of the link.
    ///   - share: The share that the link leads to.
    func revokeLink(_ id: String, to share: CloudRecordID) async throws(CloudError)

    /// Returns the share that a link leads to, for its owner, participants and invited persons; for everybody if the share has a
    /// public permission.
    ///
    /// - Throws: `unknownItem` for a link that does not exist, is revoked, or is limited to another participant.
    func resolveLink(_ token: String) async throws(CloudError) -> ShareMetadata

    /// Accepts an invitation by its link. For an account that takes part already, the answer is the same again. An account that
    /// was removed from the share needs a new invitation, whatever the link.
    func acceptLink(_ token: String) async throws(CloudError) -> ShareMetadata

    /// Declines an invitation: ends the account's part in the share and all of its invitations. To come back, the account needs a
    /// new invitation, unless the share has a public permission.
    func declineLink(_ token: String) async throws(CloudError)

    // People

    /// Returns the identities of persons who have an account in this cloud and have agreed to be found, by
    /// ``setDiscoverable(_:)``. Others are left out.
    func users(matching lookUps: [UserLookUp]) async throws(CloudError) -> [UserIdentity]

    /// Sets whether others can find the person by an address, a phone number or a user record name. By default they can't.
    ///
    /// - Throws: `notAuthenticated`; `invalidArguments` if the cloud has no such setting.
    func setDiscoverable(_ isDiscoverable: Bool) async throws(CloudError)

    // Looking back

    /// Returns the audit log of the zone's shares, oldest entry first. No two entries have the same time. The owner sees all
    /// entries; an administrator sees those of the shares that they administer.
    ///
    /// - Parameter time: Only entries after this time are returned; microseconds since 1970 UTC. `nil` for all.
    func shareAudit(in zone: CloudZoneID, after time: Int64?) async throws(CloudError) -> [ShareAuditEntry]
}

extension SharingDatabase {
    /// Throws `invalidArguments`: a cloud without this setting uses this implementation.
    public func setDiscoverable(_ isDiscoverable: Bool) async throws(CloudError) {
        throw CloudError(.invalidArguments, "this cloud has no setting by which people can be found")
    }
}
