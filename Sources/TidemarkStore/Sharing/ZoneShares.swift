import Foundation
import GRDB
import TidemarkModel

/// What a store has noted of one zone's shares, as far as it says who may do what to records.
///
/// The texts are kept as they lie there: whoever has read them before sees whether anything has changed, and need not read them again.
package struct ZoneShares: Hashable, Sendable {
    package let zone: ZoneName
    private let shares: [StoredShare]

    private struct StoredShare: Hashable {
        let name: String
        let root, title, tag: String?
        let publicPermission: Int
        /// JSON of the current user's part, or nothing.
        let participant: String
        /// JSON of all.
        let participants: String
    }

    /// - Throws: ``StoreError`` `corrupt` when there is no such zone.
    init(_ db: Database, zone id: Int64, path: String) throws {
        let table = "tide_zones"
        let statement = try db.cachedStatement(sql: "SELECT owner, name FROM tide_zones WHERE id = ?")
        guard let row = try Row.fetchOne(statement, arguments: [id]) else {
            throw StoreError(.corrupt, "\(path) has records in the zone \(id), and no such zone")
        }
        let owner: String = try row.stored("owner", of: table)
        zone = ZoneName(try row.stored("name", of: table), owner: owner.isEmpty ? nil : owner)
        let sql = """
            SELECT name, root, title, tag, public_permission, participant, participants FROM tide_shares WHERE zone = ? ORDER BY name
            """
        shares = try Row.fetchAll(db.cachedStatement(sql: sql), arguments: [id]).map { row in
            let table = "tide_shares"
            return StoredShare(
                name: try row.stored("name", of: table), root: try row.stored("root", of: table),
                title: try row.stored("title", of: table), tag: try row.stored("tag", of: table),
                publicPermission: try row.stored("public_permission", of: table),
                participant: try row.stored("participant", of: table), participants: try row.stored("participants", of: table))
        }
    }

    /// The shares, in the order of their names. Of the participants they have the owner only.
    ///
    /// - Throws: ``StoreError`` `corrupt` when one has a form that it can't have.
    package func shares(scope: DatabaseScope) throws(StoreError) -> [Share] {
        var decoded: [Share] = []
        for share in shares { decoded.append(try decode(share, scope: scope)) }
        return decoded
    }

    private func decode(_ share: StoredShare, scope: DatabaseScope) throws(StoreError) -> Share {
        do {
            guard let permission = ShareParticipant.Permission(rawValue: share.publicPermission) else { throw Misshapen() }
            let decoder = JSONDecoder()
            let owner = try decoder.decode(Owner.self, from: Data(share.participants.utf8)).participant
            let user =
                share.participant.isEmpty
                ? nil : try decoder.decode(ShareParticipant.self, from: Data(share.participant.utf8))
            return Share(
                scope: scope, zone: zone, name: share.name, root: share.root, title: share.title, publicPermission: permission,
                participants: owner.map { [$0] } ?? [], currentUser: user, changeTag: share.tag)
        } catch {
            throw StoreError(.corrupt, "the share \(share.name) of the zone \(zone.name) has a wrong form in tide_shares")
        }
    }

    private struct Misshapen: Error {}

    /// The owner in a list of participants, as a rule its first; the others are passed over.
    private struct Owner: Decodable {
        private(set) var participant: ShareParticipant?

        init(from decoder: any Decoder) throws {
            var all = try decoder.unkeyedContainer()
            while participant == nil, !all.isAtEnd {
                let next = try all.decode(ShareParticipant.self)
                if next.role == .owner { participant = next }
            }
        }
    }
}

/// What a store's records and shares were at one time, to tell whether something has changed since.
package struct SharingMark: Sendable {
    /// By zone, what distinguishes its shares from other states of them.
    package let shares: [ZoneName: [[DatabaseValue]]]
    /// The number of the last transaction in the history.
    package let transaction: Int64
}

extension RecordSource {
    /// The shares of a zone.
    package func shares(_ db: Database, ofZone zone: Int64) throws -> ZoneShares {
        try ZoneShares(db, zone: zone, path: container.store(scope).path)
    }

    /// - Complexity: O(shares).
    package func sharingMark(_ db: Database) throws -> SharingMark {
        let columns = "name, tag, root, public_permission, role, permission, acceptance, participant"
        var shares: [Int64: [[DatabaseValue]]] = [:]
        for row in try Row.fetchAll(db.cachedStatement(sql: "SELECT zone, \(columns) FROM tide_shares ORDER BY zone, name")) {
            shares[try row.stored("zone", of: "tide_shares"), default: []].append(row.databaseValues.dropFirst().map { $0 })
        }
        var named: [ZoneName: [[DatabaseValue]]] = [:]
        for row in try Row.fetchAll(db.cachedStatement(sql: "SELECT id, owner, name FROM tide_zones")) {
            let owner: String = try row.stored("owner", of: "tide_zones")
            let name: String = try row.stored("name", of: "tide_zones")
            let id: Int64 = try row.stored("id", of: "tide_zones")
            named[ZoneName(name, owner: owner.isEmpty ? nil : owner)] = shares[id] ?? []
        }
        let last = try Int64.fetchOne(db.cachedStatement(sql: "SELECT max(id) FROM tide_transactions")) ?? 0
        return SharingMark(shares: named, transaction: last)
    }
}
