package import TidemarkCloud
import TidemarkModel

/// A caller's access to a zone: which part of it they see, and what they may do there.
package struct ShareAccess {
    /// A caller's participation in one share.
    struct Part {
        let share: StoredShare
        let participant: StoredParticipant

        var actor: SharePolicy.Actor {
            .participant(participant.role, participant.permission, participant.acceptanceStatus)
        }

        /// Whether the caller sees the share's content.
        var isSeen: Bool { !share.isEnded && SharePolicy.decide(.read, on: target(), by: actor).isAllowed }

        func target(isRoot: Bool = false) -> SharePolicy.Target {
            SharePolicy.Target(scope: .shared, isShared: true, publicPermission: share.publicPermission, isRoot: isRoot)
        }
    }

    package let zone: StoredZone
    let caller: CloudEngine.Caller
    /// The participations by which the caller sees another owner's zone, in the order of the shares. Empty in a zone of the
    /// caller's own, and in the public database.
    let parts: [Part]
    /// The names of the shares of hierarchies, by the names of their roots.
    let roots: [String: String]

    init(_ zone: StoredZone, _ caller: CloudEngine.Caller, parts: [Part] = [], shares: [StoredShare] = []) {
        self.zone = zone
        self.caller = caller
        self.parts = parts
        var roots: [String: String] = [:]
        for share in shares { if let root = share.root { roots[root] = share.name } }
        self.roots = roots
    }

    /// Whether the zone belongs to another owner, who shares it.
    var isShared: Bool { caller.scope == .shared }

    /// Whether the caller sees only hierarchies of the zone.
    var isLimited: Bool { parts.first?.share.root != nil }

    /// The shares whose records the caller sees; `nil` for a caller who sees all records.
    var shares: [StoredShare.ID]? { isLimited ? parts.map(\.share.id) : nil }

    /// Returns the participation that covers a record of a share. Where the zone is shared as a whole, one covers all records.
    func part(of share: StoredShare.ID?) -> Part? {
        isLimited ? parts.first { $0.share.id == share } : parts.first
    }

    func sees(_ share: StoredShare.ID?) -> Bool { !isLimited || part(of: share) != nil }

    /// Returns whether a record is the root of a hierarchy that the caller sees. The root's parent is not shared.
    func isRoot(_ name: String) -> Bool { isLimited && parts.contains { $0.share.root == name } }

    /// Whether the caller may do something to a record.
    ///
    /// - Parameters:
    ///   - share: The share whose hierarchy has the record.
    ///   - isOwn: Whether the caller has made the record.
    func decide(
        _ operation: SharePolicy.Operation, share: StoredShare.ID? = nil, isRoot: Bool = false, isOwn: Bool = false
    ) -> ShareDecision {
        switch caller.scope {
        case .public:
            SharePolicy.decide(
                operation, on: .init(scope: .public, isOwn: isOwn || caller.isAdministrator), by: .stranger)
        case .private:
            SharePolicy.decide(
                operation, on: .init(scope: .private, isShared: zone.sharing != .nothing, isRoot: isRoot), by: .owner)
        case .shared:
            if let part = part(of: share) {
                SharePolicy.decide(operation, on: part.target(isRoot: isRoot), by: part.actor)
            } else {
                SharePolicy.decide(operation, on: .init(scope: .shared), by: .stranger)
            }
        }
    }

    /// - Throws: `permissionFailure` with the decision.
    func demand(
        _ operation: SharePolicy.Operation, share: StoredShare.ID? = nil, isRoot: Bool = false, isOwn: Bool = false
    ) throws(CloudError) {
        let decision = decide(operation, share: share, isRoot: isRoot, isOwn: isOwn)
        guard decision.isAllowed else { throw CloudError(decision) }
    }

    /// Checks that the caller may write somewhere in the zone.
    func demandWriting() throws(CloudError) {
        guard isShared, let first = parts.first else { return try demand(.create) }
        if !parts.contains(where: { decide(.create, share: $0.share.id).isAllowed }) {
            try demand(.create, share: first.share.id)
        }
    }

    // Feeds

    /// The number of the last change that the caller can see.
    var newest: Int64 { isLimited ? parts.map(\.share.touched).max() ?? 0 : zone.changed }

    /// Identifies the zone and the caller's view of it in tokens. Tokens expire when the caller comes to see more or less of the
    /// zone as a whole.
    var mark: String { "\(zone.place.owner) \(commonMark)" }

    /// The mark of tokens from the time when all owners shared one counter, and numbers of zones were unique.
    var commonMark: String {
        let own = "\(zone.number).\(zone.made)"
        return parts.isEmpty ? own : own + "." + parts.map { "\($0.share.number)-\($0.participant.began)" }.joined(separator: "+")
    }
}

extension CloudEngine {
    /// Returns the caller's access to a zone.
    ///
    /// - Throws: `zoneNotFound` where the caller sees nothing of the zone; `userDeletedZone`.
    func access(to id: CloudZoneID, _ caller: Caller, _ rows: any CloudTransaction) throws(CloudError) -> ShareAccess {
        let place = try place(id, caller)
        guard let zone = try rows.zone(place) else { throw Self.notFound(id) }
        guard caller.scope != .shared else {
            let parts = zone.state == .present && zone.sharing != .nothing ? try parts(in: zone, caller, rows) : []
            guard !parts.isEmpty else { throw Self.notFound(id) }
            return ShareAccess(zone, caller, parts: parts, shares: parts.map(\.share))
        }
        switch zone.state {
        case .present:
            return ShareAccess(zone, caller, shares: zone.sharing == .hierarchies ? try rows.shares(in: zone.id) : [])
        case .deleted: throw Self.notFound(id)
        case .purged: throw CloudError(.userDeletedZone, "Zone '\(id.zoneName)' was deleted by its owner, for good")
        }
    }

    private func parts(
        in zone: StoredZone, _ caller: Caller, _ rows: any CloudTransaction
    ) throws(CloudError) -> [ShareAccess.Part] {
        var parts: [ShareAccess.Part] = []
        for participant in try rows.participants(called: caller.user, in: zone.id) {
            guard let share = try Self.undamagedShare(participant.share, rows) else { continue }
            let part = ShareAccess.Part(share: share, participant: participant)
            if part.isSeen { parts.append(part) }
        }
        return parts.sorted { $0.share.number < $1.share.number }
    }

    /// As ``access(to:_:_:)``; makes a default zone that does not exist yet.
    func accessToWrite(_ id: CloudZoneID, _ caller: Caller, _ rows: any CloudTransaction) throws(CloudError) -> ShareAccess {
        if id.isDefault, caller.scope != .shared {
            let place = try place(id, caller)
            if try rows.zone(place) == nil {
                let change = try nextChange(of: place.owner, rows)
                return ShareAccess(try rows.save(StoredZone(place: place, made: change, changed: change)), caller)
            }
        }
        return try access(to: id, caller, rows)
    }

    /// As ``access(to:_:_:)``; `nil` for a default zone in which nothing was saved yet.
    package func existing(_ id: CloudZoneID, _ caller: Caller, _ rows: any CloudTransaction) throws(CloudError) -> ShareAccess? {
        if id.isDefault, caller.scope != .shared, try rows.zone(try place(id, caller)) == nil { return nil }
        return try access(to: id, caller, rows)
    }
}
