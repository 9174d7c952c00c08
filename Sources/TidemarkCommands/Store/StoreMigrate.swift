import ArgumentParser
import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

struct StoreMigrate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Migrates a container to the newest format.",
        discussion: """
            Every command that writes to a container of an older format migrates it first; commands that only read refuse it, and name \
            this command. Each step is durable before the next begins. After an interruption, run the command again: it goes on with the \
            rest. Older versions of Tidemark can't open the container afterwards, so make a backup first if you may need one.

            Examples:
              tidemark store backup MyJournal.tidemark Backup.tidemark
              tidemark store migrate MyJournal.tidemark
              tidemark store migrate MyJournal.tidemark --json
            """)

    @Argument(help: "The container.")
    var container: String

    @Flag(help: "Prints one JSON object.")
    var json = false

    private struct Report: Encodable {
        let container: String
        let before: Int
        let format: Int
    }

    func run() async throws {
        try await reportingErrors {
            let container = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            let (before, after) = (container.description.format, try container.migrate().description.format)
            if json {
                try Output.json(Report(container: container.url.path, before: before, format: after))
            } else if before == after {
                try Output.line("\(container.url.path) has the newest format, \(after).")
            } else {
                try Output.line("Migrated \(container.url.path) from format \(before) to \(after).")
            }
        }
    }
}
