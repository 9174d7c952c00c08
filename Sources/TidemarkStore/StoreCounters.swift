import GRDB

/// The numbers that a store hands out next.
///
/// Each throws ``StoreError`` `corrupt` when it is not there or can't be right.
enum StoreCounters {
    static func row(_ db: Database, type: StoredType) throws -> Int64 {
        try number(
            db, "SELECT next_row FROM tide_types WHERE id = \(type.id)", after: "SELECT max(_id) FROM \"\(type.table)\"",
            what: "next_row of \(type.name)")
    }

    static func change(_ db: Database) throws -> Int64 {
        try number(
            db, "SELECT value FROM tide_counters WHERE name = 'next_change'", after: "SELECT max(id) FROM tide_changes",
            what: "next_change")
    }

    static func transaction(_ db: Database) throws -> Int64 {
        try number(
            db, "SELECT value FROM tide_counters WHERE name = 'next_transaction'", after: "SELECT max(id) FROM tide_transactions",
            what: "next_transaction")
    }

    /// More than any batch takes lies above it.
    private static let limit = Int64.max - (1 << 40)

    private static func number(_ db: Database, _ sql: String, after: String, what: String) throws -> Int64 {
        let last = try Int64.fromDatabaseValue(DatabaseValue.fetchOne(db.cachedStatement(sql: after)) ?? .null) ?? 0
        guard let number = try DatabaseValue.fetchOne(db.cachedStatement(sql: sql)).flatMap(Int64.fromDatabaseValue) else {
            throw StoreError(.corrupt, "the store has no number for \(what)")
        }
        guard number > last, number > 0, number < limit else {
            throw StoreError(.corrupt, "the store's number for \(what) cannot be \(number): \(last) is the last that is in use")
        }
        return number
    }
}
