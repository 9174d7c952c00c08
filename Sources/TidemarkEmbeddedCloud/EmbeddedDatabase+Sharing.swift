import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

extension EmbeddedDatabase: SharingDatabase {
    public func shares(in zone: CloudZoneID) async throws(CloudError) -> [CloudShare] {
        try await container.engine.shares(in: zone, caller())
    }

    public func createShare(
        in zone: CloudZoneID, coverage: CloudShare.Coverage, title: String?, publicPermission: ShareParticipant.Permission
    ) async throws(CloudError) -> CloudShare {
        let share = try await container.engine.createShare(
            in: zone, coverage: coverage, title: title, publicPermission: publicPermission, caller())
        container.notifier.post()
        return share
    }

    public func changeShare(_ share: CloudRecordID, _ changes: [ShareChange]) async throws(CloudError) -> CloudShare {
        let changed = try await container.engine.changeShare(share, changes, caller())
        container.notifier.post()
        return changed
    }

    public func deleteShare(_ share: CloudRecordID) async throws(CloudError) {
        try await container.engine.deleteShare(share, caller())
        container.notifier.post()
    }

    /// Makes a share with its participants and the link that stays the same, all of it or nothing.
    ///
    /// - Parameters:
    ///   - name: The name of the share's record; `nil` for a new one. The share of a whole zone has its own.
    ///   - root: The record that it is for; `nil` for the whole zone.
    ///   - tag: What the root's change tag has to be; `nil` for any.
    /// - Returns: The share's record.
    package func createShare(
        _ desired: DesiredShare, named name: String? = nil, of root: String?, ifTag tag: String?, in zone: CloudZoneID
    ) async throws(CloudError) -> CloudRecord {
        let record = try await container.engine.createShare(desired, named: name, of: root, ifTag: tag, in: zone, caller())
        container.notifier.post()
        return record
    }

    /// Makes a share what it is wished to be, all of it or nothing.
    ///
    /// - Parameter tag: What its change tag has to be; `nil` for any.
    /// - Returns: The share's record.
    package func changeShare(
        _ share: CloudRecordID, to desired: DesiredShare, ifTag tag: String?
    ) async throws(CloudError) -> CloudRecord {
        let record = try await container.engine.changeShare(share, to: desired, ifTag: tag, caller())
        container.notifier.post()
        return record
    }

    /// Returns those of some names that the records of shares in a zone have.
    package func shareNames(among names: [String], in zone: CloudZoneID) async throws(CloudError) -> Set<String> {
        try await container.engine.shareNames(among: names, in: zone, caller())
    }

    /// Deletes a share if its change tag is still this one.
    package func deleteShare(_ share: CloudRecordID, ifTag tag: String) async throws(CloudError) {
        try await container.engine.deleteShare(share, ifTag: tag, caller())
        container.notifier.post()
    }

    public func makeLink(to share: CloudRecordID, for participant: String?) async throws(CloudError) -> ShareLink {
        try await container.engine.makeLink(to: share, for: participant, caller())
    }

    public func revokeLink(_ id: String, to share: CloudRecordID) async throws(CloudError) {
        try await container.engine.revokeLink(id, to: share, caller())
    }

    public func resolveLink(_ token: String) async throws(CloudError) -> ShareMetadata {
        try await container.engine.resolveLink(token, caller())
    }

    /// Returns what a link leads to, with the records of the share and of its root, and the owner's address.
    ///
    /// The holder of a link that they may accept sees these two records before they accept it, as `CKFetchShareMetadataOperation` has it.
    ///
    /// - Parameters:
    ///   - rootKeys: The fields of the root's record; `nil` for all.
    ///   - fetchesRoot: Whether the root's record is returned.
    /// - Throws: As ``resolveLink(_:)``.
    package func resolveLinkedRecords(
        _ token: String, fetchesRoot: Bool, rootKeys: Set<String>?
    ) async throws(CloudError) -> LinkedRecords {
        var linked = try await container.engine.linkedRecords(token, fetchesRoot: fetchesRoot, rootKeys: rootKeys, caller())
        // The owner's address goes to the people whom they have invited, and to nobody who only has the link.
        if linked.metadata.participant != nil, linked.metadata.owner.lookUp == nil,
            let user = linked.metadata.owner.userRecordName,
            let owner = try await accounts.find(.userRecordName(user), in: container.name)
        {
            linked.metadata.owner.lookUp = .emailAddress(owner.email)
        }
        return linked
    }

    public func acceptLink(_ token: String) async throws(CloudError) -> ShareMetadata {
        let metadata = try await container.engine.acceptLink(token, caller())
        container.notifier.post()
        return metadata
    }

    public func declineLink(_ token: String) async throws(CloudError) {
        try await container.engine.declineLink(token, caller())
        container.notifier.post()
    }

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

    public func setDiscoverable(_ isDiscoverable: Bool) async throws(CloudError) {
        _ = try await caller()
        guard let id = account, var known = try await accounts.find(id: id) else {
            throw CloudError(.notAuthenticated, "no account is signed in")
        }
        known.isDiscoverable = isDiscoverable
        try await accounts.update(known)
    }

    public func shareAudit(in zone: CloudZoneID, after time: Int64?) async throws(CloudError) -> [ShareAuditEntry] {
        try await container.engine.audit(in: zone, after: time, caller())
    }
}

extension EmbeddedCloud {
    /// The databases of an account.
    ///
    /// - Parameter account: Its identifier; `nil` for nobody.
    public func databases(
        of container: String, environment: StoreEnvironment = .development, account: String?
    ) throws(CloudError) -> CloudDatabases {
        CloudDatabases(
            private: try database(.private, of: container, environment: environment, account: account),
            shared: try database(.shared, of: container, environment: environment, account: account))
    }
}
