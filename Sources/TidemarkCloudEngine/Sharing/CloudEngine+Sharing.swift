import Foundation
package import TidemarkCloud
package import TidemarkModel

/// Shares; see `SharingDatabase`.
extension CloudEngine {
    package func shares(in id: CloudZoneID, _ caller: Caller) async throws(CloudError) -> [CloudShare] {
        try demandSharing(caller)
        return try await storage.read { rows throws(CloudError) in
            guard let access = try existing(id, caller, rows) else { return [] }
            var shares: [CloudShare] = []
            for stored in try rows.shares(in: access.zone.id) where access.sees(stored.id) {
                shares.append(try share(stored, caller, rows))
            }
            return shares
        }
    }

    package func createShare(
        in id: CloudZoneID, coverage: CloudShare.Coverage, title: String?, publicPermission: ShareParticipant.Permission,
        _ caller: Caller
    ) async throws(CloudError) -> CloudShare {
        try demandSharing(caller)
        return try await storage.write(owners: [try place(id, caller).owner]) { rows throws(CloudError) in
            let made = try create(
                in: id, coverage: coverage, title: title, publicPermission: publicPermission, caller, rows)
            return try share(made, caller, rows)
        }
    }

    /// Makes a share whose owner is its only participant.
    ///
    /// - Parameter name: The name of the record of a share of a hierarchy; `nil` for a new one.
    func create(
        in id: CloudZoneID, named name: String? = nil, coverage: CloudShare.Coverage, title: String?,
        publicPermission: ShareParticipant.Permission,
        _ caller: Caller, _ rows: any CloudTransaction
    ) throws(CloudError) -> StoredShare {
        guard !id.isDefault else {
            throw CloudError(.invalidArguments, "the default zone can't be shared. Make a zone of its own")
        }
        guard publicPermission != .unknown else { throw CloudError(.invalidArguments, "that is no permission to give") }
        let title = try ShareEditing.stored(title: title)
        let access = try access(to: id, caller, rows)
        guard caller.scope == .private else { throw CloudError(access.decide(.share, share: access.parts.first?.share.id)) }
        var zone = access.zone
        var root: String?
        var below: [StoredChild] = []
        var isShared = false
        switch coverage {
        case .zone: isShared = zone.sharing != .nothing
        case .hierarchy(let name):
            guard let record = try rows.records([name], in: zone.id)[name], !record.isDeleted,
                record.type != CloudShare.recordType
            else { throw Self.noRecord }
            var records = try RecordCache([], in: zone.id, rows)
            below = [StoredChild(name: name, type: record.type, changed: record.changed)]
            below += try records.descendants(of: name, rows)
            let taken = try rows.shares(covering: below.map(\.name), in: zone.id)
            isShared = zone.sharing == .whole || !taken.isEmpty
            root = name
        }
        let decision = SharePolicy.decide(.share, on: .init(scope: .private, isShared: isShared), by: .owner)
        guard decision.isAllowed else { throw CloudError(decision) }
        if root != nil, let name { try checkShareName(name, in: zone, caller, rows) }
        let change = try nextChange(of: zone.place.owner, rows)
        var stored = try rows.save(
            StoredShare(
                zone: zone.id,
                name: root == nil ? CloudShare.zoneWideName : name ?? "Share-\(UUID(random(16)).uuidString)", root: root,
                title: title,
                publicPermission: publicPermission, touched: change, isEnded: false))
        try rows.save(
            StoredParticipant(
                id: newID(), share: stored.id, zone: zone.id, user: caller.user, name: caller.account?.name, lookUp: nil,
                role: .owner, permission: .readWrite, acceptanceStatus: .accepted, began: change, ended: 0, invited: 0,
                expelled: 0))
        zone.sharing = root == nil ? .whole : .hierarchies
        // No client has a token of the share yet, so its feed begins with the numbers that the records have.
        try rows.save(
            below.map { CoveredRecord(share: stored.id, name: $0.name, type: $0.type, change: $0.changed, isGone: false) },
            in: zone.id)
        try touch(&stored, in: &zone, change, caller, rows)
        if let title, try rows.used(by: caller.user) > caller.quota {
            throw CloudError(.quotaExceeded, "\(SyncFailure.ownStorage) is full, and the title '\(title.prefix(20))' needs room")
        }
        try note(.created, of: stored, value: "\(publicPermission)", caller, rows)
        return stored
    }

    /// Checks a name that a client gives to the record of a new share.
    ///
    /// - Throws: `CloudError` `invalidArguments` for what can't be such a name, `serverRecordChanged` where a record has it.
    private func checkShareName(
        _ name: String, in zone: StoredZone, _ caller: Caller, _ rows: any CloudTransaction
    ) throws(CloudError) {
        guard (1...255).contains(name.utf8.count), name.isComposed, name != CloudShare.zoneWideName else {
            throw CloudError(
                .invalidArguments,
                "'\(name.prefix(100))' can't name the share of a record: 1 to 255 bytes in the normal form C of Unicode, and not "
                    + CloudShare.zoneWideName)
        }
        guard let there = try looked([name], in: self.id(of: zone, caller), keys: nil, caller, rows).first,
            case .success(let record) = there
        else { return }
        throw CloudError(.serverRecordChanged, "record to insert already exists", serverRecord: record)
    }

    /// Returns those of some names that belong to records of shares which the caller sees.
    package func shareNames(
        among names: [String], in id: CloudZoneID, _ caller: Caller
    ) async throws(CloudError) -> Set<String> {
        try await storage.read { rows throws(CloudError) in
            guard let access = try existing(id, caller, rows), access.zone.sharing != .nothing else { return [] }
            var found: Set<String> = []
            for name in names {
                guard let share = try rows.share(named: name, in: access.zone.id), access.sees(share.id) else { continue }
                found.insert(name)
            }
            return found
        }
    }

    package func changeShare(
        _ id: CloudRecordID, _ changes: [ShareChange], _ caller: Caller
    ) async throws(CloudError) -> CloudShare {
        try demandSharing(caller)
        return try await storage.write(owners: [try place(id.zone, caller).owner]) { rows throws(CloudError) in
            let (access, stored) = try found(id, caller, rows)
            return try share(try change(stored, changes, access, rows), caller, rows)
        }
    }

    /// Makes changes to a share, all of them or none.
    func change(
        _ stored: StoredShare, _ changes: [ShareChange], _ access: ShareAccess, _ rows: any CloudTransaction
    ) throws(CloudError) -> StoredShare {
        guard changes.count <= limits.operationsPerRequest else {
            throw CloudError(
                .limitExceeded, "a call makes \(limits.operationsPerRequest) changes at the most, not \(changes.count). Halve it")
        }
        var editing = try self.editing(stored, access, rows)
        let before = editing.count
        for change in changes { try editing.apply(change) }
        guard editing.count <= max(before, limits.participantsPerShare) else { throw tooMany }
        return try write(editing, access.zone, rows)
    }

    /// - Parameter tag: The change tag that the share must still have; `nil` for any.
    package func deleteShare(_ id: CloudRecordID, ifTag tag: String? = nil, _ caller: Caller) async throws(CloudError) {
        try demandSharing(caller)
        try await storage.write(owners: [try place(id.zone, caller).owner]) { rows throws(CloudError) in
            let (access, stored) = try found(id, caller, rows)
            try checkTag(tag, of: stored, access, rows)
            var editing = try self.editing(stored, access, rows)
            if caller.scope == .private {
                try editing.demand(.stopSharing)
                var zone = access.zone
                try end(stored, in: &zone, caller, rows)
                _ = try rows.save(zone)
            } else {
                try editing.demand(.leave)
                editing.leave()
                _ = try write(editing, access.zone, rows)
            }
        }
    }

    package func audit(in id: CloudZoneID, after time: Int64?, _ caller: Caller) async throws(CloudError) -> [ShareAuditEntry] {
        try demandSharing(caller)
        return try await storage.read { rows throws(CloudError) in
            guard let access = try existing(id, caller, rows) else { return [] }
            let zoneID = self.id(of: access.zone, caller)
            var administered: Set<StoredShare.ID>?
            if access.isShared {
                let parts = access.parts.filter { $0.participant.role == .administrator }
                guard !parts.isEmpty else { throw CloudError(access.decide(.invite, share: access.parts[0].share.id)) }
                administered = Set(parts.map(\.share.id))
            }
            var (told, names): ([ShareAuditEntry], [StoredShare.ID: String]) = ([], [:])
            for entry in try rows.auditEntries(in: access.zone.id, after: time ?? .min)
            where administered?.contains(entry.share) ?? true {
                if names[entry.share] == nil { names[entry.share] = try rows.share(entry.share)?.name }
                guard let name = names[entry.share] else { continue }
                told.append(
                    ShareAuditEntry(
                        time: entry.time, userRecordName: entry.user, share: CloudRecordID(name, in: zoneID), kind: entry.kind,
                        subject: entry.subject, value: entry.value))
            }
            return told
        }
    }

    // Shared by the functions above

    func demandSharing(_ caller: Caller) throws(CloudError) {
        guard caller.scope != .public else {
            throw CloudError(SharePolicy.decide(.share, on: .init(scope: .public), by: .stranger))
        }
    }

    private var tooMany: CloudError {
        CloudError(.limitExceeded, "a share has \(limits.participantsPerShare) participants at the most")
    }

    func newID() -> String { UUID(random(16)).uuidString.lowercased() }

    /// Returns a share that the caller sees, with the caller's access to its zone.
    func found(
        _ id: CloudRecordID, _ caller: Caller, _ rows: any CloudTransaction
    ) throws(CloudError) -> (ShareAccess, StoredShare) {
        guard let access = try existing(id.zone, caller, rows),
            let share = try rows.share(named: id.recordName, in: access.zone.id), access.sees(share.id)
        else { throw Self.noRecord }
        return (access, share)
    }

    func editing(
        _ share: StoredShare, _ access: ShareAccess, _ rows: any CloudTransaction
    ) throws(CloudError) -> ShareEditing {
        let actor = access.isShared ? access.part(of: share.id)?.actor ?? .stranger : .owner
        return ShareEditing(
            share, try rows.participants(of: share.id), scope: access.caller.scope, caller: access.caller, actor: actor,
            newID: newID)
    }

    /// Writes a changed share with its participants.
    func write(
        _ editing: ShareEditing, _ zone: StoredZone, _ rows: any CloudTransaction
    ) throws(CloudError) -> StoredShare {
        guard editing.isChanged else { return editing.share }
        let change = try nextChange(of: zone.place.owner, rows)
        let there = try rows.participants(of: editing.share.id)
        let before = Dictionary(there.map { ($0.id, $0) }) { first, _ in first }
        guard let old = try rows.share(editing.share.id) else { throw Self.noRecord }
        var revoked: [String] = []
        // Of the participants who were invited, never came and were removed, only the last are kept.
        let idle = editing.participants.filter { $0.acceptanceStatus == .removed && $0.user == nil && $0.began == 0 }
        let forgotten = Set((editing.dropped + idle.dropLast(limits.participantsPerShare)).map(\.id))
        for id in forgotten.sorted() {
            revoked += try rows.removeLinks(to: old.id, participant: id)
            try rows.removeParticipant(id, of: old.id)
        }
        for var participant in editing.participants where !forgotten.contains(participant.id) {
            if participant.invited == ShareEditing.thisChange { participant.invited = change }
            if participant.expelled == ShareEditing.thisChange { participant.expelled = change }
            let saw = before[participant.id].map { ShareAccess.Part(share: old, participant: $0).isSeen } ?? false
            let sees = ShareAccess.Part(share: editing.share, participant: participant).isSeen
            if sees && !saw { participant.began = change }
            if saw && !sees { participant.ended = change }
            guard participant != before[participant.id] else { continue }
            if participant.acceptanceStatus == .removed {
                revoked += try rows.removeLinks(to: old.id, participant: participant.id)
            }
            try rows.save(participant)
        }
        var (share, zone) = (editing.share, zone)
        try touch(&share, in: &zone, change, editing.caller, rows)
        for entry in editing.entries {
            try note(entry.kind, of: share, subject: entry.subject, value: entry.value, editing.caller, rows)
        }
        for link in revoked { try note(.linkRevoked, of: share, subject: link, editing.caller, rows) }
        return share
    }

    /// Gives the share's record and zone a new change, so that devices learn of it.
    private func touch(
        _ share: inout StoredShare, in zone: inout StoredZone, _ change: Int64, _ caller: Caller, _ rows: any CloudTransaction
    ) throws(CloudError) {
        let stamp = CloudRecord.Stamp(time: now(), userRecordName: caller.user)
        let there = try rows.records([share.name], in: zone.id)[share.name]
        let before = there.flatMap { $0.isDeleted ? nil : $0 }
        let record = StoredCloudRecord(
            zone: zone.id, name: share.name, type: CloudShare.recordType,
            fields: FieldCoding.encode(share.title.map { [CloudShare.titleField: .string($0)] } ?? [:]), parent: nil,
            changed: change, created: before?.created ?? stamp, modified: stamp, isDeleted: false, dependsOn: [], assets: [],
            indexed: [:])
        try rows.save([record])
        if share.root != nil {
            try rows.save(
                [CoveredRecord(share: share.id, name: share.name, type: record.type, change: change, isGone: false)], in: zone.id)
        }
        share.touched = change
        share = try rows.save(share)
        zone.changed = change
        zone = try rows.save(zone)
        try rows.addUsed(record.size - (there?.size ?? 0), by: zone.place.owner)
    }

    /// Ends a share for all participants. The caller saves the zone.
    func end(
        _ share: StoredShare, in zone: inout StoredZone, _ caller: Caller, _ rows: any CloudTransaction
    ) throws(CloudError) {
        let change = try nextChange(of: zone.place.owner, rows)
        for var participant in try rows.participants(of: share.id)
        where ShareAccess.Part(share: share, participant: participant).isSeen {
            participant.ended = change
            try rows.save(participant)
        }
        for link in try rows.removeLinks(to: share.id, participant: nil) {
            try note(.linkRevoked, of: share, subject: link, caller, rows)
        }
        try rows.removeCovered(by: share.id)
        var over = share
        over.isEnded = true
        over.touched = change
        _ = try rows.save(over)
        if var record = try rows.records([share.name], in: zone.id)[share.name], !record.isDeleted {
            let before = record.size
            record.clear()
            try rows.addUsed(record.size - before, by: zone.place.owner)
            record.changed = change
            record.modified = CloudRecord.Stamp(time: now(), userRecordName: caller.user)
            try rows.save([record])
        }
        zone.changed = change
        // A damaged share may become whole again when its cloud is restored.
        if try rows.shares(in: zone.id).isEmpty, try rows.damagedShares(in: zone.id).isEmpty { zone.sharing = .nothing }
        try note(.stopped, of: share, caller, rows)
    }

    func note(
        _ kind: ShareAuditEntry.Kind, of share: StoredShare, subject: String? = nil, value: String? = nil, _ caller: Caller,
        _ rows: any CloudTransaction
    ) throws(CloudError) {
        // No two entries have the same time, so that a reader can continue after a time.
        let time = max(now(), (try rows.lastAuditTime(of: share.zone.owner) ?? .min) &+ 1)
        try rows.add(
            StoredAuditEntry(
                time: time, zone: share.zone, share: share.id, user: caller.user, kind: kind, subject: subject,
                value: value.map { String($0.prefix(100)) }))
    }

    // Sharing as a caller sees it

    /// Returns a share as the caller may see it.
    func share(_ stored: StoredShare, _ caller: Caller, _ rows: any CloudTransaction) throws(CloudError) -> CloudShare {
        guard let zone = try rows.zone(stored.zone) else { throw Self.noRecord }
        let all = try rows.participants(of: stored.id)
        let own =
            all.first { $0.user == caller.user && $0.acceptanceStatus == .accepted }
            ?? all.filter { $0.user == caller.user }.max { $0.began < $1.began }
        let manages =
            own.map {
                SharePolicy.decide(.invite, on: .init(scope: .shared, isShared: true), by: .participant(.init($0))).isAllowed
            } ?? false
        var share = CloudShare(
            CloudRecordID(stored.name, in: id(of: zone, caller)),
            coverage: stored.root.map { .hierarchy(root: $0) } ?? .zone, title: stored.title,
            publicPermission: stored.publicPermission,
            participants: all.filter { manages || $0.acceptanceStatus != .removed }.map {
                var told = ShareParticipant($0)
                // The addresses of other participants are shown only to callers who may invite.
                if !manages, $0.user != caller.user { told.identity.lookUp = nil }
                return told
            },
            currentUser: own.map(ShareParticipant.init))
        share.changeTag = try rows.records([stored.name], in: zone.id)[stored.name].map { tag($0.changed, of: zone.place.owner) }
        if manages { share.shortGUID = try knownShortGUID(stored, rows) }
        return share
    }
}

extension ShareParticipant {
    init(_ stored: StoredParticipant) {
        self.init(
            id: stored.id, identity: UserIdentity(userRecordName: stored.user, name: stored.name, lookUp: stored.lookUp),
            role: stored.role, permission: stored.permission, acceptanceStatus: stored.acceptanceStatus)
    }
}

extension UUID {
    /// Makes a random UUID (version 4) of 16 random bytes.
    init(_ random: [UInt8]) {
        var bytes = random
        bytes[6] = bytes[6] & 0x0f | 0x40
        bytes[8] = bytes[8] & 0x3f | 0x80
        self.init(
            uuid: (
                bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7], bytes[8], bytes[9], bytes[10],
                bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]
            ))
    }
}
