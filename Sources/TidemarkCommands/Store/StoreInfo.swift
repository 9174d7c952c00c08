import ArgumentParser
import Foundation
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

struct StoreInfo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "info",
        abstract: "Shows the contents of a container.",
        discussion: """
            The command prints the container's name, identity and environment, and for each store its size, records by type, last \
            transaction, assets, pages in the write-ahead log, and whether another process has it open, as far as that can be found out.

            Examples:
              tidemark store info MyJournal.tidemark
              tidemark store info MyJournal.tidemark --json
            """)

    @Argument(help: "The container.")
    var container: String

    @Flag(help: "Prints one JSON object.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let summary = try ContainerSummary(of: ContainerDirectory(openingAt: fileURL(container, "the container")))
            if json {
                try Output.json(Report(summary))
            } else {
                try show(summary)
            }
        }
    }

    private func show(_ summary: ContainerSummary) throws {
        let container = summary.container
        try Output.line("name         \(container.description.name)")
        try Output.line("identity     \(container.description.identity.uuidString)")
        try Output.line("environment  \(container.description.environment.rawValue)")
        try Output.line("format       \(container.description.format)")
        try Output.line("path         \(container.url.path)")
        if summary.stores.isEmpty { try Output.line("It has no store yet.") }
        for store in summary.stores {
            try Output.line("")
            let log = Wording.count(store.pagesInLog, "page")
            try Output.line(
                "\(container.store(store.scope).lastPathComponent)  \(Wording.bytes(Int(store.bytes))), \(log) in the log")
            try Output.line("    assets            \(Wording.count(store.assets)), \(Wording.bytes(Int(store.assetBytes)))")
            try Output.line("    last transaction  \(Self.text(store.lastTransaction))")
            try Output.line("    open elsewhere    \(store.isOpenElsewhere.map { $0 ? "yes" : "no" } ?? "can't be told")")
            for type in store.types { try Output.line("    type \(type.name): \(Wording.count(type.records, "record"))") }
        }
    }

    private static func text(_ transaction: HistoryTransaction?) -> String {
        guard let it = transaction else { return "none" }
        let counts = "\(it.inserted) inserted, \(it.updated) updated, \(it.deleted) deleted"
        return "\(it.id), \(Timestamp.text(microseconds: it.time)), by \(it.author) (\(it.origin)): \(counts)"
    }

    /// The output of `--json`.
    private struct Report: Encodable {
        struct Transaction: Encodable {
            let id: Int64
            let time, author, origin: String
            let inserted, updated, deleted: Int
        }
        struct Assets: Encodable {
            let count: Int
            let bytes: Int64
        }
        struct RecordType: Encodable {
            let name: String
            let records: Int
        }
        struct StoreReport: Encodable {
            let scope: String
            let bytes: Int64
            let pagesInLog, records: Int
            let types: [RecordType]
            let lastTransaction: Transaction?
            let assets: Assets
            /// Whether another process has the container open; left out if that is not known.
            let openElsewhere: Bool?
        }
        let name, identity, environment, path: String
        let format: Int
        let stores: [StoreReport]

        init(_ summary: ContainerSummary) {
            let description = summary.container.description
            (name, identity) = (description.name, description.identity.uuidString)
            (environment, path) = (description.environment.rawValue, summary.container.url.path)
            format = description.format
            stores = summary.stores.map { store in
                StoreReport(
                    scope: store.scope.name, bytes: store.bytes, pagesInLog: store.pagesInLog, records: store.records,
                    types: store.types.map { RecordType(name: $0.name, records: $0.records) },
                    lastTransaction: store.lastTransaction.map {
                        Transaction(
                            id: $0.id, time: Timestamp.text(microseconds: $0.time), author: $0.author, origin: $0.origin.rawValue,
                            inserted: $0.inserted, updated: $0.updated, deleted: $0.deleted)
                    },
                    assets: Assets(count: store.assets, bytes: store.assetBytes), openElsewhere: store.isOpenElsewhere)
            }
        }
    }
}
