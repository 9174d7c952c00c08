public import ArgumentParser
import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
public import TidemarkTransfer

extension BulkExport.Format: ExpressibleByArgument {}

struct Export: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Exports records as a manifest, and their assets as files.",
        discussion: """
            Importing an export again changes nothing. Without --assets, fields hold asset identifiers, which are valid only in the same \
            store. Copies of assets are named after the caption, title or name of their first record; with --asset-names identifier, \
            after their content. The command leaves damaged records out, names them on standard error, and exits with 65.

            With several types, without --type (all types), or if --to names a folder, each type gets a folder inside it: \
            FOLDER/TYPE/TYPE.jsonl, with its assets beside it.

            Examples:
              tidemark export MyJournal.tidemark --to backup/
              tidemark export MyJournal.tidemark --type Destination \\
                  --to backup/journal.jsonl --assets backup/pictures
              tidemark export MyJournal.tidemark --type Destination --to - \\
                  --format csv | head
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(name: .customLong("type"), help: "A record type; may be given several times. (default: all types)")
    var types: [String] = []

    @Option(name: .customLong("scope"), help: "The store: private or shared. (default: private)")
    var chosenScope: StoreScope?

    var scope: StoreScope { chosenScope ?? .private }

    @Option(help: ArgumentHelp("The file, a folder, or '-' for standard output.", valueName: "file"))
    var to: String

    @Option(help: "jsonl or csv. (default: by the file's extension, else jsonl)")
    var format: BulkExport.Format?

    @Option(help: ArgumentHelp("The folder that gets copies of the assets.", valueName: "dir"))
    var assets: String?

    enum AssetNaming: String, CaseIterable, ExpressibleByArgument {
        case readable, identifier
    }

    @Option(help: "How to name copies of assets: readable or identifier.")
    var assetNames: AssetNaming = .readable

    @Option(help: "Shows a progress bar on standard error: auto (on a terminal), always or never.")
    var progress: ProgressMode = .auto

    @Flag(help: "Prints the summary as one JSON object (not with '--to -').")
    var json = false

    func validate() throws {
        if json, to == "-" { throw ValidationError("--json prints a summary, and '--to -' the records: they exclude each other") }
    }

    private struct Report: Encodable {
        var types: [String: BulkExport.Summary] = [:]
    }

    /// Exports each type into a folder of its own.
    private func exportFolders(_ container: ContainerDirectory, _ types: [String], to folder: URL) throws {
        guard to != "-" else {
            throw ImportError(.options, "several types can't be written to standard output; name one with --type")
        }
        guard assets == nil else {
            throw ImportError(.options, "--assets is for one file; in a folder, the assets of each type lie beside its records")
        }
        let format = format ?? .jsonl
        var report = Report()
        let bar = ProgressBar(progress)
        for type in types {
            let place = folder.appendingPathComponent(type, isDirectory: true)
            do {
                try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            } catch {
                throw ImportError(.output, "cannot make the folder \(place.path): \(error.localizedDescription)")
            }
            let summary = try BulkExport(
                from: container, scope: scope, type: type, format: format,
                to: .file(place.appendingPathComponent("\(type).\(format.rawValue)")), assets: place,
                namesAssetsForPeople: assetNames == .readable
            ).run { summary, total in
                bar.show("\(type): \(Wording.count(summary.records, "record"))", done: summary.records, total: total)
            }
            report.types[type] = summary
        }
        bar.finish()
        if json {
            try Output.json(report)
        } else {
            for type in types {
                guard let summary = report.types[type] else { continue }
                let files = summary.assets == 0 ? "" : " and \(Wording.count(summary.assets, "asset"))"
                try Output.line(
                    "Exported \(Wording.count(summary.records, "record"))\(files) of \(type), \(Wording.bytes(summary.bytes)).")
            }
        }
        let problems = types.flatMap { report.types[$0]?.problems ?? [] }
        for problem in problems.prefix(10) { Output.error("tidemark: \(problem)") }
        let damaged = types.flatMap { type in
            (report.types[type]?.damaged ?? []).map { RecordName(type: type, name: $0) }
        }
        tellDamaged(damaged)
        guard problems.isEmpty else {
            throw ending(
                "\(Wording.count(problems.count, "asset")) could not be copied; the records that name them are exported",
                .dataError)
        }
        if !damaged.isEmpty { throw ExitCode(ExitStatus.dataError.rawValue) }
    }

    /// Names the records on standard error that are damaged and not exported.
    private func tellDamaged(_ records: [RecordName]) {
        guard !records.isEmpty else { return }
        for record in records.prefix(10) { Output.error("tidemark: \(record.title) is damaged, and was left out") }
        let more = records.count > 10 ? ", the first 10 of them named above," : ""
        Output.error(
            "tidemark: \(Wording.count(records.count, "damaged record"))\(more) left out of the export; repair them with `tidemark verify --repair`"
        )
    }

    /// The types that are exported, and whether into folders.
    private func selection(_ container: ContainerDirectory) throws -> (types: [String], inFolders: Bool) {
        let reader = try StoreReader(container: container, scope: scope)
        let known = try reader.types().map(\.name)
        for type in types where !known.contains(type) {
            let remedy = Suggestion.question(type, among: known)
            throw StoreError(
                .schema,
                "the \(scope.name) store has no record type '\(type)'; it has \(known.isEmpty ? "none yet" : known.joined(separator: ", "))\(remedy)"
            )
        }
        var isDirectory: ObjCBool = false
        let isFolder =
            to.hasSuffix("/") || FileManager.default.fileExists(atPath: to, isDirectory: &isDirectory) && isDirectory.boolValue
        let wanted = types.isEmpty ? known : types
        guard !wanted.isEmpty else { throw StoreError(.notFound, "there are no records yet: nothing to export") }
        return (wanted, isFolder || types.count != 1 && to != "-" || wanted.count > 1)
    }

    func run() async throws {
        try await reportingErrors {
            let container = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            let (selected, inFolders) = try selection(container)
            if types.isEmpty, scope == .private, container.hasStore(.shared),
                try !StoreReader(container: container, scope: .shared).types().isEmpty
            {
                Output.error("note: the records that others share are not exported; --scope shared exports them")
            }
            // The readable records are exported, so that they can be rescued.
            let lost = try LogExamination(of: container.store(scope).path)
            if let lost { Output.error("tidemark: \(lost.message)") }
            if inFolders {
                try exportFolders(container, selected, to: fileURL(to, "the folder to write"))
            } else {
                try exportFile(container, selected[0])
            }
            if lost != nil { throw ExitCode(ExitStatus.dataError.rawValue) }
        }
    }

    private func exportFile(_ container: ContainerDirectory, _ type: String) throws {
        let file = try fileURL(to, "the file to write")
        let target: BulkExport.Target = to == "-" ? .standardOutput : .file(file)
        let named = file.pathExtension.lowercased() == "csv" ? BulkExport.Format.csv : .jsonl
        let bar = ProgressBar(progress)
        let summary = try BulkExport(
            from: container, scope: scope, type: type, format: format ?? named, to: target,
            assets: assets.map { try fileURL($0, "the folder of assets") }, namesAssetsForPeople: assetNames == .readable
        ).run { summary, total in
            bar.show(
                "\(Wording.count(summary.records, "record"))  \(Wording.bytes(summary.bytes))", done: summary.records,
                total: total)
        }
        bar.finish()
        for problem in summary.problems.prefix(10) { Output.error("tidemark: \(problem)") }
        if to == "-" {
            // Standard output gets the records only.
        } else if json {
            try Output.json(summary)
        } else {
            let files = assets == nil ? "" : " and \(Wording.count(summary.assets, "asset"))"
            try Output.line(
                "Exported \(Wording.count(summary.records, "record"))\(files), \(Wording.bytes(summary.bytes)), to \(to).")
        }
        tellDamaged(summary.damaged.map { RecordName(type: type, name: $0) })
        guard summary.problems.isEmpty else {
            let assets = Wording.count(summary.problems.count, "asset")
            throw ending(
                "\(assets) could not be copied; the records that name them are exported. `tidemark verify` tells more",
                .dataError)
        }
        if !summary.damaged.isEmpty { throw ExitCode(ExitStatus.dataError.rawValue) }
    }
}
