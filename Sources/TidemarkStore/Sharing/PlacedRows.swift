import CTideCore
import Foundation
import GRDB
import TidemarkModel

/// Where records of a type are: read row by row, the rest of the record left where it is.
package struct PlacedRows {
    private let rows: RowCursor
    private let condition: String?
    private let table: String

    /// - Parameters:
    ///   - condition: An SQL expression over what the type's view shows; `nil` for all, in the order in which they came.
    ///   - order: SQL.
    init(
        _ db: Database, _ type: StoredType, where condition: String?, arguments: StatementArguments,
        orderedBy order: String = "_id"
    ) throws {
        let columns = "_key, _zone, _tag IS NULL AND _pending IS NOT NULL, typeof(_key) = 'blob', _id"
        // What the type's view shows, for a condition; on a line of its own, so that a comment in it ends there.
        let source = condition.map { "(\(type.viewSQL)) WHERE (\($0)\n)" } ?? "\"\(type.table)\""
        self.condition = condition
        table = type.table
        do {
            rows = try Row.fetchCursor(db, sql: "SELECT \(columns) FROM \(source) ORDER BY \(order)", arguments: arguments)
        } catch {
            throw Self.failure(error, condition)
        }
    }

    /// The next row, until the one after it is read.
    package func next() throws -> PlacedRow? {
        do {
            return try rows.next().map { PlacedRow(row: $0, table: table) }
        } catch {
            throw Self.failure(error, condition)
        }
    }

    private static func failure(_ error: any Error, _ condition: String?) -> any Error {
        guard let error = error as? DatabaseError, let condition, error.resultCode == .SQLITE_ERROR else { return error }
        return StoreError(.sql, "the condition '\(condition)' can't be used: \(error.message ?? "\(error)")")
    }
}

package struct PlacedRow {
    let row: Row
    let table: String

    /// The number of the zone that it is in.
    package var zone: Int64 { row[1] ?? 0 }
    /// Whether no cloud has it.
    package var isUnsaved: Bool { row[2] }

    /// The record's name.
    ///
    /// - Throws: ``StoreError`` `corrupt` when the row has no key that can be one.
    package func name() throws -> String {
        if row[3] {
            let name = try row.withUnsafeData(atIndex: 0) { key in key.flatMap { $0.withUnsafeBytes(Self.name) } }
            if let name { return name }
        }
        guard let key = RecordKey.fromDatabaseValue(row[0]) else {
            throw StoreError(
                .corrupt, "the row \(row[4] as DatabaseValue) of the table \(table) has no key that can be one")
        }
        return key.name
    }

    /// A UUID as text, without anything made on the way to it; `nil` for what is none.
    private static func name(of key: UnsafeRawBufferPointer) -> String? {
        guard key.count == 16 || key.count == 17 else { return nil }
        let name = String(unsafeUninitializedCapacity: 36) { text in
            text.withMemoryRebound(to: CChar.self) { tide_name_decode(key.baseAddress!, key.count, $0.baseAddress!) }
        }
        return name.isEmpty ? nil : name
    }
}

extension RecordSource {
    /// All record types of the store, for queries in SQL.
    package func types(_ db: Database) throws -> [QueriedType] { try schema.types(db).map { QueriedType($0) } }

    /// Where the records of a type are that match, in the order in which they came.
    package func places(
        _ db: Database, of type: QueriedType, where condition: String? = nil, arguments: StatementArguments = StatementArguments()
    ) throws -> PlacedRows {
        try PlacedRows(db, type.type, where: condition, arguments: arguments)
    }

    /// Where the records of a name are. As written comes before a UUID in the other case; a zone that came first before others.
    package func places(_ db: Database, of type: QueriedType, named name: String) throws -> PlacedRows {
        let keys = RecordKey.all(name: name)
        return try PlacedRows(
            db, type.type, where: "_key IN (?1, ?2)", arguments: [keys[0], keys[keys.count - 1]], orderedBy: "_key <> ?1, _zone")
    }

    /// The same store as it is now, whatever others write from then on.
    ///
    /// - Throws: What makes no more than the moment unfit, ``isVoid(_:)`` tells.
    package func pinned() throws -> RecordSource {
        try checkPlace()
        if database is any DatabaseSnapshotReader { return self }
        guard let pool = database as? DatabasePool else {
            return try RecordSource(StoreReader(container: container, scope: scope).snapshot())
        }
        return reading(try ReadOnlyDatabase.reading(pool) { try pool.makeSnapshot() })
    }

    /// Reads in the state that is pinned, on the calling thread.
    package func readPinned<Result>(_ body: (Database) throws -> Result) throws -> Result {
        try database.unsafeReentrantRead { db in
            let result = try body(db)
            try ReadOnlyDatabase.check(db)
            return result
        }
    }

    /// Whether an error means no more than that what was read has to be read again.
    package static func isVoid(_ error: any Error) -> Bool { ReadOnlyDatabase.isVoid(error) }
}
