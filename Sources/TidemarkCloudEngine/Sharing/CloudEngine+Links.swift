import Foundation
package import TidemarkCloud
package import TidemarkModel

/// The share that a link leads to, with its records.
package struct LinkedRecords: Sendable {
    package var metadata: ShareMetadata
    /// The record of the share.
    package var share: CloudRecord
    /// The root's record, where the caller asks for it and the share is of a hierarchy.
    package var root: CloudRecord?
}

/// What a link tells about its share to a person who has the link and no account.
package struct LinkPreview: Hashable, Sendable {
    /// The share's title, as its participants see it.
    package let title: String?
    /// The owner's name; `nil` where the owner has given none. An address is not told.
    package let owner: String?
    /// The role that the link gives; `nil` where that depends on the person.
    package let role: ShareParticipant.Role?
    /// The permission that the link gives; `nil` where that depends on the person.
    package let permission: ShareParticipant.Permission?
    /// Whether the link is for one person.
    package let isPersonal: Bool
}

/// Links into shares; see `SharingDatabase`.
extension CloudEngine {
    /// The most links of one share.
    private static let linksPerShare = 1_000
    /// Random bytes of a link.
    private static let tokenBytes = 24

    package func makeLink(
        to id: CloudRecordID, for participant: String?, _ caller: Caller
    ) async throws(CloudError) -> ShareLink {
        let token = Base64URL.text(random(Self.tokenBytes))
        return try await storage.write(owners: [try place(id.zone, caller).owner]) { rows throws(CloudError) in
            let (access, stored) = try found(id, caller, rows)
            let editing = try self.editing(stored, access, rows)
            let limited = editing.participants.first { $0.id == participant && $0.acceptanceStatus != .removed }
            try editing.demand(.invite, limited)
            if participant != nil, limited == nil { throw ShareEditing.noParticipant }
            guard try rows.linkCount(of: stored.id) < Self.linksPerShare else {
                throw CloudError(.limitExceeded, "a share has \(Self.linksPerShare) links at the most. Revoke some")
            }
            let link = ShareLink(id: newID(), token: token, participant: participant)
            try rows.add(StoredLink(digest: Self.digest(token), id: link.id, share: stored.id, participant: participant))
            try note(.linkMade, of: stored, subject: link.id, value: participant, caller, rows)
            return link
        }
    }

    /// Makes the share's short GUID unless it exists: the one link that stays the same, for callers who want to be told it again.
    func makeShortGUID(
        of stored: StoredShare, _ access: ShareAccess, _ rows: any CloudTransaction
    ) throws(CloudError) {
        try editing(stored, access, rows).demand(.invite)
        guard try knownShortGUID(stored, rows) == nil else { return }
        let link = StoredLink(digest: Self.digest(shortGUIDs(stored)[0]), id: newID(), share: stored.id, participant: nil)
        try rows.add(link)
        try note(.linkMade, of: stored, subject: link.id, access.caller, rows)
    }

    /// Returns the share's short GUID, if ``makeShortGUID(of:_:_:)`` has made it.
    func knownShortGUID(_ share: StoredShare, _ rows: any CloudTransaction) throws(CloudError) -> String? {
        for token in shortGUIDs(share) where try rows.link(Self.digest(token), of: share.zone.owner)?.share == share.id {
            return token
        }
        return nil
    }

    /// Returns the texts that a share's short GUID may have: the present form, then the form from when share numbers were unique
    /// across all owners.
    private func shortGUIDs(_ share: StoredShare) -> [String] {
        ["\(share.zone.owner) \(share.number)", "\(share.number)"].map { changeTagCipher.digest("short GUID of the share " + $0) }
    }

    package func revokeLink(_ link: String, to id: CloudRecordID, _ caller: Caller) async throws(CloudError) {
        try await storage.write(owners: [try place(id.zone, caller).owner]) { rows throws(CloudError) in
            let (access, stored) = try found(id, caller, rows)
            try editing(stored, access, rows).demand(.invite)
            guard try rows.removeLink(link, to: stored.id) else { throw CloudError(.unknownItem, "there is no such link") }
            try note(.linkRevoked, of: stored, subject: link, caller, rows)
        }
    }

    /// Returns the links to a share, sorted by their identifiers. The caller has to be one who may invite.
    package func links(to id: CloudRecordID, _ caller: Caller) async throws(CloudError) -> [StoredLink] {
        try demandSharing(caller)
        return try await storage.read { rows throws(CloudError) in
            let (access, stored) = try found(id, caller, rows)
            try editing(stored, access, rows).demand(.invite)
            return try rows.links(to: stored.id)
        }
    }

    package func resolveLink(_ token: String, _ caller: Caller) async throws(CloudError) -> ShareMetadata {
        try await storage.read { rows throws(CloudError) in
            try metadata(try opened(token, of: try owner(ofLink: token, rows), .accept, caller, rows), rows)
        }
    }

    /// Returns what a link tells about its share.
    ///
    /// - Throws: `CloudError` `unknownItem` for a link that is unknown or revoked, whose share has ended, or whose participant was removed:
    ///   all look alike, and take the same look-ups.
    package func linkPreview(_ token: String) async throws(CloudError) -> LinkPreview {
        try await storage.read { rows throws(CloudError) in
            let owner = try owner(ofLink: token, rows)
            let link = try rows.link(Self.digest(token), of: owner)
            let none = StoredShare.ID(owner: owner, number: 0)
            let share = try rows.share(link?.share ?? none)
            let participants = try rows.participants(of: share?.id ?? none)
            guard let link, let share, !share.isEnded else { throw Self.noLink }
            let name = participants.first { $0.role == .owner }?.name?.title
            let limited = participants.first { $0.id == link.participant && $0.acceptanceStatus != .removed }
            if link.participant != nil, limited == nil { throw Self.noLink }
            let isPublic = limited == nil && share.publicPermission != .none
            return LinkPreview(
                title: share.title, owner: name?.isEmpty == false ? name : nil,
                role: limited?.role ?? (isPublic ? .publicUser : nil),
                permission: limited?.permission ?? (isPublic ? share.publicPermission : nil), isPersonal: link.participant != nil)
        }
    }

    /// Returns the share that a link leads to, with its records; see
    /// `EmbeddedDatabase.resolveLinkedRecords(_:fetchesRoot:rootKeys:)`.
    package func linkedRecords(
        _ token: String, fetchesRoot: Bool, rootKeys: Set<String>?, _ caller: Caller
    ) async throws(CloudError) -> LinkedRecords {
        try await storage.read { rows throws(CloudError) in
            let editing = try opened(token, of: try owner(ofLink: token, rows), .accept, caller, rows)
            var metadata = try metadata(editing, rows)
            // A caller who came by the short GUID knows it already.
            if shortGUIDs(editing.share).contains(token) { metadata.share.shortGUID = token }
            let names = [editing.share.name] + (fetchesRoot ? [editing.share.root].compactMap(\.self) : [])
            let stored = try rows.records(names, in: editing.share.zone)
            let zoneID = metadata.share.id.zone
            func record(_ name: String, _ keys: Set<String>?) throws(CloudError) -> CloudRecord? {
                guard let stored = stored[name], !stored.isDeleted else { return nil }
                guard stored.damage == nil else { throw Self.damaged(name) }
                let (fields, encrypted) = try FieldCoding.decodeMarked(stored.fields, only: keys)
                var record = CloudRecord(
                    CloudRecordID(name, in: zoneID), type: stored.type, fields: fields,
                    changeTag: tag(stored.changed, of: stored.zone.owner))
                record.encryptedFields = encrypted
                record.created = stored.created
                record.modified = stored.modified
                return record
            }
            guard var shareRecord = try record(editing.share.name, nil) else { throw Self.noLink }
            shareRecord.share = metadata.share
            var root: CloudRecord?
            if fetchesRoot, let name = editing.share.root {
                root = try record(name, rootKeys)
                root?.shareName = editing.share.name
                root?.shortGUID = metadata.share.shortGUID
            }
            return LinkedRecords(metadata: metadata, share: shareRecord, root: root)
        }
    }

    package func acceptLink(_ token: String, _ caller: Caller) async throws(CloudError) -> ShareMetadata {
        let owner = try await owner(ofLink: token)
        return try await storage.write(owners: [owner, caller.user]) { rows throws(CloudError) in
            var editing = try opened(token, of: owner, .accept, caller, rows)
            guard editing.actor != .owner else { throw CloudError(Self.decision(.accept, editing)) }
            let before = editing.count
            editing.accept()
            guard editing.count <= max(before, limits.participantsPerShare) else {
                throw CloudError(.limitExceeded, "a share has \(limits.participantsPerShare) participants at the most")
            }
            return try metadata(try written(editing, rows), rows)
        }
    }

    package func declineLink(_ token: String, _ caller: Caller) async throws(CloudError) {
        let owner = try await owner(ofLink: token)
        try await storage.write(owners: [owner, caller.user]) { rows throws(CloudError) in
            var editing = try opened(token, of: owner, .decline, caller, rows)
            guard editing.actor != .owner else { throw CloudError(Self.decision(.decline, editing)) }
            editing.leave()
            _ = try written(editing, rows)
        }
    }

    private func written(_ editing: ShareEditing, _ rows: any CloudTransaction) throws(CloudError) -> ShareEditing {
        guard let zone = try rows.zone(editing.share.zone) else { throw Self.noLink }
        let share = try write(editing, zone, rows)
        // The participant finds the zone by this row, which is their own.
        if editing.isChanged, editing.caller.user != zone.place.owner {
            try rows.noteSharedZone(zone.id, for: editing.caller.user)
        }
        return ShareEditing(
            share, try rows.participants(of: share.id), scope: editing.scope, caller: editing.caller, actor: editing.actor,
            limit: editing.limit, newID: newID)
    }

    // Resolving a link

    /// Returns the owner of the share that a link leads to. A link never leads to another owner's share later.
    private func owner(ofLink token: String) async throws(CloudError) -> String {
        try await storage.read { rows throws(CloudError) in try owner(ofLink: token, rows) }
    }

    private func owner(ofLink token: String, _ rows: any CloudTransaction) throws(CloudError) -> String {
        try rows.ownerOfLink(Self.digest(token)) ?? ""
    }

    /// Returns the share behind a link, with the caller's role in it.
    ///
    /// An unknown link, a revoked link and a link for another person get the same answer, and take the same look-ups.
    private func opened(
        _ token: String, of owner: String, _ operation: SharePolicy.Operation, _ caller: Caller, _ rows: any CloudTransaction
    ) throws(CloudError) -> ShareEditing {
        let link = try rows.link(Self.digest(token), of: owner)
        let none = StoredShare.ID(owner: owner, number: 0)
        let share = try rows.share(link?.share ?? none)
        let participants = try rows.participants(of: share?.id ?? none)
        guard let link, let share, !share.isEnded else { throw Self.noLink }
        let isOwner = participants.contains { $0.role == .owner && $0.user == caller.user }
        var editing = ShareEditing(
            share, participants, scope: isOwner ? .private : .shared, caller: caller, actor: .owner, limit: link.participant,
            newID: newID)
        if isOwner { return editing }
        if link.participant != nil, editing.own == nil { throw Self.noLink }
        editing = ShareEditing(
            share, participants, scope: .shared, caller: caller, actor: editing.comer, limit: link.participant, newID: newID)
        guard Self.decision(operation, editing).isAllowed else { throw Self.noLink }
        return editing
    }

    private static func decision(_ operation: SharePolicy.Operation, _ editing: ShareEditing) -> ShareDecision {
        SharePolicy.decide(
            operation, on: .init(scope: editing.scope, isShared: true, publicPermission: editing.share.publicPermission),
            by: editing.actor)
    }

    private static let noLink = CloudError(.unknownItem, "the link leads nowhere: it was revoked, or is not for this account")

    private func metadata(_ editing: ShareEditing, _ rows: any CloudTransaction) throws(CloudError) -> ShareMetadata {
        var share = try self.share(editing.share, editing.caller, rows)
        let own = editing.own.map { editing.participants[$0] }
        // A person who came by an open link and left counts as anybody who has the link.
        let participant = own.flatMap { $0.acceptanceStatus == .removed ? nil : ShareParticipant($0) }
        share.currentUser = participant
        if participant?.acceptanceStatus != .accepted {
            share.participants = share.participants.filter { $0.role == .owner } + (participant.map { [$0] } ?? [])
        }
        guard let owner = share.owner else { throw Self.noLink }
        return ShareMetadata(
            share: share, root: editing.share.root, owner: owner.identity, participant: participant, scope: editing.scope)
    }

    // What gives access

    /// Returns what is stored of a link's token.
    private static func digest(_ token: String) -> Data { Data(AssetDigest.asset(of: Data(token.utf8)).digest.utf8) }
}
