import ArgumentParser
import Foundation
import TidemarkContainers
import TidemarkSQLite
import TidemarkStore

struct StoreBackup: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Copies a container and verifies the copy, while the container is in use.",
        discussion: """
            The copy is a container itself: both stores as of one moment, and their assets. The command overwrites nothing. If a record \
            is damaged, it copies nothing and exits with 65: repair the record first, or pass --allow-damage.

            Examples:
              tidemark store backup MyJournal.tidemark /backups/Monday.tidemark
              tidemark store backup MyJournal.tidemark /backups --json
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(
        help:
            "The path of the copy, which must not exist; or a folder, in which the copy is named after the container and the time."
    )
    var target: String

    @Option(help: "Shows a progress bar on standard error: auto (on a terminal), always or never.")
    var progress: ProgressMode = .auto

    @Flag(help: "Copies damaged records as they are, and names them on standard error.")
    var allowDamage = false

    @Flag(help: "Prints the summary as one JSON object.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let container = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            let bar = CopyingBar(progress)
            var backup = ContainerBackup(of: container, to: try fileURL(target, "the target"))
            backup.hook = MoveKillHook.hook
            backup.allowsDamage = allowDamage
            let summary = try backup.run { bar.show($0) }
            bar.finish()
            DamageNotes.tell(summary.damaged, "damaged, and copied as it is")
            if json { return try Output.json(summary) }
            try Output.line(
                "Backed up \(Wording.count(summary.stores, "store")) and \(Wording.count(summary.assets, "asset")), "
                    + "\(Wording.bytes(Int(summary.bytes))), to \(summary.path).")
        }
    }
}
