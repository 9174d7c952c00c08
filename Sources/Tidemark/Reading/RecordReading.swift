public import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// What typed records can be read from: a ``PersistentContainer``, a ``ContainerSnapshot``, a ``ReadOnlyContainer``.
///
/// Records come from the private store and from the shared one. By a name that is in both, the private store's is found.
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
    /// Runs `body`, which asks for fields of a type; and where a store lacks one of them, once more, with the names of those that any of the
    /// stores has: a store whose type has not got a field yet has no value in it.
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
        _ type: R.Type, where predicate: RecordPredicate<R>?, sortedBy sorts: [RecordSort<R>], limit: Int?,
        _ element: @escaping @Sendable (R, Row, QueriedType, RecordSource) throws -> Element
    ) async throws -> [Element] {
        let found = try await fetch(type, where: predicate, sortedBy: sorts, limit: limit, element)
        UnreadableRecord.log(found.unreadable, as: type)
        return found.elements
    }

    /// Calls `element` with each record that matches, and returns the results and the records that can't be read.
    func fetch<R: Record, Element: Sendable>(
        _ type: R.Type, where predicate: RecordPredicate<R>?, sortedBy sorts: [RecordSort<R>], limit: Int?,
        _ element: @escaping @Sendable (R, Row, QueriedType, RecordSource) throws -> Element
    ) async throws -> (elements: [Element], unreadable: [UnreadableRecord]) {
        try claims.check(type)
        var parts: [OrderedPart<Element>] = []
        for source in all {
            let part = try await source.read { db in
                try withKnownFields(of: R.recordType) { known in
                    try source.fetchAll(db, type, where: predicate, sortedBy: sorts, limit: limit, known: known) {
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
    /// The record of a name; `nil` when there is none.
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

    /// The record of a UUID.
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
        // The row is the cursor's.
        return try withExtendedLifetime(rows) {
            guard let row = try rows.next() else { return nil }
            return (try decoder(queried, type).decode(row), try StoredVersion(row, type: queried))
        }
    }

    /// Calls `element` with each record that matches, and returns the results with the values that they are sorted by.
    func fetchAll<R: Record, Element>(
        _ db: Database, _ type: R.Type, where predicate: RecordPredicate<R>?, sortedBy sorts: [RecordSort<R>], limit: Int?,
        known: Set<String>, _ element: (R, Row, QueriedType) throws -> Element
    ) throws -> OrderedPart<Element> {
        var part = OrderedPart<Element>()
        try checkLimit(limit)
        guard let queried = try self.type(db, named: R.recordType) else { return part }
        let decoder = decoder(queried, type)
        let keys = queried.sortColumns(sorts.count)
        try readRows(db, queried, where: predicate, sortedBy: sorts, limit: limit, known: known) { query, _ in
            part = OrderedPart(areTexts: query.areTexts)
        } _: { row in
            let record: R
            do {
                record = try decoder.decode(row)
            } catch {
                let name = StoreReader.recordName(key: row[QueriedType.keyColumn]) ?? "?"
                part.unreadable.append(UnreadableRecord(record: RecordName(type: R.recordType, name: name), error: error))
                return false
            }
            part.elements.append(try element(record, row, queried))
            if !keys.isEmpty { part.keys.append(keys.map { row[$0] }) }
            return true
        }
        return part
    }

    /// Reads rows until as many as the limit count. SQL can't tell which can be read as the type, so that more may have to be asked for.
    ///
    /// - Parameters:
    ///   - restart: Is called before the first row, each time.
    ///   - body: Returns whether a row counts.
    func readRows<R: Record>(
        _ db: Database, _ queried: QueriedType, where predicate: RecordPredicate<R>?, sortedBy sorts: [RecordSort<R>],
        limit: Int?, known: Set<String>, restart: (TypedQuery<R>, RowCursor) throws -> Void, _ body: (Row) throws -> Bool
    ) throws {
        var bound = limit
        while true {
            let query = try TypedQuery(queried, predicate?.node, sorts, limit: bound, known: known)
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
        guard let queried = try self.type(db, named: R.recordType) else { return 0 }
        return try TypedQuery<R>(queried, predicate?.node, [], limit: nil, known: known).count(db)
    }

    /// Returns the values of the first records that match. The records need not be readable as the type.
    func versions<R: Record>(
        _ db: Database, _ type: R.Type, where predicate: RecordPredicate<R>?, limit: Int, known: Set<String>
    ) throws -> [(name: String, values: [String: FieldValue])] {
        guard let queried = try self.type(db, named: R.recordType) else { return [] }
        let query = try TypedQuery<R>(queried, predicate?.node, [], limit: limit, known: known)
        let rows = try query.rows(db)
        var found: [(name: String, values: [String: FieldValue])] = []
        while let row = try query.next(rows) {
            guard let name = StoreReader.recordName(key: row[QueriedType.keyColumn]) else { continue }
            found.append((name, try StoredVersion(row, type: queried).values))
        }
        return found
    }

    /// Returns the query of a batch operation; `nil` when the store has no such type.
    func query<R: Record>(
        _ db: Database, _ type: R.Type, where predicate: RecordPredicate<R>?, known: Set<String>
    ) throws -> RecordQuery? {
        guard let queried = try self.type(db, named: R.recordType) else { return nil }
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
    /// The columns of a query's rows that have what the rows are sorted by.
    func sortColumns(_ count: Int) -> [Int] { (0..<count).map { Self.firstField + fields.count + $0 } }
}

/// A query of typed records in SQL.
struct TypedQuery<R: Record> {
    private let type: QueriedType
    private let condition: SQLCondition?
    private let order: String
    private let sortColumns: [String]
    /// Whether the records are sorted by a text, for each sort.
    let areTexts: [Bool]
    private let extensions: Set<SQLExtension>

    init(_ type: QueriedType, _ predicate: PredicateNode?, _ sorts: [RecordSort<R>], limit: Int?, known: Set<String>) throws {
        self.type = type
        let naming = FieldNaming(R.self)
        condition = try predicate?.condition(type, naming, known: known)
        var extensions = condition?.extensions ?? []
        var columns: [String] = []
        var texts: [Bool] = []
        var terms: [String] = []
        for sort in sorts {
            if let failure = sort.failure { throw StoreError(.invalid, failure.message) }
            let isName = sort.field == naming.nameField || sort.field == "_name"
            let field =
                isName
                ? QueriedField(sql: QueriedType.nameSQL, type: .string, hasColumn: true)
                : try type.column(sort.field, naming, known: known)
            columns.append(field.sql)
            let isText = field.type.map { !$0.isList && ($0.scalar == .string || $0.scalar == .reference) } ?? false
            texts.append(isText)
            // Of a value that all records have, SQLite would make the number of a column.
            guard field.hasColumn else { continue }
            if isText, let collation = sort.order.collation {
                extensions.insert(.order(sort.order))
                terms.append("\(field.sql) COLLATE \(collation) \(sort.isDescending ? "DESC" : "ASC")")
            } else {
                terms.append("\(field.sql) \(sort.isDescending ? "DESC" : "ASC")")
            }
        }
        sortColumns = columns
        areTexts = texts
        self.extensions = extensions
        order = " ORDER BY \((terms + ["_id"]).joined(separator: ", "))" + (limit.map { " LIMIT \($0)" } ?? "")
    }

    private var arguments: StatementArguments { condition?.arguments ?? StatementArguments() }

    private func prepare(_ db: Database) throws { for it in extensions { try it.install(on: db) } }

    /// The type's view, because a program's own condition may name its columns.
    private var source: String { " FROM \(type.view)" + (condition.map { " WHERE \($0.sql)" } ?? "") }

    func rows(_ db: Database) throws -> RowCursor {
        try prepare(db)
        let sql = "SELECT \((type.columns + sortColumns).joined(separator: ", "))\(source)\(order)"
        do {
            return try Row.fetchCursor(db, sql: sql, arguments: arguments)
        } catch {
            throw failure(error)
        }
    }

    func next(_ rows: RowCursor) throws -> Row? {
        do {
            return try rows.next()
        } catch {
            throw failure(error)
        }
    }

    func count(_ db: Database) throws -> Int {
        try prepare(db)
        do {
            return try Int.fetchOne(db, sql: "SELECT count(*)\(source)", arguments: arguments) ?? 0
        } catch {
            throw failure(error)
        }
    }

    /// Returns how many records have a value, for each value of a field; of a list, for each element.
    func counts(_ db: Database, by field: QueriedField) throws -> [(name: String, count: Int)] {
        try prepare(db)
        let values = "SELECT _id, \(field.sql) AS tide_value\(source)"
        let sql =
            field.type?.isList == true
            ? """
            SELECT tide_element.value, count(DISTINCT tide_record._id)
            FROM (\(values)) AS tide_record, json_each(tide_record.tide_value) AS tide_element GROUP BY 1
            """ : "SELECT tide_value, count(*) FROM (\(values)) GROUP BY 1"
        do {
            return try Row.fetchAll(db, sql: sql, arguments: arguments).compactMap { row in
                String.fromDatabaseValue(row[0]).map { ($0, row[1]) }
            }
        } catch {
            throw failure(error)
        }
    }

    private func failure(_ error: any Error) -> any Error {
        guard let error = error as? DatabaseError, let condition, error.resultCode == .SQLITE_ERROR else { return error }
        return StoreError(.sql, "the condition '\(condition.sql)' can't be used: \(error.message ?? "\(error)")")
    }
}

/// What one store has, in order.
struct OrderedPart<Element> {
    var elements: [Element] = []
    /// The values that each element is sorted by; empty when there is no order.
    var keys: [[DatabaseValue]] = []
    /// Whether a sort is by a text, which may have an order of its own.
    var areTexts: [Bool] = []
    /// The records that can't be read as the type.
    var unreadable: [UnreadableRecord] = []
}

extension OrderedPart: Sendable where Element: Sendable {}

/// Merges the sorted results of several stores.
struct RecordOrder {
    private let sorts: [(isDescending: Bool, compare: (@Sendable (String, String) -> ComparisonResult)?)]

    init<R: Record>(_ sorts: [RecordSort<R>]) { self.sorts = sorts.map { ($0.isDescending, $0.order.comparison) } }

    /// - Parameter counts: Whether an element is one of those that the limit is about.
    func merge<Element>(
        _ parts: [OrderedPart<Element>], limit: Int?, counting counts: (Element) -> Bool = { _ in true }
    ) -> [Element] {
        var next = parts.map { _ in 0 }
        var merged: [Element] = []
        var count = 0
        // A store without the field does not know its type.
        let areTexts = sorts.indices.map { sort in parts.contains { $0.areTexts[sort] } }
        while count < limit ?? .max {
            var first: Int?
            for (index, part) in parts.enumerated() where next[index] < part.elements.count {
                guard let best = first, !sorts.isEmpty else {
                    first = first ?? index
                    continue
                }
                if comesBefore(part.keys[next[index]], parts[best].keys[next[best]], areTexts: areTexts) { first = index }
            }
            guard let first else { break }
            let element = parts[first].elements[next[first]]
            merged.append(element)
            if counts(element) { count += 1 }
            next[first] += 1
        }
        return merged
    }

    private func comesBefore(_ left: [DatabaseValue], _ right: [DatabaseValue], areTexts: [Bool]) -> Bool {
        for index in sorts.indices {
            let order = Self.compare(left[index], right[index], areTexts[index] ? sorts[index].compare : nil)
            if order != 0 { return sorts[index].isDescending ? order > 0 : order < 0 }
        }
        return false
    }

    /// As SQLite orders: nothing, numbers, texts by their bytes, bytes.
    private static func compare(
        _ left: DatabaseValue, _ right: DatabaseValue, _ texts: (@Sendable (String, String) -> ComparisonResult)?
    ) -> Int {
        func rank(_ value: DatabaseValue) -> Int {
            switch value.storage {
            case .null: 0
            case .int64, .double: 1
            case .string: 2
            case .blob: 3
            }
        }
        func order<Value: Comparable>(_ one: Value, _ other: Value) -> Int { one < other ? -1 : one > other ? 1 : 0 }
        switch (left.storage, right.storage) {
        case (.int64(let one), .int64(let other)): return order(one, other)
        case (.double(let one), .double(let other)): return order(one, other)
        case (.int64(let one), .double(let other)): return order(Double(one), other)
        case (.double(let one), .int64(let other)): return order(one, Double(other))
        case (.string(let one), .string(let other)) where texts != nil: return texts!(one, other).rawValue
        case (.string(let one), .string(let other)): return bytes(Array(one.utf8), Array(other.utf8))
        case (.blob(let one), .blob(let other)): return bytes(Array(one), Array(other))
        default: return order(rank(left), rank(right))
        }
    }

    private static func bytes(_ one: [UInt8], _ other: [UInt8]) -> Int {
        one == other ? 0 : one.lexicographicallyPrecedes(other) ? -1 : 1
    }
}
