import CTideCore
import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// Digests of rows: each is written with its row, and compared when the row is read.
extension PostgresCloudTransaction: DamageTransaction {
    func noteDamage(_ damage: StoredCloudRecord.Damage, of owner: String, at change: Int64) throws(CloudError) {
        try run {
            // The row's own number is no key: the index by changes finds it.
            let sql = """
                UPDATE tidemark_records SET damaged = $3, changed = $4 WHERE container = $1 AND owner = $2 AND zone IN
                    (SELECT z.number FROM tidemark_zones z WHERE z.container = $1 AND z.owner = $2)
                AND changed = $3 AND id = $5 AND damaged IS NULL
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

/// Gathers a row's values as bytes, as every storage of a cloud does. Texts are given as the bytes that the row has.
private struct RowBytes {
    private var output = ByteOutput()

    /// - Parameter table: So that a row of one table is not one of another.
    init(_ table: UInt8) {
        output.reserve(256)
        output.add(table)
    }

    mutating func add(_ number: Int64?) {
        guard let number else { return output.add(0 as UInt8) }
        output.add(1 as UInt8)
        output.add(signed: number)
    }

    mutating func add(text: Data?) {
        guard let text else { return output.add(0 as UInt8) }
        output.add(2 as UInt8)
        output.add(text)
    }

    mutating func add(_ data: Data) {
        output.add(3 as UInt8)
        output.add(data)
    }

    /// XXH3-128.
    var digest: Data {
        let bytes = output.bytes
        var digest = Data(count: 16)
        digest.withUnsafeMutableBytes { digest in
            tide_digest_bytes(bytes, bytes.count, digest.bindMemory(to: UInt8.self).baseAddress!)
        }
        return digest
    }
}

extension StoredCloudRecord {
    private static func digest(_ numbers: [Int64], _ texts: [Data?], _ fields: Data) -> Data {
        var bytes = RowBytes(1)
        for number in numbers { bytes.add(number) }
        for text in texts { bytes.add(text: text) }
        bytes.add(fields)
        return bytes.digest
    }

    /// Reads the columns ``PostgresCloudTransaction/recordColumns``.
    ///
    /// - Parameters:
    ///   - owner: The owner's name.
    ///   - first: The first of the columns.
    init(_ row: PostgresRow, _ owner: String, from first: Int = 0) throws(PostgresError) {
        let (zone, changed): (Int64, Int64) = (try row.value(first), try row.value(first + 5))
        let (name, type, fields): (Data, Data, Data) =
            (try row.value(first + 1), try row.value(first + 2), try row.value(first + 3))
        let parent: Data? = try row.value(first + 4)
        let (created, createdBy): (Int64, Data) = (try row.value(first + 6), try row.value(first + 7))
        let (modified, modifiedBy): (Int64, Data) = (try row.value(first + 8), try row.value(first + 9))
        let isDeleted: Bool = try row.value(first + 10)
        func text(_ bytes: Data) -> String { String(decoding: bytes, as: UTF8.self) }
        self.init(
            zone: .init(owner: owner, number: zone), name: text(name), type: text(type), fields: fields,
            parent: parent.map(text), changed: changed, created: .init(time: created, userRecordName: text(createdBy)),
            modified: .init(time: modified, userRecordName: text(modifiedBy)), isDeleted: isDeleted, dependsOn: [], assets: [],
            indexed: [:])
        let digest = Self.digest(
            [zone, changed, created, modified, isDeleted ? 1 : 0], [name, type, parent, createdBy, modifiedBy], fields)
        let noted: Int64? = try row.value(first + 12)
        if let noted {
            damage = Damage(row: try row.value(first + 13), change: noted, isNoted: true)
        } else if try row.value(first + 11, as: Data.self) != digest {
            damage = Damage(row: try row.value(first + 13), change: changed, isNoted: false)
        }
    }

    var rowDigest: Data {
        Self.digest(
            [zone.number, changed, created.time, modified.time, isDeleted ? 1 : 0],
            [name.key, type.key, parent?.key, created.userRecordName.key, modified.userRecordName.key], fields)
    }
}

extension StoredZone {
    /// Reads the columns `number`, `scope`, `owner`, `name`, `state`, `made`, `changed`, `sharing`.
    init(_ row: PostgresRow) throws(PostgresError) {
        func code(_ column: Int) throws(PostgresError) -> Int { Int(try row.value(column, as: Int64.self)) }
        self.init(
            number: try row.value(0),
            place: Place(scope: DatabaseScope(rawValue: try code(1)) ?? .private, owner: try row.text(2), name: try row.text(3)),
            state: State(rawValue: try code(4)) ?? .present, made: try row.value(5), changed: try row.value(6),
            sharing: Sharing(rawValue: try code(7)) ?? .nothing)
    }

    /// Reads these columns, and the column `digest`.
    ///
    /// - Throws: `CloudError` `recordDamaged`.
    init(checked row: PostgresRow) throws {
        try self.init(row)
        let numbers: [Int64] = [
            try row.value(1), try row.value(4), try row.value(5), try row.value(6), try row.value(7),
        ]
        guard try row.value(8) == Self.digest(numbers, [try row.value(2), try row.value(3)]) else {
            throw CloudError(
                .recordDamaged,
                "what the cloud has of the zone '\(place.name.prefix(255))' is damaged; restore the cloud from a backup")
        }
    }

    private static func digest(_ numbers: [Int64], _ texts: [Data]) -> Data {
        var bytes = RowBytes(2)
        for number in numbers { bytes.add(number) }
        for text in texts { bytes.add(text: text) }
        return bytes.digest
    }

    var rowDigest: Data {
        Self.digest(
            [Int64(place.scope.rawValue), Int64(state.rawValue), made, changed, Int64(sharing.rawValue)],
            [place.owner.key, place.name.key])
    }
}

extension StoredShare {
    /// Reads the columns ``PostgresCloudTransaction/shareColumns``, and says whether the row is what was written.
    ///
    /// - Parameter owner: The owner's name.
    static func read(_ row: PostgresRow, _ owner: String) throws(PostgresError) -> (share: StoredShare, isWhole: Bool) {
        let share = StoredShare(
            number: try row.value(0), zone: .init(owner: owner, number: try row.value(1)), name: try row.text(2),
            root: try row.optionalText(3), title: try row.optionalText(4),
            publicPermission: .init(rawValue: Int(try row.value(5, as: Int64.self))) ?? .none, touched: try row.value(6),
            isEnded: try row.value(7))
        let digest = Self.digest(
            [try row.value(1), try row.value(5), try row.value(6), share.isEnded ? 1 : 0],
            [try row.value(2), try row.value(3), try row.value(4)])
        return (share, try row.value(8) == digest)
    }

    /// - Throws: `CloudError` `recordDamaged`.
    static func checked(_ row: PostgresRow, _ owner: String) throws -> StoredShare {
        let (share, isWhole) = try read(row, owner)
        guard isWhole else { throw CloudEngine.damagedShare(share.name) }
        return share
    }

    private static func digest(_ numbers: [Int64], _ texts: [Data?]) -> Data {
        var bytes = RowBytes(3)
        for number in numbers { bytes.add(number) }
        for text in texts { bytes.add(text: text) }
        return bytes.digest
    }

    var rowDigest: Data {
        Self.digest(
            [zone.number, Int64(publicPermission.rawValue), touched, isEnded ? 1 : 0], [name.key, root?.key, title?.key])
    }
}

extension StoredParticipant {
    /// Reads the columns ``PostgresCloudTransaction/participantColumns``, and says whether the row is what was written.
    ///
    /// - Parameter owner: The owner's name.
    static func read(
        _ row: PostgresRow, _ owner: String
    ) throws(PostgresError) -> (participant: StoredParticipant, isWhole: Bool) {
        func code(_ column: Int) throws(PostgresError) -> Int { Int(try row.value(column, as: Int64.self)) }
        let (name, kind): (Data?, Int64?) = (try row.value(4), try row.value(5))
        let participant = StoredParticipant(
            id: try row.text(0), share: .init(owner: owner, number: try row.value(1)),
            zone: .init(owner: owner, number: try row.value(2)), user: try row.optionalText(3),
            name: name.flatMap { try? JSONDecoder().decode(PersonName.self, from: $0) },
            lookUp: UserLookUp(code: kind, value: try row.optionalText(6)), role: .init(rawValue: try code(7)) ?? .unknown,
            permission: .init(rawValue: try code(8)) ?? .unknown, acceptanceStatus: .init(rawValue: try code(9)) ?? .unknown,
            began: try row.value(10), ended: try row.value(11), invited: try row.value(12), expelled: try row.value(13))
        let digest = Self.digest(
            [
                try row.value(1), try row.value(2), try row.value(7), try row.value(8), try row.value(9), try row.value(10),
                try row.value(11), try row.value(12), try row.value(13),
            ], kind, [try row.value(0), try row.value(3), name, try row.value(6)])
        return (participant, try row.value(14) == digest)
    }

    /// - Throws: `CloudError` `recordDamaged`.
    static func checked(_ row: PostgresRow, _ owner: String) throws -> StoredParticipant {
        let (participant, isWhole) = try read(row, owner)
        guard isWhole else {
            throw CloudError(
                .recordDamaged, "what the cloud has of a participant of a share is damaged; restore the cloud from a backup")
        }
        return participant
    }

    private static func digest(_ numbers: [Int64], _ kind: Int64?, _ texts: [Data?]) -> Data {
        var bytes = RowBytes(4)
        for number in numbers { bytes.add(number) }
        bytes.add(kind)
        for text in texts { bytes.add(text: text) }
        return bytes.digest
    }

    /// - Parameter name: The person's name, as it is written.
    func rowDigest(name: Data?) -> Data {
        let codes = [role.rawValue, permission.rawValue, acceptanceStatus.rawValue].map { Int64($0) }
        return Self.digest(
            [share.number, zone.number] + codes + [began, ended, invited, expelled], lookUp?.code,
            [id.key, user?.key, name, lookUp?.value.key])
    }
}
