public import Foundation

/// A change of the record types of a container.
///
/// ```swift
/// try await journal.changeSchema([
///     .renameField("caption", of: "Destination", to: "title"),
///     .retypeField("rating", of: "Destination", to: .init(name: "stars", type: .double)),
/// ])
/// ```
public enum SchemaChange: Hashable, Sendable {
    /// Adds a type; if it exists, adds the fields, unique keys, relationships and indexes that it lacks. Fields that the schema
    /// does not name stay.
    case add(RecordTypeSchema)
    /// Gives a type another name. Not possible while a cloud has records of the type: in a cloud, a record keeps its type.
    case renameType(String, to: String)
    /// Removes a type with its records and their history. Not possible while a cloud has records of it.
    case dropType(String)
    /// Gives a field another name. In the cloud this is a new field, and the values are sent as edits. A record that is fetched
    /// afterwards may have its value in the old field, and that value is ignored: fetch everything first.
    case renameField(String, of: String, to: String)
    /// Removes a field. History keeps the values, and so does the cloud.
    case dropField(String, of: String)
    /// Removes a unique key. Records that agree in its fields are no longer merged.
    case dropUniqueKey([String], of: String)
    /// Gives a field another type and, if the names differ, another name. Every value must convert. With another name, values in
    /// the old field of records that are fetched afterwards are ignored, as with ``renameField(_:of:to:)``.
    case retypeField(String, of: String, to: RecordTypeSchema.Field)

    /// The name of the record type that the change is about.
    public var type: String {
        switch self {
        case .add(let schema): schema.name
        case .renameType(let type, _), .dropType(let type): type
        case .renameField(_, let type, _), .dropField(_, let type), .dropUniqueKey(_, let type), .retypeField(_, let type, _):
            type
        }
    }

    /// Whether the change is an ``add(_:)``.
    public var isAddition: Bool { if case .add = self { true } else { false } }
}

extension SchemaChange: CustomStringConvertible {
    public var description: String {
        switch self {
        case .add(let schema):
            let parts =
                schema.fields.map { "\($0.name) \($0.typeName)" }
                + schema.uniqueKeys.map { "the unique key \($0.joined(separator: ", "))" }
                + (schema.nameField.map { ["the name field \($0)"] } ?? [])
                + schema.relationships.sorted { $0.key < $1.key }.map { name, it in
                    "the relationship \(name)\(it.map { " to \($0.target), \($0.meaning)" } ?? ", none")"
                }
                + (schema.indexes.map { indexes in
                    [indexes.isEmpty ? "no indexes" : "the indexes \(indexes.map(\.name).joined(separator: ", "))"]
                } ?? [])
            return "add \(schema.name): \(parts.isEmpty ? "no fields" : parts.joined(separator: ", "))"
        case .renameType(let old, let new): return "rename \(old) to \(new)"
        case .dropType(let type): return "drop \(type)"
        case .renameField(let old, let type, let new): return "rename \(old) of \(type) to \(new)"
        case .dropField(let field, let type): return "drop \(field) of \(type)"
        case .dropUniqueKey(let key, let type): return "drop the unique key \(key.joined(separator: ", ")) of \(type)"
        case .retypeField(let field, let type, let new):
            let name = new.name == field ? "" : "\(new.name), "
            return "change \(field) of \(type) to \(name)\(new.typeName)"
        }
    }
}

/// A plan or report of schema changes: what they do, or would do, to the records of a container.
public struct SchemaChangePlan: Hashable, Sendable {
    /// One of the changes.
    public struct Step: Hashable, Sendable {
        /// The change.
        public let change: SchemaChange
        /// Whether the container had the change already.
        public let isDone: Bool
        /// The number of records whose values change.
        public let records: Int
        /// The number of records that lose their value of the changed field. History keeps the values, except those of a dropped
        /// type.
        public let lost: Int

        package init(_ change: SchemaChange, isDone: Bool = false, records: Int = 0, lost: Int = 0) {
            self.change = change
            self.isDone = isDone
            self.records = records
            self.lost = lost
        }
    }

    /// A value or a record that prevents a change.
    public struct Problem: Hashable, Sendable {
        /// The record.
        public let record: RecordName
        /// The field.
        public let field: String
        /// The beginning of the value as text; `nil` for a record that is damaged.
        public let value: String?
        /// The reason why the change is not possible, and a remedy.
        public let reason: String

        package init(record: RecordName, field: String, value: String?, reason: String) {
            self.record = record
            self.field = field
            self.value = value
            self.reason = reason
        }
    }

    /// The changes in their order.
    public package(set) var steps: [Step] = []
    /// The first problems, at most 100 of them. While there is a problem, nothing is changed.
    public package(set) var problems: [Problem] = []
    /// The number of all problems.
    public package(set) var problemCount = 0

    /// Whether the container has all of the changes already.
    public var isDone: Bool { steps.allSatisfy(\.isDone) }

    /// The most problems that are listed.
    package static let listed = 100

    package init() {}

    package mutating func note(_ problem: Problem) {
        problemCount += 1
        if problems.count < Self.listed { problems.append(problem) }
    }
}

/// The error of a schema change for which some values can't be converted. Nothing was changed.
public struct SchemaChangeRefused: Error, Hashable, Sendable, CustomStringConvertible {
    /// The changes, and the values that can't be converted.
    public let plan: SchemaChangePlan

    package init(_ plan: SchemaChangePlan) { self.plan = plan }

    public var description: String {
        let first = plan.problems.first.map { ": \($0.record.type) \($0.record.name), field '\($0.field)': \($0.reason)" } ?? ""
        let count = plan.problemCount == 1 ? "1 value" : "\(plan.problemCount) values"
        return "the schema is not changed, because of \(count)\(first)"
    }
}

extension SchemaChangeRefused: LocalizedError {
    /// The error message: the text of `localizedDescription`, in the language of ``ErrorLanguage/current``.
    public var errorDescription: String? {
        switch ErrorLanguage.current {
        case .english: description
        case .german: "Einige Werte lassen sich nicht in das neue Schema übernehmen. Es wurde nichts geändert."
        }
    }
    /// The first value in English, where the description is a general sentence in another language.
    public var failureReason: String? { ErrorLanguage.current == .english ? nil : description }
}
