public import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// A source of typed records: a ``PersistentContainer``, a ``ContainerSnapshot``, or a ``ReadOnlyContainer``.
///
/// Records come from the private store and from the shared store. If both have a record of a name, a fetch by name finds the
/// private store's.
public protocol RecordReading: Sendable {
    /// The stores that records are read from.
    var recordSources: RecordSources { get }
}

/// The stores behind a ``RecordReading``.
public struct RecordSources: Sendable {
    let all: [RecordSource]
    let claims = RecordTypeClaims()
}

extension RecordSources {
    /// Runs `body`, which looks up fields of a type in a store. If the store lacks a field, `body` runs again with the names of
    /// the fields that any store has. These count as fields without a value in the store that lacks them.
    func withKnownFields<Result>(of type: String, _ body: (Set<String>) throws -> Result) throws -> Result {
        do {
            return try body([])
        } catch let error as StoreError where error.code == .schema {
            var known: Set<String> = []
            for source in all { known.formUnion(try source.fieldNames(of: type)) }
            return try body(known)
        }
    }

    /// Calls `element` with each record that matches and its row, and returns the results. Records that can't be read are left out
    /// and logged.
    func fetchAll<R: Record, Element: Sendable>(
        _ type: R.Type, where predicate: RecordPredicate<R>?, sortedBy sorts: [RecordSort<R>], after cursor: PageCursor? = nil,
        limit: Int?, _ element: @escaping @Sendable (R, Row, QueriedType, RecordSource) throws -> Element
    ) async throws -> [Element] {
        let found = try await fetch(type, where: predicate, sortedBy: sorts, after: cursor, limit: limit, element)
        UnreadableRecord.log(found.unreadable, as: type)
        return found.elements
    }

    /// Calls `element` with each record that matches, and returns the results and the records that can't be read.
    func fetch<R: Record, Element: Sendable>(
        _ type: R.Type, where predicate: RecordPredicate<R>?, sortedBy sorts: [RecordSort<R>], after cursor: PageCursor? = nil,
        limit: Int?, _ element: @escaping @Sendable (R, Row, QueriedType, RecordSource) throws -> Element
    ) async throws -> (elements: [Element], unreadable: [UnreadableRecord]) {
        try claims.check(type)
        var parts: [OrderedPart<Element>] = []
        for source in all {
            let part = try await source.read { db in
                try withKnownFields(of: R.recordType) { known in
                    try source.fetchAll(db, type, where: predicate, sortedBy: sorts, after: cursor, limit: limit, known: known) {
                        record, row, type in
                        try element(record, row, type, source)
                    }
                }
            }
            parts.append(part)
        }
        let unreadable = parts.flatMap(\.unreadable)
        let filled = parts.filter { !$0.elements.isEmpty }
        guard filled.count > 1 else { return (filled.first?.elements ?? [], unreadable) }
        return (RecordOrder(sorts).merge(filled, limit: limit), unreadable)
    }
}

extension RecordReading {
    /// Returns the record of a name; `nil` when there is none.
    ///
    /// - Throws: ``StoreError``; `DecodingError` when the record can't be read as that type.
    public func fetch<R: Record>(_ type: R.Type, named name: String) async throws -> R? {
        try recordSources.claims.check(type)
        for source in recordSources.all {
            let record = try await source.read { db in try source.fetch(db, type, named: name)?.record }
            if let record { return record }
        }
        return nil
    }

    /// Returns the record of a UUID; see `fetch(_:named:)`.
    public func fetch<R: Record & Identifiable>(_ type: R.Type, id: UUID) async throws -> R? where R.ID == UUID {
        try await fetch(type, named: id.uuidString.lowercased())
    }

    /// Returns the records that match, in the given order; without one, in the order of insertion.
    ///
    /// A record that can't be read as its type is left out, and its name is logged as a warning (label `tidemark.records`);
    /// ``fetchResult(_:where:sortedBy:limit:)`` returns it.
    ///
    /// - Parameters:
    ///   - type: The record type.
    ///   - predicate: The condition; `nil` for all records.
    ///   - sorts: The order.
    ///   - limit: The maximum number of records; `nil` for all.
    /// - Throws: ``StoreError`` `invalid` or `schema` for a predicate, an order or a limit that can't be used, `sql`, `moved`, `io`.
    /// - Complexity: O(n) in the records read; those returned are in memory.
    public func fetchAll<R: Record>(
        _ type: R.Type, where predicate: RecordPredicate<R>? = nil, sortedBy sorts: [RecordSort<R>] = [], limit: Int? = nil
    ) async throws -> [R] {
        try await recordSources.fetchAll(type, where: predicate, sortedBy: sorts, limit: limit) { record, _, _, _ in record }
    }

    /// Returns the number of records that match.
    public func count<R: Record>(_ type: R.Type, where predicate: RecordPredicate<R>? = nil) async throws -> Int {
        try recordSources.claims.check(type)
        var sum = 0
        let sources = recordSources
        for source in sources.all {
            sum += try await source.read { db in
                try sources.withKnownFields(of: R.recordType) { try source.count(db, type, where: predicate, known: $0) }
            }
        }
        return sum
    }
}

extension RecordSource {
    func fetch<R: Record>(_ db: Database, _ type: R.Type, named name: String) throws -> (record: R, state: StoredVersion)? {
        guard let queried = try self.type(db, named: R.recordType) else { return nil }
        let keys = QueriedType.keys(name)
        let rows = try Row.fetchCursor(
            db.cachedStatement(sql: queried.selectionByName), arguments: [keys[0], keys[keys.count - 1]])
        // The row is valid as long as its cursor.
        return try withExtendedLifetime(rows) {
            guard let row = try rows.next() else { return nil }
            return (try decoder(queried, type).decode(row), try StoredVersion(row, type: queried))
        }
    }

    /// Calls `element` with each record that matches, and returns the results with the values that they are sorted by.
    func fetchAll<R: Record, Element>(
        _ db: Database, _ type: R.Type, where predicate: RecordPredicate<R>?, sortedBy sorts: [RecordSort<R>],
        after cursor: PageCursor? = nil, limit: Int?, known: Set<String>, _ element: (R, Row, QueriedType) throws -> Element
    ) throws -> OrderedPart<Element> {
        var part = OrderedPart<Element>()
        try checkLimit(limit)
        guard let queried = try self.type(db, queriedAs: R.self) else { return part }
        let decoder = decoder(queried, type)
        let keys = queried.sortColumns(sorts.count)
        let keysets: [KeysetCondition?] = cursor.map { KeysetCondition.parts($0, in: scope, sorts) } ?? [nil]
        for keyset in keysets {
            let before = part
            if let limit, !before.elements.isEmpty, before.elements.count >= limit { break }
            let rest = limit.map { $0 - before.elements.count }
            try readRows(db, queried, where: predicate, sortedBy: sorts, after: keyset, limit: rest, known: known) { query, _ in
                part = before
                part.areTexts = query.areTexts
            } _: { row in
                let record: R
                do {
                    record = try decoder.decode(row)
                } catch {
                    let name = StoreReader.recordName(key: row[QueriedType.keyColumn] as DatabaseValue) ?? "?"
                    part.unreadable.append(UnreadableRecord(record: RecordName(type: R.recordType, name: name), error: error))
                    return false
                }
                part.elements.append(try element(record, row, queried))
                if !keys.isEmpty { part.keys.append(keys.map { row[$0] as DatabaseValue }) }
                return true
            }
        }
        return part
    }

    /// Reads rows until the limit is reached. SQL can't tell which records can be read as the type. If too few can, the query
    /// runs again with twice the limit.
    ///
    /// - Parameters:
    ///   - restart: Called before the first row of each run.
    ///   - body: Returns whether a row counts for the limit.
    func readRows<R: Record>(
        _ db: Database, _ queried: QueriedType, where predicate: RecordPredicate<R>?, sortedBy sorts: [RecordSort<R>],
        after keyset: KeysetCondition? = nil, limit: Int?, known: Set<String>, restart: (TypedQuery<R>, RowCursor) throws -> Void,
        _ body: (Row) throws -> Bool
    ) throws {
        var bound = limit
        while true {
            let query = try TypedQuery(queried, predicate?.node, sorts, after: keyset, limit: bound, known: known)
            let rows = try query.rows(db)
            try restart(query, rows)
            var (read, count) = (0, 0)
            while count < limit ?? .max, let row = try query.next(rows) {
                read += 1
                if try body(row) { count += 1 }
            }
            guard let reached = bound, count < limit ?? 0, read == reached else { return }
            bound = reached.multipliedReportingOverflow(by: 2).overflow ? nil : reached * 2
        }
    }

    func checkLimit(_ limit: Int?) throws {
        if let limit, limit < 0 {
            throw StoreError(.invalid, "the limit can't be \(limit); use 0 or more, or nil for all records")
        }
    }

    func count<R: Record>(
        _ db: Database, _ type: R.Type, where predicate: RecordPredicate<R>?, known: Set<String>
    ) throws -> Int {
        guard let queried = try self.type(db, queriedAs: R.self) else { return 0 }
        return try TypedQuery<R>(queried, predicate?.node, [], limit: nil, known: known).count(db)
    }

    /// Returns the values of the first records that match. The records need not be readable as the type.
    func versions<R: Record>(
        _ db: Database, _ type: R.Type, where predicate: RecordPredicate<R>?, limit: Int, known: Set<String>
    ) throws -> [(name: String, values: [String: FieldValue])] {
        guard let queried = try self.type(db, queriedAs: R.self) else { return [] }
        let query = try TypedQuery<R>(queried, predicate?.node, [], limit: limit, known: known)
        let rows = try query.rows(db)
        var found: [(name: String, values: [String: FieldValue])] = []
        while let row = try query.next(rows) {
            guard let name = StoreReader.recordName(key: row[QueriedType.keyColumn] as DatabaseValue) else { continue }
            found.append((name, try StoredVersion(row, type: queried).values))
        }
        return found
    }

    /// Returns the query of a batch operation; `nil` when the store has no such type.
    func query<R: Record>(
        _ db: Database, _ type: R.Type, where predicate: RecordPredicate<R>?, known: Set<String>
    ) throws -> RecordQuery? {
        guard let queried = try self.type(db, queriedAs: R.self) else { return nil }
        let condition = try predicate?.node.condition(queried, FieldNaming(type), known: known)
        let extensions = condition?.extensions ?? []
        return RecordQuery(
            type: R.recordType, condition: condition?.sql, arguments: condition?.arguments ?? StatementArguments(),
            prepare: { db in for it in extensions { try it.install(on: db) } })
    }

    func decoder<R: Record>(_ queried: QueriedType, _ type: R.Type) -> RecordDecoder<R> {
        RecordDecoder(
            RecordColumns(
                fields: queried.fields.enumerated().map {
                    (name: $1.name, place: FieldPlace(column: QueriedType.firstField + $0, type: $1.type))
                },
                key: QueriedType.keyColumn, of: type, assets: AssetPlace(folder: assets)))
    }
}

extension QueriedType {
    /// The columns of a query's rows that have the values by which the rows are sorted.
    func sortColumns(_ count: Int) -> [Int] { (0..<count).map { Self.firstField + fields.count + $0 } }

    /// The column of a query's rows that has the row's id.
    func rowColumn(_ sorts: Int) -> Int { Self.firstField + fields.count + sorts }
}
