import ArgumentParser
import TidemarkModel
import TidemarkStore
import TidemarkTransfer

struct SchemaShow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Prints the record types as a schema file.",
        discussion: """
            'tidemark schema apply' and 'tidemark import --schema' read what the command prints.

            Examples:
              tidemark schema show MyJournal.tidemark
              tidemark schema show MyJournal.tidemark --type Destination > schema.json
              tidemark schema show MyJournal.tidemark --json
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(help: "Prints this record type only.")
    var type: String?

    @Option(help: "The store: private or shared.")
    var scope: StoreScope = .private

    @Flag(help: "Prints one JSON object on one line.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            var types = try StoreReader(container: directory, scope: scope).schemas()
            if let type { types = [try KnownSchema(types).type(named: type)] }
            try Output.write(Array(SchemaFile.text(of: types, isCompact: json).utf8))
        }
    }
}
