import TidemarkModel
import TidemarkStore

/// What one may do with the records of a zone.
struct ZoneStandings: Sendable {
    /// Those of no share's root.
    private let others: Standings
    /// By the names of the roots of hierarchies that are shared.
    private let roots: [String: Standings]

    private struct Standings {
        let saved, unsaved: RecordStanding

        init(scope: DatabaseScope, zone: ZoneName, share: Share?, root: String? = nil) {
            saved = RecordStanding(scope: scope, zone: zone, share: share, root: root, isUnsaved: false)
            unsaved = RecordStanding(scope: scope, zone: zone, share: share, root: root, isUnsaved: true)
        }

        func callAsFunction(_ isUnsaved: Bool) -> RecordStanding { isUnsaved ? unsaved : saved }
    }

    /// A record is covered by the share of its whole zone; else by that of which it is the root; else by the only one of the zone; else
    /// by that which allows the least.
    ///
    /// - Parameter shares: All of the zone.
    init(scope: DatabaseScope, zone: ZoneName, shares: [Share]) {
        if let whole = Self.weakest(shares.filter { $0.root == nil }) {
            others = Standings(scope: scope, zone: zone, share: whole)
            roots = [:]
            return
        }
        others = Standings(scope: scope, zone: zone, share: Self.weakest(shares))
        roots = Dictionary(grouping: shares) { $0.root ?? "" }.reduce(into: [:]) { roots, group in
            roots[group.key] = Standings(scope: scope, zone: zone, share: Self.weakest(group.value), root: group.key)
        }
    }

    /// That of several which allows the least; of equals, that of the least name.
    private static func weakest(_ shares: [Share]) -> Share? {
        func allowed(_ share: Share) -> Int {
            let operations: [SharePolicy.Operation] = [.read, .update, .delete]
            return operations.filter { SharePolicy.decide($0, on: share.target(), by: share.actor).isAllowed }.count
        }
        return shares.min { (allowed($0), $0.name) < (allowed($1), $1.name) }
    }

    /// What holds for all records of the zone, that no cloud has or that one has; `nil` where their names matter.
    func standing(isUnsaved: Bool) -> RecordStanding? { roots.isEmpty ? others(isUnsaved) : nil }

    func standing(of name: String, isUnsaved: Bool) -> RecordStanding { (roots[name] ?? others)(isUnsaved) }
}

extension ZoneStandings {
    init(_ shares: ZoneShares, scope: DatabaseScope) throws(StoreError) {
        self.init(scope: scope, zone: shares.zone, shares: try shares.shares(scope: scope))
    }
}
