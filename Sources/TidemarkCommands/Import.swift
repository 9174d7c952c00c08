public import ArgumentParser
import Foundation
public import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync
public import TidemarkTransfer

extension ImportFormat: ExpressibleByArgument {}
extension NestedJSON: ExpressibleByArgument {}
extension DateOrder: ExpressibleByArgument {}
extension StoreEnvironment: ExpressibleByArgument {}

/// `--map from=to`.
struct FieldMapping: ExpressibleByArgument {
    let from: String
    let to: String

    init?(argument: String) {
        guard let equals = argument.lastIndex(of: "="), equals != argument.startIndex else { return nil }
        from = String(argument[..<equals])
        to = String(argument[argument.index(after: equals)...])
        guard !to.isEmpty else { return nil }
    }
}

struct Import: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Imports records and their pictures from a manifest or a folder of photos.",
        discussion: """
            SOURCE is JSON (one object per line, an array, consecutive objects, or an object that contains an array of objects) or CSV, \
            a photo or a folder of photos, a zip archive of either, or '-' for standard input; JSON and CSV may be compressed (gzip, \
            zstd). Importing the same source again changes nothing; changed rows update their records, field by field. The command \
            refuses invalid rows with line, field and reason, and imports the rest.

            Without --id a record's name is derived from its content, so identical rows are one record, and an edited row is a second \
            record. With --id, a name that is not a UUID gets the type as a prefix, so that equal ids of different types do not collide.

            Examples:
              tidemark import journal.jsonl --into MyJournal.tidemark \\
                  --type Destination --id id --asset image
              tidemark import places.csv --into MyJournal.tidemark --type Place \\
                  --map "Date Taken=createdAt" --rejects rejects.jsonl
              tidemark import ~/Pictures --into MyJournal.tidemark
              tidemark import ~/Pictures --into MyJournal.tidemark \\
                  --max-pixels 2048 --quality 80 --thumbnails 256
              tidemark import orders.csv.gz --into Shop.tidemark --type Order --id id \\
                  --reference user=User --delimiter ';' --decimal-comma --time-zone Europe/Berlin
              tidemark import journal.jsonl --into MyJournal.tidemark \\
                  --type Destination --id id --dry-run
              tidemark import journal.jsonl --into MyJournal.tidemark \\
                  --type Destination --id id --sync
            """)

    @Argument(help: "The manifest, the folder of photos, or '-' for standard input.")
    var source: String

    @Option(help: ArgumentHelp("The container; created if it does not exist.", valueName: "dir"))
    var into: String

    @Option(help: "The record type. (default: Record; of photos: Photo)")
    var type: String?

    @Option(help: "auto, jsonl, json, csv or photos. Auto tells a folder, then the extension, then the first character.")
    var format: ImportFormat = .auto

    @Option(help: ArgumentHelp("The field that holds the record name.", valueName: "field"))
    var id: String?

    @Option(help: ArgumentHelp("Renames a field of the source. Can be repeated.", valueName: "from=to"))
    var map: [FieldMapping] = []

    @Option(help: ArgumentHelp("The folder to which asset paths are relative. (default: the manifest's)", valueName: "dir"))
    var assetsRoot: String?

    @Option(help: ArgumentHelp("A field whose values are paths of asset files. Can be repeated.", valueName: "field"))
    var asset: [String] = []

    @Flag(
        help: "Uses ids as record names unchanged, also if they are not UUIDs; they have to be unique over all types.")
    var plainIds = false

    @Option(
        help: ArgumentHelp(
            "A field that refers to records of a type by their ids. Can be repeated.", valueName: "field=type"))
    var reference: [FieldMapping] = []

    // Unconditional, because `-03:00` is a time zone and no option.
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The time zone of times without an offset: a name such as Europe/Berlin, or +02:00. (default: UTC)", valueName: "name"
        ))
    var timeZone: String?

    @Option(help: "Reads dates such as 5/1/2024: dmy (5 January) or mdy (May 1). Without it they are text.")
    var dateOrder: DateOrder?

    @Flag(help: "Reads the numbers of a CSV as 1.234,5 instead of 1234.5.")
    var decimalComma = false

    @Option(
        help: ArgumentHelp("The separator of a CSV's cells: a character, or tab. (default: a comma)", valueName: "character"))
    var delimiter: String?

    @Option(
        help: ArgumentHelp(
            "The encoding of the source, such as latin-1, windows-1252 or utf-16. (default: what its byte order mark says, else UTF-8)",
            valueName: "name"))
    var encoding: String?

    @Option(
        help: """
            Objects and lists within JSON rows: refuse, flatten (the city in address becomes address_city) or json (the text is kept).
            """)
    var nested: NestedJSON = .refuse

    @Option(help: ArgumentHelp("A schema file: declares types and fields.", valueName: "file"))
    var schema: String?

    @Option(help: "development: imports extend the schema; production: the schema is fixed. (default: the container's)")
    var environment: StoreEnvironment?

    @Option(
        help: ArgumentHelp(
            "Rows in a transaction; where pictures are scaled, 256 at most. (default: \(ImportOptions.defaultBatchSize); with --sync \(Uploading.batchSize))",
            valueName: "n"))
    var batch: Int?

    @Flag(help: "Reads, checks and compares everything, and writes nothing but the rejects file.")
    var dryRun = false

    @OptionGroup var pictures: PictureArguments

    @Option(help: ArgumentHelp("The file for refused rows, one JSON object per line.", valueName: "file"))
    var rejects: String?

    @Flag(help: "Continues an interrupted import of the same source.")
    var resume = false

    @Flag(help: "Exports the records to the account's cloud during the import, and synchronises; see 'tidemark account sign-in'.")
    var sync = false

    @Option(help: "Shows a progress bar on standard error: auto (on a terminal), always or never.")
    var progress: ProgressMode = .auto

    @Flag(help: "Prints the summary as one JSON object.")
    var json = false

    func validate() throws {
        if let delimiter, delimiter != "tab", delimiter != "\\t", delimiter.count != 1 {
            throw ValidationError("--delimiter takes one character, or the word tab")
        }
        _ = try zone()
        guard (1...1_000_000).contains(batch ?? 1) else { throw ValidationError("--batch takes a number from 1 to 1,000,000") }
        if sync, dryRun { throw ValidationError("--sync and --dry-run exclude each other; see 'tidemark sync --dry-run'") }
        if rejects == "-" { throw ValidationError("--rejects takes a file; to see the refused rows, name /dev/stderr") }
    }

    func run() async throws {
        try await reportingErrors {
            let (summary, result) = try await importing()
            // The import is reported also if sending its records has failed.
            let report = try? result?.get()
            if json {
                try Output.json(Report(summary: summary, sync: report))
                if let note = resumption(summary), summary.resumedAfter == nil {
                    Output.error("note: \(note.prefix(1).lowercased() + note.dropFirst())")
                }
            } else {
                try tell(summary)
                if let report { try Sync.tell(report) }
            }
            do {
                _ = try result?.get()
            } catch is CancellationError {
                throw ending("interrupted; what was imported stays, and 'tidemark sync' sends the rest", .interrupted)
            }
            if let failure = report.flatMap(Sync.failure) { throw failure }
            if summary.rejected > 0 { throw ExitCode(ExitStatus.dataError.rawValue) }
        }
    }

    /// The summary, and with `--sync` the report of the synchronisation.
    private struct Report: Encodable {
        let summary: ImportSummary
        let sync: SyncReport?

        private enum Key: CodingKey { case sync }

        func encode(to encoder: any Encoder) throws {
            try summary.encode(to: encoder)
            guard let sync else { return }
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(Sync.Report(sync), forKey: .sync)
        }
    }

    /// Imports. An error's message names what is left to do.
    private func importing() async throws -> (ImportSummary, Result<SyncReport, any Error>?) {
        let left = dryRun ? "nothing was imported" : "what was committed stays, and --resume goes on from there"
        do {
            return try await running()
        } catch is CancellationError {
            throw ending("interrupted; \(left)", .interrupted)
        } catch let error as ImportError where [.ioError, .temporaryFailure].contains(ExitStatus(error)) {
            throw ImportError(error.code, "\(error.message); \(left)", cause: error.cause)
        }
    }

    private func running() async throws -> (ImportSummary, Result<SyncReport, any Error>?) {
        let into = try fileURL(into, "the container")
        let schema = try schema.map { try fileURL($0, "the schema file") }
        let rejects = try rejects.map { try fileURL($0, "the rejects file") }
        if let schema, let rejects, let file = FileIdentity(schema), file == FileIdentity(rejects) {
            throw ImportError(
                .options, "the rejects cannot go to \(rejects.path): that is the schema file, which they would overwrite")
        }
        let source = try importSource()
        var options = ImportOptions(
            type: type ?? "Record", format: format, nameField: id, mappings: map.map { ($0.from, $0.to) },
            assetsRoot: try assetsRoot.map { try fileURL($0, "the folder of assets") }, assetFields: asset,
            schema: try schema.map(SchemaFile.read) ?? [],
            environment: environment, batchSize: batch ?? (sync ? Uploading.batchSize : ImportOptions.defaultBatchSize),
            isDryRun: dryRun, rejects: rejects, resumes: resume)
        if type == nil { options.photoType = "Photo" }
        options.namesHaveType = !plainIds
        options.references = reference.map { ($0.from, $0.to) }
        options.timeZone = try zone()
        (options.dateOrder, options.hasDecimalComma) = (dateOrder, decimalComma)
        options.delimiter = delimiter.map { ["tab", "\\t"].contains($0) ? "\t" : Character($0) }
        (options.encoding, options.nestedJSON) = (encoding, nested)
        options.pictures = pictures.options
        let bulkImport = BulkImport(source: source, into: into, options: options)
        var cloud: ContainerSync?
        if sync {
            do {
                cloud = try await CloudAccess(ContainerDirectory(openingAt: into)).sync()
            } catch let failure as ContainerEvent.Failure where failure.code == SyncErrorCode.anotherSyncer {
                Output.error("note: \(failure.reason); that sends the records")
            }
        }
        let running = Task { try await bulkImport.run() }
        let uploading = cloud.map { Uploading(with: $0) }
        let interruption = Interruption {
            running.cancel()
            uploading?.cancel()
        }
        defer { interruption.stop() }
        await show(bulkImport, running, uploading)
        let summary = try await running.value
        return (summary, await uploading?.report)
    }

    /// Shows the progress until the import, and the upload if there is one, have ended. Both share one bar.
    private func show(_ bulkImport: BulkImport, _ running: Task<ImportSummary, any Error>, _ uploading: Uploading?) async {
        let (steps, told) = AsyncStream.makeStream(of: ImportAndUpload.Step.self)
        let importing = Task {
            for await state in bulkImport.progress {
                uploading?.batchHasCome()
                told.yield(.imported(state))
            }
            guard let uploading else { return }
            if case .success(let summary) = await running.result {
                told.yield(.importHasEnded(summary))
                uploading.importHasEnded()
            } else {
                uploading.cancel()
            }
        }
        let sending = Task {
            guard let uploading else { return }
            for await sent in uploading.progress { told.yield(.sent(sent)) }
        }
        Task {
            await importing.value
            await sending.value
            told.finish()
        }
        let bar = ProgressBar(progress)
        var state = ImportAndUpload(isSent: uploading != nil)
        for await step in steps {
            state.apply(step)
            bar.show(state.label, done: state.done, total: state.total)
        }
        bar.finish()
    }

    /// The time zone of the options.
    private func zone() throws -> TimeZone {
        guard let name = timeZone else { return .gmt }
        if let zone = TimeZone(identifier: name) { return zone }
        let digits = name.dropFirst().split(separator: ":", maxSplits: 1)
        if name.hasPrefix("+") || name.hasPrefix("-"), digits.count == 2, digits.allSatisfy({ $0.utf8.count == 2 }),
            let hours = UInt(digits[0]), let minutes = UInt(digits[1]), hours <= 18, minutes < 60,
            let zone = TimeZone(secondsFromGMT: Int(hours * 3600 + minutes * 60) * (name.hasPrefix("-") ? -1 : 1))
        {
            return zone
        }
        throw ValidationError("there is no time zone '\(name)'; others are UTC, Europe/Berlin, America/New_York or +02:00")
    }

    private func importSource() throws -> ImportSource {
        if source == "-" { return .standardInput }
        var isDirectory: ObjCBool = false
        let url = try fileURL(source, "the source")
        let exists = FileManager.default.fileExists(atPath: url.path, isDirectory: &isDirectory)
        return exists && isDirectory.boolValue ? .folder(url) : .file(url)
    }

    private func tell(_ summary: ImportSummary) throws {
        var text = "Read \(Wording.count(summary.read, "record")) in \(Wording.duration(summary.duration)): "
        if summary.isDryRun { text += "would be " }
        text += "\(Wording.count(summary.changes.inserted)) new, \(Wording.count(summary.changes.updated)) updated, "
        text += "\(Wording.count(summary.changes.unchanged)) unchanged, \(Wording.count(summary.rejected)) refused."
        try Output.line(text)
        if summary.changes.repaired > 0 {
            try Output.line(
                "Damaged in the store, and repaired from this source: \(Wording.count(summary.changes.repaired, "record")).")
        }
        if summary.assets.referenced > 0 {
            try Output.line(
                "Assets: \(Wording.count(summary.assets.referenced)) named, \(Wording.count(summary.assets.stored)) new "
                    + "(\(Wording.bytes(summary.assets.bytes))), \(Wording.count(summary.assets.deduplicated)) there already.")
        }
        if let pictures = summary.pictures { try Output.line(PictureArguments.text(pictures, isDryRun: summary.isDryRun)) }
        for type in summary.newTypes { try Output.line("New type \(type.name): \(fields(of: type)).") }
        for type in summary.newFields { try Output.line("New fields of \(type.name): \(fields(of: type)).") }
        if let resumption = resumption(summary) { try Output.line(resumption) }
        if !summary.passedOver.isEmpty { try Output.line(passedOver(summary)) }
        tellNotes(summary)
        for field in summary.absentAssetFields {
            let renamed = map.first { $0.from == field }.map { "; --map calls it '\($0.to)'" } ?? ""
            Output.error("note: no row has a field '\(field)' (--asset)\(renamed)")
        }
        for field in summary.absentMappings { Output.error("note: no row has a field '\(field)' (--map)") }
        guard summary.rejected > 0 else { return }
        for rejection in summary.firstRejections {
            let field = rejection.field.isEmpty ? "" : ", field '\(rejection.field)'"
            Output.error("  line \(rejection.line)\(field): \(rejection.reason)")
        }
        if summary.rejected > summary.firstRejections.count {
            Output.error("  and \(Wording.count(summary.rejected - summary.firstRejections.count)) more")
        }
        Output.error(whereabouts(summary))
    }

    private func passedOver(_ summary: ImportSummary) -> String {
        let total = summary.passedOver.values.reduce(0, +)
        let kinds = summary.passedOver.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            .map { "\(Wording.count($0.value)) \($0.key.isEmpty ? "without a known extension" : $0.key)" }
        return "Passed over \(Wording.count(total, "file")) that are no photos: \(kinds.joined(separator: ", "))."
    }

    /// The folder of the files that values name, as far as the command line tells.
    private var filesFolder: String {
        if let assetsRoot { return assetsRoot }
        let folder = source == "-" ? "" : URL(fileURLWithPath: source).deletingLastPathComponent().relativePath
        return folder.isEmpty ? "." : folder
    }

    /// Prints notes on values whose meaning was guessed, with the options that change it.
    private func tellNotes(_ summary: ImportSummary) {
        func list(_ names: [String]) -> String { names.map { "'\($0)'" }.joined(separator: ", ") }
        if !summary.localTimeFields.isEmpty, timeZone == nil {
            Output.error(
                "note: times of \(list(summary.localTimeFields)) have no offset and were read as UTC; --time-zone NAME says otherwise"
            )
        }
        for field in summary.fileFields where !asset.contains(field) {
            Output.error(
                "note: the values of '\(field)' name files that are there, and --asset \(field) was not given. To take the files in: "
                    + "tidemark schema retype \(into) --type \(type ?? "Record") \(field) asset --base \(filesFolder)")
        }
        guard let columns = summary.namingColumns, summary.changes.inserted > 0 else { return }
        let likely = columns.filter { name in
            let name = name.lowercased()
            return ["id", "uuid", "guid", "key", "number", "nr", "no", "code", "isbn", "sku"].contains {
                name == $0 || name.hasSuffix("_\($0)")
            }
                || name.hasSuffix("id")
        }
        // Numbers that happen to differ in all rows, such as ratings, identify nothing.
        let numbers = Set((summary.newTypes + summary.newFields).flatMap(\.fields).filter { $0.type == .int64 }.map(\.name))
        let others = columns.filter { !likely.contains($0) && !numbers.contains($0) }
        let served = (likely + others).prefix(3).map { "--id \($0)" }.joined(separator: " or ")
        Output.error(
            "note: without --id, an edited row becomes a second record"
                + (served.isEmpty ? "; no column has a value of its own in each row" : "; \(served) would tell the rows apart"))
    }

    private func fields(of type: RecordTypeSchema) -> String {
        type.fields.isEmpty ? "no fields" : type.fields.map { "\($0.name) \($0.typeName)" }.joined(separator: ", ")
    }

    /// The sentence on the effect of `--resume`.
    private func resumption(_ summary: ImportSummary) -> String? {
        guard resume else { return nil }
        if let records = summary.resumedAfter {
            return "Went on after \(Wording.count(records, "record")) of the interrupted import; they are counted."
        }
        return dryRun
            ? "A dry run begins at the beginning." : "There was no interrupted import to go on with; it began at the beginning."
    }

    /// The sentence that says where the refused rows are.
    private func whereabouts(_ summary: ImportSummary) -> String {
        guard let rejects else { return "To have the refused rows in a file, add --rejects FILE." }
        guard summary.rejectedElsewhere > 0 else { return "The refused rows are in \(rejects)." }
        let here = Wording.count(summary.rejected - summary.rejectedElsewhere, "row")
        let before = Wording.count(summary.rejectedElsewhere)
        return "Of the refused rows, \(here) of this run are in \(rejects); "
            + "\(before) of the interrupted import are in that import's file, if it had one."
    }
}

/// A path of the command line as a file URL.
///
/// - Parameter what: The name of the file in the error.
/// - Throws: ``ImportError`` `options` when the path is empty. An empty path comes from an unset variable, and does not mean the
///   current folder.
func fileURL(_ path: String, _ what: String) throws(ImportError) -> URL {
    guard !path.isEmpty else { throw ImportError(.options, "the path of \(what) is empty; for the current folder, name '.'") }
    return URL(fileURLWithPath: path)
}
