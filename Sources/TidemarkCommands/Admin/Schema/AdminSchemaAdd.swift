import ArgumentParser
import Foundation
import TidemarkAdministration
import TidemarkModel

/// The additions to a development schema.
private struct SchemaAdditions {
    struct Field: Encodable { let type, field, kind: String }

    private(set) var types: [String] = []
    private(set) var fields: [Field] = []

    init(_ differences: [CloudSchemaDifference]) {
        for difference in differences {
            switch (difference.change, difference.field) {
            case (.newType, _): types.append(difference.type)
            case (.newField(let kind), let field?): fields.append(Field(type: difference.type, field: field, kind: kind))
            default: break
            }
        }
    }

    func tell(_ command: String, _ container: String, _ outcome: Outcome) throws {
        guard !outcome.json else {
            return try outcome.tell(command, ["container": container, "types": types, "fields": fields])
        }
        for type in types { try Output.line("added the type \(type)") }
        for field in fields { try Output.line("added \(field.type).\(field.field) \(field.kind)") }
        if types.isEmpty, fields.isEmpty { try Output.line("the development schema has all of it: nothing is added") }
    }
}

struct AdminSchemaAdd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Adds a record type, or a field of one, to the development schema.",
        discussion: """
            The kind of a field is string, int64 or int, double, boolean or bool (a whole number in a cloud), timestamp or time, bytes, \
            location, reference, asset, or list<…> of one of them. It can't be changed later, as long as the field is there. To have it in \
            production, deploy the schema.

            Examples:
              tidemark admin schema add --container journal --type Trip --data ~/cloud
              tidemark admin schema add --container journal --type Trip --field days --kind int64 --data ~/cloud
            """)

    @Option(help: ArgumentHelp("The container.", valueName: "name"))
    var container: String

    @Option(help: ArgumentHelp("The record type, which is made if it is not there.", valueName: "name"))
    var type: String

    @Option(help: ArgumentHelp("The field. (default: the type alone)", valueName: "name"))
    var field: String?

    @Option(help: ArgumentHelp("The kind of the field's values.", valueName: "type"))
    var kind: String?

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    func validate() throws {
        guard (field == nil) == (kind == nil) else {
            throw ValidationError("--field and --kind go together: say which field, and of which kind it is")
        }
    }

    func run() async throws {
        try await reportingErrors {
            var fields: [String: FieldType] = [:]
            if let field, let kind { fields[field] = try Assignment.field(field, ofType: kind).type }
            let added = try await place.administration().addToSchema([type: fields], of: container)
            try SchemaAdditions(added).tell("admin schema add", container, outcome)
        }
    }
}

struct AdminSchemaImport: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Adds the record types and fields of a schema file to the development schema.",
        discussion: """
            'tidemark schema show' and 'tidemark admin schema export' print such a file. What the schema has already stays. If a field \
            has another type there, the command names it and adds nothing. Unique keys, relationships and indexes of the file have no \
            effect: they belong to containers.

            Examples:
              tidemark admin schema import schema.json --container journal --data ~/cloud
              tidemark schema show MyJournal.tidemark | \\
                  tidemark admin schema import - --container journal --data ~/cloud
            """)

    @Argument(help: "The schema file; - for standard input.")
    var file: String

    @Option(help: ArgumentHelp("The container.", valueName: "name"))
    var container: String

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    func run() async throws {
        try await reportingErrors {
            let text = try readFile()
            let added = try await place.administration().importSchema(text, into: container)
            try SchemaAdditions(added).tell("admin schema import", container, outcome)
        }
    }

    private func readFile() throws -> String {
        guard file != "-" else {
            return String(decoding: try FileHandle.standardInput.readToEnd() ?? Data(), as: UTF8.self)
        }
        let url = try fileURL(file, "the schema file")
        do {
            return String(decoding: try Data(contentsOf: url), as: UTF8.self)
        } catch {
            throw ending("cannot read the schema file \(url.path): \(error.localizedDescription)", .noInput)
        }
    }
}
