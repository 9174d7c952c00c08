import Foundation
import GRDB
public import TidemarkModel
public import TidemarkSQLite

/// The shares of a store, as the cloud last reported them: `tide_shares`.
struct StoredShares {
    private let db: Database

    init(_ db: Database) { self.db = db }

    /// Returns rows in the order of their zones and names.
    ///
    /// - Parameter zone: The number of a zone of the store; `nil` for all zones.
    func rows(zone: Int64? = nil) throws -> [StoredShare] {
        let sql = """
            SELECT zone, name, root, title, tag, public_permission, participant, participants FROM tide_shares
            WHERE ?1 IS NULL OR zone = ?1 ORDER BY zone, name
            """
        return try Row.fetchAll(db.cachedStatement(sql: sql), arguments: [zone]).map { try StoredShare($0) }
    }

    /// - Parameters:
    ///   - zone: The number of a zone of the store; `nil` for all zones.
    ///   - participants: The participants that the shares are to have.
    func fetchAll(
        scope: StoreScope, zone: Int64? = nil, participants: StoredShare.Participants = .all
    ) throws -> [Share] {
        let rows = try rows(zone: zone)
        guard !rows.isEmpty else { return [] }
        let zones = try Dictionary(uniqueKeysWithValues: StoreZone.fetchAll(db).map { ($0.id, $0.name) })
        return try rows.map { row in
            guard let zone = zones[row.zone] else {
                throw StoreError(.corrupt, "tide_shares has \(row.name) in the zone \(row.zone), and there is no such zone")
            }
            return try row.share(scope: scope, zone: zone, participants)
        }
    }

    func store(_ share: Share, zone: Int64) throws {
        try db.cachedStatement(
            sql: """
                INSERT OR REPLACE INTO tide_shares (
                    zone, name, root, title, public_permission, tag, role, permission, acceptance, participant, participants)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """
        ).execute(arguments: [
            zone, share.name, share.root, share.title, share.publicPermission.rawValue, share.changeTag,
            share.currentUser?.role.rawValue ?? 0, share.currentUser?.permission.rawValue ?? 0,
            share.currentUser?.acceptanceStatus.rawValue ?? 0, try share.currentUser.map(Self.encode) ?? "",
            try Self.encode(share.participants),
        ])
    }

    /// Returns the tag of a share's state; `nil` where the share is not known.
    func tag(of name: String, zone: Int64) throws -> String? {
        let statement = try db.cachedStatement(sql: "SELECT coalesce(tag, '') FROM tide_shares WHERE zone = ? AND name = ?")
        return try String.fetchOne(statement, arguments: [zone, name])
    }

    /// Removes a share that has ended.
    ///
    /// - Returns: Whether it existed.
    func remove(_ name: String, zone: Int64) throws -> Bool {
        try db.cachedStatement(sql: "DELETE FROM tide_shares WHERE zone = ? AND name = ?").execute(arguments: [zone, name])
        return db.changesCount > 0
    }

    func forget(zone: Int64) throws {
        try db.cachedStatement(sql: "DELETE FROM tide_shares WHERE zone = ?").execute(arguments: [zone])
    }

    private static func encode(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }
}

/// A row of `tide_shares`, with its texts undecoded. A reader that has decoded it before sees whether it has changed, and need
/// not decode it again.
struct StoredShare: Hashable {
    /// The participants that a share is to have.
    enum Participants { case all, owner }

    let zone: Int64
    let name: String
    private let root, title, tag: String?
    private let publicPermission: Int
    /// JSON of the current user's participation, or empty.
    private let participant: String
    /// JSON of all participants.
    private let participants: String

    init(_ row: Row) throws {
        let table = "tide_shares"
        zone = try row.stored("zone", of: table)
        name = try row.stored("name", of: table)
        root = try row.stored("root", of: table)
        title = try row.stored("title", of: table)
        tag = try row.stored("tag", of: table)
        publicPermission = try row.stored("public_permission", of: table)
        participant = try row.stored("participant", of: table)
        participants = try row.stored("participants", of: table)
    }

    /// - Throws: ``StoreError`` `corrupt` when it has a form that it can't have.
    func share(scope: StoreScope, zone: ZoneName, _ wanted: Participants) throws(StoreError) -> Share {
        do {
            guard let permission = ShareParticipant.Permission(rawValue: publicPermission) else { throw Misshapen() }
            let (decoder, list) = (JSONDecoder(), Data(participants.utf8))
            let known =
                switch wanted {
                case .all: try decoder.decode([ShareParticipant].self, from: list)
                case .owner: try decoder.decode(Owner.self, from: list).participant.map { [$0] } ?? []
                }
            let user = participant.isEmpty ? nil : try decoder.decode(ShareParticipant.self, from: Data(participant.utf8))
            return Share(
                scope: scope, zone: zone, name: name, root: root, title: title, publicPermission: permission,
                participants: known, currentUser: user, changeTag: tag)
        } catch {
            throw StoreError(.corrupt, "the share \(name) of the zone \(zone.name) has a wrong form in tide_shares")
        }
    }

    private struct Misshapen: Error {}

    /// The owner in a list of participants, usually its first. The others are not decoded.
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

extension StoreReader {
    /// Returns the shares of the store's zones, as the cloud last reported them.
    public func shares() throws(StoreError) -> [Share] {
        try read("read the shares") { try StoredShares($0).fetchAll(scope: scope) }
    }
}

extension RecordStore {
    /// Returns the shares of the store's zones, as the cloud last reported them.
    package func shares() throws(StoreError) -> [Share] {
        try connection.read("read the shares") { try StoredShares($0).fetchAll(scope: scope) }
    }

    /// Records a share that the cloud has reported, unless another state was recorded since the cloud was asked.
    ///
    /// - Parameter known: The share as it was known when the cloud was asked.
    package func note(_ share: Share, insteadOf known: Share?) throws(StoreError) {
        let zone = try zone(share.zone)
        try changeShares(of: zone) { shares in
            guard try shares.tag(of: share.name, zone: zone.id) == known.map({ $0.changeTag ?? "" }) else { return }
            try shares.store(share, zone: zone.id)
        }
    }

    /// Removes a share that has ended.
    package func forget(_ share: Share) throws(StoreError) {
        guard let zone = try zones().first(where: { $0.name == share.zone }) else { return }
        try changeShares(of: zone) { shares in _ = try shares.remove(share.name, zone: zone.id) }
    }

    private func changeShares(of zone: StoreZone, _ change: (StoredShares) throws -> Void) throws(StoreError) {
        let last = try connection.locked("note what is shared") { db in
            // The zone may have been removed since it was looked up.
            guard try StoreZone.isThere(db, id: zone.id) else { return (Int64?.none, .commit) }
            try change(StoredShares(db))
            return (try Int64.fetchOne(db, sql: "SELECT max(id) FROM tide_transactions") ?? 0, .commit)
        }
        if let last { post(last, by: .program) }
    }
}
