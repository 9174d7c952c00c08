import Foundation
import GRDB
import TidemarkModel

/// What the cloud said last of the shares of a store: `tide_shares`.
struct StoredShares {
    private let db: Database

    init(_ db: Database) { self.db = db }

    /// - Parameter zone: One of the store's; `nil` for all.
    func fetchAll(scope: DatabaseScope, zone: Int64? = nil) throws -> [Share] {
        let sql = """
            SELECT s.name, s.root, s.title, s.public_permission, s.tag, s.participant, s.participants, z.owner, z.name
            FROM tide_shares s JOIN tide_zones z ON z.id = s.zone WHERE ?1 IS NULL OR s.zone = ?1 ORDER BY s.zone, s.name
            """
        return try Row.fetchAll(db.cachedStatement(sql: sql), arguments: [zone]).map { row in
            let (owner, participant, participants): (String, String, String) = (row[7], row[5], row[6])
            do {
                return Share(
                    scope: scope, zone: ZoneName(row[8], owner: owner.isEmpty ? nil : owner), name: row[0], root: row[1],
                    title: row[2], publicPermission: .init(rawValue: row[3]) ?? .unknown,
                    participants: try Self.decode([ShareParticipant].self, participants),
                    currentUser: participant.isEmpty ? nil : try Self.decode(ShareParticipant.self, participant),
                    changeTag: row[4])
            } catch is DecodingError {
                throw StoreError(.corrupt, "tide_shares has participants of \(row[0] as DatabaseValue) that cannot be any")
            }
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

    func replace(_ shares: [Share], zone: Int64) throws {
        try forget(zone: zone)
        for share in shares { try store(share, zone: zone) }
    }

    /// It has ended.
    func remove(_ name: String, zone: Int64) throws {
        try db.cachedStatement(sql: "DELETE FROM tide_shares WHERE zone = ? AND name = ?").execute(arguments: [zone, name])
    }

    func forget(zone: Int64) throws {
        try db.cachedStatement(sql: "DELETE FROM tide_shares WHERE zone = ?").execute(arguments: [zone])
    }

    private static func encode(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    private static func decode<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> Value {
        try JSONDecoder().decode(type, from: Data(text.utf8))
    }
}

extension StoreReader {
    /// The shares that the store's zones are in, as the cloud said them last.
    public func shares() throws(StoreError) -> [Share] {
        try read("read the shares") { try StoredShares($0).fetchAll(scope: scope) }
    }
}

extension RecordStore {
    /// The shares that the store's zones are in, as the cloud said them last.
    package func shares() throws(StoreError) -> [Share] {
        try connection.read("read the shares") { try StoredShares($0).fetchAll(scope: scope) }
    }

    /// Notes what the cloud says of the shares of a zone; those that are not among them have ended.
    package func store(_ shares: [Share], of zone: Int64) throws(StoreError) {
        try connection.locked("note what is shared") { db in
            try StoredShares(db).replace(shares, zone: zone)
            return ((), .commit)
        }
    }
}
