import CTideCore
import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// Digests of rows: each is written with its row, and compared when the row is read. A value that has another type than its column can't be
/// read as what it was, and its row is damaged, too.
extension SQLiteCloudTransaction: DamageTransaction {
    func noteDamage(_ damage: StoredCloudRecord.Damage, at change: Int64) throws(CloudError) {
        try run {
            try statement("UPDATE records SET damaged = ?, changed = ? WHERE id = ? AND damaged IS NULL")
                .execute(arguments: [damage.change, change, damage.row])
        }
    }

    func damagedRecords() throws(CloudError) -> [StoredCloudRecord] {
        try run {
            var found: [StoredCloudRecord] = []
            let select = try statement("SELECT * FROM records NOT INDEXED")
            let rows = try Row.fetchCursor(select)
            while let row = try rows.next() {
                let record = StoredCloudRecord(row, of: select)
                if record.damage != nil { found.append(record) }
            }
            return found
        }
    }

    func noteDamage(ofCovered name: String, in zone: Int64, at change: Int64) throws(CloudError) {
        try run {
            let share = try Int64.fetchOne(
                statement("UPDATE covered SET change = ? WHERE zone = ? AND name = ? AND is_gone = 0 RETURNING share"),
                arguments: [change, zone, name])
            guard let share, let row = try Row.fetchOne(statement("SELECT * FROM shares WHERE id = ?"), arguments: [share])
            else { return }
            var stored = try StoredShare(checked: row)
            stored.touched = change
            _ = try save(stored)
        }
    }

    func damagedShares(in zone: Int64) throws(CloudError) -> [String] {
        try run {
            try Row.fetchAll(statement("SELECT * FROM shares WHERE zone = ? ORDER BY id"), arguments: [zone])
                .filter { (try? StoredShare(checked: $0)) == nil }.map { $0.text("name") }
        }
    }
}

/// Gathers a row's values as bytes.
struct RowBytes {
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

    mutating func add(_ text: String?) {
        guard let text else { return output.add(0 as UInt8) }
        output.add(2 as UInt8)
        // A column's text is read up to its first NUL.
        output.add(text.utf8.contains(0) ? String(decoding: text.utf8.prefix { $0 != 0 }, as: UTF8.self) : text)
    }

    mutating func add(_ data: Data) {
        output.add(3 as UInt8)
        output.add(data)
    }

    var digest: Data { BytesDigest.of(output.bytes) }
}

extension DatabaseValue {
    // What a column holds by its type, and nothing that is made of another type's value. Not inlined: Swift 6.3's optimiser ends with an error
    // ("non consuming use outside of the lifetime") where several of these are inlined into one function.

    @inline(never) fileprivate var integer: Int64? { if case .int64(let number) = storage { number } else { nil } }
    @inline(never) fileprivate var text: String? { if case .string(let text) = storage { text } else { nil } }
    @inline(never) fileprivate var bytes: Data? { if case .blob(let data) = storage { data } else { nil } }
}

extension Row {
    fileprivate func value(_ index: Int) -> DatabaseValue { self[index] }
    fileprivate func value(_ name: String) -> DatabaseValue { self[name] ?? .null }
    fileprivate func integer(_ name: String) -> Int64 { value(name).integer ?? 0 }
    fileprivate func text(_ name: String) -> String { value(name).text ?? "" }
}

extension Statement {
    /// Whether columns of the row at which it stands are what their digest was made of.
    fileprivate func hasDigest(table: UInt8, columns: [CInt], digest: CInt) -> Bool {
        tide_columns_have_digest(sqliteStatement, table, columns, columns.count, digest)
    }
}

extension StoredCloudRecord {
    private static let table: UInt8 = 1
    private static let digested: [CInt] = [1, 6, 7, 9, 11, 2, 3, 5, 8, 10, 4]

    /// The columns of `records`, in their order: `id`, `zone`, `name`, `type`, `fields`, `parent`, `changed`, `created`, `created_by`,
    /// `modified`, `modified_by`, `is_deleted`, `digest`, `damaged`.
    ///
    /// - Parameter statement: The one that stands at the row.
    init(_ row: Row, of statement: Statement) {
        let isIntact = statement.hasDigest(table: Self.table, columns: Self.digested, digest: 12)
        if isIntact {
            // Each value has the type with which it was written, and is read the short way.
            func integer(_ index: Int) -> Int64 { row[index] ?? 0 }
            func text(_ index: Int) -> String { row[index] ?? "" }
            self.init(
                zone: integer(1), name: text(2), type: text(3), fields: row[4] ?? Data(), parent: row[5], changed: integer(6),
                created: .init(time: integer(7), userRecordName: text(8)),
                modified: .init(time: integer(9), userRecordName: text(10)), isDeleted: integer(11) != 0, dependsOn: [],
                assets: [], indexed: [:])
        } else {
            func integer(_ index: Int) -> Int64 { row.value(index).integer ?? 0 }
            func text(_ index: Int) -> String { row.value(index).text ?? "" }
            self.init(
                zone: integer(1), name: text(2), type: text(3), fields: row.value(4).bytes ?? Data(), parent: row.value(5).text,
                changed: integer(6), created: .init(time: integer(7), userRecordName: text(8)),
                modified: .init(time: integer(9), userRecordName: text(10)), isDeleted: integer(11) != 0, dependsOn: [],
                assets: [], indexed: [:])
        }
        let noted = row.value(13)
        if !noted.isNull {
            damage = Damage(row: row.value(0).integer ?? 0, change: noted.integer ?? 0, isNoted: true)
        } else if !isIntact {
            damage = Damage(row: row.value(0).integer ?? 0, change: changed, isNoted: false)
        }
    }

    var rowDigest: Data {
        var bytes = RowBytes(Self.table)
        for number in [zone, changed, created.time, modified.time, isDeleted ? 1 : 0] { bytes.add(number) }
        for text in [name, type, parent, created.userRecordName, modified.userRecordName] { bytes.add(text) }
        bytes.add(fields)
        return bytes.digest
    }
}

extension StoredZone {
    private static let table: UInt8 = 2
    private static let digested: [CInt] = [1, 4, 5, 6, 7, 2, 3]

    /// The columns of `zones`, in their order: `id`, `scope`, `owner`, `name`, `state`, `made`, `changed`, `sharing`, `digest`.
    init(_ row: Row) {
        func integer(_ index: Int) -> Int64 { row.value(index).integer ?? 0 }
        func text(_ index: Int) -> String { row.value(index).text ?? "" }
        self.init(
            id: integer(0),
            place: Place(scope: DatabaseScope(rawValue: Int(integer(1))) ?? .private, owner: text(2), name: text(3)),
            state: State(rawValue: Int(integer(4))) ?? .present, made: integer(5), changed: integer(6),
            sharing: Sharing(rawValue: Int(integer(7))) ?? .nothing)
    }

    /// - Parameter statement: The one that stands at the row.
    /// - Throws: `CloudError` `recordDamaged`.
    init(checked row: Row, of statement: Statement) throws {
        self.init(row)
        guard statement.hasDigest(table: Self.table, columns: Self.digested, digest: 8) else {
            throw CloudError(
                .recordDamaged,
                "what the cloud has of the zone '\(place.name.prefix(255))' is damaged; restore the cloud from a backup")
        }
    }

    var rowDigest: Data {
        var bytes = RowBytes(Self.table)
        for number in [Int64(place.scope.rawValue), Int64(state.rawValue), made, changed, Int64(sharing.rawValue)] {
            bytes.add(number)
        }
        for text in [place.owner, place.name] { bytes.add(text) }
        return bytes.digest
    }
}

extension StoredShare {
    /// - Throws: `CloudError` `recordDamaged`.
    init(checked row: Row) throws {
        self.init(
            id: row.integer("id"), zone: row.integer("zone"), name: row.text("name"), root: row.value("root").text,
            title: row.value("title").text, publicPermission: .init(rawValue: Int(row.integer("public_permission"))) ?? .none,
            touched: row.integer("touched"), isEnded: row.integer("is_ended") != 0)
        guard row.value("digest").bytes == rowDigest else {
            throw CloudEngine.damagedShare(name)
        }
    }

    var rowDigest: Data {
        var bytes = RowBytes(3)
        for number in [zone, Int64(publicPermission.rawValue), touched, isEnded ? 1 : 0] { bytes.add(number) }
        for text in [name, root, title] { bytes.add(text) }
        return bytes.digest
    }
}

extension StoredParticipant {
    /// - Throws: `CloudError` `recordDamaged`.
    init(checked row: Row) throws {
        let name = row.value("name").text
        let kind = row.value("address_kind").integer
        self.init(
            id: row.text("id"), share: row.integer("share"), zone: row.integer("zone"), user: row.value("user").text,
            name: name.flatMap { try? JSONDecoder().decode(PersonName.self, from: Data($0.utf8)) },
            lookUp: UserLookUp(kind: kind.map { Int($0) }, value: row.value("address").text),
            role: .init(rawValue: Int(row.integer("role"))) ?? .unknown,
            permission: .init(rawValue: Int(row.integer("permission"))) ?? .unknown,
            acceptanceStatus: .init(rawValue: Int(row.integer("acceptance"))) ?? .unknown, began: row.integer("began"),
            ended: row.integer("ended"), invited: row.integer("invited"), expelled: row.integer("expelled"))
        guard row.value("digest").bytes == rowDigest(name: name) else {
            throw CloudError(
                .recordDamaged, "what the cloud has of a participant of a share is damaged; restore the cloud from a backup")
        }
    }

    /// - Parameter name: The person's name, as it is written.
    func rowDigest(name: String?) -> Data {
        var bytes = RowBytes(4)
        let codes = [role.rawValue, permission.rawValue, acceptanceStatus.rawValue].map { Int64($0) }
        for number in [share, zone] + codes + [began, ended, invited, expelled] { bytes.add(number) }
        bytes.add(lookUp.map { Int64($0.kind) })
        for text in [id, user, name, lookUp?.value] { bytes.add(text) }
        return bytes.digest
    }
}
