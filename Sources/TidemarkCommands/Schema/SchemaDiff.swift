import ArgumentParser
import TidemarkModel
import TidemarkStore
import TidemarkTransfer

struct SchemaDiff: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "diff", abstract: "Compares a container's record types with a schema file.",
        discussion: """
            Lines with + are in the file only, and 'tidemark schema apply' adds them; lines with - are in the container only, and stay. \
            Lines with ~ have another type. The order of fields does not matter.

            Examples:
              tidemark schema diff MyJournal.tidemark schema.json
              tidemark schema diff MyJournal.tidemark schema.json --json
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The schema file.")
    var file: String

    @Flag(help: "Prints one JSON object.")
    var json = false

    private struct Report: Encodable {
        struct Line: Encodable {
            /// `file` or `container` if only that side has it; `type` if both sides have it and differ.
            let only: String
            let type: String
            let field: String?
            let here, wanted: String?
        }
        let equal: Bool
        let differences: [Line]
    }

    func run() async throws {
        try await reportingErrors {
            let wanted = try SchemaFile.read(fileURL(file, "the schema file"))
            let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            let present = try KnownSchema.types(of: directory, beside: wanted)
            let difference = SchemaDifference(from: present, to: wanted)
            let lines = lines(difference, present)
            for line in KnownSchema.unknownTargets(wanted, beside: present) { Output.error("note: \(line)") }
            if json { return try Output.json(Report(equal: lines.isEmpty, differences: lines)) }
            for line in lines {
                let name = line.field.map { "\(line.type).\($0)" } ?? line.type
                switch line.only {
                case "file": try Output.line("+ \(name)\(line.wanted.map { " \($0)" } ?? "")")
                case "container": try Output.line("- \(name)\(line.here.map { " \($0)" } ?? "")")
                default: try Output.line("~ \(name): \(line.here ?? "none") here, \(line.wanted ?? "none") in the file")
                }
            }
            if lines.isEmpty { try Output.line("no differences") }
        }
    }

    private func lines(_ difference: SchemaDifference, _ present: [RecordTypeSchema]) -> [Report.Line] {
        var lines: [Report.Line] = []
        for change in difference.changes {
            switch change {
            case .add(let schema):
                let known = present.first { $0.name == schema.name }
                if known == nil { lines.append(.init(only: "file", type: schema.name, field: nil, here: nil, wanted: nil)) }
                lines += schema.fields.map {
                    .init(only: "file", type: schema.name, field: $0.name, here: nil, wanted: $0.typeName)
                }
                lines += schema.uniqueKeys.map {
                    .init(
                        only: "file", type: schema.name, field: nil, here: nil, wanted: "unique key \($0.joined(separator: ", "))"
                    )
                }
                lines += relationships(schema, known)
                if let indexes = schema.indexes { lines += self.indexes(indexes, known?.indexes ?? [], of: schema.name) }
                if let nameField = schema.nameField, let known {
                    lines.append(
                        .init(
                            only: "type", type: schema.name, field: nil, here: known.nameField.map { "name field \($0)" },
                            wanted: "name field \(nameField)"))
                }
            case .retypeField(let field, let type, let target):
                let here = difference.types[.init(type: type, field: field)]
                lines.append(.init(only: "type", type: type, field: field, here: here?.typeName, wanted: target.typeName))
            case .renameType, .dropType, .renameField, .dropField, .dropUniqueKey: break
            }
        }
        lines += difference.fieldsOnlyHere.map { it in
            let field = present.first { $0.name == it.type }?.field(named: it.field)
            return .init(only: "container", type: it.type, field: it.field, here: field?.typeName, wanted: nil)
        }
        lines += difference.typesOnlyHere.map { .init(only: "container", type: $0, field: nil, here: nil, wanted: nil) }
        return lines
    }

    private func relationships(_ schema: RecordTypeSchema, _ known: RecordTypeSchema?) -> [Report.Line] {
        func words(_ relationship: RelationshipSchema?) -> String? {
            relationship.map { "relationship to \($0.target), \($0.meaning)" }
        }
        return schema.relationships.sorted { $0.key < $1.key }.map { name, wanted in
            .init(
                only: known == nil ? "file" : "type", type: schema.name, field: name,
                here: words(known?.relationships[name] ?? nil),
                wanted: words(wanted))
        }
    }

    private func indexes(_ wanted: [FieldIndex], _ here: [FieldIndex], of type: String) -> [Report.Line] {
        func words(_ index: FieldIndex) -> String { "index \(index.name)\(index.language.map { ", \($0)" } ?? "")" }
        return wanted.filter { !here.contains($0) }.map {
            .init(only: "file", type: type, field: nil, here: nil, wanted: words($0))
        }
            + here.filter { !wanted.contains($0) }.map {
                .init(only: "type", type: type, field: nil, here: words($0), wanted: nil)
            }
    }
}
