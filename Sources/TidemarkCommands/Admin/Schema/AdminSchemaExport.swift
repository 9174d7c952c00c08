import ArgumentParser
import TidemarkAdministration
import TidemarkModel

struct AdminSchemaExport: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Prints the record types of a container as a schema file.",
        discussion: """
            'tidemark schema apply', 'tidemark schema diff', 'tidemark import --schema' and 'tidemark admin schema import' read what the \
            command prints. The file has no indexes, and no fields whose names begin with 'tide_': devices add these to their records.

            Examples:
              tidemark admin schema export --container journal --data ~/cloud > schema.json
              tidemark admin schema export --container journal --environment production \\
                  --data ~/cloud > schema.json
            """)

    @Option(help: ArgumentHelp("The container.", valueName: "name"))
    var container: String

    @Option(help: "development or production.")
    var environment: StoreEnvironment = .development

    @Flag(help: "Prints one JSON object on one line.")
    var json = false

    @OptionGroup var place: AdminData

    func run() async throws {
        try await reportingErrors {
            let text = try await place.administration()
                .schemaFile(of: container, environment: environment, isCompact: json)
            try Output.write(Array(text.utf8))
        }
    }
}
