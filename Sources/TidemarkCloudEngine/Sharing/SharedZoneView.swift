package import TidemarkCloud
import TidemarkModel

/// Another owner's zone, as seen by an account that takes part in it or took part.
struct SharedZoneView {
    let zone: StoredZone
    /// Whether the account sees any of the zone.
    let isPresent: Bool
    /// The last change of what the account sees, or of whether it sees anything.
    let changed: Int64
}

extension CloudEngine {
    /// Returns the zones that others share, or have shared, with the caller: by owner, and then by last change.
    func views(_ caller: Caller, _ rows: any CloudTransaction) throws(CloudError) -> [SharedZoneView] {
        var views: [SharedZoneView] = []
        for id in try rows.sharedZones(of: caller.user) {
            guard let zone = try Self.undamagedZone(id, rows) else { continue }
            var (isPresent, changed) = (false, 0 as Int64)
            for participant in try rows.participants(called: caller.user, in: id) {
                guard participant.role != .owner, let share = try Self.undamagedShare(participant.share, rows) else { continue }
                if zone.state == .present, ShareAccess.Part(share: share, participant: participant).isSeen {
                    isPresent = true
                    changed = max(changed, participant.began, share.root == nil ? zone.changed : share.touched)
                }
                changed = max(changed, participant.ended)
            }
            if changed > 0 { views.append(SharedZoneView(zone: zone, isPresent: isPresent, changed: changed)) }
        }
        return views.sorted {
            ($0.zone.place.owner, $0.changed, $0.zone.number) < ($1.zone.place.owner, $1.changed, $1.zone.number)
        }
    }

    /// Returns the zones that changed, appeared or disappeared in the caller's shared database.
    ///
    /// Each owner's changes have numbers of their own, so a token has a position for each owner.
    func sharedChanges(
        since positions: TokenPositions?, most: Int, _ incarnation: CloudIncarnation, _ caller: Caller,
        _ rows: any CloudTransaction
    ) throws(CloudError) -> Reading<DatabaseChanges> {
        let views = try views(caller, rows)
        var known: [String: Int64] = [:]
        for owner in Set(views.map(\.zone.place.owner)).sorted() {
            guard let position = positions?.position(of: owner) else { continue }
            if try isLost(position, rows) { return .lost(position, incarnation) }
            known[owner] = position.number
        }
        let found = views.filter { $0.changed > known[$0.zone.place.owner] ?? 0 }
        let page = found.prefix(most)
        func ids(_ isPresent: Bool) -> [CloudZoneID] {
            page.filter { $0.isPresent == isPresent }.map { id(of: $0.zone, caller) }
        }
        // Zones of one owner come in the order of their changes.
        for view in page { known[view.zone.place.owner] = view.changed }
        return .page(
            DatabaseChanges(
                changed: ids(true), deleted: positions == nil && incarnation.isFirst ? [] : ids(false), purged: [],
                token: try token(
                    known.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }, kind: "d", of: Self.mark(caller),
                    in: incarnation,
                    rows),
                moreComing: found.count > most, incarnation: name(of: incarnation)))
    }

    // A damaged row does not keep the caller from the others.

    static func undamagedShare(_ id: StoredShare.ID, _ rows: any CloudTransaction) throws(CloudError) -> StoredShare? {
        do throws(CloudError) {
            return try rows.share(id)
        } catch {
            guard error.code == .recordDamaged else { throw error }
            return nil
        }
    }

    private static func undamagedZone(_ id: StoredZone.ID, _ rows: any CloudTransaction) throws(CloudError) -> StoredZone? {
        do throws(CloudError) {
            return try rows.zone(id)
        } catch {
            guard error.code == .recordDamaged else { throw error }
            return nil
        }
    }

    /// Identifies a database in tokens.
    static func mark(_ caller: Caller) -> String {
        switch caller.scope {
        case .private: caller.user
        case .shared: "\(caller.user)+"
        case .public: ""
        }
    }

    /// Returns the last changes that the caller can see in the database.
    package func newest(_ caller: Caller) async throws(CloudError) -> NewestChanges {
        try await storage.read { rows throws(CloudError) in
            switch caller.scope {
            case .private: NewestChanges([caller.user: try rows.newestChange(of: caller.user)])
            case .public: NewestChanges(["": try rows.lastChange(of: "")])
            case .shared:
                NewestChanges(
                    Dictionary(try views(caller, rows).map { ($0.zone.place.owner, $0.changed) }, uniquingKeysWith: max))
            }
        }
    }
}

/// The number of the last change that a caller sees, for each owner. Each owner has a counter.
package struct NewestChanges: Hashable, Sendable {
    private let changes: [String: Int64]

    package init(_ changes: [String: Int64]) { self.changes = changes }

    /// Returns whether something has changed since others were the newest changes.
    package func isNewer(than other: NewestChanges) -> Bool { changes.contains { $0.value > other.changes[$0.key] ?? 0 } }
}
