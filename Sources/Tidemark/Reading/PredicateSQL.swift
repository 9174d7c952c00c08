import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// A predicate in SQL, for one store.
struct SQLCondition: Sendable {
    let sql: String
    let arguments: StatementArguments
    /// The functions and collations that the connection needs for the condition.
    let extensions: Set<SQLExtension>
}

extension PredicateNode {
    /// Returns the condition in SQL.
    ///
    /// - Parameter known: Fields that count as fields without a value when the type lacks them.
    /// - Throws: ``StoreError`` `schema` for a field that the type lacks, `invalid` for a value that can't be compared.
    func condition(_ type: QueriedType, _ naming: FieldNaming, known: Set<String>) throws -> SQLCondition {
        var builder = ConditionBuilder(type: type, naming: naming, known: known)
        let sql = try builder.sql(self)
        return SQLCondition(sql: sql, arguments: builder.arguments, extensions: builder.extensions)
    }
}

private struct ConditionBuilder {
    typealias Operand = PredicateNode.Operand

    let type: QueriedType
    let naming: FieldNaming
    let known: Set<String>
    var arguments = StatementArguments()
    var extensions: Set<SQLExtension> = []

    mutating func sql(_ node: PredicateNode) throws -> String {
        switch node {
        case .invalid(let error): throw error
        case .not(let node): return "NOT coalesce(\(try sql(node)), 0)"
        case .all(let nodes): return try "(" + nodes.map { try sql($0) }.joined(separator: " AND ") + ")"
        case .any(let nodes): return try "(" + nodes.map { try sql($0) }.joined(separator: " OR ") + ")"
        case .sql(let text, let values):
            try type.check(condition: text, values)
            arguments += StatementArguments(values)
            // The line break ends a comment in the text.
            return "(\(text)\n)"
        case .refers(let field, let names): return try refers(field, to: names)
        case .refersTo(let field, let related): return try refers(field, to: related)
        case .isReferenced(let field, let related): return try isReferenced(by: field, related)
        case .words(let words):
            let indexes = try type.searchableIndexes()
            guard let query = words.query else { return "0" }
            for _ in indexes { arguments += [query] }
            let rows = indexes.map { "SELECT rowid FROM \"\($0.table)\" WHERE \"\($0.table)\" MATCH ?" }
            return "_id IN (\(rows.joined(separator: " UNION ALL ")))"
        case .element(let field, let values):
            guard field != naming.nameField else { return try keys(values) }
            return try isIn(field, values)
        case .text(let field, let operation, let text, let options):
            return try search(field, operation, text, options)
        case .comparison(let field, let operation, let value):
            guard let value else {
                let sql = field == naming.nameField ? "_key" : try column(field).sql
                switch operation {
                case .equal: return "\(sql) IS NULL"
                case .unequal: return "\(sql) IS NOT NULL"
                default: throw StoreError(.invalid, "'\(field)' can be equal or unequal to nil, nothing else")
                }
            }
            if operation == .contains { return try contains(field, value) }
            if field == naming.nameField { return try compareName(operation, value) }
            return try compare(field, try column(field), operation, value)
        }
    }

    private func column(_ field: String) throws -> QueriedField {
        try type.column(field, naming, known: known)
    }

    private mutating func compare(
        _ field: String, _ column: QueriedField, _ operation: PredicateNode.Operator, _ value: Operand
    ) throws -> String {
        if let known = column.type {
            guard known.isComparable(with: value) else { throw mismatch(field, known, value) }
            if known.isList || known == .location, operation != .equal, operation != .unequal {
                throw StoreError(
                    .invalid, "'\(field)' is of type \(known), which has no order; compare it with == or !=")
            }
        }
        switch value.form {
        case .decimal:
            extensions.insert(.decimalOrder)
            arguments += [value.value.stored]
            let order = "\(SQLExtension.decimalOrder.name)(\(column.sql), ?)"
            return operation == .unequal ? "coalesce(\(order), 1) <> 0" : "\(order) \(operation.rawValue) 0"
        case .uuid:
            let texts = value.caseVariants
            if operation == .equal || operation == .unequal {
                arguments += StatementArguments(texts)
                return operation == .equal ? "\(column.sql) IN (?, ?)" : "coalesce(\(column.sql) NOT IN (?, ?), 1)"
            }
            arguments += [texts[0]]
            return "lower(\(column.sql)) \(operation.rawValue) ?"
        case .plain:
            arguments += [value.value.stored]
            return "\(column.sql) \(operation == .unequal ? "IS NOT" : operation.rawValue) ?"
        }
    }

    private mutating func isIn(_ field: String, _ values: [Operand]) throws -> String {
        let column = try column(field)
        let numbers = values.filter { $0.form == .decimal }
        let others = values.filter { $0.form != .decimal }
        if let known = column.type, let other = values.first(where: { !known.isComparable(with: $0) }) {
            throw mismatch(field, known, other)
        }
        var terms: [String] = []
        if !numbers.isEmpty {
            extensions.insert(.decimalOrder)
            let texts = numbers.compactMap { if case .string(let text) = $0.value { text } else { nil } }
            arguments += [String(decoding: try JSONEncoder().encode(texts), as: UTF8.self)]
            let name = SQLExtension.decimalOrder.name
            terms.append("EXISTS (SELECT 1 FROM json_each(?) AS tide_number WHERE \(name)(\(column.sql), tide_number.value) = 0)")
        }
        // One list, however long: SQLite bounds the depth of an expression.
        var count = 0
        for value in others {
            let forms: [any DatabaseValueConvertible] = value.form == .uuid ? value.caseVariants : [value.value.stored]
            arguments += StatementArguments(forms)
            count += forms.count
        }
        terms.append("\(column.sql) IN (\(Array(repeating: "?", count: count).joined(separator: ", ")))")
        return "(\(terms.joined(separator: " OR ")))"
    }

    // References

    /// Returns SQL for a record's name as names are compared: a UUID in lower case, any other name as it is.
    private static func canonical(_ sql: String) -> String {
        "CASE WHEN \(sql) GLOB '\(uuid)' THEN lower(\(sql)) ELSE \(sql) END"
    }

    private static let uuid = [8, 4, 4, 4, 12].map { String(repeating: "[0-9a-fA-F]", count: $0) }.joined(separator: "-")

    /// - Throws: ``StoreError`` `invalid` unless the field is a reference, or a list of references.
    private func reference(_ field: String, of type: QueriedType, _ naming: FieldNaming) throws -> QueriedField {
        let column = try type.column(field, naming, known: known)
        if let known = column.type, known.scalar != .reference {
            throw StoreError(.invalid, "'\(field)' of \(type.name) is of type \(known) and refers to no records")
        }
        return column
    }

    /// Returns SQL for the elements of a list, `tide_element`. The list gets a name of its own: `json_each` has columns such as `path`
    /// and `value`, which would hide a field of that name.
    private func elements(of column: QueriedField) -> String {
        "(SELECT \(column.sql) AS tide_list) AS tide_source, \(StoredText.elementsSQL(of: "tide_source.tide_list")) AS tide_element"
    }

    /// Returns the condition that a field names one of the records that SQL selects. The SQL has UUIDs in lower and in upper
    /// case, so that SQLite can use the index of the reference.
    private func refers(_ column: QueriedField, to names: String) -> String {
        guard column.type?.isList == true else { return "\(column.sql) IN (\(names))" }
        return "EXISTS (SELECT 1 FROM \(elements(of: column)) WHERE \(Self.canonical("tide_element.value")) IN (\(names)))"
    }

    private mutating func refers(_ field: String, to names: [String]) throws -> String {
        let column = try reference(field, of: type, naming)
        let variants = names.flatMap { name in UUID(uuidString: name) == nil ? [name] : [name.lowercased(), name.uppercased()] }
        arguments += [String(decoding: try JSONEncoder().encode(variants), as: UTF8.self)]
        return refers(column, to: "SELECT tide_name.value FROM json_each(?) AS tide_name")
    }

    private mutating func refers(_ field: String, to related: PredicateNode.Related) throws -> String {
        let column = try reference(field, of: type, naming)
        guard let target = type.related(related.type) else { return "0" }
        let condition = try condition(of: related, target)
        let names = "SELECT \(QueriedType.nameSQL) AS tide_name FROM \(target.view)\(condition)"
        let variants = """
            SELECT CASE WHEN tide_name NOT GLOB '\(Self.uuid)' THEN tide_name WHEN tide_case.column1 THEN upper(tide_name) \
            ELSE lower(tide_name) END FROM (\(names)), (VALUES (0), (1)) AS tide_case
            """
        return refers(column, to: variants)
    }

    private mutating func isReferenced(by field: String, _ related: PredicateNode.Related) throws -> String {
        guard let source = type.related(related.type) else { return "0" }
        let column = try reference(field, of: source, related.naming)
        let condition = try condition(of: related, source)
        let records = "(SELECT \(column.sql) AS tide_target FROM \(source.view)\(condition))"
        let names =
            column.type?.isList == true
            ? "SELECT \(Self.canonical("tide_name.value")) FROM \(records) AS tide_source, \(StoredText.elementsSQL(of: "tide_source.tide_target")) AS tide_name"
            : "SELECT \(Self.canonical("tide_target")) FROM \(records) WHERE tide_target IS NOT NULL"
        return "\(Self.canonical("(\(QueriedType.nameSQL))")) IN (\(names))"
    }

    /// Returns ` WHERE` with the condition of the records of another type, or nothing.
    private mutating func condition(of related: PredicateNode.Related, _ other: QueriedType) throws -> String {
        guard let node = related.node else { return "" }
        var builder = ConditionBuilder(
            type: other, naming: related.naming, known: [], arguments: arguments, extensions: extensions)
        let sql = try builder.sql(node)
        (arguments, extensions) = (builder.arguments, builder.extensions)
        return " WHERE \(sql)"
    }

    private mutating func compareName(_ operation: PredicateNode.Operator, _ value: Operand) throws -> String {
        switch operation {
        case .equal: return try keys([value])
        case .unequal: return "NOT \(try keys([value]))"
        default:
            arguments += [try nameText(value)]
            return "\(QueriedType.nameSQL) \(operation.rawValue) ?"
        }
    }

    /// Returns the condition that a text contains another one, or a list an element.
    private mutating func contains(_ field: String, _ value: Operand) throws -> String {
        if field != naming.nameField {
            let column = try column(field)
            if let known = column.type, known.isList {
                guard FieldType(known.scalar).isComparable(with: value) else { throw mismatch(field, known, value) }
                let elements = "SELECT 1 FROM \(elements(of: column))"
                switch value.form {
                case .plain:
                    arguments += [value.value.stored]
                    return "EXISTS (\(elements) WHERE tide_element.value = ?)"
                case .uuid:
                    arguments += StatementArguments(value.caseVariants)
                    return "EXISTS (\(elements) WHERE tide_element.value IN (?, ?))"
                case .decimal:
                    extensions.insert(.decimalOrder)
                    arguments += [value.value.stored]
                    return "EXISTS (\(elements) WHERE \(SQLExtension.decimalOrder.name)(tide_element.value, ?) = 0)"
                }
            }
            if let known = column.type, known.scalar != .string && known.scalar != .reference && known.scalar != .asset {
                throw StoreError(
                    .invalid, "'\(field)' is of type \(known); only a text or a list can contain a value of type \(value.type)")
            }
        }
        switch value.value {
        case .string(let text), .reference(let text): return try search(field, .contains, text, [])
        default: throw StoreError(.invalid, "'\(field)' is a text and can't contain a value of type \(value.type)")
        }
    }

    private mutating func search(
        _ field: String, _ operation: PredicateNode.Operator, _ text: String, _ options: TextOptions
    ) throws -> String {
        var sql = QueriedType.nameSQL
        if field != naming.nameField {
            let column = try column(field)
            if let known = column.type, known.isList || ![.string, .reference, .asset].contains(known.scalar) {
                throw StoreError(.invalid, "'\(field)' is of type \(known); only a text can be searched for a text")
            }
            sql = column.sql
        }
        var wanted = text
        if !options.isEmpty {
            extensions.insert(.fold)
            sql = "\(SQLExtension.fold.name)(\(sql), \(options.rawValue))"
            wanted = options.fold(text)
        }
        if operation == .contains {
            arguments += [wanted]
            return "instr(\(sql), ?) > 0"
        }
        arguments += [wanted, wanted]
        return "substr(\(sql), 1, length(?)) = ?"
    }

    /// Returns the condition that a record has one of the names.
    private mutating func keys(_ names: [Operand]) throws -> String {
        let keys = try names.flatMap { QueriedType.keys(try nameText($0)) }
        for key in keys { arguments += [key] }
        return "_key IN (\(keys.map { _ in "?" }.joined(separator: ", ")))"
    }

    /// Returns the text to compare with a record's name. UUIDs in names are in lower case.
    private func nameText(_ operand: Operand) throws -> String {
        switch operand.value {
        case .string(let text): return text.canonicalRecordName
        case .reference(let text): return text
        case .int64(let number): return "\(number)"
        case .double, .timestamp, .bytes, .location, .asset, .list:
            throw StoreError(
                .invalid,
                "'\(naming.nameField)' is the name of \(type.name) records and can't be compared with a value of type "
                    + "\(operand.type)")
        }
    }

    private func mismatch(_ field: String, _ known: FieldType, _ value: Operand) -> StoreError {
        StoreError(.invalid, "'\(field)' is of type \(known) and can't be compared with a value of type \(value.type)")
    }
}

extension PredicateNode.Operand {
    /// The UUID of a text or a reference in lower case and in upper case.
    fileprivate var caseVariants: [String] {
        switch value {
        case .string(let text), .reference(let text): [text.lowercased(), text.uppercased()]
        case .int64, .double, .timestamp, .bytes, .location, .asset, .list: []
        }
    }
}

extension FieldType {
    /// Returns whether values of the type can be compared with an operand.
    fileprivate func isComparable(with operand: PredicateNode.Operand) -> Bool {
        let other = operand.value.type
        if self == other { return true }
        guard !isList, !other.isList, operand.form != .decimal else { return false }
        return switch scalar {
        case .int64, .double: other == .int64 || other == .double
        case .string, .reference: other == .string || other == .reference
        case .asset: other == .string
        case .timestamp, .bytes, .location: false
        }
    }
}
