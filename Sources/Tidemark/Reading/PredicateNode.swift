import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// A predicate without its record type. It names fields by text.
indirect enum PredicateNode: Sendable {
    case comparison(String, Operator, Operand?)
    case element(String, [Operand])
    case text(String, Operator, String, TextOptions)
    case all([PredicateNode])
    case any([PredicateNode])
    case not(PredicateNode)
    /// A reference field names one of these records.
    case refers(String, to: [String])
    /// A reference field names a record of another type that matches.
    case refersTo(String, Related)
    /// A record of another type that matches has a field that names this record.
    case isReferenced(by: String, Related)
    /// A full-text index of the type has the words.
    case words(SearchWords)
    case sql(String, [DatabaseValue])
    /// A field or a value that a predicate can't use.
    case invalid(StoreError)

    /// Records of another type.
    struct Related: Sendable {
        let type: String
        let naming: FieldNaming
        /// The condition of the records; `nil` for all of them.
        let node: PredicateNode?

        init<R: Record>(_ type: R.Type, where predicate: RecordPredicate<R>?) {
            self.type = R.recordType
            naming = FieldNaming(type)
            node = predicate?.node
        }
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

    /// A value that a field is compared with.
    struct Operand: Sendable {
        /// The kind of comparison, where the stored text does not determine it.
        enum Form: Sendable { case plain, uuid, decimal }

        let value: FieldValue
        let form: Form
        /// The Swift type, for messages.
        let type: String

        /// - Throws: ``FieldError``, `EncodingError`.
        init?<Value: Encodable>(_ value: Value) throws {
            guard let content = try RecordEncoder.content(of: value) else { return nil }
            self.value = try content.value { _ in throw FieldError("the asset is not saved yet") }
            form = Self.form(of: value, self.value)
            type = "\(Value.self)"
        }

        private static func form(of value: some Encodable, _ stored: FieldValue) -> Form {
            if value is UUID { return .uuid }
            if value is Decimal { return .decimal }
            if case .reference(let name) = stored, UUID(uuidString: name) != nil { return .uuid }
            return .plain
        }
    }

    static func compare<Value: Encodable>(_ field: String, _ operation: Operator, _ value: Value?) -> PredicateNode {
        attempt(field) { .comparison(field, operation, try value.flatMap { try Operand($0) }) }
    }

    static func isIn(_ field: String, _ values: some Sequence<some Encodable>) -> PredicateNode {
        attempt(field) { .element(field, try values.compactMap { try Operand($0) }) }
    }

    private static func attempt(_ field: String, _ body: () throws -> PredicateNode) -> PredicateNode {
        do {
            return try body()
        } catch let error as FieldError {
            return .invalid(StoreError(.invalid, "'\(field)' can't be compared: \(error.message)"))
        } catch EncodingError.invalidValue(_, let context) {
            return .invalid(StoreError(.invalid, "'\(field)' can't be compared: \(context.debugDescription)"))
        } catch {
            return .invalid(StoreError(.invalid, "'\(field)' can't be compared: \(error)"))
        }
    }
}

/// The names and the default values that a Swift type declares for its fields.
struct FieldNaming: Sendable {
    let nameField: String
    /// The former names of fields, by their current names.
    let former: [String: [String]]
    /// The values of the type's prototype, for fields of properties that are not optional.
    let defaults: [String: FieldValue]
    /// Returns whether a name is a coding key of the type.
    let isProperty: @Sendable (String) -> Bool

    init<R: Record>(_ type: R.Type) {
        nameField = R.nameField
        let naming = RecordNaming.of(type)
        former = naming.formerNames
        defaults = naming.prototype?.fields ?? [:]
        isProperty = { PropertyNames.isProperty($0, of: R.self) }
    }
}

extension RecordSource {
    /// The record type of a Swift type, for a query that may name properties with a default value; `nil` if the store lacks the
    /// type.
    func type<R: Record>(_ db: Database, queriedAs type: R.Type) throws -> QueriedType? {
        let found = try self.type(db, named: R.recordType)
        guard let defaults = RecordNaming.of(type).prototype?.fields, !defaults.isEmpty else { return found }
        return try found?.findingComplete(db, among: defaults.keys)
    }
}

/// A field in SQL.
struct QueriedField {
    let sql: String
    /// The type of the field; `nil` if no record has a value of it.
    let type: FieldType?
    /// Whether the store has a column for the field. Otherwise all records have the same value.
    let hasColumn: Bool
}

extension QueriedType {
    /// Finds a field by its name or a former one.
    ///
    /// - Parameter known: Fields that count as fields without a value when the type lacks them.
    /// - Throws: ``StoreError`` `schema`.
    func column(_ field: String, _ naming: FieldNaming, known: Set<String>) throws -> QueriedField {
        let names = [field] + (naming.former[field] ?? [])
        // A default in place of a missing value keeps SQLite from using an index.
        let columns = isComplete(field) ? [column(field)].compactMap(\.self) : names.compactMap { column($0) }
        let value = isComplete(field) ? nil : naming.defaults[field]
        guard !columns.isEmpty || value != nil || !known.isDisjoint(with: names) || naming.isProperty(field) else {
            throw StoreError(
                .schema,
                "\(name) has no field '\(field)'; it has \(fields.map(\.name).joined(separator: ", ")). A new property becomes a field with "
                    + "the first record that is saved")
        }
        // The type of the newest name that the store has.
        let stored = names.lazy.compactMap { name in fields.first { $0.name == name } }.first
        let terms = columns + (value.map { [$0.stored.literal] } ?? [])
        return QueriedField(
            sql: terms.count > 1 ? "coalesce(\(terms.joined(separator: ", ")))" : terms.first ?? "NULL",
            type: stored?.type ?? value?.type, hasColumn: !columns.isEmpty)
    }
}

extension DatabaseValueConvertible {
    /// The value as a literal in SQL.
    fileprivate var literal: String {
        switch databaseValue.storage {
        case .null: "NULL"
        case .int64(let number): "\(number)"
        case .double(let number): "\(number)"
        case .string(let text): "'\(text.replacing("'", with: "''"))'"
        case .blob(let data): "x'\(data.map { String(format: "%02x", $0) }.joined())'"
        }
    }
}
