import ArgumentParser
import Foundation
import TidemarkContainers
import TidemarkSQLite
import TidemarkStore

struct StoreRestore: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Creates a container from a backup.",
        discussion: """
            The command verifies the backup first, and does not change it. It replaces a container at the target only with --replace, \
            and only after the restored one is complete. Older history tokens are invalid afterwards.

            Examples:
              tidemark store restore /backups/Monday.tidemark MyJournal.tidemark
              tidemark store restore /backups/Monday.tidemark MyJournal.tidemark --replace
            """)

    @Argument(help: "The backup.")
    var backup: String

    @Argument(help: "The path of the container.")
    var container: String

    @Flag(help: "Replaces an existing container, if it is the one that was backed up.")
    var replace = false

    @Flag(help: "Restores a backup even if it has damaged records, with these as they are.")
    var allowDamage = false

    @Option(help: "Shows a progress bar on standard error: auto (on a terminal), always or never.")
    var progress: ProgressMode = .auto

    @Flag(help: "Prints the summary as one JSON object.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let backup = try ContainerDirectory(openingAt: fileURL(backup, "the backup"))
            let bar = CopyingBar(progress)
            var restoration = ContainerRestoration(of: backup, to: try fileURL(container, "the container"), replaces: replace)
            restoration.hook = MoveKillHook.hook
            restoration.allowsDamage = allowDamage
            let summary = try restoration.run { bar.show($0) }
            bar.finish()
            if summary.damaged > 0 {
                Output.error(
                    "tidemark: \(Wording.count(summary.damaged, "damaged record")) restored as they are; repair with `tidemark verify --repair`"
                )
            }
            if json { return try Output.json(summary) }
            let replaced = summary.hasReplaced ? " The previous container was removed." : ""
            let kept = summary.kept.map { " Files that were not the container's are in \($0)." } ?? ""
            try Output.line(
                "Restored \(Wording.count(summary.records, "record")) and \(Wording.count(summary.assets, "asset")), "
                    + "\(Wording.bytes(Int(summary.bytes))), to \(summary.path).\(replaced)\(kept)")
        }
    }
}
