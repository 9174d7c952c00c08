import ArgumentParser
import Foundation
import Synchronization
import TidemarkStore

struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Examines a container: database, records, assets.",
        discussion: """
            Checks, in one's own store and in that of what others share, SQLite's own integrity, every record against its digest, that every asset is there and has the content that its name \
            says, and that nothing else lies about in assets/ and staging/. Exits with 1 when it finds a problem.

            Examples:
              tidemark verify MyJournal.tidemark
              tidemark verify MyJournal.tidemark --json
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(help: "Shows a progress bar on standard error: auto (on a terminal), always or never.")
    var progress: ProgressMode = .auto

    @Flag(help: "Prints the report as one JSON object.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let container = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            // The examination reports from several threads.
            let bar = Mutex(ProgressBar(progress))
            let report = try StoreVerification(of: container).run { state in
                bar.withLock { $0.show("\(Wording.count(state.assets)) assets", done: state.assets, total: state.total) }
            }
            bar.withLock { $0.finish() }
            if json {
                try Output.json(report)
            } else {
                for problem in report.problems { try Output.line("\(problem.kind.rawValue): \(problem.message)") }
                let found = report.isOK ? "no problem" : Wording.count(report.problems.count, "problem")
                try Output.line(
                    "Verified \(Wording.count(report.records, "record")) and \(Wording.count(report.assets, "asset")): \(found).")
            }
            if !report.isOK { throw ExitCode(ExitStatus.problemsFound.rawValue) }
        }
    }
}
