import CTideCore
import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// Compares the digest of each row when it is read; the digest is written with the row. A value of another type than its column's
/// damages the row, too.
extension SQLiteCloudTransaction: DamageTransaction {
    func noteDamage(_ damage: StoredCloudRecord.Damage, of owner: String, at change: Int64) throws(CloudError) {
        try run {
            try statement("UPDATE records SET damaged = ?, changed = ? WHERE owner = ? AND id = ? AND damaged IS NULL")
                .execute(arguments: [damage.change, change, number(writing: owner), damage.row])
        }
    }

    func damagedRecords() throws(CloudError) -> [StoredCloudRecord] {
        try run {
            var found: [StoredCloudRecord] = []
            let names = try Self.ownerNames(db)
            let select = try statement("SELECT * FROM records NOT INDEXED")
            let rows = try Row.fetchCursor(select)
            while let row = try rows.next() {
                let record = StoredCloudRecord(row, of: select, names[StoredCloudRecord.owner(row)] ?? "")
                if record.damage != nil { found.append(record) }
            }
            return found
        }
    }

    /// The names of owners by their numbers.
    static func ownerNames(_ db: Database) throws -> [Int64: String] {
        var names: [Int64: String] = [:]
        for row in try Row.fetchAll(db, sql: "SELECT number, name FROM owners") {
            guard let number = row.value(0).integer else { continue }
            names[number] = row.value(1).text
        }
        return names
    }

    func noteDamage(ofCovered name: String, in zone: StoredZone.ID, at change: Int64) throws(CloudError) {
        try run {
            let share = try Int64.fetchOne(
                statement(
                    "UPDATE covered SET change = ? WHERE owner = ? AND zone = ? AND name = ? AND is_gone = 0 RETURNING share"),
                arguments: [change, number(writing: zone.owner), zone.number, name])
            guard let share, var stored = try self.share(StoredShare.ID(owner: zone.owner, number: share)) else { return }
            stored.touched = change
            _ = try save(stored)
        }
    }

    func damagedShares(in zone: StoredZone.ID) throws(CloudError) -> [String] {
        try run {
            try Row.fetchAll(
                statement("SELECT * FROM shares WHERE owner = ? AND zone = ? ORDER BY id"),
                arguments: [number(of: zone.owner), zone.number]
            ).filter { (try? StoredShare(checked: $0, zone.owner)) == nil }.map { $0.text("name") }
        }
    }
}

extension DatabaseValue {
    // These return the value of a column only if it has this type, and convert nothing. They are not inlined: Swift 6.3's
    // optimiser ends with an error ("non consuming use outside of the lifetime") where several of them are inlined into one
    // function.

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
    /// Returns whether the digest in a statement's present row matches the row's columns.
    fileprivate func hasDigest(table: UInt8, columns: [CInt], digest: CInt) -> Bool {
        tide_columns_have_digest(sqliteStatement, table, columns, columns.count, digest)
    }
}

extension StoredCloudRecord {
    private static let table: UInt8 = 1
    private static let digested: [CInt] = [2, 7, 8, 10, 12, 3, 4, 6, 9, 11, 5]

    /// The number of the owner of a row of `records`.
    static func owner(_ row: Row) -> Int64 { row.value(0).integer ?? 0 }

    /// The columns of `records`, in their order: `owner`, `id`, `zone`, `name`, `type`, `fields`, `parent`, `changed`, `created`,
    /// `created_by`, `modified`, `modified_by`, `is_deleted`, `digest`, `damaged`.
    ///
    /// - Parameters:
    ///   - statement: The statement whose present row it is.
    ///   - owner: The owner's name.
    init(_ row: Row, of statement: Statement, _ owner: String) {
        let isIntact = statement.hasDigest(table: Self.table, columns: Self.digested, digest: 13)
        if isIntact {
            // Each value has its column's type, so it is read without a check.
            func integer(_ index: Int) -> Int64 { row[index] ?? 0 }
            func text(_ index: Int) -> String { row[index] ?? "" }
            self.init(
                zone: .init(owner: owner, number: integer(2)), name: text(3), type: text(4), fields: row[5] ?? Data(),
                parent: row[6],
                changed: integer(7), created: .init(time: integer(8), userRecordName: text(9)),
                modified: .init(time: integer(10), userRecordName: text(11)), isDeleted: integer(12) != 0, dependsOn: [],
                assets: [], indexed: [:])
        } else {
            func integer(_ index: Int) -> Int64 { row.value(index).integer ?? 0 }
            func text(_ index: Int) -> String { row.value(index).text ?? "" }
            self.init(
                zone: .init(owner: owner, number: integer(2)), name: text(3), type: text(4), fields: row.value(5).bytes ?? Data(),
                parent: row.value(6).text, changed: integer(7), created: .init(time: integer(8), userRecordName: text(9)),
                modified: .init(time: integer(10), userRecordName: text(11)), isDeleted: integer(12) != 0, dependsOn: [],
                assets: [], indexed: [:])
        }
        let noted = row.value(14)
        if !noted.isNull {
            damage = Damage(row: row.value(1).integer ?? 0, change: noted.integer ?? 0, isNoted: true)
        } else if !isIntact {
            damage = Damage(row: row.value(1).integer ?? 0, change: changed, isNoted: false)
        }
    }

    var rowDigest: Data { rowDigest(.untilNUL) }
}

extension StoredZone {
    private static let table: UInt8 = 2
    private static let digested: [CInt] = [2, 5, 6, 7, 8, 3, 4]

    /// The columns of `zones`, in their order: `owner`, `id`, `scope`, `owner_name`, `name`, `state`, `made`, `changed`, `sharing`, `digest`.
    init(_ row: Row) {
        func integer(_ index: Int) -> Int64 { row.value(index).integer ?? 0 }
        func text(_ index: Int) -> String { row.value(index).text ?? "" }
        self.init(
            number: integer(1), scope: integer(2), owner: text(3), name: text(4), state: integer(5), made: integer(6),
            changed: integer(7), sharing: integer(8))
    }

    /// - Parameter statement: The statement whose present row it is.
    /// - Throws: `CloudError` `recordDamaged`.
    init(checked row: Row, of statement: Statement) throws {
        self.init(row)
        guard statement.hasDigest(table: Self.table, columns: Self.digested, digest: 9) else {
            throw CloudEngine.damagedZone(place.name)
        }
    }

    var rowDigest: Data { rowDigest(.untilNUL) }
}

extension StoredShare {
    /// - Parameter owner: The owner's name.
    /// - Throws: `CloudError` `recordDamaged`.
    init(checked row: Row, _ owner: String) throws {
        self.init(
            number: row.integer("id"), zone: .init(owner: owner, number: row.integer("zone")), name: row.text("name"),
            root: row.value("root").text, title: row.value("title").text, publicPermission: row.integer("public_permission"),
            touched: row.integer("touched"), isEnded: row.integer("is_ended") != 0)
        guard row.value("digest").bytes == rowDigest else { throw CloudEngine.damagedShare(name) }
    }

    var rowDigest: Data { rowDigest(.untilNUL) }
}

extension StoredParticipant {
    /// - Parameter owner: The owner's name.
    /// - Throws: `CloudError` `recordDamaged`.
    init(checked row: Row, _ owner: String) throws {
        let name = row.value("name").text
        self.init(
            id: row.text("id"), share: row.integer("share"), zone: .init(owner: owner, number: row.integer("zone")),
            user: row.value("user").text, name: name, address: (row.value("address_kind").integer, row.value("address").text),
            codes: .init(role: row.integer("role"), permission: row.integer("permission"), acceptance: row.integer("acceptance")),
            changes: .init(
                began: row.integer("began"), ended: row.integer("ended"), invited: row.integer("invited"),
                expelled: row.integer("expelled")))
        guard row.value("digest").bytes == rowDigest(.untilNUL, name: name) else { throw CloudEngine.damagedParticipant }
    }
}
