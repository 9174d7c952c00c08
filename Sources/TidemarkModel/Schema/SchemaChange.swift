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
    /// Makes a type, or the fields and unique keys that it lacks. Fields that the schema does not name stay.
    case add(RecordTypeSchema)
    /// Gives a type another name. Not possible while a cloud has records of it: a record keeps its type there.
    case renameType(String, to: String)
    /// Removes a type with its records and their history. Not possible while a cloud has records of it.
    case dropType(String)
    /// Gives a field another name. For the cloud it is a new field, and the values are sent as edits. A record that comes from the cloud
    /// afterwards keeps its value of the old field there: fetch everything first.
    case renameField(String, of: String, to: String)
    /// Removes a field. History keeps the values, and so does the cloud.
    case dropField(String, of: String)
    /// Removes a unique key. Records that agree in its fields are no longer merged.
    case dropUniqueKey([String], of: String)
    /// Gives a field another type and, if the names differ, another name. Every value must convert. With another name, records that come
    /// from the cloud afterwards keep their values of the old field there, as with ``renameField(_:of:to:)``.
    case retypeField(String, of: String, to: RecordTypeSchema.Field)

    /// The name of the record type that it is about.
    public var type: String {
        switch self {
        case .add(let schema): schema.name
        case .renameType(let type, _), .dropType(let type): type
        case .renameField(_, let type, _), .dropField(_, let type), .dropUniqueKey(_, let type), .retypeField(_, let type, _):
            type
        }
    }

    /// Whether it only adds types, fields and unique keys.
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

/// What changes of a schema do to the records of a container, or would do.
public struct SchemaChangePlan: Hashable, Sendable {
    /// One of the changes.
    public struct Step: Hashable, Sendable {
        /// The change.
        public let change: SchemaChange
        /// Whether the container was so before.
        public let isDone: Bool
        /// The number of records whose values change.
        public let records: Int
        /// The number of records that have no value in the changed field afterwards. History keeps the values, except those of a dropped type.
        public let lost: Int

        package init(_ change: SchemaChange, isDone: Bool = false, records: Int = 0, lost: Int = 0) {
            self.change = change
            self.isDone = isDone
            self.records = records
            self.lost = lost
        }
    }

    /// A value, or a record, that a change is not possible with.
    public struct Problem: Hashable, Sendable {
        /// The record.
        public let record: RecordName
        /// The field.
        public let field: String
        /// The beginning of the value as text; `nil` for a record that is damaged.
        public let value: String?
        /// Why it is not possible, and what helps.
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
    /// The first of the values that can't be converted. While there is one, nothing is changed.
    public package(set) var problems: [Problem] = []
    /// The number of all such values.
    public package(set) var problemCount = 0

    /// Whether the container is so already.
    public var isDone: Bool { steps.allSatisfy(\.isDone) }

    /// The number of problems that are listed.
    package static let listed = 100

    package init() {}

    package mutating func note(_ problem: Problem) {
        problemCount += 1
        if problems.count < Self.listed { problems.append(problem) }
    }
}

/// The error of a change of the schema that some values can't be converted for. Nothing was changed.
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
