import TidemarkCloud
import TidemarkModel
import TidemarkStore
import TidemarkSync

extension PersistentContainer {
    /// Shares records and all that hangs on them, through references either way: they move into a zone of their own. As
    /// `NSPersistentCloudKitContainer.share(_:to:)`.
    ///
    /// ```swift
    /// let share = try await journal.share(senja, title: senja.caption, in: databases)
    /// let ben = UserLookUp.emailAddress("ben@example.org")
    /// try await journal.updateParticipants(of: share, [.invite(ben, role: .privateUser, permission: .readWrite)], in: databases)
    /// let link = try await journal.makeLink(to: share, in: databases)
    /// print(link.token)
    /// ```
    ///
    /// The cloud learns of the share at once, and of the records with the next synchronisation. What is pending of them goes along. Records
    /// that are shared already stay in their share, which is returned.
    ///
    /// - Parameters:
    ///   - existing: The share that they are added to; `nil` for one of their own.
    ///   - title: What people are shown; of a share that is there it stays.
    ///   - publicPermission: What everybody may do who has a link.
    ///   - databases: The account's.
    /// - Throws: ``StoreError`` `notFound` for a record that is not there; `CloudError` `alreadyShared` where some of the records are in
    ///   another share; ``PermissionDenied`` for what is somebody else's; what the cloud answers. Then nothing has moved.
    @discardableResult
    public func share(
        _ records: [RecordName], to existing: Share? = nil, title: String? = nil,
        publicPermission: ShareParticipant.Permission = .none, in databases: CloudDatabases
    ) async throws -> Share {
        guard !records.isEmpty else { throw StoreError(.invalid, "no records are named that are to be shared") }
        try await adopt(databases)
        for record in records where try home(of: record, default: .private) == .shared {
            let target = SharePolicy.Target(scope: .shared, isShared: true)
            throw PermissionDenied(record: record, decision: SharePolicy.decide(.share, on: target, by: .stranger))
        }
        let store = privateStore
        let graph = try await store.graph(of: records)
        let shares = try await store.shares()
        let zones = Set(graph.map(\.zone)).subtracting([.default])
        // What was shared once, and is no more, is still in its zone.
        let zone = existing?.zone ?? zones.min { $0.name < $1.name } ?? ZoneName.ofShare(root: records[0].name)
        if let other = graph.first(where: { $0.zone != .default && $0.zone != zone }) {
            throw CloudError(
                .alreadyShared, "\(other.record.type) \(other.record.name) is in another share; stop that first, or add to it")
        }
        let known = shares.first { $0.zone == zone }
        let cloudShare: CloudShare
        if let known, let there = try await databases.private.shares(in: zone.cloudZone).first(where: { $0.id == known.cloudID })
        {
            cloudShare = there
        } else {
            try await databases.private.modifyZones(saving: [zone.cloudZone], deleting: [])
            cloudShare = try await Self.makeShare(of: zone, title, publicPermission, databases.private)
        }
        let made = Share(cloudShare, scope: .private)
        let stored = try await store.zone(zone)
        try await store.store([made], of: stored.id)
        let moving = graph.filter { $0.zone == .default }.map(\.record)
        if !moving.isEmpty { try await store.move(moving, to: stored.id, author: author) }
        ringChanges()
        return made
    }

    /// Shares a record with a title.
    @discardableResult
    public func share(
        _ record: some Record, title: String? = nil, publicPermission: ShareParticipant.Permission = .none,
        in databases: CloudDatabases
    ) async throws -> Share {
        try await share([Self.name(record)], title: title, publicPermission: publicPermission, in: databases)
    }

    private static func name<R: Record>(_ record: R) -> RecordName { RecordName(type: R.recordType, name: record.recordName) }

    /// A share of a zone; the one that is there where another device was faster.
    private static func makeShare(
        of zone: ZoneName, _ title: String?, _ permission: ShareParticipant.Permission, _ database: any SharingDatabase
    ) async throws(CloudError) -> CloudShare {
        do throws(CloudError) {
            return try await database.createShare(in: zone.cloudZone, coverage: .zone, title: title, publicPermission: permission)
        } catch {
            guard error.code == .alreadyShared,
                let there = try await database.shares(in: zone.cloudZone).first(where: { $0.coverage == .zone })
            else { throw error }
            return there
        }
    }

    // Finding them

    /// The shares that this container takes part in, one's own first, as the cloud said them last.
    public func fetchShares() async throws -> [Share] {
        var shares: [Share] = []
        for scope in ContainerDirectory.scopes { shares += try await stores[scope]?.shares() ?? [] }
        return shares
    }

    /// The shares of records; those that are not shared are left out. As `fetchShares(matching:)`.
    public func fetchShares(matching records: [RecordName]) async throws -> [RecordName: Share] {
        var found: [RecordName: Share] = [:]
        for scope in ContainerDirectory.scopes {
            guard let store = stores[scope] else { continue }
            let shares = try await store.shares()
            for record in records where found[record] == nil {
                guard let zone = try await store.zone(of: record) else { continue }
                let candidates = shares.filter { $0.zone == zone }
                found[record] = candidates.first { $0.root == nil || $0.root == record.name } ?? candidates.first
            }
        }
        return found
    }

    // Invitations

    /// What an invitation leads to, without taking part.
    ///
    /// - Parameter link: The token of a ``ShareLink``, or an address that ends with it.
    public func shareMetadata(for link: String, in databases: CloudDatabases) async throws(CloudError) -> ShareMetadata {
        try await databases.shared.resolveLink(Self.token(link))
    }

    /// Accepts an invitation: what is shared comes into the shared store with the next synchronisation. An app that was launched by an
    /// invitation calls it as soon as its container is open. As `acceptShareInvitations(from:into:)`.
    ///
    /// - Throws: `CloudError` `unknownItem` for a link that is none, is revoked, or is somebody else's.
    @discardableResult
    public func acceptInvitation(_ link: String, in databases: CloudDatabases) async throws -> Share {
        try await adopt(databases)
        let metadata = try await databases.shared.acceptLink(Self.token(link))
        let share = Share(metadata.share, scope: metadata.scope)
        try await note(share)
        return share
    }

    /// Ends an invitation without having taken part.
    public func declineInvitation(_ link: String, in databases: CloudDatabases) async throws(CloudError) {
        try await databases.shared.declineLink(Self.token(link))
    }

    private static func token(_ link: String) -> String {
        String(link.split(separator: "/", omittingEmptySubsequences: true).last ?? "")
    }

    /// A new link to a share, for whoever is given it.
    ///
    /// - Parameter participant: The identifier of the participant to whom it is limited.
    public func makeLink(
        to share: Share, for participant: String? = nil, in databases: CloudDatabases
    ) async throws(CloudError) -> ShareLink {
        try await databases[share.scope].makeLink(to: share.cloudID, for: participant)
    }

    public func revokeLink(_ id: String, to share: Share, in databases: CloudDatabases) async throws(CloudError) {
        try await databases[share.scope].revokeLink(id, to: share.cloudID)
    }

    // Changing them

    /// Changes a share, all or nothing: invites, removes, gives other permissions, another title.
    ///
    /// - Returns: It as it is now.
    @discardableResult
    public func updateParticipants(
        of share: Share, _ changes: [ShareChange], in databases: CloudDatabases
    ) async throws -> Share {
        let changed = Share(
            try await databases[share.scope].changeShare(share.cloudID, changes), scope: share.scope)
        try await note(changed)
        return changed
    }

    /// Ends one's own share for everybody. The records stay here and in one's own cloud.
    public func stopSharing(_ share: Share, in databases: CloudDatabases) async throws {
        guard share.scope == .private else {
            throw PermissionDenied(
                record: nil, decision: SharePolicy.decide(.stopSharing, on: share.target(), by: share.actor))
        }
        do throws(CloudError) {
            try await databases.private.deleteShare(share.cloudID)
        } catch {
            // It is over already.
            guard error.code == .unknownItem || error.code == .zoneNotFound else { throw error }
        }
        try await forget(share)
        ringChanges()
    }

    /// Leaves a share of somebody else's: the records go here, and stay with their owner. What was edited here and not sent yet is kept in
    /// ``refusedSaves()``.
    public func leave(_ share: Share, in databases: CloudDatabases) async throws {
        guard share.scope == .shared else {
            throw PermissionDenied(record: nil, decision: SharePolicy.decide(.leave, on: share.target(), by: share.actor))
        }
        do throws(CloudError) {
            try await databases.shared.deleteShare(share.cloudID)
        } catch {
            // One is out already.
            guard error.code == .unknownItem || error.code == .zoneNotFound else { throw error }
        }
        try await forget(share)
        let others = try await sharedStore.shares().contains { $0.zone == share.zone }
        if !others { try await remove(share.zone, from: sharedStore, "the share was left") }
    }

    /// Deletes a zone with all its records, everywhere; of somebody else's zone, leaves what is shared of it. As
    /// `purgeObjectsAndRecordsInZone(with:in:)`.
    public func purgeZone(_ zone: ZoneName, in databases: CloudDatabases) async throws {
        guard zone != .default else {
            throw StoreError(.invalid, "the default zone is not purged; delete its records instead")
        }
        guard zone.owner == nil else {
            for share in try await sharedStore.shares() where share.zone == zone { try await leave(share, in: databases) }
            return try await remove(zone, from: sharedStore, "the zone was purged")
        }
        try await databases.private.modifyZones(saving: [], deleting: [zone.cloudZone])
        try await remove(zone, from: privateStore, "the zone was purged")
    }

    private func remove(_ zone: ZoneName, from store: RecordStore, _ reason: String) async throws {
        if let known = try await store.zones().first(where: { $0.name == zone }) {
            try await store.removeZone(known.id, reason: reason, code: CloudError.Code.userDeletedZone.rawValue, author: author)
        }
        ringChanges()
    }

    /// Makes the container that of the account, if it is nobody's yet: what is shared belongs to somebody.
    private func adopt(_ databases: CloudDatabases) async throws {
        let user = try await databases.private.account().userRecordName
        var isNew = false
        for scope in ContainerDirectory.scopes {
            guard let known = try await stores[scope]?.syncState().user else {
                isNew = true
                continue
            }
            guard known == user else {
                throw StoreError(
                    .anotherAccount,
                    "the container has the records of another account than the one that is signed in. Synchronise first")
            }
        }
        guard isNew else { return }
        let sync = try sync(with: databases)
        defer { sync.close() }
        try await sync.privateEngine.adoptAccount()
        try await sync.sharedEngine.adoptAccount()
    }

    /// Notes what the cloud says of a share.
    private func note(_ share: Share) async throws {
        guard let store = stores[share.scope] else { return }
        let zone = try await store.zone(share.zone)
        let others = try await store.shares().filter { $0.zone == share.zone && $0.name != share.name }
        try await store.store(others + [share], of: zone.id)
        ringChanges()
    }

    private func forget(_ share: Share) async throws {
        guard let store = stores[share.scope] else { return }
        let zone = try await store.zone(share.zone)
        try await store.store(try await store.shares().filter { $0.zone == share.zone && $0.name != share.name }, of: zone.id)
    }

    // What one may do

    /// Whether a record is shared, by whomever; `false` where it is not there.
    public func isShared(_ record: RecordName) async throws -> Bool {
        try await permissions.permission(of: record)?.isShared ?? false
    }

    /// Whether it is one's own.
    public func isOwner(_ record: RecordName) async throws -> Bool {
        try await permissions.permission(of: record)?.isOwner ?? false
    }

    /// Whether one may edit it, by what the cloud said last. As `canUpdateRecord(forManagedObjectWith:)`.
    public func canEdit(_ record: RecordName) async throws -> Bool {
        try await permissions.permission(of: record)?.canEdit ?? false
    }

    /// Whether one may delete it. As `canDeleteRecord(forManagedObjectWith:)`.
    public func canDelete(_ record: RecordName) async throws -> Bool {
        try await permissions.permission(of: record)?.canDelete ?? false
    }

    /// Whether one may share it, or add people to its share.
    public func canShare(_ record: RecordName) async throws -> Bool {
        try await permissions.permission(of: record)?.canShare ?? false
    }

    // Saving into them

    /// Saves new records into what somebody shares; those that are there stay where they are.
    ///
    /// - Throws: ``PermissionDenied`` where one may only read; as ``save(_:in:)-(R,_)``.
    @discardableResult
    public func save<R: Record>(_ records: [R], in share: Share) async throws -> SaveResult {
        guard let store = stores[share.scope] else { return SaveResult() }
        let zone = try await store.zone(share.zone)
        return try save(records, in: share.scope, zone: zone.id)
    }

    // What was refused

    /// Saves that the cloud has refused and that were taken back, newest first.
    public nonisolated func refusedSaves() throws -> [RefusedSave] {
        var all: [RefusedSave] = []
        for scope in ContainerDirectory.scopes { all += try StoreReader(container: directory, scope: scope).refused() }
        return all.sorted { $0.time > $1.time }
    }

    /// Removes refused saves, for good.
    public func discard(_ saves: [RefusedSave]) async throws {
        for scope in ContainerDirectory.scopes {
            let ids = saves.filter { $0.scope == scope }.map(\.id)
            if !ids.isEmpty { try await stores[scope]?.discardRefused(ids) }
        }
    }
}
