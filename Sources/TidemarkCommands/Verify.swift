import ArgumentParser
import Foundation
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Examines a container: database, records, assets; repairs damaged records.",
        discussion: """
            The command checks both stores (private and shared): SQLite's integrity, every record against its digest, every asset \
            against the digest in its name, and that assets/ and staging/ contain no other files. It exits with 1 if it finds a problem.

            --repair repairs damaged records from the record itself, from history, and from the cloud if an account is signed in, as far \
            as a record's digest proves its former values. It also builds indexes again that do not match the records. --accept accepts a \
            damaged record as it is.

            Examples:
              tidemark verify MyJournal.tidemark
              tidemark verify MyJournal.tidemark --json
              tidemark verify MyJournal.tidemark --repair
              tidemark verify MyJournal.tidemark --accept Destination/lofoten
            """)

    @Argument(help: "The container.")
    var container: String

    @Flag(help: "Repairs damaged records before the examination.")
    var repair = false

    @Option(
        help: ArgumentHelp(
            "Accepts a damaged record as it is: NAME, or TYPE/NAME. It is sent to the cloud as an edit. Can be repeated.",
            valueName: "name"))
    var accept: [String] = []

    @Option(help: "Shows a progress bar on standard error: auto (on a terminal), always or never.")
    var progress: ProgressMode = .auto

    @Flag(help: "Prints the report as one JSON object.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let container = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            var repaired: [RepairReport.Repaired]?
            var rebuiltIndexes: [String]?
            if repair {
                repaired = try await repairRecords(of: container)
                rebuiltIndexes = try await rebuildIndexes(of: container)
            }
            if !accept.isEmpty { repaired = try await (repaired ?? []) + acceptRecords(of: container) }
            // The examination reports from several threads.
            let bar = LockedValue(ProgressBar(progress))
            var report = try StoreVerification(of: container).run { state in
                bar.withLock { $0.show("\(Wording.count(state.assets)) assets", done: state.assets, total: state.total) }
            }
            bar.withLock { $0.finish() }
            report.repaired = repaired
            report.rebuiltIndexes = rebuiltIndexes
            if json {
                try Output.json(report)
            } else {
                for it in repaired ?? [] { try Output.line(Self.line(it)) }
                for name in rebuiltIndexes ?? [] { try Output.line("rebuilt: the index \(name), from the records") }
                for problem in report.problems { try Output.line("\(problem.kind.rawValue): \(problem.message)") }
                let found = report.isOK ? "no problem" : Wording.count(report.problems.count, "problem")
                if report.notDownloaded > 0 {
                    let contents = Wording.count(report.notDownloaded, "content")
                    try Output.line(
                        "\(contents) (\(Wording.bytes(Int(report.notDownloadedBytes)))) not downloaded: in the cloud alone; 'tidemark assets download' fetches them"
                    )
                }
                try Output.line(
                    "Verified \(Wording.count(report.records, "record")) and \(Wording.count(report.assets, "asset")): \(found).")
            }
            if !report.isOK { throw ExitCode(ExitStatus.problemsFound.rawValue) }
        }
    }

    private static func line(_ it: RepairReport.Repaired) -> String {
        let record = it.record.title
        return switch it.source {
        case .digest: "repaired: \(record), in which one bit was flipped"
        case .history: "repaired: \(record), from its history"
        case .cloud: "repaired: \(record), from the cloud"
        case .accepted: "accepted: \(record), as it is"
        }
    }

    private func stores(of container: ContainerDirectory) throws -> [RecordStore] {
        var stores = [try RecordStore(container: container, notifier: StoreChangeNotifier(container: container, role: .tool))]
        if container.hasStore(.shared) {
            stores.append(
                try RecordStore(
                    container: container, scope: .shared, notifier: StoreChangeNotifier(container: container, role: .tool)))
        }
        return stores
    }

    /// Repairs the records that the container alone can repair, and asks the cloud for the others.
    private func repairRecords(of container: ContainerDirectory) async throws -> [RepairReport.Repaired] {
        var repaired: [RepairReport.Repaired] = []
        var needsCloud = false
        for store in try stores(of: container) {
            repaired += try await store.repair(try await store.damagedRows())
            // The cloud can have a record only if it has given a tag for it.
            if try await store.damagedRows().contains(where: { $0.tag != nil }) { needsCloud = true }
        }
        guard needsCloud else { return repaired }
        do {
            repaired += try await CloudAccess(container).sync().repair().repaired
        } catch let failure as ContainerEvent.Failure {
            // Repaired records stay repaired. The examination names the others.
            Output.error("note: the cloud was not asked for damaged records: \(failure.reason)")
        }
        return repaired
    }

    private func rebuildIndexes(of container: ContainerDirectory) async throws -> [String] {
        var rebuilt: [String] = []
        for store in try stores(of: container) { rebuilt += try await store.rebuildDamagedIndexes() }
        return rebuilt
    }

    private func acceptRecords(of container: ContainerDirectory) async throws -> [RepairReport.Repaired] {
        var accepted: [RepairReport.Repaired] = []
        var missing = accept
        for store in try stores(of: container) {
            let rows = try await store.damagedRows().filter { row in
                accept.contains { RecordName(type: row.type, name: row.name).isMeant(by: $0) }
            }
            missing.removeAll { name in rows.contains { RecordName(type: $0.type, name: $0.name).isMeant(by: name) } }
            if missing.isEmpty || !rows.isEmpty { accepted += try await store.accept(rows) }
        }
        if let name = missing.first {
            throw StoreError(.notFound, "there is no damaged record '\(name)'; 'tidemark verify' names those that there are")
        }
        return accepted
    }
}
