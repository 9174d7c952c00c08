import ArgumentParser
import Foundation
import TidemarkEmbeddedCloud

struct AdminVerify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Examines a cloud: databases, records, shares, assets.",
        discussion: """
            Checks each database of a directory by SQLite's own means, every record, share and zone against its digest, that each asset which a record \
            names is there, and the content of every asset. 'tidemark serve' may run meanwhile. Exits with 1 when it finds a problem.

            With --repair, the cloud reports damaged records to all devices; a device with an undamaged copy sends it again with its \
            next sync.

            Examples:
              tidemark admin verify --data ~/cloud
              tidemark admin verify --data ~/cloud --repair
              tidemark admin verify --data ~/cloud --json
            """)

    @OptionGroup var place: AdminData

    @Flag(help: "Makes devices send damaged records again.")
    var repair = false

    @Option(help: "Shows progress on standard error: auto (on a terminal), always or never.")
    var progress: ProgressMode = .auto

    @Flag(help: "Prints the report as one JSON object.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let bar = ProgressBar(progress)
            let show = { (state: CloudVerification.Progress) in
                bar.show(
                    "\(state.place)  \(Wording.count(state.records, "record")), \(Wording.count(state.assets, "asset"))", done: 0,
                    total: nil)
            }
            let report =
                if let database = try await place.openedDatabase() { try await database.verify(show) } else {
                    try CloudVerification(of: try place.existing()).run(progress: show)
                }
            bar.finish()
            if json {
                try Output.json(report)
            } else {
                for problem in report.problems { try Output.line("\(problem.kind.rawValue): \(problem.message)") }
                let found = report.isOK ? "no problem" : Wording.count(report.problems.count, "problem")
                try Output.line(
                    "Verified \(Wording.count(report.records, "record")) and \(Wording.count(report.assets, "asset")) of "
                        + "\(Wording.containers(report.containers, environments: report.environments)): \(found).")
            }
            if repair, report.problems.contains(where: { $0.kind == .record }) {
                let count = try await place.open().cloud.reportDamage()
                Output.error(
                    count > 0
                        ? "note: devices are notified of \(Wording.count(count, "damaged record")); a device with an undamaged copy sends it again"
                        : "note: devices have been told of the damaged records before")
            }
            if !report.isOK { throw ExitCode(ExitStatus.problemsFound.rawValue) }
        }
    }
}
