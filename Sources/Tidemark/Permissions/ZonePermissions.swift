import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// What the user may do with the records of a zone.
struct ZonePermissions: Sendable {
    /// The permissions for records that are not the root of a share.
    private let others: EffectivePermissions
    /// The permissions for the roots of shared hierarchies, by their names.
    private let roots: [String: EffectivePermissions]

    private struct EffectivePermissions {
        let saved, unsaved: EffectivePermission

        init(scope: StoreScope, zone: ZoneName, share: Share?, root: String? = nil) {
            saved = EffectivePermission(scope: scope, zone: zone, share: share, root: root, isUnsaved: false)
            unsaved = EffectivePermission(scope: scope, zone: zone, share: share, root: root, isUnsaved: true)
        }

        func callAsFunction(_ isUnsaved: Bool) -> EffectivePermission { isUnsaved ? unsaved : saved }
    }

    /// - Parameter shares: All shares of the zone.
    init(scope: StoreScope, zone: ZoneName, shares: [Share]) {
        let coverage = ShareCoverage(shares)
        others = EffectivePermissions(scope: scope, zone: zone, share: coverage.others)
        roots = coverage.roots.reduce(into: [:]) { roots, covered in
            roots[covered.key] = EffectivePermissions(scope: scope, zone: zone, share: covered.value, root: covered.key)
        }
    }

    /// The permission for all records of the zone that are saved in a cloud, or for all that are not; `nil` if it depends on
    /// their names.
    func common(isUnsaved: Bool) -> EffectivePermission? { roots.isEmpty ? others(isUnsaved) : nil }

    func permission(of name: String, isUnsaved: Bool) -> EffectivePermission { (roots[name] ?? others)(isUnsaved) }
}

extension ZonePermissions {
    init(_ shares: ZoneShares, scope: StoreScope) throws(StoreError) {
        self.init(scope: scope, zone: shares.zone, shares: try shares.shares(scope: scope))
    }
}
