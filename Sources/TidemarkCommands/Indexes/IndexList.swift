import ArgumentParser
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

struct IndexList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists the declared indexes.",
        discussion: """
            The last column is who declared the index: program, schema (a schema file) or command (`tidemark index add`).

            Examples:
              tidemark index list MyJournal.tidemark
              tidemark index list MyJournal.tidemark --type Destination --json
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(help: "The record type. (default: all types)")
    var type: String?

    @Flag(help: "Prints one JSON array.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            var lines: [IndexLine] = []
            for scope in ContainerDirectory.scopes where scope == .private || directory.hasStore(scope) {
                for known in try StoreReader(container: directory, scope: scope).indexes() {
                    guard type == nil || type == known.type else { continue }
                    lines += known.indexes.map { IndexLine($0, type: known.type, scope: scope) }
                }
            }
            guard !json else { return try Output.json(lines) }
            guard !lines.isEmpty else { return try Output.line("no index is declared") }
            var table = TextTable(columns: ["type", "kind", "fields", "language", "store", "declared by"])
            for line in lines {
                try table.add([
                    line.type, line.kind, line.fields.joined(separator: ", "), line.language ?? "", line.store, line.declaredBy,
                ])
            }
            try table.finish()
        }
    }
}
