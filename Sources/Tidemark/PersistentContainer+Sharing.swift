public import TidemarkCloud
public import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

extension PersistentContainer {
    /// Shares records with what they own, and so on, and with what references without a declared relationship lead to, either way: all of them
    /// move into a zone of their own. As `NSPersistentCloudKitContainer.share(_:to:)`. Along weak relationships, and from a record to its owner,
    /// sharing does not go on.
    ///
    /// ```swift
    /// let share = try await journal.share(senja, title: senja.caption, in: databases)
    /// let ben = UserLookUp.emailAddress("ben@example.org")
    /// try await journal.updateParticipants(of: share, [.invite(ben, role: .privateUser, permission: .readWrite)], in: databases)
    /// let link = try await journal.makeLink(to: share, in: databases)
    /// print(link.token)
    /// ```
    ///
    /// The cloud learns of the share at once, and of the records with the next synchronisation. What is pending of them goes along. Where all
    /// are in one share already it is returned; others come to a share that is there only where it is named. Those that were shared once may be shared again, with others.
    ///
    /// - Parameters:
    ///   - existing: The share, one's own, that they are added to; `nil` for one of their own.
    ///   - title: What people are shown; of a share that is there it stays.
    ///   - publicPermission: The permission of everybody with a link.
    ///   - databases: The account's.
    /// - Throws: ``StoreError`` `notFound` for a record that is not there, `anotherAccount`; `CloudError` `alreadyShared` where some of the
    ///   records are in another share, `unknownItem` where `existing` is over; ``PermissionDenied`` for what is somebody else's; what the
    ///   cloud answers. Then nothing has moved.
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
        // The cloud names the zone with its owner.
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
            // What has nothing in it need not be shared. Where the cloud can't be told now, the share stays known, to be stopped; why it is empty
            // is the error that counts.
            if isNew, (try? await database.deleteShare(made.cloudID)) != nil { try await store.forget(made) }
            throw error
        }
    }

    private static func alreadyShared(_ other: PlacedRecord) -> CloudError {
        CloudError(
            .alreadyShared, "\(other.record.type) \(other.record.name) is in another share; stop that first, or add to it")
    }

    /// - Throws: ``PermissionDenied`` where records, or the share that they are to be added to, are somebody else's.
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

    /// The zone in which records are to be shared: that of their share, or of the one that they are added to; else one that has nothing else in it.
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
        // What was shared once, and is no more, is still in its zone.
        for zone in zones where zone != .default {
            if try await store.hasOnly(graph, in: zone) { return zone }
        }
        let first = ZoneName.ofShare(root: records[0].name)
        var (zone, number) = (first, 1)
        while true {
            if !shared.contains(zone), try await store.hasOnly(graph, in: zone) { return zone }
            number += 1
            // No record's name makes a zone's name with a dot at this place.
            zone = ZoneName("\(first.name).\(number)")
        }
    }

    /// Shares a record with a title.
    ///
    /// - Parameter title: What people are shown; by default the value of the property that the type names as its ``Record/shareTitle``.
    @discardableResult
    public func share<R: Record>(
        _ record: R, title: String? = nil, publicPermission: ShareParticipant.Permission = .none,
        in databases: CloudDatabases
    ) async throws -> Share {
        let title = title ?? R.shareTitle.map { record[keyPath: $0] }
        return try await share([RecordName(record)], title: title, publicPermission: publicPermission, in: databases)
    }

    /// A share of a zone, and whether it is new: where another device was faster it is that one's.
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

    /// Records, with all that ``share(_:to:title:publicPermission:in:)`` would share with them.
    ///
    /// - Throws: ``StoreError`` `notFound` for a record that is not there, or is somebody else's.
    public func graph(of records: [RecordName]) async throws -> [RecordName] {
        try await privateStore.graph(of: records).map(\.record)
    }

    // Finding them

    /// The shares that this container takes part in, one's own first, as the cloud said them last.
    public func fetchShares() async throws -> [Share] {
        var shares: [Share] = []
        for scope in ContainerDirectory.scopes { shares += try await stores[scope].shares() }
        return shares
    }

    /// The shares of records; those that are not shared are left out. As `fetchShares(matching:)`.
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

    /// Changes a share, all or nothing: invites, removes, gives other permissions, another title.
    ///
    /// - Returns: It as it is now.
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

    /// Ends one's own share for everybody. The records stay here and in one's own cloud.
    public func stopSharing(_ share: Share, in databases: CloudDatabases) async throws {
        guard share.scope == .private else {
            throw PermissionDenied(
                record: nil, decision: SharePolicy.decide(.stopSharing, on: share.target(), by: share.actor))
        }
        try await checkAccount(databases)
        do throws(CloudError) {
            try await databases.private.deleteShare(share.cloudID)
        } catch {
            // It is over already.
            guard error.code == .unknownItem || error.code == .zoneNotFound else { throw error }
        }
        try await privateStore.forget(share)
        broadcastChanges()
    }

    /// Leaves a share of somebody else's: the records go here, and stay with their owner. What was edited here and not sent yet is kept in
    /// ``refusedSaves()``.
    public func leave(_ share: Share, in databases: CloudDatabases) async throws {
        guard share.scope == .shared else {
            throw PermissionDenied(record: nil, decision: SharePolicy.decide(.leave, on: share.target(), by: share.actor))
        }
        try await checkAccount(databases)
        do throws(CloudError) {
            try await databases.shared.deleteShare(share.cloudID)
        } catch {
            // One is out already.
            guard error.code == .unknownItem || error.code == .zoneNotFound else { throw error }
        }
        try await sharedStore.forget(share)
        let others = try await sharedStore.shares().contains { $0.zone == share.zone }
        if !others { try await remove(share.zone, from: sharedStore, "the share was left") }
    }

    /// Deletes a zone with all its records, everywhere; of somebody else's zone, leaves what is shared of it. As
    /// `purgeObjectsAndRecordsInZone(with:in:)`.
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

    /// Makes the container that of the account, if it is nobody's yet: what is shared belongs to somebody. What becomes of records that are
    /// there is what was said when the account signed in.
    func adopt(_ databases: CloudDatabases) async throws {
        guard try await !checkAccount(databases) else { return }
        // The program's own synchronisation has the container's right to synchronise, or is about to acquire it, and may not have run yet.
        if let automatic = syncing.automatic {
            // One that ended meanwhile is followed by another, or by an error.
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

    /// Whether both stores are the account's.
    ///
    /// - Throws: ``StoreError`` `anotherAccount` where one is somebody else's.
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

    /// Notes what the cloud has said of a share.
    ///
    /// - Parameter before: What was known of shares when it was asked.
    func note(_ share: Share, _ before: [Share]) async throws {
        let known = before.first { ($0.scope, $0.zone, $0.name) == (share.scope, share.zone, share.name) }
        try await stores[share.scope].note(share, insteadOf: known)
        broadcastChanges()
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

    /// Saves new records into a share; records that are there stay where they are.
    ///
    /// - Throws: ``StoreError`` `notFound` where the container does not know the share: it has ended, was left, or was never accepted here;
    ///   ``PermissionDenied`` where the user may only read; as ``save(_:in:)-(R,_)``. Then nothing is saved.
    @discardableResult
    public func save<R: Record>(_ records: [R], in share: Share) async throws -> SaveResult {
        guard !records.isEmpty else { return SaveResult() }
        return try save(records, in: share.scope, share: try await place(of: share)).result
    }

    /// The place of a share in its store.
    ///
    /// - Throws: ``StoreError`` `notFound` where the store does not know the share: it has ended, was left, or was never accepted here.
    func place(of share: Share) async throws -> SharePlace {
        guard let zone = try await stores[share.scope].zones().first(where: { $0.name == share.zone }) else {
            throw share.isUnknown
        }
        return SharePlace(share: share, name: share.zone, zone: zone.id)
    }

    /// The place of new records; `nil` for one outside of all zones.
    ///
    /// - Throws: ``StoreError`` `notFound` where the store does not know the share or the zone.
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

    /// Saves that the cloud has refused and the store has reverted, newest first.
    public nonisolated func refusedSaves() throws -> [RefusedSave] {
        var all: [RefusedSave] = []
        for scope in ContainerDirectory.scopes { all += try StoreReader(container: directory, scope: scope).refused() }
        return all.sorted { $0.time > $1.time }
    }

    /// Removes refused saves, for good.
    public func discard(_ saves: [RefusedSave]) async throws {
        for scope in ContainerDirectory.scopes {
            let ids = saves.filter { $0.scope == scope }.map(\.id)
            if !ids.isEmpty { try await stores[scope].discardRefused(ids) }
        }
    }
}
