package import TidemarkCloud
import TidemarkModel

/// A zone of somebody else's, as it is to an account that takes part, or took.
struct SharedZoneView {
    let zone: StoredZone
    /// Whether the account sees something of it.
    let isPresent: Bool
    /// The last change of what the account sees, or of whether it does.
    let changed: Int64
}

extension CloudEngine {
    /// The zones that others share, or have shared, with the caller.
    func views(_ caller: Caller, _ rows: any CloudTransaction) throws(CloudError) -> [SharedZoneView] {
        var zones: [Int64: (zone: StoredZone, isPresent: Bool, changed: Int64)] = [:]
        for participant in try rows.participants(called: caller.user, in: nil) {
            guard participant.role != .owner, let share = try Self.undamagedShare(participant.share, rows),
                let zone = try Self.undamagedZone(participant.zone, rows)
            else { continue }
            var (_, isPresent, changed) = zones[zone.id] ?? (zone, false, 0)
            if zone.state == .present, ShareAccess.Part(share: share, participant: participant).isSeen {
                isPresent = true
                changed = max(changed, participant.began, share.root == nil ? zone.changed : share.touched)
            }
            zones[zone.id] = (zone, isPresent, max(changed, participant.ended))
        }
        return zones.values.filter { $0.changed > 0 }.map { SharedZoneView(zone: $0, isPresent: $1, changed: $2) }
            .sorted { ($0.changed, $0.zone.id) < ($1.changed, $1.zone.id) }
    }

    /// The zones that changed, came or went in the caller's shared database.
    func sharedChanges(
        since: Int64?, most: Int, last: Int64, _ caller: Caller, _ rows: any CloudTransaction
    ) throws(CloudError) -> DatabaseChanges {
        let found = try views(caller, rows).filter { $0.changed > since ?? 0 }
        let page = found.prefix(most)
        func ids(_ isPresent: Bool) -> [CloudZoneID] {
            page.filter { $0.isPresent == isPresent }.map { id(of: $0.zone, caller) }
        }
        let moreComing = found.count > most
        let incarnation = try rows.incarnation()
        return DatabaseChanges(
            changed: ids(true), deleted: since == nil ? [] : ids(false), purged: [],
            token: try self.token(
                moreComing ? page.last!.changed : last, kind: "d", of: Self.mark(caller), in: incarnation, rows),
            moreComing: moreComing, incarnation: name(of: incarnation))
    }

    // What is damaged keeps nobody from the rest.

    static func undamagedShare(_ id: Int64, _ rows: any CloudTransaction) throws(CloudError) -> StoredShare? {
        do throws(CloudError) {
            return try rows.share(id)
        } catch {
            guard error.code == .recordDamaged else { throw error }
            return nil
        }
    }

    private static func undamagedZone(_ id: Int64, _ rows: any CloudTransaction) throws(CloudError) -> StoredZone? {
        do throws(CloudError) {
            return try rows.zone(id: id)
        } catch {
            guard error.code == .recordDamaged else { throw error }
            return nil
        }
    }

    /// Of which database a token is.
    static func mark(_ caller: Caller) -> String {
        switch caller.scope {
        case .private: caller.user
        case .shared: "\(caller.user)+"
        case .public: ""
        }
    }

    /// The last change of what the caller sees in their database.
    package func newest(_ caller: Caller) async throws(CloudError) -> Int64 {
        try await storage.read { rows throws(CloudError) in
            guard caller.scope == .shared else { return try rows.lastChange(caller.scope, owner: owner(caller)) }
            return try views(caller, rows).last?.changed ?? 0
        }
    }
}
