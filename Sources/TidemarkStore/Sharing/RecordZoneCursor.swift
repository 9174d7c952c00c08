import CTideCore
import Foundation
package import GRDB
import TidemarkModel
import TidemarkSQLite

/// Reads page by page in which zones the records of a type are, and nothing else of them.
///
/// Use it on the queue of the database, in the transaction in which it was made. The transaction of a snapshot lasts.
package final class RecordZoneCursor {
    private let statement: Statement
    private let condition: String?
    private let table: String
    private var hasEnded = false

    /// - Parameters:
    ///   - condition: An SQL expression over the type's view; `nil` for all records, in the order in which they were made.
    ///   - order: SQL.
    init(
        _ db: Database, _ type: StoredType, where condition: String?, arguments: StatementArguments,
        orderedBy order: String = "_id"
    ) throws {
        // A condition needs the type's view. It has a line of its own, so that a comment in it ends there.
        // A condition with arguments was made from a predicate, which has checked the user's part.
        if let condition, arguments.isEmpty { try type.check(condition: condition) }
        let source = condition.map { "(\(type.querySQL)) WHERE (\($0)\n)" } ?? "\"\(type.table)\""
        let sql = "SELECT _key, _zone, _tag IS NULL AND _pending IS NOT NULL FROM \(source) ORDER BY \(order)"
        self.condition = condition
        table = type.table
        do {
            statement = try db.makeStatement(sql: sql)
            try statement.setArguments(arguments)
        } catch {
            throw Self.failure(error, condition)
        }
    }

    /// Reads the next rows into a page, in place of those that it had.
    ///
    /// - Returns: Whether there may be more.
    package func read(_ db: Database, into page: PlacePage) throws -> Bool {
        page.table = table
        guard !hasEnded else {
            page.count = 0
            return false
        }
        let code = tide_places_read(
            statement.sqliteStatement, page.places.baseAddress!, page.places.count, page.names.baseAddress!, page.names.count,
            &page.count)
        switch ResultCode(rawValue: code).primaryResultCode {
        case .SQLITE_ROW: return true
        case .SQLITE_DONE:
            hasEnded = true
            return false
        default:
            let error = DatabaseError(resultCode: ResultCode(rawValue: code), message: db.lastErrorMessage)
            throw Self.failure(error, condition)
        }
    }

    private static func failure(_ error: any Error, _ condition: String?) -> any Error {
        guard let error = error as? DatabaseError, let condition, error.resultCode == .SQLITE_ERROR else { return error }
        return StoreError(.sql, "the condition '\(condition)' can't be used: \(error.message ?? "\(error)")")
    }
}

/// Memory for some rows of a ``RecordZoneCursor``, which can be used repeatedly.
package final class PlacePage {
    fileprivate let places: UnsafeMutableBufferPointer<tide_place>
    fileprivate let names: UnsafeMutableBufferPointer<CChar>
    fileprivate var table = ""
    /// The number of rows in the page.
    package fileprivate(set) var count = 0

    package init(capacity: Int) {
        places = .allocate(capacity: capacity)
        names = .allocate(capacity: max(capacity * 40, Int(TIDE_PLACE_NAME_MAX)))
    }

    deinit {
        places.deallocate()
        names.deallocate()
    }

    /// The number of the zone that a record is in, and whether no cloud has it.
    package subscript(index: Int) -> (zone: Int64, isUnsaved: Bool) {
        precondition(index < count)
        return (places[index].zone, places[index].is_unsaved)
    }

    /// A record's name.
    ///
    /// - Throws: ``StoreError`` `corrupt` when the row has no key that can be one.
    package func name(_ index: Int) throws -> String {
        precondition(index < count)
        let place = places[index]
        guard place.name_length > 0 else {
            throw StoreError(.corrupt, "a row of the table \(table), in the zone \(place.zone), has no key that can be one")
        }
        let bytes = UnsafeRawBufferPointer(names)[Int(place.name)..<Int(place.name) + Int(place.name_length)]
        return String(decoding: UnsafeRawBufferPointer(rebasing: bytes), as: UTF8.self)
    }
}

extension RecordSource {
    /// All record types of the store, for queries in SQL.
    package func types(_ db: Database) throws -> [QueriedType] {
        let types = try schema.types(db)
        return types.map { QueriedType($0, among: types) }
    }

    /// Returns a cursor over the matching records of a type, in the order in which they were made.
    package func places(
        _ db: Database, of type: QueriedType, where condition: String? = nil, arguments: StatementArguments = StatementArguments()
    ) throws -> RecordZoneCursor {
        try RecordZoneCursor(db, type.type, where: condition, arguments: arguments)
    }

    /// Returns a cursor over the records of a name. The name as it is written comes before a UUID in the other case, and an older
    /// zone before others.
    package func places(_ db: Database, of type: QueriedType, named name: String) throws -> RecordZoneCursor {
        let keys = RecordKey.all(name: name)
        return try RecordZoneCursor(
            db, type.type, where: "_key IN (?1, ?2)", arguments: [keys[0], keys[keys.count - 1]], orderedBy: "_key <> ?1, _zone")
    }

    /// Returns the same store, pinned to its present state, whatever others write from then on.
    ///
    /// - Throws: ``isVoid(_:)`` tells which errors are only momentary.
    package func pinned() throws -> RecordSource {
        try checkPlace()
        if database is any DatabaseSnapshotReader { return self }
        guard let pool = database as? DatabasePool else {
            return try RecordSource(StoreReader(container: container, scope: scope).snapshot())
        }
        return reading(try container.lookingForFiles { try ReadOnlyDatabase.reading(pool) { try pool.makeSnapshot() } })
    }

    /// Reads in the state that is pinned, on the calling thread.
    package func readPinned<Result>(_ body: (Database) throws -> Result) throws -> Result {
        try database.unsafeReentrantRead { db in
            try container.checkFormat(db, of: scope)
            let result = try body(db)
            try ReadOnlyDatabase.check(db)
            return result
        }
    }

    /// Returns whether an error only means that what was read has to be read again.
    package static func isVoid(_ error: any Error) -> Bool { ReadOnlyDatabase.isVoid(error) }
}
