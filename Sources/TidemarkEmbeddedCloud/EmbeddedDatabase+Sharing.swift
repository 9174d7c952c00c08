public import TidemarkCloud
package import TidemarkCloudEngine
public import TidemarkModel

extension EmbeddedDatabase: SharingDatabase {
    /// Returns the shares of a zone that the caller sees; none where the zone is a default zone without records.
    ///
    /// - Throws: `CloudError` `permissionFailure` in a public database, `zoneNotFound`.
    public func shares(in zone: CloudZoneID) async throws(CloudError) -> [CloudShare] {
        try await container.engine.shares(in: zone, caller())
    }

    /// Shares a zone or a hierarchy of the private database, with the owner as its only participant.
    /// `SharingDatabase.createShare(in:coverage:title:publicPermission:)` has the rules.
    ///
    /// - Throws: `CloudError` `alreadyShared`, `unknownItem`, `invalidArguments` for a default zone, `permissionFailure`,
    ///   `limitExceeded` for a title of more than 10,000 bytes, `quotaExceeded`.
    public func createShare(
        in zone: CloudZoneID, coverage: CloudShare.Coverage, title: String?, publicPermission: ShareParticipant.Permission
    ) async throws(CloudError) -> CloudShare {
        let share = try await container.engine.createShare(
            in: zone, coverage: coverage, title: title, publicPermission: publicPermission, caller())
        container.notifier.post()
        return share
    }

    /// Changes a share, all changes or none.
    ///
    /// - Returns: The share as the caller sees it afterwards.
    /// - Throws: `CloudError` `permissionFailure`, `unknownItem`, `limitExceeded`, `invalidArguments`.
    public func changeShare(_ share: CloudRecordID, _ changes: [ShareChange]) async throws(CloudError) -> CloudShare {
        let changed = try await container.engine.changeShare(share, changes, caller())
        container.notifier.post()
        return changed
    }

    /// Ends the owner's share for everybody, or leaves another owner's share. Records stay where they are.
    ///
    /// - Throws: `CloudError` `unknownItem`, `permissionFailure`.
    public func deleteShare(_ share: CloudRecordID) async throws(CloudError) {
        try await container.engine.deleteShare(share, caller())
        container.notifier.post()
    }

    /// Makes a share with its participants and its short GUID, all or nothing.
    ///
    /// - Parameters:
    ///   - name: The name of the share's record; `nil` for a random one. The share of a whole zone has a fixed name.
    ///   - root: The name of the record to share; `nil` for the whole zone.
    ///   - tag: The change tag that the root must have; `nil` for any.
    /// - Returns: The share's record.
    package func createShare(
        _ desired: DesiredShare, named name: String? = nil, of root: String?, ifTag tag: String?, in zone: CloudZoneID
    ) async throws(CloudError) -> CloudRecord {
        let record = try await container.engine.createShare(desired, named: name, of: root, ifTag: tag, in: zone, caller())
        container.notifier.post()
        return record
    }

    /// Changes a share to a desired state, all changes or none.
    ///
    /// - Parameter tag: The change tag that the share must have; `nil` for any.
    /// - Returns: The share's record.
    package func changeShare(
        _ share: CloudRecordID, to desired: DesiredShare, ifTag tag: String?
    ) async throws(CloudError) -> CloudRecord {
        let record = try await container.engine.changeShare(share, to: desired, ifTag: tag, caller())
        container.notifier.post()
        return record
    }

    /// Returns those of the names that records of shares in a zone have.
    package func shareNames(among names: [String], in zone: CloudZoneID) async throws(CloudError) -> Set<String> {
        try await container.engine.shareNames(among: names, in: zone, caller())
    }

    /// Deletes a share if it still has this change tag.
    package func deleteShare(_ share: CloudRecordID, ifTag tag: String) async throws(CloudError) {
        try await container.engine.deleteShare(share, ifTag: tag, caller())
        container.notifier.post()
    }

    /// Makes a link to a share; the cloud keeps only its digest. A share has 1,000 links at the most.
    ///
    /// - Parameter participant: The participant who alone may use it; `nil` for all who are invited, or for everybody where the share
    ///   is open.
    /// - Throws: `CloudError` `permissionFailure`, `unknownItem` for an unknown share or participant, `limitExceeded`.
    public func makeLink(to share: CloudRecordID, for participant: String?) async throws(CloudError) -> ShareLink {
        try await container.engine.makeLink(to: share, for: participant, caller())
    }

    /// Revokes a link. Participants who have used it stay.
    ///
    /// - Throws: `CloudError` `permissionFailure`, `unknownItem` for an unknown share or link.
    public func revokeLink(_ id: String, to share: CloudRecordID) async throws(CloudError) {
        try await container.engine.revokeLink(id, to: share, caller())
    }

    /// Returns what a link leads to. Participants other than the owner and the caller are told only to a participant who has accepted.
    ///
    /// - Throws: `CloudError` `unknownItem` for a link that is unknown, revoked, or for another account: the three look alike.
    public func resolveLink(_ token: String) async throws(CloudError) -> ShareMetadata {
        try await container.engine.resolveLink(token, caller())
    }

    /// Returns what a link leads to, with the records of the share and of its root, and the owner's address for an invited caller.
    ///
    /// A caller who may accept a link sees these two records before accepting it, as with `CKFetchShareMetadataOperation`.
    ///
    /// - Parameters:
    ///   - fetchesRoot: Whether to return the root's record.
    ///   - rootKeys: The fields of the root's record; `nil` for all.
    /// - Throws: As ``resolveLink(_:)``.
    package func resolveLinkedRecords(
        _ token: String, fetchesRoot: Bool, rootKeys: Set<String>?
    ) async throws(CloudError) -> LinkedRecords {
        var linked = try await container.engine.linkedRecords(token, fetchesRoot: fetchesRoot, rootKeys: rootKeys, caller())
        // The owner's address is shown to people whom the owner has invited, and not to those who only have the link.
        if linked.metadata.participant != nil, linked.metadata.owner.lookUp == nil,
            let user = linked.metadata.owner.userRecordName,
            let owner = try await accounts.find(.userRecordName(user), in: container.name)
        {
            linked.metadata.owner.lookUp = .emailAddress(owner.email)
        }
        return linked
    }

    /// Returns what a link tells about its share, to a caller with or without an account.
    ///
    /// - Throws: `CloudError` `unknownItem` for a link that is unknown, revoked or over: they look alike.
    package func linkPreview(_ token: String) async throws(CloudError) -> LinkPreview {
        try await container.engine.linkPreview(token)
    }

    /// Takes part in the share that a link leads to. A caller who takes part already gets the same reply. A caller whom another person
    /// removed needs another invitation.
    ///
    /// - Throws: `CloudError` as ``resolveLink(_:)``; `permissionFailure` for the owner; `limitExceeded` where the share has too many
    ///   participants.
    public func acceptLink(_ token: String) async throws(CloudError) -> ShareMetadata {
        let metadata = try await container.engine.acceptLink(token, caller())
        container.notifier.post()
        return metadata
    }

    /// Ends the caller's part in a share, and all invitations to it.
    ///
    /// - Throws: `CloudError` as ``resolveLink(_:)``; `permissionFailure` for the owner.
    public func declineLink(_ token: String) async throws(CloudError) {
        try await container.engine.declineLink(token, caller())
        container.notifier.post()
    }

    /// Returns the people who have an account and can be found: see ``setDiscoverable(_:)``. The caller's own account is always found.
    /// The order is that of the look-ups; those without a result are left out.
    ///
    /// - Throws: `CloudError` `limitExceeded` for too many look-ups.
    public func users(matching lookUps: [UserLookUp]) async throws(CloudError) -> [UserIdentity] {
        _ = try await caller()
        let most = container.engine.limits.operationsPerRequest
        guard lookUps.count <= most else {
            throw CloudError(.limitExceeded, "a request looks for \(most) persons at the most, not \(lookUps.count)")
        }
        var found: [UserIdentity] = []
        for lookUp in lookUps {
            guard let known = lookUp.normalized, let account = try await accounts.find(known, in: container.name),
                account.isDiscoverable || account.id == self.account
            else { continue }
            found.append(
                UserIdentity(
                    userRecordName: EmbeddedCloud.userRecordName(account.id, in: container.name), name: account.name,
                    lookUp: lookUp))
        }
        return found
    }

    /// Sets whether others can find the account by its address, its number or its user record name, in all containers. A new account
    /// can't be found.
    public func setDiscoverable(_ isDiscoverable: Bool) async throws(CloudError) {
        _ = try await caller()
        guard let id = account, try await accounts.update(id: id, { $0.isDiscoverable = isDiscoverable }) != nil else {
            throw CloudError(.notAuthenticated, "no account is signed in")
        }
    }

    /// Returns the changes of a zone's shares after a time in microseconds since 1970 UTC, from the oldest on. The owner gets all of
    /// them, an administrator those of the shares that they administer.
    ///
    /// - Throws: `CloudError` `permissionFailure` for other participants and in a public database, `zoneNotFound`.
    public func shareAudit(in zone: CloudZoneID, after time: Int64?) async throws(CloudError) -> [ShareAuditEntry] {
        try await container.engine.audit(in: zone, after: time, caller())
    }
}

extension EmbeddedCloud {
    /// Returns the private and the shared database of an account.
    ///
    /// - Parameter account: The account's identifier; `nil` for a caller who is not signed in, whose calls throw `notAuthenticated`.
    /// - Throws: As ``database(_:of:environment:account:)``.
    public func databases(
        of container: String, environment: StoreEnvironment = .development, account: String?
    ) throws(CloudError) -> CloudDatabases {
        CloudDatabases(
            private: try database(.private, of: container, environment: environment, account: account),
            shared: try database(.shared, of: container, environment: environment, account: account))
    }
}
