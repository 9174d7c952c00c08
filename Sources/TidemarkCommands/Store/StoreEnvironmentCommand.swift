import ArgumentParser
import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

struct StoreEnvironmentCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "environment",
        abstract: "Shows a container's environment, or makes a development container a production one.",
        discussion: """
            In production the schema is fixed: it grows by what the cloud brings, and by 'tidemark schema apply'. The production environment of a \
            cloud has other records than the development environment: after the next sign-in, all records are sent there. Have the schema \
            deployed first ('tidemark admin schema deploy'), and sign out with 'tidemark account sign-out --records keep'. A production \
            container does not become a development one again.

            Examples:
              tidemark store environment MyJournal.tidemark
              tidemark store environment MyJournal.tidemark production --dry-run
              tidemark store environment MyJournal.tidemark production
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "production; without it, the command prints the environment.")
    var environment: StoreEnvironment?

    @Flag(help: "Prints what would be changed, and changes nothing.")
    var dryRun = false

    @OptionGroup var outcome: Outcome

    func run() async throws {
        try await reportingErrors {
            let directory = try containerToWrite(container, isDryRun: dryRun || environment == nil)
            let now = directory.description.environment
            guard let environment else {
                return try outcome.tell("store environment", ["environment": now.rawValue], text: now.rawValue)
            }
            guard environment == .production || now == .development else {
                throw StoreError(
                    .invalid,
                    "\(directory.url.path) is a production container, and stays one; import its records into a new container instead"
                )
            }
            guard environment == .production else {
                return try outcome.tell(
                    "store environment", ["environment": now.rawValue, "changed": false, "dryRun": dryRun],
                    text: "\(directory.url.path) is a development container: nothing to do")
            }
            let change = try await directory.makeProduction(isDryRun: dryRun)
            let path = directory.url.path
            let records = Wording.count(change.records, "record")
            let text =
                !change.isChanged
                ? "\(path) is a production container: nothing to do"
                : dryRun
                    ? "\(path) would become a production container; the production environment would get \(records)"
                    : "\(path) is a production container now; the production environment gets \(records) with the next sync"
            try outcome.tell(
                "store environment",
                [
                    "environment": (dryRun ? now : .production).rawValue, "changed": change.isChanged && !dryRun,
                    "dryRun": dryRun,
                    "records": change.records, "types": change.types,
                ], text: text)
        }
    }
}
