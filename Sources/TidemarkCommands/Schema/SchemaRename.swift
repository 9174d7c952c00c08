import ArgumentParser
import TidemarkModel
import TidemarkStore

struct SchemaRename: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rename", abstract: "Gives a record type or a field another name.",
        discussion: """
            The values, the history and the unique keys of a field follow. For the cloud a renamed field is a new one, which gets the values with \
            the next sync; devices of an older version keep the old field. If the cloud has a field of the old name with another type than the container had, the next \
            sync makes that field here and brings its values. The command can rename the name field, too.

            Synchronise before a field gets another name: a record that comes from the cloud later keeps its value of the field there, under \
            the old name.

            A type can be renamed as long as no cloud has records of it: a record keeps its type there.

            To undo the command, rename back.

            Examples:
              tidemark schema rename MyJournal.tidemark --type Destination caption title
              tidemark schema rename MyJournal.tidemark --type Destination Place --dry-run
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(help: "The record type.")
    var type: String

    @Argument(help: ArgumentHelp("The field and its new name, or the new name of the type.", valueName: "name"))
    var names: [String]

    @OptionGroup var changing: SchemaChanging

    func validate() throws {
        guard (1...2).contains(names.count) else {
            throw ValidationError("name a field and its new name, or the new name of the type")
        }
    }

    func run() async throws {
        try await reportingErrors {
            let directory = try containerToWrite(container, isDryRun: changing.dryRun)
            let known = KnownSchema(try StoreReader(container: directory).types())
            let schema = try known.type(named: type)
            var change = SchemaChange.renameType(type, to: names[0])
            if names.count == 2 {
                try known.check(field: names[0], of: schema)
                change = .renameField(names[0], of: type, to: names[1])
            }
            try await changing.make([change], in: directory, command: "schema rename") {
                "Rename \(names[0]), by which \(Wording.count($0, "record")) lose a value? History keeps the values."
            }
        }
    }
}
