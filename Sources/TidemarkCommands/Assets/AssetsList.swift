import ArgumentParser
import TidemarkContainers
import TidemarkModel
import TidemarkStore

struct AssetsList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists the contents of assets, with their sizes and the records that name them.",
        discussion: """
            Examples:
              tidemark assets list MyJournal.tidemark
              tidemark assets list MyJournal.tidemark senja
              tidemark assets list MyJournal.tidemark --not-downloaded --json
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "Names of records: only their contents.")
    var records: [String] = []

    @Option(help: "The record type. (default: all types)")
    var type: String?

    @Flag(help: "Lists only contents that are in the cloud alone.")
    var notDownloaded = false

    @Flag(help: "Prints one JSON object per line.")
    var json = false

    private struct Line: Encodable {
        let asset: String
        let bytes: Int64
        let downloaded: Bool
        let records: [RecordName]
    }

    func run() async throws {
        try await reportingErrors {
            let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            let inventory = try AssetInventory(of: directory, findsRecords: true)
            let contents = try inventory.contents(of: records, type: type).filter { !notDownloaded || !$0.isDownloaded }
            if json {
                for content in contents {
                    try Output.json(
                        Line(
                            asset: content.id, bytes: content.size, downloaded: content.isDownloaded, records: content.records))
                }
                return
            }
            if !contents.isEmpty {
                var table = TextTable(columns: ["size", "content", "record", "asset"], cutsLast: false)
                for content in contents {
                    let more = content.records.count > 1 ? " and \(Wording.count(content.records.count - 1)) more" : ""
                    try table.add([
                        Wording.bytes(Int(content.size)), content.isDownloaded ? "here" : "in the cloud",
                        content.records.first.map { $0.title + more } ?? "(history)", content.id,
                    ])
                }
                try table.finish()
            }
            try Output.line("contents: \(AssetsReport(inventory).text)")
        }
    }
}
