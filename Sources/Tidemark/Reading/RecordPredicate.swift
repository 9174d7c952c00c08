import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Which records are wanted.
///
/// ```swift
/// let recent = try await journal.fetchAll(
///     Destination.self, where: .field("createdAt") > lastWeek && .field("caption").contains("fjord"))
/// let by = try await journal.fetchAll(Destination.self, where: .sql("length(details) > ?", 1000))
/// ```
///
/// Fields are named as the record type has them, and the record's name as ``Record/nameField`` says. As in SQL, a field without a value
/// is neither greater nor less than anything; it is equal to `nil` and unequal to every value.
public struct RecordPredicate: Sendable {
    indirect enum Node: Sendable {
        case comparison(String, Operator, FieldValue?)
        case element(String, [FieldValue])
        case all([Node])
        case any([Node])
        case not(Node)
        case sql(String, StatementArguments)
        /// A value that can't be a field's.
        case invalid(String)
    }

    enum Operator: String, Sendable {
        case equal = "="
        case unequal = "<>"
        case less = "<"
        case lessOrEqual = "<="
        case greater = ">"
        case greaterOrEqual = ">="
        case contains, beginsWith
    }

    let node: Node

    init(_ node: Node) { self.node = node }

    /// Begins a comparison.
    public static func field(_ name: String) -> Field { Field(name: name) }

    /// Both hold.
    public static func && (left: RecordPredicate, right: RecordPredicate) -> RecordPredicate {
        RecordPredicate(.all([left.node, right.node]))
    }

    /// At least one of both holds.
    public static func || (left: RecordPredicate, right: RecordPredicate) -> RecordPredicate {
        RecordPredicate(.any([left.node, right.node]))
    }

    /// The predicate does not hold.
    public static prefix func ! (predicate: RecordPredicate) -> RecordPredicate { RecordPredicate(.not(predicate.node)) }

    /// A field that is yet to be compared.
    public struct Field: Sendable {
        let name: String

        /// Begins a comparison.
        public static func field(_ name: String) -> Field { Field(name: name) }

        /// Whether a text has this in it, in the same spelling; whether a list has this element.
        public func contains(_ value: some Encodable) -> RecordPredicate { compare(.contains, value) }
        /// Whether a text begins with this, in the same spelling.
        public func begins(with prefix: String) -> RecordPredicate { compare(.beginsWith, prefix) }

        /// Whether the value is one of these.
        public func isIn(_ values: some Sequence<some Encodable>) -> RecordPredicate {
            do {
                return RecordPredicate(.element(name, try values.compactMap { try Self.value($0) }))
            } catch {
                return RecordPredicate(.invalid("\(error)"))
            }
        }

        func compare(_ operation: Operator, _ value: (some Encodable)?) -> RecordPredicate {
            do {
                return RecordPredicate(.comparison(name, operation, try value.flatMap { try Self.value($0) }))
            } catch {
                return RecordPredicate(.invalid("\(error)"))
            }
        }

        private static func value(_ value: some Encodable) throws -> FieldValue? {
            switch try RecordEncoder.content(of: value) {
            case nil: return nil
            case .value(let value): return value
            case .asset, .list: throw FieldError("an asset that is not saved, or a list, can't be compared")
            }
        }
    }
}

public func == (field: RecordPredicate.Field, value: (some Encodable)?) -> RecordPredicate { field.compare(.equal, value) }
/// The field has another value, or none.
public func != (field: RecordPredicate.Field, value: (some Encodable)?) -> RecordPredicate { field.compare(.unequal, value) }
public func == (field: RecordPredicate.Field, none: _OptionalNilComparisonType) -> RecordPredicate {
    field.compare(.equal, nil as String?)
}
/// The field has a value.
public func != (field: RecordPredicate.Field, none: _OptionalNilComparisonType) -> RecordPredicate {
    field.compare(.unequal, nil as String?)
}
public func < (field: RecordPredicate.Field, value: some Encodable) -> RecordPredicate { field.compare(.less, value) }
/// The field's value comes before another, or is the same. A record without a value is not among the results.
public func <= (field: RecordPredicate.Field, value: some Encodable) -> RecordPredicate { field.compare(.lessOrEqual, value) }
/// The field's value comes after another. A record without a value is not among the results.
public func > (field: RecordPredicate.Field, value: some Encodable) -> RecordPredicate { field.compare(.greater, value) }
/// The field's value comes after another, or is the same. A record without a value is not among the results.
public func >= (field: RecordPredicate.Field, value: some Encodable) -> RecordPredicate { field.compare(.greaterOrEqual, value) }

/// An order of records by one field.
public struct RecordSort: Hashable, Sendable {
    /// The field's name.
    public let field: String
    /// Whether the greatest value comes first.
    public let isDescending: Bool

    /// The least value first; records without a value come before all.
    public static func ascending(_ field: String) -> RecordSort { RecordSort(field: field, isDescending: false) }
    /// The greatest value first; records without a value come last.
    public static func descending(_ field: String) -> RecordSort { RecordSort(field: field, isDescending: true) }
}

extension RecordPredicate {
    /// The condition in SQL.
    ///
    /// - Parameter known: Fields that have no value where the type lacks them.
    /// - Throws: ``StoreError`` `schema` for a field that the type lacks, `invalid` for a value that can't be compared.
    func sql(
        _ type: QueriedType, nameField: String, known: Set<String>
    ) throws -> (sql: String, arguments: StatementArguments) {
        var builder = Builder(type: type, nameField: nameField, known: known)
        let sql = try builder.sql(node)
        return (sql, builder.arguments)
    }

    private struct Builder {
        let type: QueriedType
        let nameField: String
        let known: Set<String>
        var arguments = StatementArguments()

        mutating func sql(_ node: Node) throws -> String {
            switch node {
            case .invalid(let message): throw StoreError(.invalid, message)
            case .not(let node): return "NOT coalesce(\(try sql(node)), 0)"
            case .all(let nodes): return try "(" + nodes.map { try sql($0) }.joined(separator: " AND ") + ")"
            case .any(let nodes): return try "(" + nodes.map { try sql($0) }.joined(separator: " OR ") + ")"
            case .sql(let text, let values):
                try type.checkCondition()
                arguments += values
                // On lines of their own, so that a comment in it ends there.
                return "(\(text)\n)"
            case .element(let field, let values):
                guard field != nameField else {
                    return keys(values)
                }
                for value in values { arguments += [value.stored] }
                return "\(try column(field)) IN (\(values.map { _ in "?" }.joined(separator: ", ")))"
            case .comparison(let field, let operation, let value): return try compare(field, operation, value)
            }
        }

        private mutating func compare(_ field: String, _ operation: Operator, _ value: FieldValue?) throws -> String {
            guard let value else {
                let column = field == nameField ? "_key" : try column(field)
                switch operation {
                case .equal: return "\(column) IS NULL"
                case .unequal: return "\(column) IS NOT NULL"
                default: throw StoreError(.invalid, "'\(field)' can be equal or unequal to nil, nothing else")
                }
            }
            if field == nameField, operation == .equal || operation == .unequal {
                return operation == .equal ? keys([value]) : "NOT \(keys([value]))"
            }
            let column = field == nameField ? QueriedType.nameSQL : try column(field)
            if let known = type.fields.first(where: { $0.name == field })?.type, operation != .contains || !known.isList {
                guard known.isComparable(with: value.type) else {
                    throw StoreError(.invalid, "'\(field)' is a \(known) and can't be compared with a \(value.type)")
                }
            }
            arguments += [field == nameField ? value.nameText.databaseValue : value.stored]
            switch operation {
            case .unequal: return "\(column) IS NOT ?"
            case .equal, .less, .lessOrEqual, .greater, .greaterOrEqual: return "\(column) \(operation.rawValue) ?"
            case .beginsWith:
                arguments += [value.stored]
                return "substr(\(column), 1, length(?)) = ?"
            case .contains:
                let isList = type.fields.first { $0.name == field }?.type.isList ?? false
                return isList
                    ? "EXISTS (SELECT 1 FROM json_each(\(column)) WHERE value = ?)" : "instr(\(column), ?) > 0"
            }
        }

        /// That a record has one of some names.
        private mutating func keys(_ names: [FieldValue]) -> String {
            let keys = names.flatMap { QueriedType.keys($0.nameText) }
            for key in keys { arguments += [key] }
            return "_key IN (\(keys.map { _ in "?" }.joined(separator: ", ")))"
        }

        private func column(_ field: String) throws -> String {
            try type.column(field, known: known)
        }
    }
}

extension FieldType {
    /// Whether values of two types have an order, and may be equal.
    fileprivate func isComparable(with other: FieldType) -> Bool {
        self == other || order != nil && order == other.order
    }

    private enum Order { case numbers, texts }

    /// The order that values of the type share with those of other types; `nil` where they share none.
    private var order: Order? {
        if isList { return .texts }
        return switch scalar {
        case .int64, .double: .numbers
        case .string, .location, .reference, .asset: .texts
        case .timestamp, .bytes: nil
        }
    }
}

extension FieldValue {
    /// What a record's name is compared with; UUIDs are in lower case there.
    fileprivate var nameText: String {
        switch self {
        case .string(let text): UUID(uuidString: text).map { $0.uuidString.lowercased() } ?? text
        case .reference(let text): text
        case .int64(let number): "\(number)"
        case .double, .timestamp, .bytes, .location, .asset, .list: ""
        }
    }
}
