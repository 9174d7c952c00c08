import Foundation
package import GRDB
package import TidemarkModel
package import TidemarkSQLite

/// The stored shares of one zone, as far as permissions depend on them. Whether they have changed can be told without decoding
/// them again.
package struct ZoneShares: Hashable, Sendable {
    package let zone: ZoneName
    private let shares: [StoredShare]

    /// - Throws: ``StoreError`` `corrupt` when there is no such zone.
    init(_ db: Database, zone id: Int64, path: String) throws {
        guard let found = try StoreZone.fetch(db, id: id) else {
            throw StoreError(.corrupt, "\(path) has records in the zone \(id), and no such zone")
        }
        zone = found.name
        shares = try StoredShares(db).rows(zone: id)
    }

    /// The shares, in the order of their names. Of the participants they have the owner only.
    ///
    /// - Throws: ``StoreError`` `corrupt` when one has a form that it can't have.
    package func shares(scope: StoreScope) throws(StoreError) -> [Share] {
        var decoded: [Share] = []
        for share in shares { decoded.append(try share.share(scope: scope, zone: zone, .owner)) }
        return decoded
    }
}

/// Identifies the state of a store's records and shares, to tell whether it has changed since.
package struct SharingMark: Sendable {
    /// By zone, values that identify the state of its shares.
    package let shares: [ZoneName: [[DatabaseValue]]]
    /// The number of the last transaction in the history.
    package let transaction: Int64
}

extension RecordSource {
    /// The shares of a zone.
    package func shares(_ db: Database, ofZone zone: Int64) throws -> ZoneShares {
        try ZoneShares(db, zone: zone, path: container.store(scope).path)
    }

    /// The shares of a zone; `nil` where the zone is gone.
    package func shares(_ db: Database, ofZoneThatMayBeGone zone: Int64) throws -> ZoneShares? {
        try StoreZone.isThere(db, id: zone) ? shares(db, ofZone: zone) : nil
    }

    /// - Complexity: O(shares).
    package func sharingMark(_ db: Database) throws -> SharingMark {
        let columns = "name, tag, root, public_permission, role, permission, acceptance, participant"
        var shares: [Int64: [[DatabaseValue]]] = [:]
        for row in try Row.fetchAll(db.cachedStatement(sql: "SELECT zone, \(columns) FROM tide_shares ORDER BY zone, name")) {
            shares[try row.stored("zone", of: "tide_shares"), default: []].append(row.databaseValues.dropFirst().map { $0 })
        }
        var named: [ZoneName: [[DatabaseValue]]] = [:]
        for zone in try StoreZone.fetchAll(db) { named[zone.name] = shares[zone.id] ?? [] }
        let last = try Int64.fetchOne(db.cachedStatement(sql: "SELECT max(id) FROM tide_transactions")) ?? 0
        return SharingMark(shares: named, transaction: last)
    }
}
