import ArgumentParser
import Foundation
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// The record types of a store, for commands that look up a type or field by name.
struct KnownSchema {
    private let types: [RecordTypeSchema]

    init(_ types: [RecordTypeSchema]) { self.types = types }

    /// The types of a store. Of their indexes they have those that a schema file has declared before, or declares now.
    static func types(of directory: ContainerDirectory, beside wanted: [RecordTypeSchema]) throws -> [RecordTypeSchema] {
        let reader = try StoreReader(container: directory)
        let indexes = try reader.indexes()
        return try reader.types().map { type in
            var type = type
            let declared = wanted.first { $0.name == type.name }?.indexes ?? []
            type.indexes = indexes.first { $0.type == type.name }?.indexes
                .filter { $0.origin == .schema || declared.contains($0.index) }.map(\.index)
            return type
        }
    }

    /// Returns a sentence for each relationship to a type that neither a schema file nor the container has, because its name may
    /// be misspelt.
    static func unknownTargets(_ wanted: [RecordTypeSchema], beside present: [RecordTypeSchema]) -> [String] {
        let names = (wanted + present).map(\.name)
        return wanted.flatMap { type in
            type.references.sorted { $0.key < $1.key }.filter { !names.contains($0.value) }.map { field, target in
                "\(type.name).\(field) refers to '\(target)', a record type that neither the file nor the container has"
                    + Suggestion.question(target, among: names)
            }
        }
    }

    /// - Throws: ``StoreError`` `schema`, with a remedy.
    func type(named name: String) throws -> RecordTypeSchema {
        if let type = types.first(where: { $0.name == name }) { return type }
        let names = types.map(\.name)
        let known = names.isEmpty ? "it has none yet" : "it has \(names.joined(separator: ", "))"
        throw StoreError(.schema, "the store has no record type '\(name)'; \(known)\(Suggestion.question(name, among: names))")
    }

    /// - Throws: ``StoreError`` `schema` if the type has neither a field nor a name field of that name.
    func check(field name: String, of type: RecordTypeSchema) throws {
        guard type.field(named: name) == nil, type.nameField != name else { return }
        let names = type.fields.map(\.name)
        throw StoreError(
            .schema,
            "\(type.name) has no field '\(name)'; it has \(names.joined(separator: ", "))\(Suggestion.question(name, among: names))"
        )
    }
}

/// Options of the commands that change the schema.
struct SchemaChanging: ParsableArguments {
    @Flag(help: "Prints what would be changed, and changes nothing.")
    var dryRun = false

    @OptionGroup var confirmation: Confirmation

    @Flag(help: "Prints one JSON object.")
    var json = false

    private struct Report: Encodable {
        struct Step: Encodable {
            let change: String
            let done: Bool
            let records, lost: Int
        }
        struct Problem: Encodable {
            let type, record, field: String
            let value: String?
            let reason: String
        }
        let dryRun, changed: Bool
        let changes: [Step]
        let problems: [Problem]
        let problemCount: Int
    }

    /// Makes the changes, and prints them.
    ///
    /// - Parameters:
    ///   - changes: The changes.
    ///   - directory: The container.
    ///   - command: The command, for the history.
    ///   - files: The folder of files that become assets.
    ///   - question: Makes the question to a person from the number of records that lose a value.
    func make(
        _ changes: [SchemaChange], in directory: ContainerDirectory, command: String, files: URL? = nil,
        asking question: (Int) -> String
    ) async throws {
        let unfetched = try Self.unfetchedFields(changes, in: directory)
        let container = try PersistentContainer(directory: directory, author: "tidemark \(command)", role: .tool)
        var plan = try await container.changeSchema(changes, files: files, dryRun: true)
        if !unfetched.isEmpty, plan.problemCount == 0 {
            Output.error(
                "note: not all records of the cloud are here yet; the others keep their values of "
                    + "\(unfetched.map { "'\($0)'" }.joined(separator: " and ")) in the cloud, under the old name. To have them changed "
                    + "as well, run `tidemark sync \(Wording.shellWord(directory.url.path))` first")
        }
        if !dryRun, plan.problemCount == 0, !plan.isDone {
            let lost = plan.steps.reduce(0) { $0 + $1.lost }
            if lost > 0 {
                try confirmation.ask(question(lost))
            } else if !unfetched.isEmpty {
                try confirmation.ask("Change it all the same?")
            }
            do {
                plan = try await container.changeSchema(changes, files: files)
            } catch let refused as SchemaChangeRefused {
                // Another process has written since the plan was made.
                plan = refused.plan
            }
        }
        try tell(plan)
    }

    /// The fields that get another name although the cloud has records that are not fetched yet. The values of these fields in
    /// those records will be ignored.
    private static func unfetchedFields(_ changes: [SchemaChange], in directory: ContainerDirectory) throws -> [String] {
        let renamed = changes.compactMap { change -> (type: String, field: String)? in
            switch change {
            case .renameField(let old, let type, let new): old == new ? nil : (type, old)
            case .retypeField(let old, let type, let target): old == target.name ? nil : (type, old)
            case .add, .renameType, .dropType, .dropField, .dropUniqueKey: nil
            }
        }
        guard !renamed.isEmpty else { return [] }
        let areMissing = try SyncStatus(of: directory).obstacles.contains {
            $0 == .notFetched(.private) || $0 == .changesToFetch(.private)
        }
        guard areMissing else { return [] }
        let types = try StoreReader(container: directory).types()
        // The cloud does not have the name field, so renaming it loses nothing.
        return renamed.filter { name, field in types.first { $0.name == name }?.field(named: field) != nil }.map(\.field)
    }

    private func tell(_ plan: SchemaChangePlan) throws {
        if json {
            try Output.json(
                Report(
                    dryRun: dryRun, changed: !dryRun && plan.problemCount == 0 && !plan.isDone,
                    changes: plan.steps.map {
                        .init(change: "\($0.change)", done: $0.isDone, records: $0.records, lost: $0.lost)
                    },
                    problems: plan.problems.map {
                        .init(type: $0.record.type, record: $0.record.name, field: $0.field, value: $0.value, reason: $0.reason)
                    }, problemCount: plan.problemCount))
        } else if plan.problemCount == 0 {
            for step in plan.steps { try Output.line(line(of: step)) }
        }
        guard plan.problemCount > 0 else { return }
        if !json {
            for problem in plan.problems {
                let value = problem.value.map { "\($0): " } ?? ""
                Output.error("  \(problem.record.title), field '\(problem.field)': \(value)\(problem.reason)")
            }
            if plan.problemCount > plan.problems.count {
                Output.error("  and \(Wording.count(plan.problemCount - plan.problems.count)) more")
            }
        }
        throw ending("nothing is changed, because of \(Wording.count(plan.problemCount, "value"))", .dataError)
    }

    private func line(of step: SchemaChangePlan.Step) -> String {
        let change = "\(step.change)"
        if step.isDone { return "\(change): nothing to do" }
        let words = change.split(separator: " ", maxSplits: 1).map(String.init)
        let past = ["add": "added", "rename": "renamed", "drop": "dropped", "change": "changed"][words[0]] ?? words[0]
        var line = "\(dryRun ? "would \(words[0])" : past) \(words[1])"
        if step.records > 0 { line += "; records: \(Wording.count(step.records))" }
        if step.lost > 0 {
            if case .dropType = step.change { return line }
            line += "; only in history: \(Wording.count(step.lost, "value"))"
        }
        return line
    }
}
