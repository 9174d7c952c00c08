import Foundation
import TidemarkCloud
import TidemarkModel

/// The rules of a cloud: who may do what, and what becomes of it. What it knows lies in a ``CloudStorage``.
///
/// All of it is decided in one transaction of the storage, so that requests come one after the other, whoever makes them.
struct CloudEngine: Sendable {
    let storage: any CloudStorage
    let limits: CloudLimits
    /// In production the schema is what was deployed.
    let environment: StoreEnvironment
    /// Microseconds since 1970 UTC.
    let now: @Sendable () -> Int64

    /// Who asks, and in which database.
    struct Caller: Hashable, Sendable {
        let user: String
        let scope: DatabaseScope
        /// Bytes that the account may have in all.
        let quota: Int64
    }

    /// How long a request that was answered is known.
    static let answerAge: Int64 = 7 * 86_400 * 1_000_000

    // Zones

    /// Where a zone is kept.
    ///
    /// - Throws: `zoneNotFound` for a zone of somebody else's.
    func place(_ zone: CloudZoneID, _ caller: Caller) throws(CloudError) -> StoredZone.Place {
        let isOwn = zone.ownerName == CloudZoneID.defaultOwner || zone.ownerName == caller.user
        switch caller.scope {
        case .private where isOwn: return .init(scope: .private, owner: caller.user, name: zone.zoneName)
        case .public where zone.isDefault: return .init(scope: .public, owner: "", name: zone.zoneName)
        default: throw Self.notFound(zone)
        }
    }

    static func notFound(_ zone: CloudZoneID) -> CloudError {
        CloudError(.zoneNotFound, "Zone '\(zone.zoneName)' does not exist")
    }

    /// The zone as it is kept.
    func zone(_ zone: CloudZoneID, _ caller: Caller, _ rows: any CloudTransaction) throws(CloudError) -> StoredZone {
        let place = try place(zone, caller)
        guard let stored = try rows.zone(place) else { throw Self.notFound(zone) }
        switch stored.state {
        case .present: return stored
        case .deleted: throw Self.notFound(zone)
        case .purged: throw CloudError(.userDeletedZone, "Zone '\(zone.zoneName)' was deleted by its owner, for good")
        }
    }

    /// As ``zone(_:_:_:)``; the default zone is made when it is first asked for.
    func zoneToWrite(_ id: CloudZoneID, _ caller: Caller, _ rows: any CloudTransaction) throws(CloudError) -> StoredZone {
        let place = try place(id, caller)
        if id.isDefault, try rows.zone(place) == nil {
            let change = try nextChange(rows)
            return try rows.save(StoredZone(place: place, made: change, changed: change))
        }
        return try zone(id, caller, rows)
    }

    func nextChange(_ rows: any CloudTransaction) throws(CloudError) -> Int64 {
        let change = try rows.lastChange() + 1
        try rows.setLastChange(change)
        return change
    }

    func id(of zone: StoredZone, _ caller: Caller) -> CloudZoneID {
        CloudZoneID(zone.place.name, owner: zone.place.owner.isEmpty ? CloudZoneID.defaultOwner : zone.place.owner)
    }

    func zones(_ caller: Caller) async throws(CloudError) -> [CloudZoneID] {
        try await storage.read { rows throws(CloudError) in
            let stored = try rows.zones(caller.scope, owner: owner(caller), after: -1, limit: .max).filter {
                $0.state == .present
            }
            let ids = stored.map { id(of: $0, caller) }
            // Every database has it, whether anything was saved in it or not.
            let first =
                caller.scope == .shared || ids.contains { $0.isDefault } ? [] : [CloudZoneID("_defaultZone", owner: caller.user)]
            return first + ids
        }
    }

    func owner(_ caller: Caller) -> String { caller.scope == .public ? "" : caller.user }

    func modifyZones(
        saving: [CloudZoneID], deleting: [CloudZoneID], purging: Bool = false, _ shelf: AssetShelf, _ caller: Caller
    ) async throws(CloudError) {
        guard caller.scope == .private else {
            throw CloudError(.permissionFailure, "zones can be made and deleted in the private database only")
        }
        let released = try await storage.write { rows throws(CloudError) in
            var released = ReleasedAssets()
            var count = try rows.zones(.private, owner: caller.user, after: -1, limit: .max).count { $0.state == .present }
            for id in saving {
                let place = try place(id, caller)
                guard (1...255).contains(id.zoneName.utf8.count), id.zoneName.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else {
                    throw CloudError(
                        .invalidArguments, "'\(id.zoneName.prefix(100))' can't name a zone: 1 to 255 visible characters of ASCII")
                }
                let stored = try rows.zone(place)
                if stored?.state == .present { continue }
                guard count < limits.zones else {
                    throw CloudError(.limitExceeded, "there are \(limits.zones) zones, and no more can be made")
                }
                let change = try nextChange(rows)
                _ = try rows.save(StoredZone(place: place, made: change, changed: change))
                count += 1
            }
            for id in deleting {
                guard !id.isDefault else { throw CloudError(.invalidArguments, "the default zone can't be deleted") }
                guard var stored = try rows.zone(try place(id, caller)), stored.state == .present else { continue }
                try rows.addUsed(-(try bytes(in: stored, rows)), by: caller.user)
                let named = try rows.assetsNamed(by: nil, in: stored.id)
                try rows.removeRecords(in: stored.id)
                released.add(try ReleasedAssets(named, of: caller.user, rows))
                stored.state = purging ? .purged : .deleted
                stored.changed = try nextChange(rows)
                _ = try rows.save(stored)
            }
            return released
        }
        await remove(released, shelf)
    }

    private func bytes(in zone: StoredZone, _ rows: any CloudTransaction) throws(CloudError) -> Int64 {
        var (sum, after): (Int64, Int64) = (0, -1)
        while true {
            let page = try rows.records(in: zone.id, after: after, limit: 1000)
            guard let last = page.last else { return sum }
            for record in page { sum += Int64(record.fields.count) }
            after = last.changed
        }
    }

    // Reading records

    func record(
        _ stored: StoredRecord, in zone: CloudZoneID, keys: Set<String>?
    ) throws(CloudError) -> CloudRecord {
        var record = CloudRecord(
            CloudRecordID(stored.name, in: zone), type: stored.type, fields: try FieldCoding.decode(stored.fields, only: keys),
            changeTag: Self.tag(stored.changed))
        record.parent = stored.parent
        record.created = stored.created
        record.modified = stored.modified
        return record
    }

    static func tag(_ change: Int64) -> String { String(change, radix: 36) }

    func lookup(
        _ names: [String], in id: CloudZoneID, keys: Set<String>?, _ caller: Caller
    ) async throws(CloudError) -> [Result<CloudRecord, CloudError>] {
        guard names.count <= limits.operationsPerRequest else {
            throw CloudError(
                .limitExceeded, "a request looks up \(limits.operationsPerRequest) records at the most, not \(names.count)")
        }
        return try await storage.read { rows throws(CloudError) in
            guard let zone = try existing(id, caller, rows) else { return names.map { _ in .failure(Self.noRecord) } }
            let found = try rows.records(names, in: zone.id)
            let zoneID = self.id(of: zone, caller)
            var answers: [Result<CloudRecord, CloudError>] = []
            for name in names {
                if let stored = found[name], !stored.isDeleted {
                    answers.append(.success(try record(stored, in: zoneID, keys: keys)))
                } else {
                    answers.append(.failure(Self.noRecord))
                }
            }
            return answers
        }
    }

    static let noRecord = CloudError(.unknownItem, "Record not found")

    /// The zone; `nil` for a default zone in which nothing was saved yet.
    func existing(_ id: CloudZoneID, _ caller: Caller, _ rows: any CloudTransaction) throws(CloudError) -> StoredZone? {
        if id.isDefault, try rows.zone(try place(id, caller)) == nil { return nil }
        return try zone(id, caller, rows)
    }
}
