import ArgumentParser
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

struct AssetsEvict: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "evict", abstract: "Removes contents from the container that the cloud has; the records stay.",
        discussion: """
            The least recently used contents go first. The cloud is asked whether it has them. Contents stay that something names which was \
            not sent yet, and those that only history names. 'tidemark assets download' brings evicted contents back.

            Examples:
              tidemark assets evict MyJournal.tidemark
              tidemark assets evict MyJournal.tidemark --to 500MB
              tidemark assets evict MyJournal.tidemark senja --dry-run
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "Names of records: only their contents.")
    var records: [String] = []

    @Option(help: ArgumentHelp("How many bytes of contents may stay, such as 500MB. (default: 0)", valueName: "bytes"))
    var to: ByteCount?

    @Option(help: "The record type. (default: all types)")
    var type: String?

    @Flag(help: "Shows what would be removed; removes nothing.")
    var dryRun = false

    @Flag(help: "Prints one JSON object.")
    var json = false

    func validate() throws {
        if to != nil, !records.isEmpty || type != nil {
            throw ValidationError("--to is for all contents: it excludes names and --type")
        }
    }

    func run() async throws {
        try await reportingErrors {
            let directory = try containerToWrite(container, isDryRun: dryRun)
            var ids: [String]?
            if !records.isEmpty || type != nil {
                ids = try AssetInventory(of: directory, findsRecords: true).contents(of: records, type: type).map(\.id)
            }
            let access = try await CloudAccess(directory)
            try access.demandAccount()
            let sync = try access.sync()
            defer { sync.close() }
            let removal = try await sync.assets.evict(
                ids.map { Set($0) }, to: to?.bytes ?? 0, isDryRun: dryRun, hook: AssetKillHook.hook)
            if json { return try Output.json(RemovalLine(removal, dryRun: dryRun)) }
            try Output.line(RemovalLine(removal, dryRun: dryRun).text("evicted"))
            if removal.kept > 0 {
                try Output.line(
                    "\(Wording.count(removal.kept, "content")) stayed: the cloud does not have what names them, or does not have them"
                )
            }
        }
    }
}

/// The removed contents, as the commands print them.
struct RemovalLine: Encodable {
    let removed: Int
    let bytes: Int64
    let kept: Int
    let dryRun: Bool

    init(_ removal: AssetRemoval, dryRun: Bool) {
        (removed, bytes, kept, self.dryRun) = (removal.assets, removal.bytes, removal.kept, dryRun)
    }

    func text(_ verb: String) -> String {
        let contents = "\(Wording.count(removed, "content")), \(Wording.bytes(Int(bytes)))"
        return dryRun ? "would be \(verb): \(contents)" : "\(verb) \(contents)"
    }
}
