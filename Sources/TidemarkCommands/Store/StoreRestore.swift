import ArgumentParser
import Foundation
import TidemarkSQLite
import TidemarkStore

struct StoreRestore: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Makes a container from a backup.",
        discussion: """
            The backup is verified first, and stays as it is. A container that is at the target goes only with --replace, and only when \
            the restored one is whole. History tokens that were given out before are void afterwards.

            Examples:
              tidemark store restore /backups/Monday.tidemark MyJournal.tidemark
              tidemark store restore /backups/Monday.tidemark MyJournal.tidemark --replace
            """)

    @Argument(help: "The backup.")
    var backup: String

    @Argument(help: "The place of the container.")
    var container: String

    @Flag(help: "Replaces the container that is there, if it is the one that was backed up.")
    var replace = false

    @Flag(help: "Restores also a backup with damaged records, with these as they are.")
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
            restoration.hook = KillSwitch.hook
            restoration.allowsDamage = allowDamage
            let summary = try restoration.run { bar.show($0) }
            bar.finish()
            if summary.damaged > 0 {
                Output.error(
                    "tidemark: \(Wording.count(summary.damaged, "damaged record")) restored as they are; repair with `tidemark verify --repair`"
                )
            }
            if json { return try Output.json(summary) }
            let replaced = summary.hasReplaced ? " What was there is gone." : ""
            let kept = summary.kept.map { " Files that were not the container's are in \($0)." } ?? ""
            try Output.line(
                "Restored \(Wording.count(summary.records, "record")) and \(Wording.count(summary.assets, "asset")), "
                    + "\(Wording.bytes(Int(summary.bytes))), to \(summary.path).\(replaced)\(kept)")
        }
    }
}
