import ArgumentParser
import TidemarkModel
import TidemarkStore

struct Records: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows, sets and deletes records.",
        discussion: """
            Examples:
              tidemark records MyJournal.tidemark --type Destination --sort createdAt --descending
              tidemark records get MyJournal.tidemark lofoten
              tidemark records set MyJournal.tidemark lofoten --type Destination caption="Lofoten in May"
              tidemark records delete MyJournal.tidemark lofoten
            """,
        subcommands: [RecordsList.self, RecordsGet.self, RecordsSet.self, RecordsDelete.self],
        defaultSubcommand: RecordsList.self)
}

extension DatabaseScope: ExpressibleByArgument {
    public init?(argument: String) {
        guard let scope = ContainerDirectory.scopes.first(where: { $0.name == argument }) else { return nil }
        self = scope
    }

    public var defaultValueDescription: String { name }
    public static var allValueStrings: [String] { ContainerDirectory.scopes.map(\.name) }
}
