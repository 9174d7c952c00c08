package import GRDB
import TidemarkModel
import TidemarkSQLite

/// The next numbers that a store gives out. They follow from the last transaction and the last rows, and are stored nowhere else.
package struct StoreCounters {
    var transaction: Int64 = 1
    var change: Int64 = 1
    /// Microseconds since 1970 UTC of the last transaction.
    private(set) var lastTime: Int64 = .min

    /// A limit for numbers read from the store. Above it, there is still room for the numbers of any batch.
    private static let limit = Int64.max - (1 << 40)

    /// - Parameter base: The store on which a dry run is based. Its numbers count.
    /// - Throws: ``StoreError`` `corrupt` when the numbers can't be right.
    package init(_ db: Database, base: DryRunBase? = nil) throws {
        let sql = """
            SELECT t.id, t.last_change, t.time, (SELECT max(id) FROM tide_changes)
            FROM (SELECT 1) LEFT JOIN (SELECT * FROM tide_transactions ORDER BY id DESC LIMIT 1) t
            """
        guard let row = try Row.fetchOne(db.cachedStatement(sql: sql)) else { return }
        func number(_ index: Int, orElse none: Int64) throws -> Int64 {
            let value = row[index] as DatabaseValue
            guard !value.isNull else { return none }
            guard let number = Int64.fromDatabaseValue(value) else {
                throw StoreError(.corrupt, "the table tide_transactions has a last row whose numbers have a wrong form")
            }
            return number
        }
        let (id, last, change) = (try number(0, orElse: 0), try number(1, orElse: 0), try number(3, orElse: 0))
        guard change <= last, (0..<Self.limit).contains(last), (0..<Self.limit).contains(id) else {
            throw StoreError(
                .corrupt,
                "tide_transactions cannot have \(id) as its last, with changes up to \(last): \(change) is the last change")
        }
        transaction = max(id + 1, base?.next.transaction ?? 0)
        self.change = max(last + 1, base?.next.change ?? 0)
        lastTime = try number(2, orElse: .min)
    }

    /// Returns the next row number of a type's table, which neither a present row nor one that history has deleted has.
    package static func row(_ db: Database, type: StoredType, base: DryRunBase? = nil) throws -> Int64 {
        let sql = """
            SELECT max(
                coalesce((SELECT max(_id) FROM "\(type.table)"), 0),
                coalesce((SELECT max(first_row) FROM tide_changes WHERE type_id = ? AND kind = \(ChangeKind.delete.rawValue)), 0))
            """
        let last = try Int64.fetchOne(db.cachedStatement(sql: sql), arguments: [type.id]) ?? 0
        guard (0..<limit).contains(last) else {
            throw StoreError(.corrupt, "the row \(last) of \(type.name) has a number that cannot be one")
        }
        return max(last + 1, base?.nextRow(of: type.name) ?? 0)
    }
}
