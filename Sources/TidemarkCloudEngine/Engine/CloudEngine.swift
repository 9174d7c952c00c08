import Foundation
package import TidemarkCloud
package import TidemarkModel

/// Applies the rules of a cloud: who may do what, and what a request changes. A ``CloudStorage`` keeps the rows.
///
/// One transaction of the storage decides all of a request. So requests to one owner's databases are decided one after the other,
/// whoever sends them. A request that finds only while it reads which owners' rows it has to write begins again: see
/// ``FoundOwners``.
package struct CloudEngine: Sendable {
    package let storage: any CloudStorage
    package let changeTagCipher: ChangeTagCipher
    /// The user record name that owns the public database's zone. It is always the same, and belongs to no account.
    let publicOwner: String
    package let limits: CloudLimits
    /// In production the schema is what was deployed.
    let environment: StoreEnvironment
    /// Microseconds since 1970 UTC.
    let now: @Sendable () -> Int64
    /// Bytes that nobody can guess.
    let random: @Sendable (Int) -> [UInt8]
    let lanes: QueryLanes
    let schemaLimits = SchemaLimits()

    package init(
        storage: any CloudStorage, limits: CloudLimits, environment: StoreEnvironment, now: @escaping @Sendable () -> Int64,
        random: @escaping @Sendable (Int) -> [UInt8], lanes: QueryLanes
    ) {
        (self.storage, self.limits, self.environment, self.now, self.random) = (storage, limits, environment, now, random)
        self.lanes = lanes
        changeTagCipher = ChangeTagCipher(storage.key, common: storage.commonChanges)
        publicOwner = "_" + changeTagCipher.digest("owner of the public database")
    }

    /// The user who sends a request, and the database that it is for.
    package struct Caller: Hashable, Sendable {
        package let user: String
        package let scope: DatabaseScope
        /// The quota in bytes of the account that pays: the caller's, or that of the owner who shares with the caller.
        package var quota: Int64
        /// `nil` for a caller without an account.
        var account: StoredAccount?
        /// The client whose share of the query time is used, unless it is the user: the address of a client that is not signed
        /// in.
        var client: String?
        /// Whether the caller administers the cloud, and may change everything in the public database.
        package var isAdministrator = false

        package init(
            user: String, scope: DatabaseScope, quota: Int64, account: StoredAccount? = nil, client: String? = nil
        ) {
            self.user = user
            self.scope = scope
            self.quota = quota
            self.account = account
            self.client = client
        }
    }

    // Zones

    /// Returns the place of a zone.
    ///
    /// - Throws: `zoneNotFound` for a zone that the caller's database can't have.
    func place(_ zone: CloudZoneID, _ caller: Caller) throws(CloudError) -> StoredZone.Place {
        let isOwn = zone.ownerName == CloudZoneID.defaultOwner || zone.ownerName == caller.user
        switch caller.scope {
        case .private where isOwn: return .init(scope: .private, owner: caller.user, name: zone.zoneName)
        case .shared where !isOwn: return .init(scope: .private, owner: zone.ownerName, name: zone.zoneName)
        case .public where zone.isDefault: return .init(scope: .public, owner: "", name: zone.zoneName)
        default: throw Self.notFound(zone)
        }
    }

    static func notFound(_ zone: CloudZoneID) -> CloudError {
        CloudError(.zoneNotFound, "Zone '\(zone.zoneName)' does not exist")
    }

    /// Gives out the next number of an owner's changes.
    func nextChange(of owner: String, _ rows: any CloudTransaction) throws(CloudError) -> Int64 {
        let change = try rows.lastChange(of: owner) + 1
        try setLastChange(change, of: owner, rows)
        return change
    }

    /// Returns the number before the first one that a request gives out. In the public database, requests that run at once would
    /// give out the same numbers. Each skips a few at random.
    func changeBefore(requestOf owner: String, _ rows: any CloudTransaction) throws(CloudError) -> Int64 {
        let last = try rows.lastChange(of: owner)
        return owner.isEmpty ? last + random(2).reduce(0) { $0 << 8 | Int64($1) } : last
    }

    /// Records the number of an owner's last change. The public database has no feed of changes, and nothing is recorded there:
    /// its rows have the highest number, and writers of different records don't wait for each other.
    func setLastChange(_ change: Int64, of owner: String, _ rows: any CloudTransaction) throws(CloudError) {
        if !owner.isEmpty { try rows.setLastChange(change, of: owner) }
    }

    /// Saves a zone that changed. The public zone has no feed that would need its last change.
    func saveChanged(_ zone: StoredZone, _ rows: any CloudTransaction) throws(CloudError) {
        if zone.place.scope != .public { _ = try rows.save(zone) }
    }

    package func id(of zone: StoredZone, _ caller: Caller) -> CloudZoneID {
        CloudZoneID(zone.place.name, owner: zone.place.owner.isEmpty ? publicOwner : zone.place.owner)
    }

    package func zones(_ caller: Caller) async throws(CloudError) -> [CloudZoneID] {
        try await storage.read { rows throws(CloudError) in try zones(caller, rows) }
    }

    private func zones(_ caller: Caller, _ rows: any CloudTransaction) throws(CloudError) -> [CloudZoneID] {
        guard caller.scope != .shared else {
            return try views(caller, rows).filter(\.isPresent).map { id(of: $0.zone, caller) }
        }
        let stored = try rows.zones(of: owner(caller), after: -1, limit: .max).filter {
            $0.state == .present
        }
        let ids = stored.map { id(of: $0, caller) }
        if ids.contains(where: \.isDefault) { return ids }
        // Every database has its default zone, also before a record was saved there.
        let zoneOwner = caller.scope == .public ? publicOwner : caller.user
        return [CloudZoneID(CloudZoneID.default.zoneName, owner: zoneOwner)] + ids
    }

    /// Lists the zones, each with its present change token. The token is `nil` for the default zone, which has no feed of
    /// changes, and for a damaged zone.
    ///
    /// - Complexity: O(zones), in one transaction.
    package func zonesWithTokens(_ caller: Caller) async throws(CloudError) -> [(zone: CloudZoneID, token: CloudToken?)] {
        try await storage.read { rows throws(CloudError) in
            let incarnation = try rows.incarnation()
            var listed: [(zone: CloudZoneID, token: CloudToken?)] = []
            for id in try zones(caller, rows) {
                guard !id.isDefault else {
                    listed.append((id, nil))
                    continue
                }
                do throws(CloudError) {
                    let access = try access(to: id, caller, rows)
                    listed.append((id, try token(access.newest, in: access, incarnation, rows)))
                } catch {
                    // A damaged zone does not keep the caller from the others.
                    guard error.code == .recordDamaged else { throw error }
                    listed.append((id, nil))
                }
            }
            return listed
        }
    }

    func owner(_ caller: Caller) -> String { caller.scope == .public ? "" : caller.user }

    /// - Returns: Whether something is left to be removed.
    package func modifyZones(
        saving: [CloudZoneID], deleting: [CloudZoneID], purging: Bool = false, _ assetStorage: any AssetStorage, _ caller: Caller
    ) async throws(CloudError) -> Bool {
        guard caller.scope != .shared else {
            // The answer does not reveal whether the zone exists.
            throw CloudError(
                SharePolicy.decide(.deleteZone, on: .init(scope: .shared), by: .participant(.privateUser, .readWrite, .accepted)))
        }
        guard caller.scope == .private else {
            throw CloudError(.permissionFailure, "zones can be made and deleted in the private database only")
        }
        let (released, isUnfinished) = try await storage.write(owners: [caller.user]) { rows throws(CloudError) in
            var (released, isUnfinished) = (ReleasedAssets(), false)
            var count = try rows.zones(of: caller.user, after: -1, limit: .max).count { $0.state == .present }
            for id in saving {
                let place = try place(id, caller)
                guard (1...255).contains(id.zoneName.utf8.count), id.zoneName.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else {
                    throw CloudError(
                        .invalidArguments, "'\(id.zoneName.prefix(100))' can't name a zone: 1 to 255 visible characters of ASCII")
                }
                let stored = try rows.zone(place)
                if stored?.state == .present { continue }
                if let stored, try !rows.removals(in: stored.id).isEmpty { throw Self.removing("zone '\(id.zoneName)'") }
                guard count < limits.zones else {
                    throw CloudError(.limitExceeded, "there are \(limits.zones) zones, and no more can be made")
                }
                let change = try nextChange(of: place.owner, rows)
                if let stored { try countLife(of: stored, rows) }
                _ = try rows.save(StoredZone(place: place, made: change, changed: change))
                count += 1
            }
            for id in deleting {
                guard !id.isDefault else { throw CloudError(.invalidArguments, "the default zone can't be deleted") }
                guard var stored = try rows.zone(try place(id, caller)), stored.state == .present else { continue }
                for share in try rows.shares(in: stored.id) { try end(share, in: &stored, caller, rows) }
                stored.state = purging ? .purged : .deleted
                stored.changed = try nextChange(of: stored.place.owner, rows)
                _ = try rows.save(stored)
                let removal = StoredRemoval(
                    zone: stored.id, kind: .zone, target: "", change: stored.changed, user: caller.user)
                let (isDone, gone) = try removeRecords(of: removal, stored, rows)
                released.add(gone)
                guard !isDone else { continue }
                try rows.add(removal)
                isUnfinished = true
            }
            return (released, isUnfinished)
        }
        await remove(released, assetStorage)
        return isUnfinished
    }

    // Reading records

    package func record(
        _ stored: StoredCloudRecord, in zone: CloudZoneID, keys: Set<String>?, _ access: ShareAccess, _ rows: any CloudTransaction
    ) throws(CloudError) -> CloudRecord {
        guard stored.damage == nil else { throw Self.damaged(stored.name) }
        let (fields, encrypted) = try FieldCoding.decodeMarked(stored.fields, only: keys)
        var record = CloudRecord(
            CloudRecordID(stored.name, in: zone), type: stored.type, fields: fields,
            changeTag: tag(stored.changed, of: stored.zone.owner))
        record.encryptedFields = encrypted
        record.parent = access.isRoot(stored.name) ? nil : stored.parent
        record.created = stored.created
        record.modified = stored.modified
        if access.zone.sharing != .nothing, stored.type == CloudShare.recordType,
            let share = try rows.share(named: stored.name, in: stored.zone)
        {
            record.share = try self.share(share, access.caller, rows)
        }
        if !access.roots.isEmpty, let name = access.roots[stored.name] {
            record.shareName = name
            if access.caller.scope == .private, let share = try rows.share(named: name, in: stored.zone) {
                record.shortGUID = try knownShortGUID(share, rows)
            }
        }
        return record
    }

    func tag(_ change: Int64, of owner: String) -> String { changeTagCipher.tag(change, of: owner) }

    package func lookup(
        _ names: [String], in id: CloudZoneID, keys: Set<String>?, _ caller: Caller
    ) async throws(CloudError) -> [Result<CloudRecord, CloudError>] {
        guard names.count <= limits.operationsPerRequest else {
            throw CloudError(
                .limitExceeded, "a request looks up \(limits.operationsPerRequest) records at the most, not \(names.count)")
        }
        if names.count <= Self.namesAtAGlance,
            let found = try storage.readInline({ rows throws(CloudError) in try looked(names, in: id, keys: keys, caller, rows) })
        {
            return found
        }
        // `readTogether` reads a zone and its records only. A shared zone is found by rows of its participants, too.
        if caller.scope != .shared,
            let found = try await storage.readTogether(
                names, in: try place(id, caller),
                { rows throws(CloudError) in try looked(names, in: id, keys: keys, caller, rows) })
        {
            return found
        }
        return try await storage.read { rows throws(CloudError) in try looked(names, in: id, keys: keys, caller, rows) }
    }

    /// The most records that are looked up on the calling thread.
    private static let namesAtAGlance = 4

    func looked(
        _ names: [String], in id: CloudZoneID, keys: Set<String>?, _ caller: Caller, _ rows: any CloudTransaction
    ) throws(CloudError) -> [Result<CloudRecord, CloudError>] {
        guard let access = try existing(id, caller, rows) else { return names.map { _ in .failure(Self.noRecord) } }
        let found = try seen(names, access, rows)
        let zoneID = self.id(of: access.zone, caller)
        var answers: [Result<CloudRecord, CloudError>] = []
        for name in names {
            // A name in another spelling is no record's name.
            if let stored = found[name], !stored.isDeleted || stored.damage != nil, name.isComposed {
                do throws(CloudError) {
                    answers.append(.success(try record(stored, in: zoneID, keys: keys, access, rows)))
                } catch {
                    guard error.code == .recordDamaged else { throw error }
                    answers.append(.failure(error))
                }
            } else {
                answers.append(.failure(Self.noRecord))
            }
        }
        return answers
    }

    /// Returns those of the named records that the caller may see.
    func seen(
        _ names: [String], _ access: ShareAccess, _ rows: any CloudTransaction
    ) throws(CloudError) -> [String: StoredCloudRecord] {
        guard access.isLimited else { return try rows.records(names, in: access.zone.id) }
        let shares = try rows.shares(covering: names, in: access.zone.id)
        return try rows.records(names.filter { access.sees(shares[$0]) }, in: access.zone.id)
    }

    static let noRecord = CloudError(.unknownItem, "Record not found")
}
