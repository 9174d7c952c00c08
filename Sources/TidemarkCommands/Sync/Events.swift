import ArgumentParser
import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

struct Events: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows sync events: setups, imports and exports.",
        discussion: """
            Examples:
              tidemark events MyJournal.tidemark
              tidemark events MyJournal.tidemark --limit 1000 --json
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(parsing: .unconditional, help: ArgumentHelp("The maximum number of events, newest first.", valueName: "n"))
    var limit: Int = 20

    @Flag(help: "Prints one JSON object per line.")
    var json = false

    func validate() throws { if limit < 0 { throw ValidationError("--limit takes a number from 0 on") } }

    func run() async throws {
        try await reportingErrors {
            let reader = try SyncReading(ContainerDirectory(openingAt: fileURL(container, "the container")))
            for event in try reader.events(limit: limit) {
                if json { try Output.json(EventLine(event)) } else { try Output.line(EventLine(event).text) }
            }
        }
    }
}
