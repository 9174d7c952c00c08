import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// A query of typed records in SQL.
struct TypedQuery<R: Record> {
    private let type: QueriedType
    private let condition: SQLCondition?
    private let order: String
    private let sortColumns: [String]
    /// Whether the records are sorted by a text, for each sort.
    let areTexts: [Bool]
    private let extensions: Set<SQLExtension>

    init(
        _ type: QueriedType, _ predicate: PredicateNode?, _ sorts: [RecordSort<R>], after keyset: KeysetCondition? = nil,
        limit: Int?,
        known: Set<String>
    ) throws {
        self.type = type
        let naming = FieldNaming(R.self)
        let condition = try predicate?.condition(type, naming, known: known)
        var extensions = condition?.extensions ?? []
        var keys: [(sql: String, isDescending: Bool)] = []
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
            var term = field.sql
            if isText, let collation = sort.order.collation {
                extensions.insert(.order(sort.order))
                term += " COLLATE \(collation)"
            }
            keys.append((term, sort.isDescending))
            // A value that all records have is a literal here, and SQLite would take a number in ORDER BY for a column.
            if field.hasColumn { terms.append("\(term) \(sort.isDescending ? "DESC" : "ASC")") }
        }
        if let keyset {
            let (sql, arguments) = keyset.sql(keys)
            self.condition = SQLCondition(
                sql: condition.map { "\($0.sql) AND \(sql)" } ?? sql,
                arguments: (condition?.arguments ?? StatementArguments()) + arguments, extensions: extensions)
        } else {
            self.condition = condition
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
        let sql = "SELECT \((type.columns + sortColumns + ["_id"]).joined(separator: ", "))\(source)\(order)"
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

    /// Returns, for each value of a field, the number of records that have it; for a list, for each element.
    func counts(_ db: Database, by field: QueriedField) throws -> [(name: String, count: Int)] {
        try prepare(db)
        let values = "SELECT _id, \(field.sql) AS tide_value\(source)"
        let sql =
            field.type?.isList == true
            ? """
            SELECT tide_element.value, count(DISTINCT tide_record._id)
            FROM (\(values)) AS tide_record, \(StoredText.elementsSQL(of: "tide_record.tide_value")) AS tide_element GROUP BY 1
            """ : "SELECT tide_value, count(*) FROM (\(values)) GROUP BY 1"
        do {
            return try Row.fetchAll(db, sql: sql, arguments: arguments).compactMap { row in
                guard let value = String.fromDatabaseValue(row[0]) else { return nil }
                return (name: value, count: try row.decode(Int.self, atIndex: 1))
            }
        } catch {
            throw failure(error)
        }
    }

    /// Returns the rows that match and are in a ranking, the best first.
    ///
    /// - Parameter ranking: SQL that selects `tide_row` and `tide_rank`. The returned rows have the two values after the usual
    ///   columns.
    func ranked(_ db: Database, _ ranking: String, _ words: String) throws -> RowCursor {
        try prepare(db)
        let sql = """
            SELECT \((type.columns + ["_id", "tide_rank"]).joined(separator: ", "))
            FROM \(ranking) AS tide_ranking JOIN \(type.view) ON _id = tide_row\(condition.map { " WHERE \($0.sql)" } ?? "")
            ORDER BY tide_rank, _id
            """
        do {
            return try Row.fetchCursor(db, sql: sql, arguments: [words] + arguments)
        } catch {
            throw failure(error)
        }
    }

    /// Finds a field, or the record's name.
    func column(_ field: String, _ naming: FieldNaming, _ known: Set<String>) throws -> QueriedField {
        field == naming.nameField
            ? QueriedField(sql: QueriedType.nameSQL, type: .string, hasColumn: true)
            : try type.column(field, naming, known: known)
    }

    /// Returns the values of expressions for all records that match. If `grouped`, for each group of records with the same value
    /// of the first expression.
    func rows(_ db: Database, _ columns: [String], extensions: [SQLExtension], grouped: Bool) throws -> [Row] {
        try prepare(db)
        for it in extensions { try it.install(on: db) }
        do {
            let names = columns.enumerated().map { "\($1) AS tide_value_\($0)" }
            let sql = "SELECT \(names.joined(separator: ", "))\(source)\(grouped ? " GROUP BY tide_value_0" : "")"
            return try Row.fetchAll(db, sql: sql, arguments: arguments)
        } catch let error as DatabaseError where error.message == "integer overflow" {
            throw AggregateState.overflow
        } catch let error as DatabaseError where error.message == AggregateState.decimalOverflow.description {
            // SQLite passes on the error of a function only as a text.
            throw AggregateState.decimalOverflow
        } catch {
            throw failure(error)
        }
    }

    private func failure(_ error: any Error) -> any Error {
        guard let error = error as? DatabaseError, let condition, error.resultCode == .SQLITE_ERROR else { return error }
        return StoreError(.sql, "the condition '\(condition.sql)' can't be used: \(error.message ?? "\(error)")")
    }
}
