public import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// What typed records can be read from: a ``PersistentContainer``, a ``ContainerSnapshot``, a ``ReadOnlyContainer``.
///
/// Records come from the private store and from the shared one. By a name that is in both, the private store's is found.
public protocol RecordReading: Sendable {
    var recordSources: RecordSources { get }
}

/// The stores behind a ``RecordReading``.
public struct RecordSources: Sendable {
    let all: [RecordSource]
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

    /// What is made of each record that matches, and of its row.
    func fetchAll<R: Record, Element: Sendable>(
        _ type: R.Type, where predicate: RecordPredicate?, sortedBy sorts: [RecordSort], limit: Int?,
        _ element: @escaping @Sendable (R, Row, QueriedType, RecordSource) throws -> Element
    ) async throws -> [Element] {
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
            if !part.elements.isEmpty { parts.append(part) }
        }
        guard parts.count > 1 else { return parts.first?.elements ?? [] }
        return RecordOrder(sorts).merge(parts, limit: limit)
    }
}

extension RecordReading {
    /// The record of a name; `nil` when there is none.
    ///
    /// - Throws: ``StoreError``; `DecodingError` when the record can't be read as that type.
    public func fetch<R: Record>(_ type: R.Type, named name: String) async throws -> R? {
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

    /// The records that match, in an order; without one, as they came.
    ///
    /// - Complexity: O(n) in the records read; those returned are in memory.
    public func fetchAll<R: Record>(
        _ type: R.Type, where predicate: RecordPredicate? = nil, sortedBy sorts: [RecordSort] = [], limit: Int? = nil
    ) async throws -> [R] {
        try await recordSources.fetchAll(type, where: predicate, sortedBy: sorts, limit: limit) { record, _, _, _ in record }
    }

    /// How many records match.
    public func count<R: Record>(_ type: R.Type, where predicate: RecordPredicate? = nil) async throws -> Int {
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

    /// What is made of each record that matches, and what it is sorted by.
    func fetchAll<R: Record, Element>(
        _ db: Database, _ type: R.Type, where predicate: RecordPredicate?, sortedBy sorts: [RecordSort], limit: Int?,
        known: Set<String>, _ element: (R, Row, QueriedType) throws -> Element
    ) throws -> OrderedPart<Element> {
        var part = OrderedPart<Element>()
        guard let queried = try self.type(db, named: R.recordType) else { return part }
        let query = try TypedQuery(queried, nameField: R.nameField, predicate, sorts, limit: limit, known: known)
        let decoder = decoder(queried, type)
        let keys = sorts.indices.map { QueriedType.firstField + queried.fields.count + $0 }
        let rows = try query.rows(db)
        while let row = try query.next(rows) {
            part.elements.append(try element(try decoder.decode(row), row, queried))
            if !keys.isEmpty { part.keys.append(keys.map { row[$0] }) }
        }
        return part
    }

    func count<R: Record>(
        _ db: Database, _ type: R.Type, where predicate: RecordPredicate?, known: Set<String>
    ) throws -> Int {
        guard let queried = try self.type(db, named: R.recordType) else { return 0 }
        return try TypedQuery(queried, nameField: R.nameField, predicate, [], limit: nil, known: known).count(db)
    }

    /// The query of a batch operation; `nil` when the store has no such type.
    func query<R: Record>(
        _ db: Database, _ type: R.Type, where predicate: RecordPredicate?, known: Set<String>
    ) throws -> RecordQuery? {
        guard let queried = try self.type(db, named: R.recordType) else { return nil }
        let condition = try predicate?.sql(queried, nameField: R.nameField, known: known)
        return RecordQuery(
            type: R.recordType, condition: condition?.sql, arguments: condition?.arguments ?? StatementArguments())
    }

    func decoder<R: Record>(_ queried: QueriedType, _ type: R.Type) -> RecordDecoder<R> {
        RecordDecoder(
            RecordColumns(
                fields: queried.fields.enumerated().map {
                    (name: $1.name, place: FieldPlace(column: QueriedType.firstField + $0, type: $1.type))
                },
                key: QueriedType.keyColumn, nameField: R.nameField, assets: AssetPlace(folder: assets)))
    }
}

extension QueriedType {
    /// The column of a field, in SQL.
    ///
    /// - Parameter known: Fields that have no value where the type lacks them.
    /// - Throws: ``StoreError`` `schema`.
    func column(_ field: String, known: Set<String>) throws -> String {
        if let column = column(field) { return column }
        guard known.contains(field) else {
            throw StoreError(
                .schema,
                "\(name) has no field '\(field)'; it has \(fields.map(\.name).joined(separator: ", ")). A new property becomes a field with "
                    + "the first record that is saved")
        }
        return "NULL"
    }
}

/// A query of typed records in SQL.
struct TypedQuery {
    private let type: QueriedType
    private let condition: String?
    private let arguments: StatementArguments
    private let order: String
    private let sortColumns: [String]

    init(
        _ type: QueriedType, nameField: String, _ predicate: RecordPredicate?, _ sorts: [RecordSort], limit: Int?,
        known: Set<String>
    ) throws {
        self.type = type
        let condition = try predicate?.sql(type, nameField: nameField, known: known)
        self.condition = condition?.sql
        arguments = condition?.arguments ?? StatementArguments()
        sortColumns = try sorts.map { sort in
            if sort.field == nameField || sort.field == "_name" { return QueriedType.nameSQL }
            return try type.column(sort.field, known: known)
        }
        let terms = zip(sortColumns, sorts).map { "\($0) \($1.isDescending ? "DESC" : "ASC")" } + ["_id"]
        order = " ORDER BY \(terms.joined(separator: ", "))" + (limit.map { " LIMIT \(max(0, $0))" } ?? "")
    }

    /// What the type's view shows: a condition of a user's may name that.
    private var source: String { " FROM \(type.view)" + (condition.map { " WHERE \($0)" } ?? "") }

    func rows(_ db: Database) throws -> RowCursor {
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
        do {
            return try Int.fetchOne(db, sql: "SELECT count(*)\(source)", arguments: arguments) ?? 0
        } catch {
            throw failure(error)
        }
    }

    private func failure(_ error: any Error) -> any Error {
        guard let error = error as? DatabaseError, let condition, error.resultCode == .SQLITE_ERROR else { return error }
        return StoreError(.sql, "the condition '\(condition)' can't be used: \(error.message ?? "\(error)")")
    }
}

/// What one store has, in order.
struct OrderedPart<Element> {
    var elements: [Element] = []
    /// What each is sorted by; empty where there is no order.
    var keys: [[DatabaseValue]] = []
}

extension OrderedPart: Sendable where Element: Sendable {}

/// Merges what several stores have, each in order already.
struct RecordOrder {
    private let sorts: [RecordSort]

    init(_ sorts: [RecordSort]) { self.sorts = sorts }

    func merge<Element>(_ parts: [OrderedPart<Element>], limit: Int?) -> [Element] {
        var next = parts.map { _ in 0 }
        var merged: [Element] = []
        while merged.count < limit ?? .max {
            var first: Int?
            for (index, part) in parts.enumerated() where next[index] < part.elements.count {
                guard let best = first, !sorts.isEmpty else {
                    first = first ?? index
                    continue
                }
                if comesBefore(part.keys[next[index]], parts[best].keys[next[best]]) { first = index }
            }
            guard let first else { break }
            merged.append(parts[first].elements[next[first]])
            next[first] += 1
        }
        return merged
    }

    private func comesBefore(_ left: [DatabaseValue], _ right: [DatabaseValue]) -> Bool {
        for (sort, (one, other)) in zip(sorts, zip(left, right)) {
            let order = Self.compare(one, other)
            if order != 0 { return sort.isDescending ? order > 0 : order < 0 }
        }
        return false
    }

    /// As SQLite orders: nothing, numbers, texts by their bytes, bytes.
    private static func compare(_ left: DatabaseValue, _ right: DatabaseValue) -> Int {
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
        case (.string(let one), .string(let other)): return bytes(Array(one.utf8), Array(other.utf8))
        case (.blob(let one), .blob(let other)): return bytes(Array(one), Array(other))
        default: return order(rank(left), rank(right))
        }
    }

    private static func bytes(_ one: [UInt8], _ other: [UInt8]) -> Int {
        one == other ? 0 : one.lexicographicallyPrecedes(other) ? -1 : 1
    }
}
