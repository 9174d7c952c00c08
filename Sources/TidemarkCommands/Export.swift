import ArgumentParser
import Foundation
import TidemarkModel
import TidemarkStore
import TidemarkTransfer

extension BulkExport.Format: ExpressibleByArgument {}

struct Export: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Exports records as a manifest, and their assets as files.",
        discussion: """
            Importing an export again changes nothing. Without --assets, fields name their assets by identifier, which only the same \
            store understands. A damaged record is left out and named on standard error; the tool exits with 65 then.

            Examples:
              tidemark export MyJournal.tidemark --type Destination \\
                  --to backup/journal.jsonl --assets backup/pictures
              tidemark export MyJournal.tidemark --type Destination --to - \\
                  --format csv | head
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(help: "The record type.")
    var type: String

    @Option(help: "The store: private or shared.")
    var scope: DatabaseScope = .private

    @Option(help: ArgumentHelp("The file, or '-' for standard output.", valueName: "file"))
    var to: String

    @Option(help: "jsonl or csv. (default: by the file's extension, else jsonl)")
    var format: BulkExport.Format?

    @Option(help: ArgumentHelp("The folder that gets copies of the assets.", valueName: "dir"))
    var assets: String?

    @Option(help: "Shows a progress bar on standard error: auto (on a terminal), always or never.")
    var progress: ProgressMode = .auto

    @Flag(help: "Prints the summary as one JSON object (not with '--to -').")
    var json = false

    func validate() throws {
        if json, to == "-" { throw ValidationError("--json prints a summary, and '--to -' the records: they exclude each other") }
    }

    func run() async throws {
        try await reportingErrors {
            let container = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            let file = try fileURL(to, "the file to write")
            let target: BulkExport.Target = to == "-" ? .standardOutput : .file(file)
            let named = file.pathExtension.lowercased() == "csv" ? BulkExport.Format.csv : .jsonl
            let bar = ProgressBar(progress)
            let summary = try BulkExport(
                from: container, scope: scope, type: type, format: format ?? named, to: target,
                assets: assets.map { try fileURL($0, "the folder of assets") }
            ).run { summary, total in
                bar.show(
                    "\(Wording.count(summary.records, "record"))  \(Wording.bytes(summary.bytes))", done: summary.records,
                    total: total)
            }
            bar.finish()
            for problem in summary.problems.prefix(10) { Output.error("tidemark: \(problem)") }
            if to == "-" {
                // The records are all that may stand there.
            } else if json {
                try Output.json(summary)
            } else {
                let files = assets == nil ? "" : " and \(Wording.count(summary.assets, "asset"))"
                try Output.line(
                    "Exported \(Wording.count(summary.records, "record"))\(files), \(Wording.bytes(summary.bytes)), to \(to).")
            }
            for name in summary.damaged.prefix(10) { Output.error("tidemark: \(type) \(name) is damaged, and was left out") }
            if !summary.damaged.isEmpty {
                let more = summary.damaged.count > 10 ? ", the first 10 of them named above," : ""
                Output.error(
                    "tidemark: \(Wording.count(summary.damaged.count, "damaged record"))\(more) left out of the export; repair them with `tidemark verify --repair`"
                )
            }
            guard summary.problems.isEmpty else {
                let assets = Wording.count(summary.problems.count, "asset")
                throw ending(
                    "\(assets) could not be copied; the records that name them are exported. `tidemark verify` tells more",
                    .dataError)
            }
            if !summary.damaged.isEmpty { throw ExitCode(ExitStatus.dataError.rawValue) }
        }
    }
}
