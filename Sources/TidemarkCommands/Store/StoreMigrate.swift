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

    @OptionGroup var outcome: Outcome

    func run() async throws {
        try await reportingErrors {
            // `containerToWrite` does not migrate a single store that was restored from a backup, and does not tell the earlier
            // format.
            let container = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            let (before, after) = (container.description.format, try container.migrate().description.format)
            let path = container.url.path
            try outcome.tell(
                "store migrate", ["container": path, "before": before, "format": after],
                text: before == after
                    ? "\(path) has the newest format, \(after)." : "Migrated \(path) from format \(before) to \(after).")
        }
    }
}
