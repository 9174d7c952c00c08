public import TidemarkCloud
public import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

extension PersistentContainer {
    /// Shares records together with their graph, and moves all of them into a zone of their own. As
    /// `NSPersistentCloudKitContainer.share(_:to:)`.
    ///
    /// The graph has the records that the shared records own, and so on. It also has the records that are connected to them, in
    /// either direction, by references without a declared relationship. It does not follow weak relationships, nor the reference
    /// of a record to its owner.
    ///
    /// ```swift
    /// let share = try await journal.share(senja, title: senja.caption, in: databases)
    /// let ben = UserLookUp.emailAddress("ben@example.org")
    /// try await journal.updateParticipants(of: share, [.invite(ben, role: .privateUser, permission: .readWrite)], in: databases)
    /// let link = try await journal.makeLink(to: share, in: databases)
    /// print(link.token)
    /// ```
    ///
    /// The cloud gets the share at once, and the records with the next synchronisation, including their unsent changes. If all of
    /// the records are in one share already, that share is returned. To add records to an existing share, name it. Records of a
    /// share that has ended can be shared again, also with others.
    ///
    /// - Parameters:
    ///   - records: The records.
    ///   - existing: A share of the user's to which the records are added; `nil` for a new share.
    ///   - title: The title that people see. An existing share keeps its title.
    ///   - publicPermission: The permission of everyone who has a link.
    ///   - databases: The databases of the account.
    /// - Returns: The share.
    /// - Throws: ``StoreError`` `notFound` for a record that the container does not have, `anotherAccount`; `CloudError`
    ///   `alreadyShared` if some of the records are in another share, `unknownItem` if `existing` has ended; ``PermissionDenied``
    ///   for a record or a share of another owner; the errors of the cloud. Then nothing has moved.
    @discardableResult
    public func share(
        _ records: [RecordName], to existing: Share? = nil, title: String? = nil,
        publicPermission: ShareParticipant.Permission = .none, in databases: CloudDatabases
    ) async throws -> Share {
        guard !records.isEmpty else { throw StoreError(.invalid, "no records are named that are to be shared") }
        try await adopt(databases)
        try await demandOwn(records, existing)
        let (store, database) = (privateStore, databases.private)
        let zone = try await zone(of: records, existing)
        let known = try await store.shares().first { $0.zone == zone && $0.root == nil }
        let cloudShare: CloudShare
        let isNew: Bool
        // The cloud's shares have the zone with its owner's name, so they are compared by their own names.
        let all = known == nil ? [] : try await database.shares(in: zone.cloudZone)
        if let there = all.first(where: { $0.id.recordName == known?.name }) {
            (cloudShare, isNew) = (there, false)
        } else if let existing {
            throw CloudError(.unknownItem, "the share '\(existing.title ?? existing.name)' has ended: share the records again")
        } else {
            (cloudShare, isNew) = try await Self.makeShare(of: zone, title, publicPermission, database)
        }
        let made = Share(cloudShare, scope: .private)
        try await store.note(made, insteadOf: known)
        let stored = try await store.zone(zone)
        do {
            guard case .taken(let other) = try await store.moveGraph(of: records, to: stored.id, author: author) else {
                broadcastChanges()
                return made
            }
            throw Self.alreadyShared(other)
        } catch {
            // The new share is empty, so it is deleted. If that fails, the store keeps the share, so that it can be stopped
            // later. The caller gets the first error.
            if isNew, (try? await database.deleteShare(made.cloudID)) != nil { try await store.forget(made) }
            throw error
        }
    }

    private static func alreadyShared(_ other: PlacedRecord) -> CloudError {
        CloudError(
            .alreadyShared, "\(other.record.type) \(other.record.name) is in another share; stop that first, or add to it")
    }

    /// - Throws: ``PermissionDenied`` if a record, or the existing share, belongs to another owner.
    private func demandOwn(_ records: [RecordName], _ existing: Share?) async throws {
        if let existing, existing.scope != .private {
            throw PermissionDenied(
                record: nil, decision: SharePolicy.decide(.share, on: existing.target(), by: existing.actor))
        }
        for (record, home) in zip(records, try homes(of: records, default: .private)) where home == .shared {
            let share = try await fetchShares(matching: [record])[record]
            let target = share?.target(record: record.name) ?? SharePolicy.Target(scope: .shared, isShared: true)
            throw PermissionDenied(
                record: record, decision: SharePolicy.decide(.share, on: target, by: share?.actor ?? .stranger))
        }
    }

    /// Returns the zone in which records are to be shared: the zone of the existing share, or of the share that they are in;
    /// otherwise a zone that has no other records.
    private func zone(of records: [RecordName], _ existing: Share?) async throws -> ZoneName {
        let store = privateStore
        let graph = try await store.graph(of: records)
        let shared = Set(try await store.shares().map(\.zone))
        let zones = Set(graph.map(\.zone)).sorted { $0.name < $1.name }
        let own = existing?.zone ?? zones.first(where: shared.contains)
        if let other = graph.first(where: { $0.zone != own && shared.contains($0.zone) }) { throw Self.alreadyShared(other) }
        if let own {
            if existing == nil, let other = graph.first(where: { $0.zone != own }) {
                throw CloudError(
                    .alreadyShared,
                    "some of the records are in a share already, and \(other.record.type) \(other.record.name) is not; say that it is to be added to that"
                )
            }
            return own
        }
        // Records of a share that has ended are still in its zone.
        for zone in zones where zone != .default {
            if try await store.hasOnly(graph, in: zone) { return zone }
        }
        let first = ZoneName.ofShare(root: records[0].name)
        var (zone, number) = (first, 1)
        while true {
            if !shared.contains(zone), try await store.hasOnly(graph, in: zone) { return zone }
            number += 1
            // No record's name leads to a zone name with a dot at this place.
            zone = ZoneName("\(first.name).\(number)")
        }
    }

    /// Shares a record with a title.
    ///
    /// - Parameters:
    ///   - record: The record.
    ///   - title: The title that people see; by default the value of the type's ``Record/shareTitle``.
    ///   - publicPermission: The permission of everyone who has a link.
    ///   - databases: The databases of the account.
    /// - Returns: The share.
    /// - Throws: As ``share(_:to:title:publicPermission:in:)``.
    @discardableResult
    public func share<R: Record>(
        _ record: R, title: String? = nil, publicPermission: ShareParticipant.Permission = .none,
        in databases: CloudDatabases
    ) async throws -> Share {
        let title = title ?? R.shareTitle.map { record[keyPath: $0] }
        return try await share([RecordName(record)], title: title, publicPermission: publicPermission, in: databases)
    }

    /// Makes the share of a zone, and returns whether it is new. If another device has just made one, that share is returned.
    private static func makeShare(
        of zone: ZoneName, _ title: String?, _ permission: ShareParticipant.Permission, _ database: any SharingDatabase
    ) async throws(CloudError) -> (CloudShare, isNew: Bool) {
        try await database.modifyZones(saving: [zone.cloudZone], deleting: [])
        do throws(CloudError) {
            let made = try await database.createShare(
                in: zone.cloudZone, coverage: .zone, title: title, publicPermission: permission)
            return (made, true)
        } catch {
            guard error.code == .alreadyShared,
                let there = try await database.shares(in: zone.cloudZone).first(where: { $0.coverage == .zone })
            else { throw error }
            return (there, false)
        }
    }

    /// Returns records, with all records that ``share(_:to:title:publicPermission:in:)`` would share with them.
    ///
    /// - Throws: ``StoreError`` `notFound` for a record that the private store does not have.
    public func graph(of records: [RecordName]) async throws -> [RecordName] {
        try await privateStore.graph(of: records).map(\.record)
    }

    // Finding them

    /// Returns the shares of this container, the user's own first, in the last state that the cloud has sent.
    public func fetchShares() async throws -> [Share] {
        var shares: [Share] = []
        for scope in ContainerDirectory.scopes { shares += try await stores[scope].shares() }
        return shares
    }

    /// Returns the shares of records. Records that are not shared are left out. As `fetchShares(matching:)` of Core Data.
    public func fetchShares(matching records: [RecordName]) async throws -> [RecordName: Share] {
        var found: [RecordName: Share] = [:]
        var rest = records
        for scope in ContainerDirectory.scopes {
            let store = stores[scope]
            let shares = try await store.shares()
            var missing: [RecordName] = []
            for record in rest {
                guard let zone = try await store.zone(of: record) else {
                    missing.append(record)
                    continue
                }
                found[record] = ShareCoverage(shares.filter { $0.zone == zone }).share(of: record.name)
            }
            rest = missing
        }
        return found
    }

    // Changing them

    /// Changes a share: invites or removes participants, or sets permissions or the title. All changes are made, or none.
    ///
    /// - Returns: The changed share.
    /// - Throws: `CloudError`; ``StoreError`` `anotherAccount`.
    @discardableResult
    public func updateParticipants(
        of share: Share, _ changes: [ShareChange], in databases: CloudDatabases
    ) async throws -> Share {
        try await checkAccount(databases)
        let before = try await fetchShares()
        let changed = Share(
            try await databases[share.scope].changeShare(share.cloudID, changes), scope: share.scope)
        try await note(changed, before)
        return changed
    }

    /// Ends a share of the user's for everybody. The records stay in the container and in the user's database of the cloud.
    ///
    /// - Throws: ``PermissionDenied`` for a share of another owner; `CloudError`; ``StoreError`` `anotherAccount`.
    public func stopSharing(_ share: Share, in databases: CloudDatabases) async throws {
        guard share.scope == .private else {
            throw PermissionDenied(
                record: nil, decision: SharePolicy.decide(.stopSharing, on: share.target(), by: share.actor))
        }
        try await checkAccount(databases)
        do throws(CloudError) {
            try await databases.private.deleteShare(share.cloudID)
        } catch {
            // The share has ended already.
            guard error.code == .unknownItem || error.code == .zoneNotFound else { throw error }
        }
        try await privateStore.forget(share)
        broadcastChanges()
    }

    /// Leaves a share of another owner. The records are removed from this container, and stay with their owner. Edits that were
    /// not sent yet are kept in ``refusedSaves()``.
    ///
    /// - Throws: ``PermissionDenied`` for a share of the user's own; `CloudError`; ``StoreError`` `anotherAccount`.
    public func leave(_ share: Share, in databases: CloudDatabases) async throws {
        guard share.scope == .shared else {
            throw PermissionDenied(record: nil, decision: SharePolicy.decide(.leave, on: share.target(), by: share.actor))
        }
        try await checkAccount(databases)
        do throws(CloudError) {
            try await databases.shared.deleteShare(share.cloudID)
        } catch {
            // The account takes part no longer.
            guard error.code == .unknownItem || error.code == .zoneNotFound else { throw error }
        }
        try await sharedStore.forget(share)
        let others = try await sharedStore.shares().contains { $0.zone == share.zone }
        if !others { try await remove(share.zone, from: sharedStore, "the share was left") }
    }

    /// Deletes a zone with all its records, here, in the cloud and on all devices. For a zone of another owner, leaves its
    /// shares. As `purgeObjectsAndRecordsInZone(with:in:)`.
    ///
    /// - Throws: ``StoreError`` `invalid` for the default zone, `anotherAccount`; `CloudError`.
    public func purgeZone(_ zone: ZoneName, in databases: CloudDatabases) async throws {
        guard zone != .default else {
            throw StoreError(.invalid, "the default zone is not purged; delete its records instead")
        }
        try await checkAccount(databases)
        guard zone.owner == nil else {
            for share in try await sharedStore.shares() where share.zone == zone { try await leave(share, in: databases) }
            return try await remove(zone, from: sharedStore, "the zone was purged")
        }
        try await databases.private.modifyZones(saving: [], deleting: [zone.cloudZone])
        try await remove(zone, from: privateStore, "the zone was purged")
    }

    private func remove(_ zone: ZoneName, from store: RecordStore, _ reason: String) async throws {
        if let known = try await store.zones().first(where: { $0.name == zone }) {
            try await store.removeZone(
                known, reason: reason, code: CloudError.Code.userDeletedZone.rawValue, author: author, role: .program)
        }
        broadcastChanges()
    }

    /// Assigns the container to the account, if it belongs to none yet: a share needs an owner. Records that the container has
    /// already are treated as the account's sign-in has set.
    func adopt(_ databases: CloudDatabases) async throws {
        guard try await !checkAccount(databases) else { return }
        // The program's automatic synchronisation has the container's lock of synchronisation, or is about to acquire it.
        if let automatic = syncing.automatic {
            // If that synchronisation has ended meanwhile, the loop uses the next one, or an error ends it.
            while try await !automatic.opened().adoptAccount(startsByItself: true) {}
            return
        }
        if let sync = syncing.sync {
            guard try await sync.adoptAccount() else { throw CancellationError() }
            return
        }
        var configuration = SyncConfiguration()
        let settings = try StoreReader(container: directory).accountSettings()
        if let choice = settings.signIn.flatMap(SignInChoice.init(rawValue:)) { configuration.signIn = choice }
        let sync = try sync(with: databases, configuration: configuration)
        defer { sync.close() }
        try await sync.privateEngine.adoptAccount()
        try await sync.sharedEngine.adoptAccount()
    }

    /// Returns whether both stores belong to the account; `false` if one belongs to none yet.
    ///
    /// - Throws: ``StoreError`` `anotherAccount` if a store belongs to another account.
    @discardableResult
    private func checkAccount(_ databases: CloudDatabases) async throws -> Bool {
        let user = try await databases.private.account().userRecordName
        var isWhole = true
        for scope in ContainerDirectory.scopes {
            let known = try await stores[scope].syncState().user
            guard known == nil || known == user else {
                throw StoreError(
                    .anotherAccount,
                    "the container has the records of another account than the one that is signed in. Synchronise first")
            }
            isWhole = isWhole && known != nil
        }
        return isWhole
    }

    /// Stores a share that the cloud has returned.
    ///
    /// - Parameter before: The stored shares from before the request to the cloud.
    func note(_ share: Share, _ before: [Share]) async throws {
        let known = before.first { ($0.scope, $0.zone, $0.name) == (share.scope, share.zone, share.name) }
        try await stores[share.scope].note(share, insteadOf: known)
        broadcastChanges()
    }

    // Permissions

    /// Returns whether a record is shared, by the user or by another owner; `false` if the container does not have it.
    public func isShared(_ record: RecordName) async throws -> Bool {
        try await permissions.permission(of: record)?.isShared ?? false
    }

    /// Returns whether the user owns a record.
    public func isOwner(_ record: RecordName) async throws -> Bool {
        try await permissions.permission(of: record)?.isOwner ?? false
    }

    /// Returns whether the user may edit a record, by the last state of the shares that the cloud has sent. As
    /// `canUpdateRecord(forManagedObjectWith:)`.
    public func canEdit(_ record: RecordName) async throws -> Bool {
        try await permissions.permission(of: record)?.canEdit ?? false
    }

    /// Returns whether the user may delete a record. As `canDeleteRecord(forManagedObjectWith:)`.
    public func canDelete(_ record: RecordName) async throws -> Bool {
        try await permissions.permission(of: record)?.canDelete ?? false
    }

    /// Returns whether the user may share a record. A record that is shared already can't be shared again.
    public func canShare(_ record: RecordName) async throws -> Bool {
        try await permissions.permission(of: record)?.canShare ?? false
    }

    // Saving into them

    /// Saves new records into a share. Records that exist already stay where they are.
    ///
    /// - Throws: ``StoreError`` `notFound` if the container does not have the share, because it has ended, was left, or was never
    ///   accepted here; ``PermissionDenied`` if the user may only read; the errors of ``save(_:in:)-(R,_)``. Then nothing is
    ///   saved.
    @discardableResult
    public func save<R: Record>(_ records: [R], in share: Share) async throws -> SaveResult {
        guard !records.isEmpty else { return SaveResult() }
        return try save(records, in: share.scope, share: try await place(of: share)).result
    }

    /// Returns the place of a share in its store.
    ///
    /// - Throws: ``StoreError`` `notFound` if the store does not have the share, because it has ended, was left, or was never
    ///   accepted here.
    func place(of share: Share) async throws -> SharePlace {
        guard let zone = try await stores[share.scope].zones().first(where: { $0.name == share.zone }) else {
            throw share.isUnknown
        }
        return SharePlace(share: share, name: share.zone, zone: zone.id)
    }

    /// Returns the place of new records; `nil` for a target that names only a store.
    ///
    /// - Throws: ``StoreError`` `notFound` if the store does not have the share or the zone.
    func place(of target: InsertionTarget) async throws -> SharePlace? {
        switch target {
        case .store: return nil
        case .share(let share): return try await place(of: share)
        case .zone(let name, let scope):
            guard let zone = try await stores[scope].zones().first(where: { $0.name == name }) else { throw name.isUnknown }
            return SharePlace(share: nil, name: name, zone: zone.id)
        }
    }

    // What was refused

    /// Returns the saves that the cloud has refused and the store has reverted, the newest first.
    public nonisolated func refusedSaves() throws -> [RefusedSave] {
        var all: [RefusedSave] = []
        for scope in ContainerDirectory.scopes { all += try StoreReader(container: directory, scope: scope).refused() }
        return all.sorted { $0.time > $1.time }
    }

    /// Removes refused saves permanently.
    public func discard(_ saves: [RefusedSave]) async throws {
        for scope in ContainerDirectory.scopes {
            let ids = saves.filter { $0.scope == scope }.map(\.id)
            if !ids.isEmpty { try await stores[scope].discardRefused(ids) }
        }
    }
}
