import ArgumentParser
import TidemarkModel
import TidemarkStore
import TidemarkTransfer

struct SchemaApply: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apply", abstract: "Gives a container the record types of a schema file.",
        discussion: """
            The command adds the types, fields and unique keys that the container lacks, and gives fields the type that the file says, as \
            'tidemark schema retype' does. It gives fields the relationships and types the indexes that the file says; indexes of an earlier \
            schema file that this one does not have are dropped. If a value can't be converted, the command lists these values and changes nothing (exit code 65). \
            What only the container has stays.

            In a production container it only adds: have the types and fields deployed in the cloud first.

            Examples:
              tidemark schema show MyJournal.tidemark > schema.json
              tidemark schema apply MyJournal.tidemark schema.json --dry-run
              tidemark schema apply MyJournal.tidemark schema.json
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The schema file.")
    var file: String

    @Option(help: ArgumentHelp("The folder of the files that texts name, for fields that become assets.", valueName: "folder"))
    var base: String?

    @OptionGroup var changing: SchemaChanging

    func run() async throws {
        try await reportingErrors {
            let wanted = try SchemaFile.read(fileURL(file, "the schema file"))
            let directory = try containerToWrite(container, isDryRun: changing.dryRun)
            let present = try KnownSchema.types(of: directory, beside: wanted)
            for line in KnownSchema.unknownTargets(wanted, beside: present) { Output.error("note: \(line)") }
            let difference = SchemaDifference(from: present, to: wanted)
            if difference.changes.isEmpty, !changing.json {
                return try Output.line("the container has all of it: nothing to do")
            }
            try await changing.make(
                difference.changes, in: directory, command: "schema apply", files: base.map { try fileURL($0, "the folder") }
            ) { "Change the schema, by which \(Wording.count($0, "record")) lose a value? History keeps the values." }
        }
    }
}
