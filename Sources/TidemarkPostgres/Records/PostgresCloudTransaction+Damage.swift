import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// Digests of rows. Each is written with its row, and compared when the row is read.
extension PostgresCloudTransaction: DamageTransaction {
    func noteDamage(_ damage: StoredCloudRecord.Damage, of owner: String, at change: Int64) throws(CloudError) {
        try run {
            // The row's own number is no key: the index by changes finds it.
            let sql = """
                UPDATE tidemark_records SET damaged = $3, changed = $4 WHERE container = $1 AND owner = $2 AND zone IN
                    (SELECT z.number FROM tidemark_zones z WHERE z.container = $1 AND z.owner = $2)
                AND changed = $3 AND \(PostgresCloudTables.hasChange) AND id = $5 AND damaged IS NULL
                """
            try db.enqueue(sql, container, key(writing: owner), damage.change, change, damage.row)
        }
    }

    func damagedRecords() throws(CloudError) -> [StoredCloudRecord] {
        try run {
            var found: [StoredCloudRecord] = []
            try forEachPage(of: Self.recordColumns) { rows in
                for row in rows {
                    let record = try StoredCloudRecord(row, try row.text(0), from: 3)
                    if record.damage != nil { found.append(record) }
                }
            }
            return found
        }
    }

    func noteDamage(ofCovered name: String, in zone: StoredZone.ID, at change: Int64) throws(CloudError) {
        try run {
            let sql = """
                UPDATE tidemark_covered SET change = $5 WHERE container = $1 AND owner = $2 AND zone = $3 AND name = $4
                    AND NOT is_gone RETURNING share
                """
            let row = try db.query(sql, container, key(writing: zone.owner), zone.number, name.key, change).first
            guard let row, var stored = try share(StoredShare.ID(owner: zone.owner, number: try row.value(0))) else { return }
            stored.touched = change
            _ = try save(stored)
        }
    }

    func damagedShares(in zone: StoredZone.ID) throws(CloudError) -> [String] {
        try run {
            let sql = """
                SELECT \(Self.shareColumns) FROM tidemark_shares WHERE container = $1 AND owner = $2 AND zone = $3 ORDER BY number
                """
            return try db.query(sql, container, zone.owner.key, zone.number).compactMap {
                let (share, isWhole) = try StoredShare.read($0, zone.owner)
                return isWhole ? nil : share.name
            }
        }
    }
}

extension StoredCloudRecord {
    /// Reads the columns ``PostgresCloudTransaction/recordColumns``.
    ///
    /// - Parameters:
    ///   - owner: The owner's name.
    ///   - first: The first of the columns.
    init(_ row: PostgresRow, _ owner: String, from first: Int = 0) throws(PostgresError) {
        self.init(
            zone: .init(owner: owner, number: try row.value(first)), name: try row.text(first + 1), type: try row.text(first + 2),
            fields: try row.value(first + 3), parent: try row.optionalText(first + 4), changed: try row.value(first + 5),
            created: .init(time: try row.value(first + 6), userRecordName: try row.text(first + 7)),
            modified: .init(time: try row.value(first + 8), userRecordName: try row.text(first + 9)),
            isDeleted: try row.value(first + 10), dependsOn: [], assets: [], indexed: [:])
        let noted: Int64? = try row.value(first + 12)
        if let noted {
            damage = Damage(row: try row.value(first + 13), change: noted, isNoted: true)
        } else if try row.value(first + 11, as: Data.self) != rowDigest {
            damage = Damage(row: try row.value(first + 13), change: changed, isNoted: false)
        }
    }

    var rowDigest: Data { rowDigest(.whole) }
}

extension StoredZone {
    /// Reads the columns `number`, `scope`, `owner`, `name`, `state`, `made`, `changed`, `sharing`.
    init(_ row: PostgresRow) throws(PostgresError) {
        self.init(
            number: try row.value(0), scope: try row.value(1), owner: try row.text(2), name: try row.text(3),
            state: try row.value(4), made: try row.value(5), changed: try row.value(6), sharing: try row.value(7))
    }

    /// Reads the columns of ``init(_:)`` and the column `digest`, and compares the digest.
    ///
    /// - Throws: `CloudError` `recordDamaged`.
    init(checked row: PostgresRow) throws {
        try self.init(row)
        guard try row.value(8) == rowDigest else { throw CloudEngine.damagedZone(place.name) }
    }

    var rowDigest: Data { rowDigest(.whole) }
}

extension StoredShare {
    /// Reads the columns ``PostgresCloudTransaction/shareColumns``, and says whether the row is what was written.
    ///
    /// - Parameter owner: The owner's name.
    static func read(_ row: PostgresRow, _ owner: String) throws(PostgresError) -> (share: StoredShare, isWhole: Bool) {
        let share = StoredShare(
            number: try row.value(0), zone: .init(owner: owner, number: try row.value(1)), name: try row.text(2),
            root: try row.optionalText(3), title: try row.optionalText(4), publicPermission: try row.value(5, as: Int64.self),
            touched: try row.value(6), isEnded: try row.value(7))
        return (share, try row.value(8) == share.rowDigest)
    }

    /// - Throws: `CloudError` `recordDamaged`.
    static func checked(_ row: PostgresRow, _ owner: String) throws -> StoredShare {
        let (share, isWhole) = try read(row, owner)
        guard isWhole else { throw CloudEngine.damagedShare(share.name) }
        return share
    }

    var rowDigest: Data { rowDigest(.whole) }
}

extension StoredParticipant {
    /// Reads the columns ``PostgresCloudTransaction/participantColumns``, and says whether the row is what was written.
    ///
    /// - Parameter owner: The owner's name.
    static func read(
        _ row: PostgresRow, _ owner: String
    ) throws(PostgresError) -> (participant: StoredParticipant, isWhole: Bool) {
        let name = try row.optionalText(4)
        let participant = StoredParticipant(
            id: try row.text(0), share: try row.value(1, as: Int64.self), zone: .init(owner: owner, number: try row.value(2)),
            user: try row.optionalText(3), name: name, address: (try row.value(5), try row.optionalText(6)),
            codes: .init(role: try row.value(7), permission: try row.value(8), acceptance: try row.value(9)),
            changes: .init(
                began: try row.value(10), ended: try row.value(11), invited: try row.value(12), expelled: try row.value(13)))
        return (participant, try row.value(14) == participant.rowDigest(.whole, name: name))
    }

    /// - Throws: `CloudError` `recordDamaged`.
    static func checked(_ row: PostgresRow, _ owner: String) throws -> StoredParticipant {
        let (participant, isWhole) = try read(row, owner)
        guard isWhole else { throw CloudEngine.damagedParticipant }
        return participant
    }
}
