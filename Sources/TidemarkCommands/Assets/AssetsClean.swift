import ArgumentParser
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

struct AssetsClean: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clean", abstract: "Removes contents that no record and no history names any more.",
        discussion: """
            Both stores are asked. Contents of earlier versions of records stay as long as history has these versions, so that they can be \
            undone. No account is needed. Exit code 75: another process takes files in; try again later.

            Examples:
              tidemark assets clean MyJournal.tidemark
              tidemark assets clean MyJournal.tidemark --dry-run --json
            """)

    @Argument(help: "The container.")
    var container: String

    @Flag(help: "Shows what would be removed; removes nothing.")
    var dryRun = false

    @Flag(help: "Prints one JSON object.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let directory = try containerToWrite(container, isDryRun: dryRun)
            let scopes = ContainerDirectory.scopes.filter { $0 == .private || directory.hasStore($0) }
            let stores = try scopes.map { scope in
                try RecordStore(
                    container: directory, scope: scope, notifier: StoreChangeNotifier(container: directory, role: .tool))
            }
            let removal = try await AssetCleaning(directory, stores: stores).removeUnnamed(
                isDryRun: dryRun, hook: AssetKillHook.hook)
            if json { return try Output.json(RemovalLine(removal, dryRun: dryRun)) }
            try Output.line(RemovalLine(removal, dryRun: dryRun).text("removed"))
        }
    }
}
