import ArgumentParser
import Foundation
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

struct AssetsDownload: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "download", abstract: "Downloads contents of assets that are in the cloud alone.",
        discussion: """
            An interrupted download goes on where it stopped. Exit codes: 69 no account is signed in; 75 the cloud can't be reached, or \
            another process synchronises the container.

            Examples:
              tidemark assets download MyJournal.tidemark
              tidemark assets download MyJournal.tidemark senja lofoten
              tidemark assets download MyJournal.tidemark --type Destination --dry-run
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "Names of records: only their contents.")
    var records: [String] = []

    @Option(help: "The record type. (default: all types)")
    var type: String?

    @Flag(help: "Shows what would be downloaded; downloads nothing.")
    var dryRun = false

    @Option(help: "Shows a progress bar on standard error: auto (on a terminal), always or never.")
    var progress: ProgressMode = .auto

    @Flag(help: "Prints one JSON object.")
    var json = false

    private struct Report: Encodable {
        let downloaded: Int
        let bytes: Int64
        let dryRun: Bool
    }

    func run() async throws {
        try await reportingErrors {
            let directory = try containerToWrite(container, isDryRun: dryRun)
            let inventory = try AssetInventory(of: directory, findsRecords: true)
            // The cloud has usually deleted a content that only history names.
            let missing = try inventory.contents(of: records, type: type).filter { !$0.isDownloaded && !$0.records.isEmpty }
            if !dryRun, !missing.isEmpty { try await download(missing, into: directory) }
            let bytes = missing.reduce(0) { $0 + $1.size }
            if json { return try Output.json(Report(downloaded: missing.count, bytes: bytes, dryRun: dryRun)) }
            let contents = "\(Wording.count(missing.count, "content")), \(Wording.bytes(Int(bytes)))"
            try Output.line(dryRun ? "would be downloaded: \(contents)" : "downloaded \(contents)")
        }
    }

    private func download(_ contents: [AssetInventory.Content], into directory: ContainerDirectory) async throws {
        let access = try await CloudAccess(directory)
        try access.demandAccount()
        let sync = try access.sync()
        defer { sync.close() }
        let bar = LockedValue(ProgressBar(progress))
        let work = Task {
            try await sync.download(contents.map(\.id), priority: .utility) { done in
                bar.withLock {
                    $0.show(
                        "\(Wording.count(done.assets)) of \(Wording.count(done.totalAssets, "content"))  \(Wording.bytes(Int(done.bytes)))",
                        done: Int(done.bytes), total: Int(done.totalBytes))
                }
            }
        }
        let interruption = Interruption { work.cancel() }
        defer { interruption.stop() }
        let result = await work.result
        bar.withLock { $0.finish() }
        do {
            try result.get()
        } catch is CancellationError {
            throw ending("interrupted; what has come stays, and the next download goes on from there", .interrupted)
        }
    }
}
