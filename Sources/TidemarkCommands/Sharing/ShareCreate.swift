import ArgumentParser
import Tidemark
import TidemarkSQLite
import TidemarkStore

struct ShareCreate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create", abstract: "Shares records and their hierarchies.",
        discussion: """
            The records move into a zone of their own, with their pending edits, with the records that they own, and with those that \
            references without a declared relationship lead to, in either direction; --dry-run lists them. The share has no participants until you invite some. Records that are shared already \
            stay in their share, and the command names them.

            Examples:
              tidemark share create MyJournal.tidemark senja --dry-run
              tidemark share create MyJournal.tidemark senja
              tidemark share create MyJournal.tidemark Destination/senja \\
                  --title "Our Senja"
              tidemark share create MyJournal.tidemark --type Destination senja lofoten \\
                  --public read-only
              tidemark share create MyJournal.tidemark geysir --to senja
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: ArgumentHelp("The records: names, or TYPE/NAME.", valueName: "record"))
    var records: [String]

    @Option(help: "The record type, if names alone are ambiguous.")
    var type: String?

    @Option(help: "The title that people see. (default: the first record's field caption, title or name, else the record's name)")
    var title: String?

    @Option(
        name: .customLong("public"),
        help: "The permission of everybody with a link.")
    var publicPermission: GivenPermission = .none

    @Option(help: ArgumentHelp("Adds the records to an existing share.", valueName: "share"))
    var to: String?

    @Flag(help: "Shows which records would be shared; changes nothing.")
    var dryRun = false

    @OptionGroup var afterwards: SyncAfterwards

    @Flag(help: "Prints one JSON object.")
    var json = false

    func validate() throws {
        if to != nil, title != nil || publicPermission != .none {
            throw ValidationError("with --to, --title and --public are left to 'tidemark share set'")
        }
    }

    func run() async throws {
        try await reportingErrors {
            if dryRun { return try await preview() }
            let sharing = try await SharingAccess.open(container)
            let names = try names(in: sharing.container.directory)
            var existing: Share?
            if let to { existing = try await sharing.share(to) }
            let shared = try await sharing.container.fetchShares(matching: names)
            let share = try await sharing.container.share(
                names, to: existing, title: title ?? defaultTitle(names[0], sharing.container) ?? names[0].shortName,
                publicPermission: publicPermission.permission, in: sharing.databases)
            let isNew = names.contains { shared[$0] == nil }
            if !isNew, title != nil || publicPermission != .none {
                Output.error("note: the share is there already; 'tidemark share set' changes its title and what everybody may do")
            }
            let graph = try await sharing.container.graph(of: names)
            let what = names.map(\.title).joined(separator: ", ")
            let others =
                graph.count > names.count ? ", with \(Self.hanging(graph.count - names.count))" : ""
            let text =
                isNew
                ? "shared \(what)\(others) as \"\(share.caption)\""
                : "\(what) \(names.count == 1 ? "is" : "are") shared already as \"\(share.caption)\""
            try ShareOutcome.tell(
                text, share: share, records: graph, sync: try await afterwards.run(sharing), json: json)
        }
    }

    private static func hanging(_ count: Int) -> String {
        "\(Wording.count(count, "record")) that \(count == 1 ? "hangs" : "hang") on it"
    }

    private func names(in directory: ContainerDirectory) throws -> [RecordName] {
        try records.map { text in
            guard let found = try FoundRecord(text, type: type, in: nil, of: directory) else {
                throw StoreError(.notFound, "there is no record '\(text)'" + (type.map { " of type \($0)" } ?? ""))
            }
            return found.name
        }
    }

    private func preview() async throws {
        let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
        let journal = try PersistentContainer(directory: directory, author: "tidemark share", role: .tool)
        let graph = try await journal.graph(of: names(in: directory))
        if json { return try Output.json(["records": graph]) }
        try Output.line("would be shared: \(Wording.count(graph.count, "record"))")
        for record in graph { try Output.line("  \(record.title)") }
    }

    /// The first text among the record's fields `caption`, `title` and `name`.
    private func defaultTitle(_ record: RecordName, _ container: PersistentContainer) throws -> String? {
        guard let (schema, stored) = try StoreReader(container: container.directory).record(named: record.name) else {
            return nil
        }
        for name in ["caption", "title", "name"] {
            guard let index = schema.fields.firstIndex(where: { $0.name == name }) else { continue }
            if case .string(let text) = stored.values[index], !text.allSatisfy(\.isWhitespace) { return text }
        }
        return nil
    }
}
